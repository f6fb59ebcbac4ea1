//! Contexts: one per device in practice, and a stack of current ones per thread.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use simcuda_common::code::{INVALID_CONTEXT, INVALID_VALUE, Outcome, PEER_ACCESS_NOT_ENABLED};
use simcuda_common::ffi::{In, Out};
use simcuda_common::log;

use crate::driver::{Driver, driver};
use crate::types::{Device, Handle, Uuid};

/// A context.
#[derive(Debug)]
pub struct Context {
    pub device: usize,
    is_primary: bool,
}

/// The deepest stack of contexts of one thread.
const DEPTH: usize = 64;

/// A context on the stack; handle 0 stands for none.
#[derive(Clone, Copy, Debug)]
pub struct Current {
    pub context: Handle,
    pub device: usize,
}

const NONE: Current = Current {
    context: 0,
    device: 0,
};

/// The calling thread's stack of contexts. Has no destructor, so that it can be used
/// while the thread ends, when other libraries' destructors still call.
struct Stack {
    entries: [Cell<Current>; DEPTH],
    depth: Cell<usize>,
    correlation: Cell<u64>,
}

thread_local! {
    static STACK: Stack = const {
        Stack { entries: [const { Cell::new(NONE) }; DEPTH], depth: Cell::new(0), correlation: Cell::new(0) }
    };
}

impl Stack {
    fn top(&self) -> Current {
        self.depth
            .get()
            .checked_sub(1)
            .map_or(NONE, |top| self.entries[top].get())
    }

    fn push(&self, current: Current) -> Outcome {
        let depth = self.depth.get();
        self.entries.get(depth).ok_or(INVALID_VALUE)?.set(current);
        self.depth.set(depth + 1);
        Ok(())
    }

    fn pop(&self) -> Result<Current, c_int> {
        let top = self.depth.get().checked_sub(1).ok_or(INVALID_CONTEXT)?;
        self.depth.set(top);
        Ok(self.entries[top].get())
    }

    fn replace_top(&self, current: Current) -> Outcome {
        if self.depth.get() > 0 {
            self.depth.set(self.depth.get() - 1);
        }
        if current.context == 0 {
            Ok(())
        } else {
            self.push(current)
        }
    }
}

/// The calling thread's current context; an error if it has none.
pub fn current() -> Result<Current, c_int> {
    let top = STACK.with(Stack::top);
    if top.context == 0 {
        Err(INVALID_CONTEXT)
    } else {
        Ok(top)
    }
}

/// Ordinal of the calling thread's current device, 0 if it has none.
pub fn current_device_or_first() -> usize {
    STACK.with(Stack::top).device
}

/// For the API hook.
pub extern "C" fn current_context() -> *mut c_void {
    STACK.with(Stack::top).context as *mut c_void
}

/// For the API hook: the thread's correlation number.
pub extern "C" fn correlation_slot() -> *mut u64 {
    STACK.with(|stack| stack.correlation.as_ptr())
}

/// The entry for the stack that `context` stands for.
fn lookup(driver: &Driver, context: Handle) -> Result<Current, c_int> {
    if context == 0 {
        return Ok(NONE);
    }
    let device = driver
        .contexts
        .get(context)
        .map_err(|_| INVALID_CONTEXT)?
        .device;
    Ok(Current { context, device })
}

/// The primary context of a device; made, and charged to the device, when first needed.
pub fn primary(driver: &Driver, ordinal: Device) -> Result<Handle, c_int> {
    let device = driver.device(ordinal)?;
    let mut state = device.state.lock().expect("no panics");
    if let Some(context) = state.primary_context {
        return Ok(context);
    }
    device.take(driver.settings.context_memory as usize)?;
    let context = driver.contexts.insert(Context {
        device: ordinal as usize,
        is_primary: true,
    });
    state.primary_context = Some(context);
    log!("primary context of device {ordinal}");
    Ok(context)
}

fn create(context: Out<Handle>, device: Device) -> Outcome {
    let driver = driver()?;
    driver.device(device)?;
    let handle = driver.contexts.insert(Context {
        device: device as usize,
        is_primary: false,
    });
    STACK.with(|stack| {
        stack.push(Current {
            context: handle,
            device: device as usize,
        })
    })?;
    context.set(handle)
}

crate::driver_api! {
    fn cuDevicePrimaryCtxRetain(context: Out<Handle>, device: Device) {
        let driver = driver()?;
        let handle = primary(driver, device)?;
        driver.device(device)?.state.lock().expect("no panics").primary_retained += 1;
        context.set(handle)
    }

    // The context stays: objects made in it may still be used, as by PyTorch at exit.
    fn cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2(device: Device) {
        let mut state = driver()?.device(device)?.state.lock().expect("no panics");
        state.primary_retained = state.primary_retained.checked_sub(1).ok_or(INVALID_CONTEXT)?;
        Ok(())
    }

    fn cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2(device: Device) {
        driver()?.device(device).map(|_| ())
    }

    fn cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2(device: Device, flags: c_uint) {
        driver()?.device(device)?.state.lock().expect("no panics").primary_flags = flags;
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(device: Device, flags: Out<c_uint>, active: Out<c_int>) {
        let state = driver()?.device(device)?.state.lock().expect("no panics");
        flags.set_if_wanted(state.primary_flags);
        active.set_if_wanted(c_int::from(state.primary_retained > 0));
        Ok(())
    }

    fn cuCtxCreate, cuCtxCreate_v2(context: Out<Handle>, _flags: c_uint, device: Device) {
        create(context, device)
    }

    fn cuCtxCreate_v3(
        context: Out<Handle>, _affinity: *mut c_void, _count: c_int, _flags: c_uint, device: Device,
    ) {
        create(context, device)
    }

    fn cuCtxCreate_v4(context: Out<Handle>, _params: *mut c_void, _flags: c_uint, device: Device) {
        create(context, device)
    }

    fn cuCtxDestroy, cuCtxDestroy_v2(context: Handle) {
        let driver = driver()?;
        if driver.contexts.get(context).map_err(|_| INVALID_CONTEXT)?.is_primary {
            return Err(INVALID_CONTEXT);
        }
        driver.contexts.remove(context)?;
        if STACK.with(Stack::top).context == context {
            STACK.with(Stack::pop)?;
        }
        Ok(())
    }

    fn cuCtxGetCurrent(context: Out<Handle>) {
        driver()?;
        context.set(STACK.with(Stack::top).context)
    }

    fn cuCtxSetCurrent(context: Handle) {
        let current = lookup(driver()?, context)?;
        STACK.with(|stack| stack.replace_top(current))
    }

    fn cuCtxPushCurrent, cuCtxPushCurrent_v2(context: Handle) {
        let current = lookup(driver()?, context)?;
        if current.context == 0 {
            return Err(INVALID_CONTEXT);
        }
        STACK.with(|stack| stack.push(current))
    }

    fn cuCtxPopCurrent, cuCtxPopCurrent_v2(context: Out<Handle>) {
        driver()?;
        let popped = STACK.with(Stack::pop)?;
        context.set_if_wanted(popped.context);
        Ok(())
    }

    fn cuCtxGetDevice(device: Out<Device>) {
        driver()?;
        device.set(current()?.device as Device)
    }

    fn cuCtxGetDevice_v2(device: Out<Device>, context: Handle) {
        let context = if context == 0 { current()?.context } else { context };
        device.set(lookup(driver()?, context)?.device as Device)
    }

    fn cuCtxGetFlags(flags: Out<c_uint>) {
        driver()?;
        current()?;
        flags.set(0)
    }

    fn cuCtxGetApiVersion(_context: Handle, version: Out<c_uint>) {
        version.set(driver()?.settings.driver_version as c_uint)
    }

    fn cuCtxGetId(context: Handle, id: Out<c_ulonglong>) {
        let context = if context == 0 { current()?.context } else { context };
        lookup(driver()?, context)?;
        // The low bits of a handle count the contexts of the process from 1.
        id.set(((context >> 4) & 0xffff_ffff) as c_ulonglong)
    }

    fn cuCtxSynchronize() {
        let driver = driver()?;
        crate::pool::release_above_threshold(driver, current()?.device);
        Ok(())
    }

    fn cuCtxSynchronize_v2(context: Handle) {
        let driver = driver()?;
        crate::pool::release_above_threshold(driver, lookup(driver, context)?.device);
        Ok(())
    }

    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        driver()?;
        least.set_if_wanted(0);
        greatest.set_if_wanted(-5);
        Ok(())
    }

    fn cuCtxGetLimit(value: Out<usize>, _limit: c_int) {
        driver()?;
        value.set(1024)
    }

    fn cuCtxSetLimit(_limit: c_int, _value: usize) {
        driver().map(|_| ())
    }

    fn cuCtxGetCacheConfig(config: Out<c_int>) {
        driver()?;
        config.set(0)
    }

    fn cuCtxSetCacheConfig(_config: c_int) {
        driver().map(|_| ())
    }

    // All devices can reach each other's memory: it is all host memory.
    fn cuCtxEnablePeerAccess(peer: Handle, _flags: c_uint) {
        lookup(driver()?, peer).map(|_| ())
    }

    fn cuCtxDisablePeerAccess(peer: Handle) {
        lookup(driver()?, peer).map(|_| ()).map_err(|_| PEER_ACCESS_NOT_ENABLED)
    }

    fn cuGetExportTable(table: Out<*const c_void>, _id: In<Uuid>) {
        // NVIDIA's private tables; only its own libraries ask for them.
        table.set(std::ptr::null())?;
        Err(simcuda_common::code::NOT_FOUND)
    }

    fn cuProfilerStart() {
        driver().map(|_| ())
    }

    fn cuProfilerStop() {
        driver().map(|_| ())
    }
}

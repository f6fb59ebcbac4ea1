//! Streams. Work is done when it is submitted, so a stream is always idle; what counts
//! is whether it captures.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use simcuda_common::code::{INVALID_HANDLE, INVALID_VALUE, Outcome, SUCCESS};
use simcuda_common::ffi::Out;

use crate::context;
use crate::driver::{Driver, driver};
use crate::graph::{Capture, NodeKind};
use crate::registry::Registry;
use crate::types::{DevicePtr, Handle, MemLocation};

/// A stream.
#[derive(Debug)]
pub struct Stream {
    id: u64,
    context: Handle,
    device: usize,
    priority: c_int,
    flags: c_uint,
    pub capture: Mutex<Option<Arc<Capture>>>,
}

impl Stream {
    /// The legacy default stream (1) and the per-thread one (2), which belong to
    /// whatever context is current.
    pub fn built_in(id: u64) -> Arc<Self> {
        Arc::new(Self {
            id,
            context: 0,
            device: 0,
            priority: 0,
            flags: 0,
            capture: Mutex::default(),
        })
    }
}

/// All streams of the process.
#[derive(Debug)]
pub struct Streams {
    pub created: Registry<Stream>,
    pub legacy: Arc<Stream>,
    pub per_thread: Arc<Stream>,
}

impl Streams {
    /// The stream of that handle; 0 is the legacy default stream.
    pub fn get(&self, handle: Handle) -> Result<Arc<Stream>, c_int> {
        match handle {
            0 | 1 => Ok(self.legacy.clone()),
            2 => Ok(self.per_thread.clone()),
            _ => self.created.get(handle),
        }
    }

    /// Ordinal of the device that the stream's work goes to.
    pub fn device_of(&self, handle: Handle) -> Result<usize, c_int> {
        match handle {
            0..=2 => Ok(context::current()?.device),
            _ => Ok(self.created.get(handle)?.device),
        }
    }
}

/// Notes work in the graph that the stream captures into, if it captures.
pub fn record(driver: &Driver, stream: Handle, kind: impl FnOnce() -> NodeKind) {
    if !Capture::any_active() {
        return;
    }
    let Ok(stream) = driver.streams.get(stream) else {
        return;
    };
    if let Some(capture) = stream.capture.lock().expect("no panics").as_ref() {
        capture.add(kind());
    }
}

fn create(stream: Out<Handle>, flags: c_uint, priority: c_int) -> Outcome {
    // 0 to 2 are the built-in streams.
    static NEXT_ID: AtomicU64 = AtomicU64::new(3);
    let driver = driver()?;
    let current = context::current()?;
    stream.set(driver.streams.created.insert(Stream {
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        context: current.context,
        device: current.device,
        priority: priority.clamp(-5, 0),
        flags,
        capture: Mutex::default(),
    }))
}

/// The context of a stream; for a built-in stream the current one.
fn context_of(stream: Handle) -> Result<Handle, c_int> {
    let of_stream = driver()?.streams.get(stream)?.context;
    if of_stream == 0 {
        Ok(context::current()?.context)
    } else {
        Ok(of_stream)
    }
}

/// What prefetching and advising come to, where all memory is the host's.
fn check_live(address: DevicePtr, size: usize) -> Outcome {
    let live = driver()?
        .ledger
        .read()
        .expect("no panics")
        .covers(address, size);
    if live { Ok(()) } else { Err(INVALID_VALUE) }
}

type StreamCallback = Option<unsafe extern "C" fn(Handle, c_int, *mut c_void)>;
pub type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;

crate::driver_api! {
    fn cuStreamCreate(stream: Out<Handle>, flags: c_uint) {
        create(stream, flags, 0)
    }

    fn cuStreamCreateWithPriority(stream: Out<Handle>, flags: c_uint, priority: c_int) {
        create(stream, flags, priority)
    }

    fn cuStreamDestroy, cuStreamDestroy_v2(stream: Handle) {
        driver()?.streams.created.remove(stream).map(|_| ())
    }

    fn cuStreamSynchronize, cuStreamSynchronize_ptsz(stream: Handle) {
        let driver = driver()?;
        driver.streams.get(stream)?;
        crate::pool::release_above_threshold(driver, driver.streams.device_of(stream)?);
        Ok(())
    }

    fn cuStreamQuery, cuStreamQuery_ptsz(stream: Handle) {
        driver()?.streams.get(stream).map(|_| ())
    }

    fn cuStreamGetPriority, cuStreamGetPriority_ptsz(stream: Handle, priority: Out<c_int>) {
        priority.set(driver()?.streams.get(stream)?.priority)
    }

    fn cuStreamGetFlags, cuStreamGetFlags_ptsz(stream: Handle, flags: Out<c_uint>) {
        flags.set(driver()?.streams.get(stream)?.flags)
    }

    fn cuStreamGetId, cuStreamGetId_ptsz(stream: Handle, id: Out<c_ulonglong>) {
        id.set(driver()?.streams.get(stream)?.id)
    }

    fn cuStreamGetDevice, cuStreamGetDevice_ptsz(stream: Handle, device: Out<c_int>) {
        device.set(driver()?.streams.device_of(stream)? as c_int)
    }

    fn cuStreamGetCtx, cuStreamGetCtx_ptsz(stream: Handle, context: Out<Handle>) {
        context.set(context_of(stream)?)
    }

    // There are no green contexts.
    fn cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz(
        stream: Handle, context: Out<Handle>, green: Out<Handle>,
    ) {
        green.set_if_wanted(0);
        context.set(context_of(stream)?)
    }

    fn cuStreamAddCallback, cuStreamAddCallback_ptsz(
        stream: Handle, callback: StreamCallback, user: *mut c_void, _flags: c_uint,
    ) {
        driver()?.streams.get(stream)?;
        let callback = callback.ok_or(INVALID_VALUE)?;
        // SAFETY: the caller gave this function to be called with this argument.
        unsafe { callback(stream, SUCCESS, user) };
        Ok(())
    }

    // While capturing the function becomes a node, and runs when the graph is launched.
    fn cuLaunchHostFunc, cuLaunchHostFunc_ptsz(
        stream: Handle, function: HostFunction, user: *mut c_void,
    ) {
        let driver = driver()?;
        let function = function.ok_or(INVALID_VALUE)?;
        let stream = driver.streams.get(stream)?;
        let capture = stream.capture.lock().expect("no panics").clone();
        match capture {
            Some(capture) => capture.add(NodeKind::Host { function, user: user as usize }),
            // SAFETY: the caller gave this function to be called with this argument.
            None => unsafe { function(user) },
        }
        Ok(())
    }

    fn cuStreamWriteValue32, cuStreamWriteValue32_v2, cuStreamWriteValue32_ptsz(
        _stream: Handle, address: DevicePtr, value: u32, _flags: c_uint,
    ) {
        driver()?;
        Out::new(address as *mut u32).set(value)
    }

    fn cuStreamWriteValue64, cuStreamWriteValue64_v2, cuStreamWriteValue64_ptsz(
        _stream: Handle, address: DevicePtr, value: u64, _flags: c_uint,
    ) {
        driver()?;
        Out::new(address as *mut u64).set(value)
    }

    // Whatever a stream waits for has happened.
    fn cuStreamWaitValue32, cuStreamWaitValue32_v2, cuStreamWaitValue32_ptsz(
        _stream: Handle, _address: DevicePtr, _value: u32, _flags: c_uint,
    ) {
        driver().map(|_| ())
    }

    fn cuStreamWaitValue64, cuStreamWaitValue64_v2, cuStreamWaitValue64_ptsz(
        _stream: Handle, _address: DevicePtr, _value: u64, _flags: c_uint,
    ) {
        driver().map(|_| ())
    }

    fn cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz(
        stream: Handle, _address: DevicePtr, _length: usize, _flags: c_uint,
    ) {
        driver()?.streams.get(stream).map(|_| ())
    }

    fn cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz(
        address: DevicePtr, size: usize, _device: c_int, _stream: Handle,
    ) {
        check_live(address, size)
    }

    fn cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz(
        address: DevicePtr, size: usize, _location: MemLocation, _flags: c_uint, _stream: Handle,
    ) {
        check_live(address, size)
    }

    fn cuMemAdvise(address: DevicePtr, size: usize, _advice: c_int, _device: c_int) {
        check_live(address, size)
    }

    fn cuMemAdvise_v2(address: DevicePtr, size: usize, _advice: c_int, _location: MemLocation) {
        check_live(address, size)
    }

    fn cuStreamSetAttribute, cuStreamSetAttribute_ptsz(
        stream: Handle, _attribute: c_int, _value: *const c_void,
    ) {
        driver()?.streams.get(stream).map(|_| ()).map_err(|_| INVALID_HANDLE)
    }
}

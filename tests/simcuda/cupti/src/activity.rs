//! The activity API: which records are wanted, and what calls make of them.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use simcuda_common::hook::ApiCall;
use simcuda_common::log;

use crate::buffer;
use crate::callback::context_uid;
use crate::driver::driver;
use crate::external;
use crate::ids::{self, IDS};
use crate::memory;
use crate::record::{
    Api, DRIVER, EXTERNAL_CORRELATION, ExternalCorrelation, MEMORY_POOL, MEMORY2, RUNTIME, bytes_of,
};
use crate::result::{
    API_NOT_IMPLEMENTED, INVALID_CONTEXT, INVALID_DEVICE, INVALID_KIND, INVALID_PARAMETER, finish,
};
use crate::subscriber;
use crate::version::{ALLOCATION_SOURCE, version};

/// `CUPTI_ACTIVITY_KIND_GREEN_CONTEXT`, the highest of CUDA 13.5.
const LAST_KIND: c_int = 59;

/// Bit `kind` of what `cuptiActivityEnable` turned on.
static KINDS: AtomicU64 = AtomicU64::new(0);
/// Functions of which records are wanted by themselves, by domain.
static SINGLE: [[AtomicU64; IDS / 64]; 3] = [const { [const { AtomicU64::new(0) }; IDS / 64] }; 3];
static ANY_SINGLE: AtomicBool = AtomicBool::new(false);
static SOURCE: AtomicBool = AtomicBool::new(false);
static CLOCK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

type Clock = unsafe extern "C" fn() -> u64;

fn is_on(kind: u32) -> bool {
    KINDS.load(Ordering::Relaxed) & (1 << kind) != 0
}

/// Whether calls have to be seen for some record.
pub fn any_enabled() -> bool {
    [DRIVER, RUNTIME, MEMORY2, MEMORY_POOL]
        .into_iter()
        .any(is_on)
        || ANY_SINGLE.load(Ordering::Relaxed)
}

/// Whether allocations are to name the library that makes them.
pub fn names_source() -> bool {
    SOURCE.load(Ordering::Relaxed)
}

/// Nanoseconds, of the tool's clock or of CLOCK_REALTIME as on Linux.
pub fn timestamp() -> u64 {
    let clock = CLOCK.load(Ordering::Acquire);
    if clock.is_null() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        return now.map_or(0, |now| now.as_nanos() as u64);
    }
    // SAFETY: stored by `cuptiActivityRegisterTimestampCallback` from such a function.
    unsafe { std::mem::transmute::<*mut c_void, Clock>(clock)() }
}

pub fn process() -> u32 {
    std::process::id()
}

fn wants_call(domain: u32, id: u32) -> bool {
    let kind = if domain == ids::DRIVER {
        DRIVER
    } else {
        RUNTIME
    };
    let single = || {
        let words = SINGLE.get(domain as usize)?;
        Some(words.get(id as usize / 64)?.load(Ordering::Relaxed) & (1 << (id % 64)) != 0)
    };
    is_on(kind) || (ANY_SINGLE.load(Ordering::Relaxed) && single() == Some(true))
}

/// When a call begins, for its record; 0 if none is wanted.
pub fn start_of_call(domain: u32, id: u32) -> u64 {
    if wants_call(domain, id) {
        timestamp()
    } else {
        0
    }
}

pub fn call_begins(call: &ApiCall, name: &CStr) {
    if call.domain != ids::DRIVER {
        return;
    }
    if is_on(MEMORY2) {
        memory::begins(call, name);
    }
    if is_on(MEMORY_POOL) && name == c"cuMemPoolDestroy" {
        memory::pool_is_destroyed(call);
    }
}

pub fn call_ended(call: &ApiCall, name: &CStr, id: u32, start: u64) {
    // SAFETY: at the end of a call its result is there.
    let result = unsafe { call.result.read() };
    if call.domain == ids::DRIVER && result == 0 {
        let is_pool = name == c"cuMemPoolCreate" || name == c"cuMemPoolTrimTo";
        if is_on(if is_pool { MEMORY_POOL } else { MEMORY2 }) {
            memory::ended(call, name);
        }
    }
    if start == 0 || !wants_call(call.domain, id) {
        return;
    }
    if is_on(EXTERNAL_CORRELATION) {
        for (kind, number) in external::current() {
            let record = ExternalCorrelation {
                kind: EXTERNAL_CORRELATION,
                external_kind: kind as u32,
                external_id: number,
                correlation: call.correlation as u32,
                reserved: 0,
            };
            buffer::append(bytes_of(EXTERNAL_CORRELATION, &record));
        }
    }
    let kind = if call.domain == ids::DRIVER {
        DRIVER
    } else {
        RUNTIME
    };
    let record = Api {
        kind,
        id,
        start,
        end: timestamp(),
        process: process(),
        // SAFETY: takes nothing.
        thread: unsafe { libc::pthread_self() } as u32,
        correlation: call.correlation as u32,
        result: result as u32,
    };
    buffer::append(bytes_of(kind, &record));
}

fn set_kind(kind: c_int, on: bool) -> c_int {
    if !(1..=LAST_KIND).contains(&kind) {
        return INVALID_KIND.0;
    }
    log!("CUPTI: records of kind {kind}: {on}");
    if on {
        KINDS.fetch_or(1 << kind, Ordering::Relaxed);
    } else {
        KINDS.fetch_and(!(1 << kind), Ordering::Relaxed);
    }
    finish(subscriber::update_hook())
}

fn set_single(domain: u32, id: u32, on: bool) -> c_int {
    let words = SINGLE.get(domain as usize);
    let Some(word) = words.and_then(|words| words.get(id as usize / 64)) else {
        return INVALID_PARAMETER.0;
    };
    if on {
        word.fetch_or(1 << (id % 64), Ordering::Relaxed);
        ANY_SINGLE.store(true, Ordering::Relaxed);
    } else {
        word.fetch_and(!(1 << (id % 64)), Ordering::Relaxed);
        let left = SINGLE
            .iter()
            .flatten()
            .any(|word| word.load(Ordering::Relaxed) != 0);
        ANY_SINGLE.store(left, Ordering::Relaxed);
    }
    finish(subscriber::update_hook())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: c_int) -> c_int {
    set_kind(kind, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable(kind: c_int) -> c_int {
    set_kind(kind, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableDriverApi(id: u32, on: u8) -> c_int {
    set_single(ids::DRIVER, id, on != 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableRuntimeApi(id: u32, on: u8) -> c_int {
    set_single(ids::RUNTIME, id, on != 0)
}

/// A library older than CUDA 12.6 lacks the symbol; this one says so.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableAllocationSource(on: u8) -> c_int {
    if version() < ALLOCATION_SOURCE {
        return API_NOT_IMPLEMENTED.0;
    }
    SOURCE.store(on != 0, Ordering::Relaxed);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterTimestampCallback(clock: Option<Clock>) -> c_int {
    let Some(clock) = clock else {
        return INVALID_PARAMETER.0;
    };
    CLOCK.store(clock as *mut c_void, Ordering::Release);
    0
}

/// Attributes are accepted and have no effect.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivitySetAttribute(
    _attribute: c_int,
    size: *mut usize,
    value: *mut c_void,
) -> c_int {
    if size.is_null() || value.is_null() {
        return INVALID_PARAMETER.0;
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableCudaEventDeviceTimestamps(_on: u8) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushPeriod(_milliseconds: u32) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetTimestamp(place: *mut u64) -> c_int {
    if place.is_null() {
        return INVALID_PARAMETER.0;
    }
    // SAFETY: the caller gave a place for a number.
    unsafe { place.write(timestamp()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetDeviceId(context: *mut c_void, place: *mut u32) -> c_int {
    if place.is_null() {
        return INVALID_PARAMETER.0;
    }
    match driver().and_then(|driver| driver.device_of(context as usize)) {
        None => INVALID_DEVICE.0,
        Some(device) => {
            // SAFETY: the caller gave a place for a number.
            unsafe { place.write(device as u32) };
            0
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetContextId(context: *mut c_void, place: *mut u32) -> c_int {
    if place.is_null() {
        return INVALID_PARAMETER.0;
    }
    if context.is_null() {
        return INVALID_CONTEXT.0;
    }
    // SAFETY: the caller gave a place for a number.
    unsafe { place.write(context_uid(context)) };
    0
}

/// Everything is as if CUPTI had never been used. Calls under way on other threads end without
/// a callback.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiFinalize() -> c_int {
    log!("CUPTI: finalized");
    subscriber::remove_all();
    KINDS.store(0, Ordering::Relaxed);
    for word in SINGLE.iter().flatten() {
        word.store(0, Ordering::Relaxed);
    }
    ANY_SINGLE.store(false, Ordering::Relaxed);
    SOURCE.store(false, Ordering::Relaxed);
    CLOCK.store(std::ptr::null_mut(), Ordering::Release);
    buffer::reset();
    memory::reset();
    finish(subscriber::update_hook())
}

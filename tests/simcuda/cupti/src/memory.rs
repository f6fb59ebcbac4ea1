//! Records of memory operations, made of the driver calls that did them.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::Mutex;

use simcuda_common::hook::ApiCall;

use crate::activity::{process, timestamp};
use crate::buffer;
use crate::callback::context_uid;
use crate::driver::{PoolState, driver};
use crate::record::{MEMORY_POOL, MEMORY2, Memory, MemoryPool, bytes_of};
use crate::source;

const ALLOCATION: u32 = 1;
const RELEASE: u32 = 2;
/// `CUpti_ActivityMemoryKind`
const PINNED: u32 = 2;
const DEVICE: u32 = 3;
const MANAGED: u32 = 5;
/// `CUpti_ActivityMemoryPoolOperationType`
const CREATED: u32 = 1;
const DESTROYED: u32 = 2;
const TRIMMED: u32 = 3;
const LOCAL_POOL: u32 = 1;

/// What is remembered of an allocation until it is freed.
#[derive(Clone, Copy)]
struct Known {
    bytes: u64,
    kind: u32,
    pool: u64,
}

static KNOWN: Mutex<Option<HashMap<u64, Known>>> = Mutex::new(None);

/// The arguments of a call that are as wide as a pointer, which all are that are read here.
fn argument(call: &ApiCall, index: usize) -> u64 {
    let words = call.params_size as usize / size_of::<u64>();
    if index >= words {
        return 0;
    }
    // SAFETY: the struct of arguments has that many words.
    unsafe { call.params.cast::<u64>().add(index).read() }
}

/// What stands where an argument points to.
fn behind(call: &ApiCall, index: usize) -> u64 {
    let place = argument(call, index) as *const u64;
    if place.is_null() {
        return 0;
    }
    // SAFETY: the call succeeded, so it stored its result there.
    unsafe { place.read() }
}

/// At the beginning of a call: what it gives back.
pub fn begins(call: &ApiCall, name: &CStr) {
    let is_async = match name.to_bytes() {
        b"cuMemFree_v2" | b"cuMemFreeHost" => false,
        b"cuMemFreeAsync" | b"cuMemFreeAsync_ptsz" => true,
        _ => return,
    };
    let address = argument(call, 0);
    let mut known = KNOWN.lock().expect("no panics");
    let Some(known) = known.as_mut().and_then(|map| map.remove(&address)) else {
        return;
    };
    tell(call, RELEASE, address, known, is_async);
}

/// At the end of a call that succeeded: what it handed out.
pub fn ended(call: &ApiCall, name: &CStr) {
    let (kind, is_async) = match name.to_bytes() {
        b"cuMemAlloc_v2" | b"cuMemAllocPitch_v2" => (DEVICE, false),
        b"cuMemAllocManaged" => (MANAGED, false),
        b"cuMemHostAlloc" | b"cuMemAllocHost" | b"cuMemAllocHost_v2" => (PINNED, false),
        b"cuMemAllocAsync"
        | b"cuMemAllocAsync_ptsz"
        | b"cuMemAllocFromPoolAsync"
        | b"cuMemAllocFromPoolAsync_ptsz" => (DEVICE, true),
        b"cuMemPoolCreate" => return tell_pool(call, CREATED, behind(call, 0), 0),
        b"cuMemPoolTrimTo" => {
            return tell_pool(call, TRIMMED, argument(call, 0), argument(call, 1) as usize);
        }
        _ => return,
    };
    let bytes = match name.to_bytes() {
        // The pitch that came back, times the height.
        b"cuMemAllocPitch_v2" => behind(call, 1) * argument(call, 3),
        _ => argument(call, 1),
    };
    let pool = match name.to_bytes() {
        b"cuMemAllocAsync" | b"cuMemAllocAsync_ptsz" => driver()
            .and_then(|driver| driver.current_pool(driver.device_of(0)?))
            .unwrap_or(0) as u64,
        _ if is_async => argument(call, 2),
        _ => 0,
    };
    let known = Known { bytes, kind, pool };
    let address = behind(call, 0);
    KNOWN
        .lock()
        .expect("no panics")
        .get_or_insert_default()
        .insert(address, known);
    tell(call, ALLOCATION, address, known, is_async);
}

/// A pool is told while it is still there.
pub fn pool_is_destroyed(call: &ApiCall) {
    tell_pool(call, DESTROYED, argument(call, 0), 0);
}

fn device(call: &ApiCall) -> u32 {
    driver()
        .and_then(|driver| driver.device_of(call.context as usize))
        .map_or(0, |device| device as u32)
}

fn pool_state(pool: u64) -> PoolState {
    driver()
        .and_then(|driver| driver.pool_state(pool as usize))
        .unwrap_or_default()
}

fn tell(call: &ApiCall, operation: u32, address: u64, known: Known, is_async: bool) {
    let pool = if known.pool == 0 {
        PoolState::default()
    } else {
        pool_state(known.pool)
    };
    let record = Memory {
        kind: MEMORY2,
        operation,
        memory_kind: known.kind,
        correlation: call.correlation as u32,
        address,
        bytes: known.bytes,
        timestamp: timestamp(),
        pc: 0,
        process: process(),
        device: device(call),
        context: context_uid(call.context),
        stream: 0,
        name: std::ptr::null(),
        is_async: u32::from(is_async),
        padding: 0,
        pool_type: if known.pool == 0 { 0 } else { LOCAL_POOL },
        pool_padding: 0,
        pool_address: known.pool,
        pool_threshold: pool.threshold,
        pool_size: pool.reserved,
        pool_utilized: pool.used,
        source: if crate::activity::names_source() {
            source::library()
        } else {
            std::ptr::null()
        },
    };
    buffer::append(bytes_of(MEMORY2, &record));
}

fn tell_pool(call: &ApiCall, operation: u32, pool: u64, keep: usize) {
    let state = pool_state(pool);
    let record = MemoryPool {
        kind: MEMORY_POOL,
        operation,
        pool_type: LOCAL_POOL,
        correlation: call.correlation as u32,
        process: process(),
        device: device(call),
        bytes_to_keep: keep,
        address: pool,
        size: state.reserved,
        threshold: state.threshold,
        timestamp: timestamp(),
        utilized: state.used,
    };
    buffer::append(bytes_of(MEMORY_POOL, &record));
}

/// Nothing is known any more.
pub fn reset() {
    *KNOWN.lock().expect("no panics") = None;
}

//! What the tests run in processes of their own.

mod lifecycle;
mod operations;

use std::sync::{Mutex, MutexGuard, PoisonError};

use vramscope_injection::cupti::DriverCall;

static CALLS: Mutex<Vec<DriverCall>> = Mutex::new(Vec::new());

pub extern "C" fn sink(call: &DriverCall) {
    calls().push(*call);
}

pub fn calls() -> MutexGuard<'static, Vec<DriverCall>> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was told since this was asked last.
pub fn told() -> Vec<DriverCall> {
    std::mem::take(&mut *calls())
}

pub fn call(function: u32, address: usize, size: usize, extra: usize, device: i32) -> DriverCall {
    DriverCall {
        function,
        address: address as u64,
        size: size as u64,
        extra: extra as u64,
        device,
    }
}

pub fn alloc(function: u32, address: usize, size: usize) -> DriverCall {
    call(function, address, size, 0, 1)
}

pub fn free(function: u32, address: usize) -> DriverCall {
    call(function, address, 0, 0, -1)
}

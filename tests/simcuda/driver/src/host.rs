//! Pinned host memory.

use std::ffi::{c_uint, c_void};

use simcuda_common::code::{
    HOST_MEMORY_ALREADY_REGISTERED, HOST_MEMORY_NOT_REGISTERED, INVALID_VALUE, OUT_OF_MEMORY,
    Outcome,
};
use simcuda_common::ffi::Out;
use simcuda_common::log;

use crate::arena::HOST_PAGE;
use crate::context;
use crate::driver::driver;
use crate::ledger::Kind;
use crate::types::DevicePtr;

fn allocate(size: usize, flags: c_uint) -> Result<*mut c_void, i32> {
    let driver = driver()?;
    if size == 0 {
        return Err(INVALID_VALUE);
    }
    let asked = size;
    let size = size
        .checked_next_multiple_of(HOST_PAGE)
        .ok_or(OUT_OF_MEMORY)?;
    // SAFETY: a new mapping at a place of the kernel's choice.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(OUT_OF_MEMORY);
    }
    let kind = Kind::Host { flags };
    let device = context::current_device_or_first();
    driver
        .ledger
        .write()
        .expect("no panics")
        .insert(address as usize, size, kind, device);
    driver.callers.note(address as usize, asked);
    log!("allocated {size} B of pinned host memory at {address:p}");
    Ok(address)
}

fn free(address: usize) -> Outcome {
    let driver = driver()?;
    let mut ledger = driver.ledger.write().expect("no panics");
    match ledger.starting_at(address).map(|found| &found.kind) {
        Some(Kind::Host { .. }) => {}
        _ => return Err(INVALID_VALUE),
    }
    let allocation = ledger.remove(address).ok_or(INVALID_VALUE)?;
    // SAFETY: the ledger says that this mapping was made by `allocate` and is alive; it
    // leaves the ledger under the same lock, so it is unmapped once.
    unsafe { libc::munmap(address as *mut c_void, allocation.size) };
    log!(
        "freed {} B of pinned host memory at {address:#x}",
        allocation.size
    );
    Ok(())
}

crate::driver_api! {
    fn cuMemHostAlloc(address: Out<*mut c_void>, size: usize, flags: c_uint) {
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        address.set(allocate(size, flags)?)
    }

    fn cuMemAllocHost, cuMemAllocHost_v2(address: Out<*mut c_void>, size: usize) {
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        address.set(allocate(size, 0)?)
    }

    fn cuMemFreeHost(address: *mut c_void) {
        free(address as usize)
    }

    fn cuMemHostRegister, cuMemHostRegister_v2(address: *mut c_void, size: usize, flags: c_uint) {
        let driver = driver()?;
        if address.is_null() || size == 0 {
            return Err(INVALID_VALUE);
        }
        let mut ledger = driver.ledger.write().expect("no panics");
        if ledger.overlaps(address as usize, size) {
            return Err(HOST_MEMORY_ALREADY_REGISTERED);
        }
        let device = context::current_device_or_first();
        ledger.insert(address as usize, size, Kind::Registered { flags }, device);
        log!("registered {size} B of host memory at {address:p}");
        Ok(())
    }

    fn cuMemHostUnregister(address: *mut c_void) {
        let mut ledger = driver()?.ledger.write().expect("no panics");
        match ledger.starting_at(address as usize).map(|found| &found.kind) {
            Some(Kind::Registered { .. }) => {}
            _ => return Err(HOST_MEMORY_NOT_REGISTERED),
        }
        ledger.remove(address as usize);
        Ok(())
    }

    // Device addresses of host memory are the host addresses.
    fn cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2(
        device_address: Out<DevicePtr>, address: *mut c_void, _flags: c_uint,
    ) {
        let ledger = driver()?.ledger.read().expect("no panics");
        ledger.at(address as usize).filter(|found| found.kind.is_host()).ok_or(INVALID_VALUE)?;
        device_address.set(address as usize)
    }

    fn cuMemHostGetFlags(flags: Out<c_uint>, address: *mut c_void) {
        let ledger = driver()?.ledger.read().expect("no panics");
        match ledger.at(address as usize).map(|found| &found.kind) {
            Some(Kind::Host { flags: stored } | Kind::Registered { flags: stored }) => flags.set(*stored),
            _ => Err(INVALID_VALUE),
        }
    }
}

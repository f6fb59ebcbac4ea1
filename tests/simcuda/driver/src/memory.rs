//! Device memory: allocation and free.

use std::ffi::c_uint;

use simcuda_common::code::{INVALID_VALUE, NOT_FOUND, OUT_OF_MEMORY, Outcome};
use simcuda_common::ffi::Out;
use simcuda_common::log;

use crate::arena::{self, Backing, DEVICE_PAGE, HOST_PAGE};
use crate::context;
use crate::driver::{Counters, Driver, driver};
use crate::ledger::Kind;
use crate::types::DevicePtr;

/// Small requests share a device page on the real driver; how is not simulated. They
/// are charged in units of this.
const SMALL_UNIT: usize = 512;
const SMALL_LIMIT: usize = 1 << 20;

/// What a request is charged, in bytes.
fn charged(size: usize) -> Option<usize> {
    let unit = if size < SMALL_LIMIT {
        SMALL_UNIT
    } else {
        DEVICE_PAGE
    };
    size.checked_next_multiple_of(unit)
}

fn allocate(size: usize, kind: Kind) -> Result<DevicePtr, i32> {
    let driver = driver()?;
    let ordinal = context::current()?.device;
    if size == 0 {
        return Err(INVALID_VALUE);
    }
    let device = &driver.devices[ordinal];
    let charge = charged(size).ok_or(OUT_OF_MEMORY)?;
    if let Err(code) = device.take(charge) {
        log!(
            "out of memory on device {ordinal}: {size} B asked, {} B free",
            device.free()
        );
        return Err(code);
    }
    let alignment = if charge < SMALL_LIMIT {
        HOST_PAGE
    } else {
        DEVICE_PAGE
    };
    let mut ledger = driver.ledger.write().expect("no panics");
    let mut arena = driver.arena.lock().expect("no panics");
    let placed = arena.take(charge, alignment).filter(|&address| {
        let mapped = arena::back(address, charge.next_multiple_of(HOST_PAGE), Backing::Lazy);
        if !mapped {
            arena.give_back(address, charge);
        }
        mapped
    });
    let Some(address) = placed else {
        device.give_back(charge);
        log!("the host has no room for {charge} B of device memory");
        return Err(OUT_OF_MEMORY);
    };
    ledger.insert(address, charge, kind, ordinal);
    driver.callers.note(address, size);
    Counters::add(&driver.counters.allocations);
    log!("allocated {size} B on device {ordinal} at {address:#x}");
    Ok(address)
}

fn free(driver: &Driver, address: DevicePtr) -> Outcome {
    if address == 0 {
        return Ok(());
    }
    let mut ledger = driver.ledger.write().expect("no panics");
    let allocation = match ledger.starting_at(address).map(|found| &found.kind) {
        Some(Kind::Device | Kind::Exported(_) | Kind::Managed) => {
            ledger.remove(address).ok_or(INVALID_VALUE)?
        }
        Some(Kind::Pooled(_)) => {
            drop(ledger);
            return crate::pool::free(driver, address);
        }
        _ => {
            log!("free of {address:#x}, which is not allocated");
            return Err(INVALID_VALUE);
        }
    };
    driver
        .arena
        .lock()
        .expect("no panics")
        .give_back(address, allocation.size);
    driver.devices[allocation.device].give_back(allocation.size);
    Counters::add(&driver.counters.frees);
    log!(
        "freed {} B on device {} at {address:#x}",
        allocation.size,
        allocation.device
    );
    Ok(())
}

crate::driver_api! {
    fn cuMemAlloc_v2(address: Out<DevicePtr>, size: usize) {
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        address.set(allocate(size, Kind::Device)?)
    }

    fn cuMemFree_v2(address: DevicePtr) {
        free(driver()?, address)
    }

    fn cuMemAllocManaged(address: Out<DevicePtr>, size: usize, _flags: c_uint) {
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        address.set(allocate(size, Kind::Managed)?)
    }

    fn cuMemAllocPitch_v2(
        address: Out<DevicePtr>, pitch: Out<usize>, width: usize, height: usize, _element: c_uint,
    ) {
        if address.is_null() || pitch.is_null() {
            return Err(INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(512).ok_or(OUT_OF_MEMORY)?;
        let size = row.checked_mul(height).ok_or(OUT_OF_MEMORY)?;
        address.set(allocate(size, Kind::Device)?)?;
        pitch.set(row)
    }

    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let device = &driver()?.devices[context::current()?.device];
        free.set_if_wanted(device.free() as usize);
        total.set_if_wanted(device.settings.memory as usize);
        Ok(())
    }

    fn cuMemGetAddressRange_v2(base: Out<DevicePtr>, size: Out<usize>, address: DevicePtr) {
        let ledger = driver()?.ledger.read().expect("no panics");
        let allocation = ledger.at(address).ok_or(NOT_FOUND)?;
        base.set_if_wanted(allocation.address);
        size.set_if_wanted(allocation.size);
        Ok(())
    }
}

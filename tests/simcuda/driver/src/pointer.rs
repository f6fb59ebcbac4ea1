//! What is known of an address.

use std::ffi::{c_int, c_uint, c_void};

use simcuda_common::code::{INVALID_VALUE, Outcome};
use simcuda_common::ffi::{In, Out};

use crate::context;
use crate::driver::{Driver, driver};
use crate::ledger::{Allocation, Kind};
use crate::types::{Device, DevicePtr, MEMORYTYPE_DEVICE, MEMORYTYPE_HOST};

/// Stores one `CUpointer_attribute` of an address in an allocation.
fn store(
    driver: &Driver,
    found: &Allocation,
    address: usize,
    attribute: c_int,
    value: Out<c_void>,
) -> Outcome {
    const CONTEXT: c_int = 1;
    const MEMORY_TYPE: c_int = 2;
    const DEVICE_POINTER: c_int = 3;
    const HOST_POINTER: c_int = 4;
    const SYNC_MEMOPS: c_int = 6;
    const BUFFER_ID: c_int = 7;
    const IS_MANAGED: c_int = 8;
    const DEVICE_ORDINAL: c_int = 9;
    const IS_LEGACY_IPC_CAPABLE: c_int = 10;
    const RANGE_START: c_int = 11;
    const RANGE_SIZE: c_int = 12;
    const MAPPED: c_int = 13;
    const ALLOWED_HANDLE_TYPES: c_int = 14;
    const ACCESS_FLAGS: c_int = 16;
    const MEMPOOL_HANDLE: c_int = 17;
    const MAPPING_SIZE: c_int = 18;
    const MAPPING_BASE: c_int = 19;
    const MEMORY_BLOCK_ID: c_int = 20;
    match attribute {
        CONTEXT => value
            .cast()
            .set(context::primary(driver, found.device as Device)?),
        MEMORY_TYPE => value.cast().set(if found.kind.is_host() {
            MEMORYTYPE_HOST
        } else {
            MEMORYTYPE_DEVICE
        }),
        DEVICE_POINTER => value.cast().set(address),
        HOST_POINTER => match found.kind {
            Kind::Host { .. } | Kind::Registered { .. } | Kind::Managed => {
                value.cast().set(address)
            }
            _ => Err(INVALID_VALUE),
        },
        SYNC_MEMOPS => value.cast().set(0_u8),
        BUFFER_ID | MEMORY_BLOCK_ID => value.cast().set(found.id),
        IS_MANAGED => value
            .cast()
            .set(u8::from(matches!(found.kind, Kind::Managed))),
        DEVICE_ORDINAL => value.cast().set(found.device as c_int),
        IS_LEGACY_IPC_CAPABLE => value.cast().set(u8::from(matches!(
            found.kind,
            Kind::Device | Kind::Exported(_)
        ))),
        RANGE_START | MAPPING_BASE => value.cast().set(found.address),
        RANGE_SIZE | MAPPING_SIZE => value.cast().set(found.size),
        MAPPED => value.cast().set(1_u8),
        ALLOWED_HANDLE_TYPES => match &found.kind {
            Kind::Mapped { physical, .. } => value.cast().set(physical.handle_types() as u64),
            _ => value.cast().set(0_u64),
        },
        ACCESS_FLAGS => value.cast().set(3_u32),
        MEMPOOL_HANDLE => match &found.kind {
            Kind::Pooled(pool) => value.cast().set(pool.handle),
            _ => value.cast().set(0_usize),
        },
        _ => Err(INVALID_VALUE),
    }
}

crate::driver_api! {
    fn cuPointerGetAttribute(value: Out<c_void>, attribute: c_int, address: DevicePtr) {
        let driver = driver()?;
        let found = driver.ledger.read().expect("no panics").at(address).cloned();
        store(driver, &found.ok_or(INVALID_VALUE)?, address, attribute, value)
    }

    // Of an unknown address, or what an address does not have: zero, and no error.
    fn cuPointerGetAttributes(
        count: c_uint, attributes: In<c_int>, values: In<Out<c_void>>, address: DevicePtr,
    ) {
        let driver = driver()?;
        let found = driver.ledger.read().expect("no panics").at(address).cloned();
        for index in 0..count as usize {
            let (attribute, value) = (attributes.get_at(index)?, values.get_at(index)?);
            let stored = match &found {
                Some(allocation) => store(driver, allocation, address, attribute, value),
                None => Err(INVALID_VALUE),
            };
            if stored.is_err() {
                const IS_BYTE: [c_int; 4] = [6, 8, 10, 13];
                const IS_INT: [c_int; 3] = [2, 9, 16];
                match attribute {
                    9 => value.cast().set(-2_i32)?,
                    _ if IS_BYTE.contains(&attribute) => value.cast().set(0_u8)?,
                    _ if IS_INT.contains(&attribute) => value.cast().set(0_i32)?,
                    _ => value.cast().set(0_u64)?,
                }
            }
        }
        Ok(())
    }

    fn cuPointerSetAttribute(_value: *const c_void, _attribute: c_int, address: DevicePtr) {
        let ledger = driver()?.ledger.read().expect("no panics");
        ledger.at(address).map(|_| ()).ok_or(INVALID_VALUE)
    }
}

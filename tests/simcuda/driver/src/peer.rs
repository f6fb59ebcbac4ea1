//! What reaches beyond the device: multicast objects.

use std::ffi::{c_uint, c_ulonglong, c_void};

use simcuda_common::code::{INVALID_VALUE, NOT_SUPPORTED};
use simcuda_common::ffi::{In, Out};
use simcuda_common::types::MulticastObjectProp;

use crate::driver::driver;
use crate::types::{Device, DevicePtr, Handle};

/// An object that would write to several devices at once.
#[derive(Debug)]
pub struct Multicast;

crate::driver_api! {
    // Objects, devices and bindings are kept apart from memory: nothing can be mapped by them.
    fn cuMulticastCreate(handle: Out<Handle>, properties: In<MulticastObjectProp>) {
        let driver = driver()?;
        if properties.get()?.size == 0 {
            return Err(INVALID_VALUE);
        }
        handle.set(driver.multicasts.insert(Multicast))
    }

    fn cuMulticastAddDevice(handle: Handle, device: Device) {
        let driver = driver()?;
        driver.device(device)?;
        driver.multicasts.get(handle).map(|_| ())
    }

    fn cuMulticastBindMem(
        handle: Handle, _offset: usize, memory: Handle, _memory_offset: usize, _size: usize,
        _flags: c_ulonglong,
    ) {
        let driver = driver()?;
        driver.physical.get(memory)?;
        driver.multicasts.get(handle).map(|_| ())
    }

    fn cuMulticastBindAddr(
        handle: Handle, _offset: usize, address: DevicePtr, _size: usize, _flags: c_ulonglong,
    ) {
        let driver = driver()?;
        if !driver.is_device_address(address) {
            return Err(INVALID_VALUE);
        }
        driver.multicasts.get(handle).map(|_| ())
    }

    fn cuMulticastUnbind(handle: Handle, device: Device, _offset: usize, _size: usize) {
        let driver = driver()?;
        driver.device(device)?;
        driver.multicasts.get(handle).map(|_| ())
    }

    fn cuMulticastGetGranularity(
        _granularity: Out<usize>, _properties: *const c_void, _option: c_uint,
    ) {
        Err(NOT_SUPPORTED)
    }
}

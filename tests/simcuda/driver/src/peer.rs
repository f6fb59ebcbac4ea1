//! What reaches beyond the process or the device: IPC, which is not simulated, and multicast objects.

use std::ffi::{c_uint, c_ulonglong, c_void};

use simcuda_common::code::{INVALID_VALUE, NOT_SUPPORTED};
use simcuda_common::ffi::{In, Out};
use simcuda_common::types::MulticastObjectProp;

use crate::driver::driver;
use crate::types::{Device, DevicePtr, Handle};

/// An object that would write to several devices at once.
#[derive(Debug)]
pub struct Multicast;

/// `CUipcMemHandle` and `CUipcEventHandle`, passed by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IpcHandle {
    pub bytes: [u8; 64],
}

crate::driver_api! {
    fn cuIpcGetMemHandle(_handle: Out<IpcHandle>, _address: DevicePtr) {
        Err(NOT_SUPPORTED)
    }

    fn cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2(
        _address: Out<DevicePtr>, _handle: IpcHandle, _flags: c_uint,
    ) {
        Err(NOT_SUPPORTED)
    }

    fn cuIpcCloseMemHandle(_address: DevicePtr) {
        Err(NOT_SUPPORTED)
    }

    fn cuIpcGetEventHandle(_handle: Out<IpcHandle>, _event: Handle) {
        Err(NOT_SUPPORTED)
    }

    fn cuIpcOpenEventHandle(_event: Out<Handle>, _handle: IpcHandle) {
        Err(NOT_SUPPORTED)
    }

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

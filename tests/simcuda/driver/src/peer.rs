//! What reaches beyond the process or the device and is not simulated: IPC and multicast.

use std::ffi::{c_uint, c_ulonglong, c_void};

use simcuda_common::code::NOT_SUPPORTED;
use simcuda_common::ffi::Out;

use crate::types::{Device, DevicePtr, Handle};

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

    fn cuMulticastCreate(_handle: Out<Handle>, _properties: *const c_void) {
        Err(NOT_SUPPORTED)
    }

    fn cuMulticastAddDevice(_handle: Handle, _device: Device) {
        Err(NOT_SUPPORTED)
    }

    fn cuMulticastBindMem(
        _handle: Handle, _offset: usize, _memory: Handle, _memory_offset: usize, _size: usize,
        _flags: c_ulonglong,
    ) {
        Err(NOT_SUPPORTED)
    }

    fn cuMulticastBindAddr(
        _handle: Handle, _offset: usize, _address: DevicePtr, _size: usize, _flags: c_ulonglong,
    ) {
        Err(NOT_SUPPORTED)
    }

    fn cuMulticastUnbind(_handle: Handle, _device: Device, _offset: usize, _size: usize) {
        Err(NOT_SUPPORTED)
    }

    fn cuMulticastGetGranularity(
        _granularity: Out<usize>, _properties: *const c_void, _option: c_uint,
    ) {
        Err(NOT_SUPPORTED)
    }
}

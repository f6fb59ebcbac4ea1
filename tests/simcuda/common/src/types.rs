//! The C types of the driver API that the simulation looks into.
//!
//! Declared by hand; sizes and offsets are asserted. How they were verified is in the
//! README.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::mem::offset_of;

pub type DevicePtr = usize;
pub type Device = c_int;
/// A handle that this library made; meaningless to all others.
pub type Handle = usize;

/// `CUmemLocation`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemLocation {
    pub kind: c_int,
    pub id: c_int,
}

pub const LOCATION_DEVICE: c_int = 1;

/// `CUmemAllocationProp`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemAllocationProp {
    pub kind: c_int,
    pub requested_handle_types: c_int,
    pub location: MemLocation,
    pub win32_meta_data: *mut c_void,
    pub flags: u64,
}

/// `CUmemAccessDesc`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemAccessDesc {
    pub location: MemLocation,
    pub flags: c_int,
}

/// `CUmemPoolProps`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemPoolProps {
    pub alloc_type: c_int,
    pub handle_types: c_int,
    pub location: MemLocation,
    pub win32_security_attributes: *mut c_void,
    pub max_size: usize,
    pub reserved: [u8; 56],
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`, and `cudaMemAllocNodeParams`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemAllocNodeParams {
    pub pool: MemPoolProps,
    pub access: *const MemAccessDesc,
    pub access_count: usize,
    pub size: usize,
    pub address: DevicePtr,
}

/// `CUmulticastObjectProp`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MulticastObjectProp {
    pub devices: c_uint,
    pub size: usize,
    pub handle_types: u64,
    pub flags: u64,
}

/// `CUDA_MEMCPY2D`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memcpy2D {
    pub src_x: usize,
    pub src_y: usize,
    pub src_kind: c_uint,
    pub src_host: usize,
    pub src_device: usize,
    pub src_array: *mut c_void,
    pub src_pitch: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_kind: c_uint,
    pub dst_host: usize,
    pub dst_device: usize,
    pub dst_array: *mut c_void,
    pub dst_pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// `CUlaunchConfig`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
    pub stream: Handle,
    pub attributes: *mut c_void,
    pub attribute_count: c_uint,
}

/// `CUuuid`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Uuid {
    pub bytes: [u8; 16],
}

/// `CUipcMemHandle`, `CUipcEventHandle` and the runtime's types of the same shape, passed by value
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcHandle {
    pub bytes: [u8; 64],
}

/// `CUmemorytype`
pub const MEMORYTYPE_HOST: c_uint = 1;
pub const MEMORYTYPE_DEVICE: c_uint = 2;
pub const MEMORYTYPE_UNIFIED: c_uint = 4;

/// `CUgraphEdgeData` is never looked into.
pub type EdgeData = c_void;
pub type CaptureId = c_ulonglong;

const _: () = {
    assert!(size_of::<MemLocation>() == 8);
    assert!(size_of::<MemAllocationProp>() == 32);
    assert!(offset_of!(MemAllocationProp, location) == 8);
    assert!(size_of::<MemAccessDesc>() == 12);
    assert!(size_of::<MemPoolProps>() == 88);
    assert!(offset_of!(MemPoolProps, location) == 8);
    assert!(size_of::<MemAllocNodeParams>() == 120);
    assert!(offset_of!(MemAllocNodeParams, address) == 112);
    assert!(size_of::<MulticastObjectProp>() == 32);
    assert!(size_of::<Memcpy2D>() == 128);
    assert!(offset_of!(Memcpy2D, src_host) == 24);
    assert!(offset_of!(Memcpy2D, src_pitch) == 48);
    assert!(offset_of!(Memcpy2D, dst_host) == 80);
    assert!(offset_of!(Memcpy2D, height) == 120);
    assert!(size_of::<LaunchConfig>() == 56);
    assert!(offset_of!(LaunchConfig, stream) == 32);
    assert!(size_of::<Uuid>() == 16);
    assert!(size_of::<IpcHandle>() == 64);
};

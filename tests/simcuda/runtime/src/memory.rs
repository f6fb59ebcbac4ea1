//! Memory: allocation, free, and what is known of an address.

use std::ffi::{c_int, c_uint, c_void};

use simcuda_common::ffi::{In, Out};
use simcuda_common::types::{DevicePtr, MEMORYTYPE_HOST};

use crate::state::bound;

/// `struct cudaPointerAttributes`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: DevicePtr,
    host_pointer: usize,
    #[cfg(feature = "cuda13")]
    reserved: [u64; 8],
}

const _: () =
    assert!(size_of::<PointerAttributes>() == if cfg!(feature = "cuda13") { 88 } else { 24 });

/// `enum cudaMemoryType`
const UNREGISTERED: c_int = 0;
const HOST: c_int = 1;
const DEVICE: c_int = 2;
const MANAGED: c_int = 3;
/// The device of memory that CUDA does not know.
const INVALID_DEVICE_ID: c_int = -2;

fn attributes(address: usize) -> Result<PointerAttributes, c_int> {
    // CU_POINTER_ATTRIBUTE_MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL
    const WANTED: [c_int; 3] = [2, 8, 9];
    let (mut memory_type, mut is_managed, mut device) = (0_u32, 0_u8, 0_i32);
    let places: [*mut c_void; 3] = [
        (&raw mut memory_type).cast(),
        (&raw mut is_managed).cast(),
        (&raw mut device).cast(),
    ];
    bound()?.cuPointerGetAttributes(
        WANTED.len() as c_uint,
        array(&WANTED),
        array(&places),
        address,
    )?;
    let kind = match memory_type {
        0 => UNREGISTERED,
        MEMORYTYPE_HOST => HOST,
        _ if is_managed != 0 => MANAGED,
        _ => DEVICE,
    };
    Ok(PointerAttributes {
        kind,
        device: if kind == UNREGISTERED {
            INVALID_DEVICE_ID
        } else {
            device
        },
        device_pointer: if kind == UNREGISTERED { 0 } else { address },
        host_pointer: if kind == DEVICE { 0 } else { address },
        #[cfg(feature = "cuda13")]
        reserved: [0; 8],
    })
}

fn array<T: Copy>(items: &[T]) -> In<T> {
    In::new(items.as_ptr())
}

crate::runtime_api! {
    fn cudaMalloc(address: Out<DevicePtr>, size: usize) {
        let driver = bound()?;
        if size == 0 { address.set(0) } else { driver.cuMemAlloc(address, size) }
    }

    fn cudaMallocPitch(address: Out<DevicePtr>, pitch: Out<usize>, width: usize, height: usize) {
        bound()?.cuMemAllocPitch(address, pitch, width, height, 4)
    }

    fn cudaMallocManaged(address: Out<DevicePtr>, size: usize, flags: c_uint) {
        bound()?.cuMemAllocManaged(address, size, flags)
    }

    fn cudaFree(address: DevicePtr) {
        bound()?.cuMemFree(address)
    }

    fn cudaMemGetInfo(free: Out<usize>, total: Out<usize>) {
        bound()?.cuMemGetInfo(free, total)
    }

    fn cudaMallocHost(address: Out<*mut c_void>, size: usize) {
        let driver = bound()?;
        if size == 0 { address.set(std::ptr::null_mut()) } else { driver.cuMemAllocHost(address, size) }
    }

    fn cudaHostAlloc(address: Out<*mut c_void>, size: usize, flags: c_uint) {
        let driver = bound()?;
        if size == 0 { address.set(std::ptr::null_mut()) } else { driver.cuMemHostAlloc(address, size, flags) }
    }

    fn cudaFreeHost(address: *mut c_void) {
        let driver = bound()?;
        if address.is_null() { Ok(()) } else { driver.cuMemFreeHost(address) }
    }

    fn cudaHostRegister(address: *mut c_void, size: usize, flags: c_uint) {
        bound()?.cuMemHostRegister(address, size, flags)
    }

    fn cudaHostUnregister(address: *mut c_void) {
        bound()?.cuMemHostUnregister(address)
    }

    fn cudaHostGetDevicePointer(
        device_address: Out<DevicePtr>, address: *mut c_void, flags: c_uint,
    ) {
        bound()?.cuMemHostGetDevicePointer(device_address, address, flags)
    }

    fn cudaHostGetFlags(flags: Out<c_uint>, address: *mut c_void) {
        bound()?.cuMemHostGetFlags(flags, address)
    }

    fn cudaPointerGetAttributes(result: Out<PointerAttributes>, address: *const c_void) {
        result.set(attributes(address as usize)?)
    }
}

//! Stream-ordered memory.

use std::ffi::{c_int, c_void};

use simcuda_common::ffi::{In, Out};
use simcuda_common::types::{DevicePtr, Handle, MemAccessDesc, MemPoolProps};

use crate::driver::driver;
use crate::state::bound;

crate::runtime_api! {
    fn cudaMallocAsync, cudaMallocAsync_ptsz(address: Out<DevicePtr>, size: usize, stream: Handle) {
        bound()?.cuMemAllocAsync(address, size, stream)
    }

    fn cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz(
        address: Out<DevicePtr>, size: usize, pool: Handle, stream: Handle,
    ) {
        bound()?.cuMemAllocFromPoolAsync(address, size, pool, stream)
    }

    fn cudaFreeAsync, cudaFreeAsync_ptsz(address: DevicePtr, stream: Handle) {
        bound()?.cuMemFreeAsync(address, stream)
    }

    fn cudaDeviceGetDefaultMemPool(pool: Out<Handle>, device: c_int) {
        driver()?.cuDeviceGetDefaultMemPool(pool, device)
    }

    fn cudaDeviceGetMemPool(pool: Out<Handle>, device: c_int) {
        driver()?.cuDeviceGetMemPool(pool, device)
    }

    fn cudaDeviceSetMemPool(device: c_int, pool: Handle) {
        driver()?.cuDeviceSetMemPool(device, pool)
    }

    fn cudaDeviceGetGraphMemAttribute(device: c_int, which: c_int, value: *mut c_void) {
        bound()?.cuDeviceGetGraphMemAttribute(device, which, value)
    }

    fn cudaDeviceSetGraphMemAttribute(device: c_int, which: c_int, value: *mut c_void) {
        bound()?.cuDeviceSetGraphMemAttribute(device, which, value)
    }

    fn cudaDeviceGraphMemTrim(device: c_int) {
        bound()?.cuDeviceGraphMemTrim(device)
    }

    fn cudaMemPoolCreate(pool: Out<Handle>, properties: In<MemPoolProps>) {
        bound()?.cuMemPoolCreate(pool, properties)
    }

    fn cudaMemPoolDestroy(pool: Handle) {
        bound()?.cuMemPoolDestroy(pool)
    }

    fn cudaMemPoolSetAccess(pool: Handle, descriptions: In<MemAccessDesc>, count: usize) {
        bound()?.cuMemPoolSetAccess(pool, descriptions, count)
    }

    fn cudaMemPoolGetAttribute(pool: Handle, which: c_int, value: *mut c_void) {
        bound()?.cuMemPoolGetAttribute(pool, which, value)
    }

    fn cudaMemPoolSetAttribute(pool: Handle, which: c_int, value: *mut c_void) {
        bound()?.cuMemPoolSetAttribute(pool, which, value)
    }

    fn cudaMemPoolTrimTo(pool: Handle, keep: usize) {
        bound()?.cuMemPoolTrimTo(pool, keep)
    }
}

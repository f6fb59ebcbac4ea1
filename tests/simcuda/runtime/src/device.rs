//! Devices and driver entry points.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use simcuda_common::code::{INVALID_VALUE, NOT_FOUND};
use simcuda_common::ffi::{In, Out};
use simcuda_common::types::Uuid;

use crate::RUNTIME_VERSION;
use crate::driver::{driver, entry_point};
use crate::state::{bound, current_device, primary_context, set_device};

crate::runtime_api! {
    fn cudaGetDeviceCount(count: Out<c_int>) {
        count.set(0)?;
        driver()?.cuDeviceGetCount(count)
    }

    fn cudaGetDevice(device: Out<c_int>) {
        device.set(current_device()?)
    }

    fn cudaSetDevice(device: c_int) {
        set_device(device)
    }

    fn cudaInitDevice(device: c_int, _device_flags: c_uint, _flags: c_uint) {
        primary_context(driver()?, device).map(|_| ())
    }

    fn cudaSetDeviceFlags(_flags: c_uint) {
        driver().map(|_| ())
    }

    fn cudaGetDeviceFlags(flags: Out<c_uint>) {
        driver()?;
        flags.set(0)
    }

    fn cudaDeviceReset() {
        driver().map(|_| ())
    }

    fn cudaDeviceSynchronize, cudaThreadSynchronize() {
        bound()?.cuCtxSynchronize()
    }

    fn cudaDeviceGetAttribute(value: Out<c_int>, which: c_int, device: c_int) {
        driver()?.cuDeviceGetAttribute(value, which, device)
    }

    fn cudaDeviceGetPCIBusId(text: *mut c_char, length: c_int, device: c_int) {
        driver()?.cuDeviceGetPCIBusId(text, length, device)
    }

    fn cudaDeviceGetByPCIBusId(device: Out<c_int>, text: *const c_char) {
        driver()?.cuDeviceGetByPCIBusId(device, text)
    }

    fn cudaDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) {
        driver()?.cuDeviceCanAccessPeer(can, device, peer)
    }

    fn cudaDeviceGetP2PAttribute(value: Out<c_int>, which: c_int, device: c_int, peer: c_int) {
        driver()?.cuDeviceGetP2PAttribute(value, which, device, peer)
    }

    fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        let driver = bound()?;
        driver.cuCtxEnablePeerAccess(primary_context(driver, peer)?, flags)
    }

    fn cudaDeviceDisablePeerAccess(peer: c_int) {
        let driver = bound()?;
        driver.cuCtxDisablePeerAccess(primary_context(driver, peer)?)
    }

    fn cudaDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        bound()?.cuCtxGetStreamPriorityRange(least, greatest)
    }

    fn cudaDeviceGetLimit(value: Out<usize>, limit: c_int) {
        bound()?.cuCtxGetLimit(value, limit)
    }

    fn cudaDeviceSetLimit(limit: c_int, value: usize) {
        bound()?.cuCtxSetLimit(limit, value)
    }

    fn cudaDeviceSetCacheConfig(_config: c_int) {
        driver().map(|_| ())
    }

    fn cudaRuntimeGetVersion(version: Out<c_int>) {
        version.set(RUNTIME_VERSION)
    }

    fn cudaDriverGetVersion(version: Out<c_int>) {
        version.set(0)?;
        driver()?.cuDriverGetVersion(version)
    }

    fn cudaProfilerStart() {
        bound()?.cuProfilerStart()
    }

    fn cudaProfilerStop() {
        bound()?.cuProfilerStop()
    }

    fn cudaGetDriverEntryPoint, cudaGetDriverEntryPoint_ptsz(
        name: *const c_char, address: Out<*const c_void>, flags: c_ulonglong, status: Out<c_int>,
    ) {
        entry_point(name, address, RUNTIME_VERSION, flags, status)
    }

    fn cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz(
        name: *const c_char, address: Out<*const c_void>, version: c_uint, flags: c_ulonglong,
        status: Out<c_int>,
    ) {
        let version = c_int::try_from(version).map_err(|_| INVALID_VALUE)?;
        entry_point(name, address, version, flags, status)
    }

    // NVIDIA's private tables; only its own libraries ask for them.
    fn cudaGetExportTable(table: Out<*const c_void>, _id: In<Uuid>) {
        table.set(std::ptr::null())?;
        Err(NOT_FOUND)
    }
}

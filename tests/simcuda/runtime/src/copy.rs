//! Copies and memsets.

use std::ffi::{c_int, c_void};

use simcuda_common::code::{INVALID_VALUE, Outcome};
use simcuda_common::ffi::{In, Out};
use simcuda_common::types::{DevicePtr, Handle, MEMORYTYPE_UNIFIED, Memcpy2D};

use crate::driver::Driver;
use crate::state::{bound, primary_context};

/// `enum cudaMemcpyKind`
const HOST_TO_HOST: c_int = 0;
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;
const DEVICE_TO_DEVICE: c_int = 3;
const DEFAULT: c_int = 4;

fn copy(destination: usize, source: usize, size: usize, kind: c_int) -> Outcome {
    let driver = bound()?;
    if size == 0 {
        return Ok(());
    }
    match kind {
        HOST_TO_HOST | DEFAULT => driver.cuMemcpy(destination, source, size),
        HOST_TO_DEVICE => driver.cuMemcpyHtoD(destination, source as *const c_void, size),
        DEVICE_TO_HOST => driver.cuMemcpyDtoH(destination as *mut c_void, source, size),
        DEVICE_TO_DEVICE => driver.cuMemcpyDtoD(destination, source, size),
        _ => Err(INVALID_VALUE),
    }
}

fn copy_async(
    destination: usize,
    source: usize,
    size: usize,
    kind: c_int,
    stream: Handle,
) -> Outcome {
    let driver = bound()?;
    if size == 0 {
        return Ok(());
    }
    match kind {
        HOST_TO_HOST | DEFAULT => driver.cuMemcpyAsync(destination, source, size, stream),
        HOST_TO_DEVICE => {
            driver.cuMemcpyHtoDAsync(destination, source as *const c_void, size, stream)
        }
        DEVICE_TO_HOST => {
            driver.cuMemcpyDtoHAsync(destination as *mut c_void, source, size, stream)
        }
        DEVICE_TO_DEVICE => driver.cuMemcpyDtoDAsync(destination, source, size, stream),
        _ => Err(INVALID_VALUE),
    }
}

/// A description in which the addresses say what memory they are.
fn rectangle(
    destination: (usize, usize),
    source: (usize, usize),
    width: usize,
    height: usize,
) -> Memcpy2D {
    Memcpy2D {
        src_x: 0,
        src_y: 0,
        src_kind: MEMORYTYPE_UNIFIED,
        src_host: 0,
        src_device: source.0,
        src_array: std::ptr::null_mut(),
        src_pitch: source.1,
        dst_x: 0,
        dst_y: 0,
        dst_kind: MEMORYTYPE_UNIFIED,
        dst_host: 0,
        dst_device: destination.0,
        dst_array: std::ptr::null_mut(),
        dst_pitch: destination.1,
        width,
        height,
    }
}

fn peers(driver: &Driver, to: c_int, from: c_int) -> Result<(Handle, Handle), c_int> {
    Ok((primary_context(driver, to)?, primary_context(driver, from)?))
}

crate::runtime_api! {
    fn cudaMemcpy, cudaMemcpy_ptds(destination: usize, source: usize, size: usize, kind: c_int) {
        copy(destination, source, size, kind)
    }

    fn cudaMemcpyAsync, cudaMemcpyAsync_ptsz(
        destination: usize, source: usize, size: usize, kind: c_int, stream: Handle,
    ) {
        copy_async(destination, source, size, kind, stream)
    }

    fn cudaMemcpyPeer(destination: usize, to: c_int, source: usize, from: c_int, size: usize) {
        let driver = bound()?;
        let (to, from) = peers(driver, to, from)?;
        if size == 0 { Ok(()) } else { driver.cuMemcpyPeer(destination, to, source, from, size) }
    }

    fn cudaMemcpyPeerAsync(
        destination: usize, to: c_int, source: usize, from: c_int, size: usize, stream: Handle,
    ) {
        let driver = bound()?;
        let (to, from) = peers(driver, to, from)?;
        if size == 0 { Ok(()) } else { driver.cuMemcpyPeerAsync(destination, to, source, from, size, stream) }
    }

    fn cudaMemcpy2D(
        destination: usize, destination_pitch: usize, source: usize, source_pitch: usize,
        width: usize, height: usize, _kind: c_int,
    ) {
        let description = rectangle((destination, destination_pitch), (source, source_pitch), width, height);
        bound()?.cuMemcpy2D(In::new(&raw const description))
    }

    fn cudaMemcpy2DAsync(
        destination: usize, destination_pitch: usize, source: usize, source_pitch: usize,
        width: usize, height: usize, _kind: c_int, stream: Handle,
    ) {
        let description = rectangle((destination, destination_pitch), (source, source_pitch), width, height);
        bound()?.cuMemcpy2DAsync(In::new(&raw const description), stream)
    }

    fn cudaMemcpyToSymbol(
        symbol: *const c_void, source: usize, size: usize, offset: usize, kind: c_int,
    ) {
        bound()?;
        copy(crate::symbols::address(symbol)? + offset, source, size, kind)
    }

    fn cudaMemcpyFromSymbol(
        destination: usize, symbol: *const c_void, size: usize, offset: usize, kind: c_int,
    ) {
        bound()?;
        copy(destination, crate::symbols::address(symbol)? + offset, size, kind)
    }

    fn cudaGetSymbolAddress(address: Out<DevicePtr>, symbol: *const c_void) {
        bound()?;
        address.set(crate::symbols::address(symbol)?)
    }

    fn cudaGetSymbolSize(size: Out<usize>, symbol: *const c_void) {
        bound()?;
        size.set(crate::symbols::size(symbol)?)
    }

    fn cudaMemset, cudaMemset_ptds(address: DevicePtr, value: c_int, count: usize) {
        let driver = bound()?;
        // Memset takes the low byte of an int.
        if count == 0 { Ok(()) } else { driver.cuMemsetD8(address, value as u8, count) }
    }

    fn cudaMemsetAsync, cudaMemsetAsync_ptsz(
        address: DevicePtr, value: c_int, count: usize, stream: Handle,
    ) {
        let driver = bound()?;
        if count == 0 { Ok(()) } else { driver.cuMemsetD8Async(address, value as u8, count, stream) }
    }

    fn cudaMemset2D(address: DevicePtr, pitch: usize, value: c_int, width: usize, height: usize) {
        bound()?.cuMemsetD2D8(address, pitch, value as u8, width, height)
    }

    fn cudaMemset2DAsync(
        address: DevicePtr, pitch: usize, value: c_int, width: usize, height: usize, stream: Handle,
    ) {
        bound()?.cuMemsetD2D8Async(address, pitch, value as u8, width, height, stream)
    }
}

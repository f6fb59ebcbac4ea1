//! Memsets. They happen at once, on the calling thread.

use std::ffi::{c_uchar, c_uint, c_ushort, c_void};

use simcuda_common::code::{INVALID_VALUE, Outcome};

use crate::arena::HOST_PAGE;
use crate::driver::driver;
use crate::graph::NodeKind;
use crate::ledger::{Kind, Ledger};
use crate::stream;
use crate::types::{DevicePtr, Handle};

/// From this size on, zeroing drops pages instead of writing them: exact, and it costs
/// neither time nor host memory. PyTorch zeroes large tensors with memset.
const DROP_FROM: usize = 64 << 10;

/// Fills `count` elements of the size of `value`.
fn fill<const N: usize>(address: DevicePtr, value: [u8; N], count: usize) -> Outcome {
    let driver = driver()?;
    let size = count.checked_mul(N).ok_or(INVALID_VALUE)?;
    if size == 0 {
        return Ok(());
    }
    let ledger = driver.ledger.read().expect("no panics");
    if address == 0 || !ledger.covers(address, size) {
        return Err(INVALID_VALUE);
    }
    driver.known.learn(address, size);
    if value == [0; N] && size >= DROP_FROM && drop_pages(&ledger, address, size) {
        return Ok(());
    }
    if value.iter().all(|byte| *byte == value[0]) {
        // SAFETY: the range is live memory, and the ledger's lock keeps it so.
        unsafe { (address as *mut u8).write_bytes(value[0], size) };
    } else {
        for element in 0..count {
            // SAFETY: as above; arrays of bytes need no alignment.
            unsafe { (address as *mut [u8; N]).add(element).write(value) };
        }
    }
    Ok(())
}

fn fill_async<const N: usize>(
    address: DevicePtr,
    value: [u8; N],
    count: usize,
    stream: Handle,
) -> Outcome {
    fill(address, value, count)?;
    stream::record(driver()?, stream, || NodeKind::Memset);
    Ok(())
}

/// Zeroes the range by dropping the whole pages in it; false if that is not possible.
fn drop_pages(ledger: &Ledger, address: usize, size: usize) -> bool {
    let end = address + size;
    let pages = address.next_multiple_of(HOST_PAGE)..end / HOST_PAGE * HOST_PAGE;
    let mut next = pages.start;
    while next < pages.end {
        let Some(allocation) = ledger.at(next) else {
            return false;
        };
        let advice = match allocation.kind {
            // Private memory reads as zero after this.
            Kind::Device | Kind::Pooled(_) | Kind::Managed => libc::MADV_DONTNEED,
            // Shared memory keeps its content until a hole is made in the file.
            Kind::Exported(_) | Kind::Imported { .. } | Kind::Mapped { .. } => libc::MADV_REMOVE,
            Kind::Host { .. } | Kind::Registered { .. } => return false,
        };
        let stop = (allocation.address + allocation.size).min(pages.end);
        // SAFETY: `next..stop` is whole pages of one live mapping of this library.
        if unsafe { libc::madvise(next as *mut c_void, stop - next, advice) } != 0 {
            return false;
        }
        next = stop;
    }
    // SAFETY: both edges lie in the range that the caller checked.
    unsafe {
        (address as *mut u8).write_bytes(0, pages.start - address);
        (pages.end as *mut u8).write_bytes(0, end - pages.end);
    }
    true
}

fn fill_2d<const N: usize>(
    address: DevicePtr,
    pitch: usize,
    value: [u8; N],
    width: usize,
    height: usize,
) -> Outcome {
    (0..height).try_for_each(|row| fill(address + row * pitch, value, width))
}

crate::driver_api! {
    fn cuMemsetD8_v2, cuMemsetD8_v2_ptds(address: DevicePtr, value: c_uchar, count: usize) {
        fill(address, [value], count)
    }

    fn cuMemsetD8Async, cuMemsetD8Async_ptsz(
        address: DevicePtr, value: c_uchar, count: usize, stream: Handle,
    ) {
        fill_async(address, [value], count, stream)
    }

    fn cuMemsetD16_v2, cuMemsetD16_v2_ptds(address: DevicePtr, value: c_ushort, count: usize) {
        fill(address, value.to_ne_bytes(), count)
    }

    fn cuMemsetD16Async, cuMemsetD16Async_ptsz(
        address: DevicePtr, value: c_ushort, count: usize, stream: Handle,
    ) {
        fill_async(address, value.to_ne_bytes(), count, stream)
    }

    fn cuMemsetD32_v2, cuMemsetD32_v2_ptds(address: DevicePtr, value: c_uint, count: usize) {
        fill(address, value.to_ne_bytes(), count)
    }

    fn cuMemsetD32Async, cuMemsetD32Async_ptsz(
        address: DevicePtr, value: c_uint, count: usize, stream: Handle,
    ) {
        fill_async(address, value.to_ne_bytes(), count, stream)
    }

    fn cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds(
        address: DevicePtr, pitch: usize, value: c_uchar, width: usize, height: usize,
    ) {
        fill_2d(address, pitch, [value], width, height)
    }

    fn cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz(
        address: DevicePtr, pitch: usize, value: c_uchar, width: usize, height: usize,
        _stream: Handle,
    ) {
        fill_2d(address, pitch, [value], width, height)
    }
}

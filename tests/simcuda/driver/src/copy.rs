//! Copies. They happen at once, on the calling thread.

use std::ffi::c_void;

use simcuda_common::code::{INVALID_VALUE, Outcome};
use simcuda_common::ffi::In;

use crate::driver::{Counters, Driver, driver};
use crate::graph::NodeKind;
use crate::ledger::{Kind, Ledger};
use crate::stream;
use crate::types::{DevicePtr, Handle, MEMORYTYPE_HOST, Memcpy2D};

/// Copies to the host of at most this many bytes give zeros if the content is not known
/// (see [`crate::known`]), unless `SIMCUDA_ZERO_SCALARS=0`.
const SCALAR_BYTES: usize = 8;

/// Device addresses must lie in live memory; host addresses are the caller's to know.
fn check(driver: &Driver, ledger: &Ledger, address: usize, size: usize) -> Outcome {
    if address == 0 || (driver.is_device_address(address) && !ledger.covers(address, size)) {
        return Err(INVALID_VALUE);
    }
    Ok(())
}

/// Copies `rows` rows of `width` bytes; source and destination have pitches of their own.
fn copy_rows(
    destination: (usize, usize),
    source: (usize, usize),
    width: usize,
    rows: usize,
) -> Outcome {
    let driver = driver()?;
    if width == 0 || rows == 0 {
        return Ok(());
    }
    let span = |pitch: usize| pitch.checked_mul(rows - 1)?.checked_add(width);
    let ledger = driver.ledger.read().expect("no panics");
    check(
        driver,
        &ledger,
        destination.0,
        span(destination.1).ok_or(INVALID_VALUE)?,
    )?;
    check(
        driver,
        &ledger,
        source.0,
        span(source.1).ok_or(INVALID_VALUE)?,
    )?;
    Counters::add(&driver.counters.copies);
    let to_device = is_device_memory(driver, &ledger, destination.0);
    let from_device = is_device_memory(driver, &ledger, source.0);
    let known =
        !from_device || (0..rows).all(|row| driver.known.holds(source.0 + row * source.1, width));
    let is_unknown_scalar =
        driver.settings.zero_scalars && width * rows <= SCALAR_BYTES && !known && !to_device;
    for row in 0..rows {
        let to = (destination.0 + row * destination.1) as *mut u8;
        let from = (source.0 + row * source.1) as *const u8;
        // SAFETY: device ranges were checked above, and the ledger's lock keeps them
        // mapped; host ranges are valid as the caller of a copy must see to. `copy`
        // allows them to overlap.
        unsafe {
            if is_unknown_scalar {
                to.write_bytes(0, width);
            } else {
                to.copy_from(from, width);
            }
        }
        if to_device && known {
            driver.known.learn(to as usize, width);
        } else if to_device {
            driver.known.forget(to as usize, width);
        }
    }
    Ok(())
}

fn is_device_memory(driver: &Driver, ledger: &Ledger, address: usize) -> bool {
    driver.is_device_address(address)
        && !matches!(
            ledger.at(address).map(|found| &found.kind),
            Some(Kind::Managed)
        )
}

fn copy(destination: usize, source: usize, size: usize) -> Outcome {
    copy_rows((destination, size), (source, size), size, 1)
}

fn copy_async(destination: usize, source: usize, size: usize, stream: Handle) -> Outcome {
    copy(destination, source, size)?;
    stream::record(driver()?, stream, || NodeKind::Memcpy);
    Ok(())
}

fn copy_2d(description: In<Memcpy2D>) -> Outcome {
    let copy = description.get()?;
    let (source, destination) = (
        if copy.src_kind == MEMORYTYPE_HOST {
            copy.src_host
        } else {
            copy.src_device
        },
        if copy.dst_kind == MEMORYTYPE_HOST {
            copy.dst_host
        } else {
            copy.dst_device
        },
    );
    copy_rows(
        (
            destination + copy.dst_y * copy.dst_pitch + copy.dst_x,
            copy.dst_pitch,
        ),
        (
            source + copy.src_y * copy.src_pitch + copy.src_x,
            copy.src_pitch,
        ),
        copy.width,
        copy.height,
    )
}

crate::driver_api! {
    fn cuMemcpy, cuMemcpy_ptds(destination: DevicePtr, source: DevicePtr, size: usize) {
        copy(destination, source, size)
    }

    fn cuMemcpyAsync, cuMemcpyAsync_ptsz(
        destination: DevicePtr, source: DevicePtr, size: usize, stream: Handle,
    ) {
        copy_async(destination, source, size, stream)
    }

    fn cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds(
        destination: DevicePtr, source: *const c_void, size: usize,
    ) {
        copy(destination, source as usize, size)
    }

    fn cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds(
        destination: *mut c_void, source: DevicePtr, size: usize,
    ) {
        copy(destination as usize, source, size)
    }

    fn cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds(
        destination: DevicePtr, source: DevicePtr, size: usize,
    ) {
        copy(destination, source, size)
    }

    fn cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz(
        destination: DevicePtr, source: *const c_void, size: usize, stream: Handle,
    ) {
        copy_async(destination, source as usize, size, stream)
    }

    fn cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz(
        destination: *mut c_void, source: DevicePtr, size: usize, stream: Handle,
    ) {
        copy_async(destination as usize, source, size, stream)
    }

    fn cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz(
        destination: DevicePtr, source: DevicePtr, size: usize, stream: Handle,
    ) {
        copy_async(destination, source, size, stream)
    }

    fn cuMemcpyPeer, cuMemcpyPeer_ptds(
        destination: DevicePtr, _to: Handle, source: DevicePtr, _from: Handle, size: usize,
    ) {
        copy(destination, source, size)
    }

    fn cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz(
        destination: DevicePtr, _to: Handle, source: DevicePtr, _from: Handle, size: usize,
        stream: Handle,
    ) {
        copy_async(destination, source, size, stream)
    }

    fn cuMemcpy2D_v2, cuMemcpy2D_v2_ptds(description: In<Memcpy2D>) {
        copy_2d(description)
    }

    fn cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds(description: In<Memcpy2D>) {
        copy_2d(description)
    }

    fn cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz(description: In<Memcpy2D>, _stream: Handle) {
        copy_2d(description)
    }
}

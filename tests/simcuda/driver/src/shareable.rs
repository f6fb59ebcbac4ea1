//! Virtual memory for other processes: handles as file descriptors.

use std::ffi::{c_int, c_ulonglong, c_void};
use std::sync::Arc;

use simcuda_common::code::{INVALID_DEVICE, INVALID_VALUE, NOT_SUPPORTED};
use simcuda_common::ffi::Out;
use simcuda_common::log;

use crate::driver::{Driver, driver};
use crate::ledger::{Kind, Ledger};
use crate::shared::SharedFile;
use crate::types::{DevicePtr, Handle};
use crate::vmm::{self, POSIX_DESCRIPTOR, Physical};

/// A descriptor, which is the caller's to close.
fn export(driver: &Driver, handle: Handle) -> Result<c_int, c_int> {
    let physical = driver.physical.get(handle).map_err(|_| INVALID_VALUE)?;
    if physical.handle_types() & POSIX_DESCRIPTOR == 0 {
        return Err(INVALID_VALUE);
    }
    // Keeps copies away while the content moves.
    let ledger = driver.ledger.write().expect("no panics");
    physical.share(driver, &ledger)?.duplicate()
}

/// The memory of this process that a descriptor stands for.
fn own(driver: &Driver, ledger: &Ledger, inode: u64) -> Option<Arc<Physical>> {
    let mapped = ledger.all().filter_map(|tile| match &tile.kind {
        Kind::Mapped { physical, .. } => Some(Arc::clone(physical)),
        _ => None,
    });
    let mut known = driver.physical.all().into_iter().chain(mapped);
    known.find(|physical| physical.inode() == Some(inode))
}

/// A handle of what a descriptor stands for: memory that this process has keeps its handle, which
/// must be released once more.
fn import(driver: &Driver, descriptor: c_int) -> Result<Handle, c_int> {
    let file = SharedFile::of_descriptor(descriptor)?;
    let ledger = driver.ledger.write().expect("no panics");
    if let Some(physical) = own(driver, &ledger, file.inode()?) {
        return Ok(vmm::retain_handle(driver, &physical));
    }
    let device = (driver.devices.iter())
        .position(|device| device.settings.index == file.device())
        .ok_or(INVALID_DEVICE)?;
    let size = file.size();
    let handle = vmm::adopt(driver, file, device);
    log!("{size} B of another process are {handle:#x} here, charged there");
    Ok(handle)
}

crate::driver_api! {
    fn cuMemExportToShareableHandle(
        shareable: Out<c_void>, handle: Handle, kind: c_int, flags: c_ulonglong,
    ) {
        let driver = driver()?;
        if shareable.is_null() || flags != 0 {
            return Err(INVALID_VALUE);
        }
        if kind != POSIX_DESCRIPTOR {
            return Err(NOT_SUPPORTED);
        }
        shareable.cast().set(export(driver, handle)?)
    }

    // The descriptor comes in the place of the pointer.
    fn cuMemImportFromShareableHandle(handle: Out<Handle>, shareable: *mut c_void, kind: c_int) {
        let driver = driver()?;
        if handle.is_null() {
            return Err(INVALID_VALUE);
        }
        if kind != POSIX_DESCRIPTOR {
            return Err(NOT_SUPPORTED);
        }
        let descriptor = c_int::try_from(shareable as usize).map_err(|_| INVALID_VALUE)?;
        handle.set(import(driver, descriptor)?)
    }

    fn cuMemGetHandleForAddressRange(
        _handle: *mut c_void, _address: DevicePtr, _size: usize, _kind: c_int, _flags: c_ulonglong,
    ) {
        Err(NOT_SUPPORTED)
    }
}

//! Which device the calling thread uses.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use simcuda_common::code::INVALID_DEVICE;
use simcuda_common::ffi::Out;
use simcuda_common::settings::MAX_DEVICES;
use simcuda_common::types::Handle;

use crate::driver::{Driver, driver, port};

thread_local! {
    /// What `cudaSetDevice` said; used until the thread has a context.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
}

/// The primary contexts that the runtime has retained; 0 for none yet.
static PRIMARY: [AtomicUsize; MAX_DEVICES] = [const { AtomicUsize::new(0) }; MAX_DEVICES];

/// The primary context of a device, retained once for the life of the process.
pub fn primary_context(driver: &Driver, device: c_int) -> Result<Handle, c_int> {
    let slot = usize::try_from(device)
        .ok()
        .and_then(|index| PRIMARY.get(index))
        .ok_or(INVALID_DEVICE)?;
    match slot.load(Ordering::Acquire) {
        0 => {
            let mut context = 0;
            driver.cuDevicePrimaryCtxRetain(Out::new(&raw mut context), device)?;
            slot.store(context, Ordering::Release);
            Ok(context)
        }
        context => Ok(context),
    }
}

/// The driver, with a context current on this thread: the one that is, or else the
/// primary context of the thread's device.
pub fn bound() -> Result<&'static Driver, c_int> {
    let driver = driver()?;
    if port().current_context().is_null() {
        driver.cuCtxSetCurrent(primary_context(driver, DEVICE.get())?)?;
    }
    Ok(driver)
}

/// Ordinal of the thread's device.
pub fn current_device() -> Result<c_int, c_int> {
    let driver = driver()?;
    let context = port().current_context() as Handle;
    if context == 0 {
        return Ok(DEVICE.get());
    }
    match PRIMARY
        .iter()
        .position(|primary| primary.load(Ordering::Acquire) == context)
    {
        Some(device) => Ok(device as c_int),
        None => {
            let mut device = 0;
            driver.cuCtxGetDevice(Out::new(&raw mut device))?;
            Ok(device)
        }
    }
}

/// Makes `device` the thread's device, with its primary context.
pub fn set_device(device: c_int) -> Result<(), c_int> {
    let driver = driver()?;
    let context = primary_context(driver, device)?;
    DEVICE.set(device);
    if port().current_context() as Handle == context {
        return Ok(());
    }
    driver.cuCtxSetCurrent(context)
}

//! Which CUPTI is played.

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::result::INVALID_PARAMETER;

/// What `cuptiGetVersion` says without `SIMCUDA_CUPTI_VERSION`: 26 is CUDA 12.8's.
const DEFAULT: u32 = if cfg!(feature = "cuda13") {
    130_200
} else {
    26
};

/// Several subscribers can live side by side from this version on.
pub const SEVERAL_SUBSCRIBERS: u32 = 130_200;
/// Pools' used bytes are in records from CUDA 11.6 on (counter 17), the allocating library from
/// 12.6 on (counter 24).
pub const UTILIZED_SIZE: u32 = 17;
pub const ALLOCATION_SOURCE: u32 = 24;

/// The version, read once.
pub fn version() -> u32 {
    static VERSION: OnceLock<u32> = OnceLock::new();
    *VERSION.get_or_init(|| match std::env::var("SIMCUDA_CUPTI_VERSION") {
        Err(_) => DEFAULT,
        Ok(text) => text.parse().unwrap_or_else(|_| {
            eprintln!("simcuda: SIMCUDA_CUPTI_VERSION={text} is no number; {DEFAULT} is played");
            DEFAULT
        }),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(place: *mut u32) -> c_int {
    if place.is_null() {
        return INVALID_PARAMETER.0;
    }
    // SAFETY: the caller gave a place for a number.
    unsafe { place.write(version()) };
    0
}

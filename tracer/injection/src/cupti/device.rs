//! Which device a context is on, remembered by the context's number.

use std::sync::atomic::{AtomicU64, Ordering};

use vramscope_cupti_sys::{Cupti, raw};

/// As many contexts as any process has, by far: a process has one on each device.
const PLACES: usize = 64;

/// Context number in the upper half, device plus one in the lower.
static KNOWN: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// The ordinal of the device, or -1.
pub(super) fn of(cupti: &Cupti, context: raw::CUcontext, number: u32) -> i32 {
    if context.is_null() {
        return -1;
    }
    let Some(place) = KNOWN.get(number as usize % PLACES) else {
        return -1;
    };
    let known = place.load(Ordering::Relaxed);
    if known >> 32 == u64::from(number) && known as u32 != 0 {
        return (known as u32).wrapping_sub(1) as i32;
    }
    let Some(device) = cupti.device_of(context) else {
        return -1;
    };
    place.store(
        u64::from(number) << 32 | u64::from(device.wrapping_add(1)),
        Ordering::Relaxed,
    );
    device as i32
}

/// Forgets all: numbers may begin again with a new subscription.
pub(super) fn forget() {
    for place in &KNOWN {
        place.store(0, Ordering::Relaxed);
    }
}

//! Large tables that cost memory as they fill.

use core::sync::atomic::AtomicU64;

/// Words that are zero; the system gives their memory when they are touched.
pub fn zeroed(count: usize) -> Box<[AtomicU64]> {
    let words = Box::into_raw(vec![0_u64; count].into_boxed_slice());
    // SAFETY: AtomicU64 has the size and bit validity of u64, and on x86-64 its alignment; the box
    // goes over to the new type whole.
    unsafe { Box::from_raw(words as *mut [AtomicU64]) }
}

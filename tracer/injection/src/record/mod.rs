//! The hot path: one record an operation, written by the thread that made it.
//!
//! Nothing here may panic, allocate, lock or wait; see the crate's documentation.

mod codes;
mod driver;
mod execute;
mod python;
mod stack;
mod tensor;
mod trampoline;

use vramscope_wire::{vs_counter_VS_COUNT_RING_FULL, vs_header, vs_kind};

use crate::{live::Live, thread};

pub use driver::on_driver;
pub use trampoline::{Hook, original, set_original, trampoline};

/// The beginning of a record of this thread, now.
#[inline]
fn head(live: &Live, kind: vs_kind) -> vs_header {
    vs_header {
        kind: kind as u16,
        device: 0,
        process: 0,
        flags: 0,
        time: if live.tsc {
            thread::counter()
        } else {
            thread::now()
        },
        tid: thread::id(),
        stack: 0,
    }
}

/// Records ahead of the ring's head whose place is fetched into the cache: the other side touched it
/// last, and a store that waits for it would cost more than all the rest.
const AHEAD: u64 = 4;

/// A record of the wire as the words of a ring.
///
/// # Safety
/// Implementors are `repr(C)`, have no padding, and a size that is a multiple of 8.
unsafe trait Words: Copy {}

macro_rules! words {
    ($($record:ident),*) => {$(
        // SAFETY: wire.h spells its padding out, and `vramscope-wire` asserts the sizes; fields of
        // 8 bytes lie at multiples of 8.
        unsafe impl Words for vramscope_wire::$record {}
        const _: () = assert!(size_of::<vramscope_wire::$record>() % 8 == 0);
    )*};
}
words!(
    vs_tensor,
    vs_oom,
    vs_mark,
    vs_driver,
    vs_code_whole,
    vs_stack_native
);

/// Writes a record's words at `index` of a slot.
#[inline]
fn write<R: Words>(slot: &vramscope_ring::Slot<'_>, record: &R) {
    let start = (record as *const R).cast::<u64>();
    for index in 0..size_of::<R>() / 8 {
        // SAFETY: within the record, whose every byte is initialised (`Words`); a record of the
        // wire may lie at a multiple of 4 only, hence unaligned.
        slot.write(index, unsafe { start.add(index).read_unaligned() });
    }
}

/// Hands a record over, or counts it as lost.
#[inline]
fn push<R: Words>(live: &Live, record: &R) {
    match live.ring.reserve(size_of::<R>() / 8) {
        Some(slot) => {
            write(&slot, record);
            slot.commit();
            if let Some(word) = live.ring.ahead(AHEAD) {
                thread::prefetch(word);
            }
        }
        None => live.count(vs_counter_VS_COUNT_RING_FULL),
    }
}

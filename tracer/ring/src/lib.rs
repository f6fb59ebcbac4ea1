//! A ring of records in memory that two processes share: many writers, one reader; and the tables
//! in which the writers remember what they have sent.
//!
//! The writers are threads of a traced program, so a writer never waits and never allocates: where
//! there is no room, [`Writer::reserve`] says so and the caller counts a loss. Records leave in the
//! order of their reservations, whichever thread is first to finish writing; an allocator that
//! reports under its own lock therefore keeps its order here.
//!
//! The reader does not trust the other side: whatever lies in the memory, [`Reader::next`] gives a
//! record of at most the ring's size, nothing, or [`Damaged`]. All words are atomics, so a change
//! under the reader's eyes is a wrong number and never undefined behaviour.
//!
//! # Layout
//! The ring is an array of 64-bit words, its length a power of two. `head` and `tail` count words
//! from the beginning of time. A record begins at a multiple of [`LINE`]; it is one header word
//! (payload words, and a bit that says whether they are all written), then its payload. A first word
//! of a line that nobody has reserved is zero: the reader clears those that it has taken before it
//! moves the tail.

#![deny(unsafe_code)]

mod reader;
pub mod tables;
mod writer;

pub use reader::{Damaged, Reader};
pub use writer::{Slot, Writer};

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

/// Words of a cache line. Every record begins with one: no two writers share a line, and a record
/// of seven words fills one.
pub const LINE: u64 = 8;

/// What a record of so many payload words takes.
pub(crate) fn taken(words: u64) -> Option<u64> {
    words.checked_add(1)?.checked_next_multiple_of(LINE)
}

/// In a header word: the payload is all there.
pub(crate) const COMMITTED: u64 = 1 << 63;

/// The words of a ring, as either side sees them.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// Words reserved so far.
    pub head: &'a AtomicU64,
    /// Words given back so far.
    pub tail: &'a AtomicU64,
    /// The ring; its length is a power of two.
    pub words: &'a [AtomicU64],
}

impl Parts<'_> {
    /// Whether the ring can be used: a power of two of at least one line.
    pub fn usable(&self) -> bool {
        self.words.len() as u64 >= LINE && self.words.len().is_power_of_two()
    }

    /// The word at a position counted from the beginning of time.
    #[inline]
    pub(crate) fn word(&self, position: u64) -> Option<&AtomicU64> {
        self.words.get(self.index(position))
    }

    #[inline]
    pub(crate) fn index(&self, position: u64) -> usize {
        (position as usize) & self.words.len().wrapping_sub(1)
    }
}

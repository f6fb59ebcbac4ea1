//! The side of the traced program.

use crate::{AtomicU64, COMMITTED, LINE, Ordering, Parts, taken};

/// Writes records. Any number of threads may hold one.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    parts: Parts<'a>,
}

/// Room for one record, in its place in the order. Nothing behind it can be read before
/// [`Slot::commit`].
#[must_use = "a slot that is never committed stops the reader"]
#[derive(Debug)]
pub struct Slot<'a> {
    parts: Parts<'a>,
    start: u64,
    words: u64,
}

impl<'a> Writer<'a> {
    /// A writer; none where the ring cannot be used.
    pub fn new(parts: Parts<'a>) -> Option<Writer<'a>> {
        parts.usable().then_some(Writer { parts })
    }

    /// Takes room for a record of `words` payload words. None: there is no room now, or never (the
    /// ring is smaller than that).
    #[inline]
    pub fn reserve(&self, words: usize) -> Option<Slot<'a>> {
        let words = words as u64;
        let capacity = self.parts.words.len() as u64;
        let needed = taken(words)?;
        let mut head = self.parts.head.load(Ordering::Relaxed);
        loop {
            // Acquire: the reader cleared these words before it moved the tail.
            let tail = self.parts.tail.load(Ordering::Acquire);
            let used = head.wrapping_sub(tail);
            // A tail beyond the head was read later than the head: `used` is then huge, and the
            // exchange below would have failed anyway.
            if needed > capacity.wrapping_sub(used.min(capacity)) {
                let again = self.parts.head.load(Ordering::Relaxed);
                if again == head {
                    return None;
                }
                head = again;
                continue;
            }
            match self.parts.head.compare_exchange_weak(
                head,
                head.wrapping_add(needed),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(start) => {
                    return Some(Slot {
                        parts: self.parts,
                        start,
                        words,
                    });
                }
                Err(now) => head = now,
            }
        }
    }
}

impl<'a> Writer<'a> {
    /// The first word of the line so many lines behind the head: where a record will be written
    /// soon.
    #[inline]
    pub fn ahead(&self, lines: u64) -> Option<&'a AtomicU64> {
        let head = self.parts.head.load(Ordering::Relaxed);
        let parts: Parts<'a> = self.parts;
        parts
            .words
            .get(parts.index(head.wrapping_add(lines * LINE)))
    }
}

impl Slot<'_> {
    /// Writes the payload word at `index`; what lies outside of the record is left alone.
    #[inline]
    pub fn write(&self, index: usize, value: u64) {
        let index = index as u64;
        if index < self.words
            && let Some(word) = self.parts.word(self.start.wrapping_add(1 + index))
        {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Hands the record over.
    #[inline]
    pub fn commit(self) {
        if let Some(word) = self.parts.word(self.start) {
            // Release: whoever sees the bit sees the payload.
            word.store(self.words | COMMITTED, Ordering::Release);
        }
    }
}

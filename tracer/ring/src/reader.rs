//! The side of the tracer.

use crate::{COMMITTED, LINE, Ordering, Parts, taken};

/// The shared words make no sense: the other side has overwritten them. Nothing more can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl core::fmt::Display for Damaged {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the ring that the process shares with us was overwritten")
    }
}

impl core::error::Error for Damaged {}

/// Reads records. There must be only one for a ring.
#[derive(Debug)]
pub struct Reader {
    /// Our own word for the tail: the shared one is told, never asked.
    tail: u64,
}

impl Reader {
    /// A reader of a ring that nothing was read from yet.
    pub fn new() -> Reader {
        Reader { tail: 0 }
    }

    /// Takes the next record and appends its payload to `payload` after clearing it. `false`: none
    /// is ready.
    ///
    /// # Errors
    /// [`Damaged`]: the other side wrote what no writer of this crate writes.
    pub fn next(&mut self, parts: Parts<'_>, payload: &mut Vec<u64>) -> Result<bool, Damaged> {
        payload.clear();
        if !parts.usable() {
            return Err(Damaged);
        }
        let capacity = parts.words.len() as u64;
        let used = parts.head.load(Ordering::Relaxed).wrapping_sub(self.tail);
        if used == 0 {
            return Ok(false);
        }
        if used > capacity {
            return Err(Damaged);
        }
        // Acquire: with the bit comes the payload.
        let header = parts.word(self.tail).ok_or(Damaged)?;
        let value = header.load(Ordering::Acquire);
        if value & COMMITTED == 0 {
            return Ok(false);
        }
        let words = value & !COMMITTED;
        let taken = taken(words).ok_or(Damaged)?;
        if taken > used {
            return Err(Damaged);
        }
        for index in 1..=words {
            let word = parts.word(self.tail.wrapping_add(index)).ok_or(Damaged)?;
            payload.push(word.load(Ordering::Relaxed));
        }
        for line in (0..taken).step_by(LINE as usize) {
            let word = parts.word(self.tail.wrapping_add(line)).ok_or(Damaged)?;
            word.store(0, Ordering::Relaxed);
        }
        self.tail = self.tail.wrapping_add(taken);
        // Release: a writer that sees the new tail sees the cleared words.
        parts.tail.store(self.tail, Ordering::Release);
        Ok(true)
    }

    /// Words reserved and not yet taken; more than the ring holds where it was overwritten.
    pub fn waiting(&self, parts: Parts<'_>) -> u64 {
        parts.head.load(Ordering::Relaxed).wrapping_sub(self.tail)
    }
}

impl Default for Reader {
    fn default() -> Reader {
        Reader::new()
    }
}

//! Python's pickle, protocol 2, as far as a memory snapshot needs it.
//!
//! Of our own, since a snapshot lives from sharing: one stack is in thousands of events, and only
//! a writer that knows the memo opcodes writes it once. Protocol 2 is the oldest that has small
//! integers and tuples, so every reader knows it. Opcodes as in Python's `pickletools.py`.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

/// Entries between two marks, as Python's own pickler batches.
pub const BATCH: usize = 1000;

/// Refers to an object that was written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memo(u32);

/// Writes objects in the order of a stack machine.
pub struct Pickler<W> {
    out: W,
    memos: u32,
    strings: FxHashMap<String, Memo>,
}

impl<W: Write> Pickler<W> {
    pub fn new(mut out: W) -> io::Result<Pickler<W>> {
        out.write_all(&[0x80, 2])?;
        Ok(Pickler {
            out,
            memos: 0,
            strings: FxHashMap::default(),
        })
    }

    /// Ends the pickle: the one object on the stack is its value.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(b".")?;
        self.out.flush()
    }

    /// A number.
    pub fn number(&mut self, number: u64) -> io::Result<()> {
        if let Ok(byte) = u8::try_from(number) {
            self.out.write_all(&[b'K', byte])
        } else if let Ok(two) = u16::try_from(number) {
            self.op(b'M', &two.to_le_bytes())
        } else if let Ok(four) = i32::try_from(number) {
            self.op(b'J', &four.to_le_bytes())
        } else {
            // LONG1: little-endian two's complement; the ninth byte keeps it positive.
            let mut bytes = number.to_le_bytes().to_vec();
            bytes.push(0);
            while bytes.len() > 1 && bytes[bytes.len() - 1] == 0 && bytes[bytes.len() - 2] < 0x80 {
                bytes.pop();
            }
            self.out.write_all(&[0x8a, bytes.len() as u8])?;
            self.out.write_all(&bytes)
        }
    }

    /// A truth value.
    pub fn truth(&mut self, truth: bool) -> io::Result<()> {
        self.out.write_all(&[if truth { 0x88 } else { 0x89 }])
    }

    /// A text, shared with earlier equal ones.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        if let Some(memo) = self.strings.get(text) {
            return self.again(*memo);
        }
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        self.op(b'X', &length.to_le_bytes())?;
        self.out.write_all(text.as_bytes())?;
        let memo = self.memoize()?;
        self.strings.insert(text.to_owned(), memo);
        Ok(())
    }

    /// A pair of zeros.
    pub fn zero_pair(&mut self) -> io::Result<()> {
        self.out.write_all(&[b'K', 0, b'K', 0, 0x86])
    }

    /// Begins a list: batches of items follow.
    pub fn open_list(&mut self) -> io::Result<()> {
        self.out.write_all(b"]")
    }

    /// Begins at most [`BATCH`] items.
    pub fn open_batch(&mut self) -> io::Result<()> {
        self.out.write_all(b"(")
    }

    /// Ends them.
    pub fn close_batch(&mut self) -> io::Result<()> {
        self.out.write_all(b"e")
    }

    /// Begins a dictionary: keys and values in turn follow.
    pub fn open_dict(&mut self) -> io::Result<()> {
        self.out.write_all(b"}(")
    }

    /// Ends it.
    pub fn close_dict(&mut self) -> io::Result<()> {
        self.out.write_all(b"u")
    }

    /// A key and a number.
    pub fn entry(&mut self, key: &str, number: u64) -> io::Result<()> {
        self.text(key)?;
        self.number(number)
    }

    /// Remembers the object that was written last.
    pub fn memoize(&mut self) -> io::Result<Memo> {
        let memo = Memo(self.memos);
        self.memos += 1;
        match u8::try_from(memo.0) {
            Ok(byte) => self.out.write_all(&[b'q', byte])?,
            Err(_) => self.op(b'r', &memo.0.to_le_bytes())?,
        }
        Ok(memo)
    }

    /// The same object again.
    pub fn again(&mut self, memo: Memo) -> io::Result<()> {
        match u8::try_from(memo.0) {
            Ok(byte) => self.out.write_all(&[b'h', byte]),
            Err(_) => self.op(b'j', &memo.0.to_le_bytes()),
        }
    }

    fn op(&mut self, code: u8, operand: &[u8]) -> io::Result<()> {
        self.out.write_all(&[code])?;
        self.out.write_all(operand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pickled(number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let mut pickler = Pickler::new(&mut out).unwrap();
        pickler.number(number).unwrap();
        pickler.finish().unwrap();
        out[2..out.len() - 1].to_vec()
    }

    #[test]
    fn numbers_take_the_shortest_form_that_stays_positive() {
        assert_eq!(pickled(255), [b'K', 255]);
        assert_eq!(pickled(256), [b'M', 0, 1]);
        assert_eq!(pickled(65_536), [b'J', 0, 0, 1, 0]);
        assert_eq!(pickled(1 << 31), [0x8a, 5, 0, 0, 0, 0x80, 0]);
        assert_eq!(pickled(1 << 32), [0x8a, 5, 0, 0, 0, 0, 1]);
        assert_eq!(pickled(u64::MAX).len(), 2 + 9);
    }
}

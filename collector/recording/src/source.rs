//! Where a recording's bytes are.

use std::{fs::File, io, os::unix::fs::FileExt as _};

/// A file or bytes in memory.
#[derive(Debug)]
pub(crate) enum Source {
    File { file: File, length: u64 },
    Memory(Vec<u8>),
}

impl Source {
    pub fn length(&self) -> u64 {
        match self {
            Source::File { length, .. } => *length,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Fills as much of `buffer` as there is from `at` on; how much that was.
    pub fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let room = self.length().saturating_sub(at).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..room];
        match self {
            Source::File { file, .. } => file.read_exact_at(buffer, at)?,
            Source::Memory(bytes) => {
                let at = at.min(bytes.len() as u64) as usize;
                buffer.copy_from_slice(&bytes[at..at + room]);
            }
        }
        Ok(room)
    }
}

//! From chunk to chunk, and over what is no chunk to the next.

use std::io;

use crate::{
    chunk::{CHUNK_MAGIC, HEADER_BYTES, Header, Kind},
    error::{Damage, DamageKind},
    source::Source,
    writer::{TRAILER_BYTES, TRAILER_MAGIC},
};

/// Bytes looked through at a time for the next chunk.
const BLOCK: usize = 1 << 20;

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    /// A chunk whose head is whole, at this place.
    Chunk(u64, Header),
    /// Something that cannot be used; what follows it is not what followed what came before.
    Damage(Damage),
    /// The end.
    End,
}

/// Goes from chunk to chunk by their heads.
#[derive(Debug)]
pub(crate) struct Walk {
    pub at: u64,
    /// The number that the next chunk must have.
    expected: u64,
    /// Nothing but the head of the file was seen: rotation may have taken away what followed it.
    at_start: bool,
}

impl Walk {
    /// From `at` on, where the chunk with number `expected` is.
    pub fn new(at: u64, expected: u64) -> Walk {
        Walk {
            at,
            expected,
            at_start: false,
        }
    }

    /// After the head of the file.
    pub fn after_session(at: u64) -> Walk {
        Walk {
            at,
            expected: 1,
            at_start: true,
        }
    }

    pub fn next(&mut self, source: &Source) -> io::Result<Next> {
        loop {
            let left = source.length().saturating_sub(self.at);
            if left == 0 {
                return Ok(Next::End);
            }
            let mut head = [0; HEADER_BYTES];
            let read = source.read(&mut head, self.at)?;
            if read == TRAILER_BYTES && head[..4] == TRAILER_MAGIC {
                self.at += TRAILER_BYTES as u64;
                continue;
            }
            if read < HEADER_BYTES {
                return Ok(self.cut(left));
            }
            let at = self.at;
            match Header::from_bytes(&head) {
                Ok(header) if header.length() > left => return Ok(self.cut(left)),
                Ok(header) if header.sequence < self.expected => {
                    self.at += header.length();
                    let what = "a chunk of earlier on".to_owned();
                    return Ok(corrupt(at, header.length(), what));
                }
                Ok(header) => {
                    let rotated =
                        std::mem::take(&mut self.at_start) && header.kind == Kind::CHECKPOINT;
                    let missing = header.sequence - self.expected;
                    if missing > 0 && !rotated {
                        // Told once; the chunk itself comes next.
                        self.expected = header.sequence;
                        let kind = DamageKind::Missing { chunks: missing };
                        return Ok(Next::Damage(Damage { at, kind }));
                    }
                    self.expected = header.sequence.saturating_add(1);
                    self.at += header.length();
                    return Ok(Next::Chunk(at, header));
                }
                Err(error) => {
                    let next = find_chunk(source, at + 1)?.unwrap_or(source.length());
                    self.at = next;
                    self.at_start = false;
                    // Whatever was there is told by this damage.
                    self.skip_to_found(source)?;
                    return Ok(corrupt(at, next - at, error.to_string()));
                }
            }
        }
    }

    fn skip_to_found(&mut self, source: &Source) -> io::Result<()> {
        let mut head = [0; HEADER_BYTES];
        if source.read(&mut head, self.at)? == HEADER_BYTES
            && let Ok(header) = Header::from_bytes(&head)
        {
            self.expected = self.expected.max(header.sequence);
        }
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> Next {
        let at = self.at;
        self.at += bytes;
        let kind = DamageKind::CutTail { bytes };
        Next::Damage(Damage { at, kind })
    }
}

fn corrupt(at: u64, bytes: u64, what: String) -> Next {
    let kind = DamageKind::Corrupt { bytes, what };
    Next::Damage(Damage { at, kind })
}

/// The next place from `from` on where a whole head is.
fn find_chunk(source: &Source, from: u64) -> io::Result<Option<u64>> {
    let mut at = from;
    let mut block = vec![0; BLOCK];
    loop {
        let read = source.read(&mut block, at)?;
        if read < HEADER_BYTES {
            return Ok(None);
        }
        let places = 0..=read - HEADER_BYTES;
        for place in places {
            if block[place..place + 4] != CHUNK_MAGIC {
                continue;
            }
            let mut head = [0; HEADER_BYTES];
            head.copy_from_slice(&block[place..place + HEADER_BYTES]);
            if Header::from_bytes(&head).is_ok() {
                return Ok(Some(at + place as u64));
            }
        }
        at += (read - HEADER_BYTES + 1) as u64;
    }
}

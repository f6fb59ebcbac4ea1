//! Chunks: what a file is made of. Each says where it ends and whether it is whole.

use crate::error::Malformed;

/// The first bytes of a file. As in PNG, the odd ones show what a careless copy did to it.
pub(crate) const FILE_MAGIC: [u8; 8] = *b"\x89VRAM\r\n\x1a";
/// The first bytes of a chunk.
pub(crate) const CHUNK_MAGIC: [u8; 4] = *b"vrsC";
/// Bytes of a chunk before its payload.
pub(crate) const HEADER_BYTES: usize = 48;
/// No payload is larger, stored or decompressed.
pub(crate) const MAX_PAYLOAD: u32 = 1 << 30;

/// What a chunk is. A reader skips those that it does not know, unless [`CRITICAL`] is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind(pub u8);

impl Kind {
    /// Who was recorded, and how. The first chunk.
    pub const SESSION: Kind = Kind(1);
    /// Events in columns.
    pub const EVENTS: Kind = Kind(2);
    /// Everything needed to go on from here.
    pub const CHECKPOINT: Kind = Kind(3);
    /// The recorder left events out here.
    pub const LEFT_OUT: Kind = Kind(4);
    /// A process was added, or the probes changed.
    pub const NEWS: Kind = Kind(5);
    /// The recording was closed; with an index.
    pub const END: Kind = Kind(6);
}

/// Flag: the payload is a zstd frame of its own.
pub(crate) const ZSTD: u8 = 1;
/// Flag: the payload goes on with the zstd frame of the chunk of events before.
pub(crate) const ZSTD_CONTINUED: u8 = 2;
/// Flag: a reader that does not know the type must not go on.
pub(crate) const CRITICAL: u8 = 128;

/// The head of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    pub flags: u8,
    /// Counts chunks from 0 through the session, also over those that rotation took away.
    pub sequence: u64,
    /// Earliest and latest time in it, nanoseconds.
    pub first: u64,
    pub last: u64,
    /// Bytes of the payload in the file and after decompression.
    pub stored: u32,
    pub raw: u32,
    /// CRC32C of the payload in the file.
    pub crc: u32,
}

impl Header {
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..4].copy_from_slice(&CHUNK_MAGIC);
        out[4] = self.kind.0;
        out[5] = self.flags;
        out[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..24].copy_from_slice(&self.first.to_le_bytes());
        out[24..32].copy_from_slice(&self.last.to_le_bytes());
        out[32..36].copy_from_slice(&self.stored.to_le_bytes());
        out[36..40].copy_from_slice(&self.raw.to_le_bytes());
        out[40..44].copy_from_slice(&self.crc.to_le_bytes());
        let own = crc32c::crc32c(&out[..44]);
        out[44..].copy_from_slice(&own.to_le_bytes());
        out
    }

    /// Reads and checks a head; the payload is checked by [`Header::check`].
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Result<Header, Malformed> {
        if bytes[..4] != CHUNK_MAGIC {
            return Err(Malformed("no chunk begins here"));
        }
        if crc32c::crc32c(&bytes[..44]) != u32_at(bytes, 44) {
            return Err(Malformed("the checksum of a chunk's head is wrong"));
        }
        let header = Header {
            kind: Kind(bytes[4]),
            flags: bytes[5],
            sequence: u64_at(bytes, 8),
            first: u64_at(bytes, 16),
            last: u64_at(bytes, 24),
            stored: u32_at(bytes, 32),
            raw: u32_at(bytes, 36),
            crc: u32_at(bytes, 40),
        };
        if header.stored > MAX_PAYLOAD || header.raw > MAX_PAYLOAD {
            return Err(Malformed("a chunk above 1 GiB"));
        }
        Ok(header)
    }

    /// Whether `payload` is what was written.
    pub fn check(&self, payload: &[u8]) -> Result<(), Malformed> {
        if crc32c::crc32c(payload) == self.crc {
            Ok(())
        } else {
            Err(Malformed("the checksum of a chunk is wrong"))
        }
    }

    /// Bytes of the whole chunk.
    pub fn length(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.stored)
    }
}

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_survives_and_no_flipped_bit_does() {
        let header = Header {
            kind: Kind::EVENTS,
            flags: ZSTD,
            sequence: 7,
            first: 1,
            last: u64::MAX,
            stored: 99,
            raw: 1000,
            crc: 5,
        };
        let bytes = header.to_bytes();
        assert_eq!(Header::from_bytes(&bytes), Ok(header));
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::from_bytes(&flipped).is_err(), "bit {bit}");
        }
    }
}

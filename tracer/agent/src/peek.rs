//! Reads this process's own memory as if it were another's: what is not mapped is told and does not
//! fault. C++ objects are read so, as threads that we do not hold may free them meanwhile.

use std::io::IoSliceMut;

use nix::{
    sys::uio::{RemoteIoVec, process_vm_readv},
    unistd::{Pid, getpid},
};

/// iovecs in one call (`IOV_MAX` is 1024).
const MOST_AT_ONCE: usize = 256;

/// This process, seen from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peek {
    pid: Pid,
}

impl Peek {
    pub(crate) fn new() -> Peek {
        Peek { pid: getpid() }
    }

    /// Reads as much as is mapped.
    pub(crate) fn read(self, address: u64, buffer: &mut [u8]) -> usize {
        if address < 0x1_0000 {
            return 0;
        }
        let remote = [RemoteIoVec {
            base: address as usize,
            len: buffer.len(),
        }];
        process_vm_readv(self.pid, &mut [IoSliceMut::new(buffer)], &remote).unwrap_or(0)
    }

    pub(crate) fn word(self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.read(address, &mut word) == 8).then(|| u64::from_le_bytes(word))
    }

    /// `count` words, or as many as there are.
    pub(crate) fn words(self, address: u64, count: usize) -> Vec<u64> {
        let mut bytes = vec![0; count * 8];
        let got = self.read(address, &mut bytes);
        bytes[..got]
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
            .collect()
    }

    /// The word at each of the addresses, 0 where nothing is mapped: one system call for many.
    pub(crate) fn scattered(self, addresses: &[u64]) -> Vec<u64> {
        let mut out = vec![0_u64; addresses.len()];
        let mut done = 0;
        while done < addresses.len() {
            let part = &addresses[done..addresses.len().min(done + MOST_AT_ONCE)];
            let remote: Vec<_> = part
                .iter()
                .map(|address| RemoteIoVec {
                    base: *address as usize,
                    len: 8,
                })
                .collect();
            let mut bytes = vec![0; part.len() * 8];
            let got = process_vm_readv(self.pid, &mut [IoSliceMut::new(&mut bytes)], &remote)
                .unwrap_or(0)
                / 8;
            for (to, word) in out[done..].iter_mut().zip(bytes[..got * 8].chunks_exact(8)) {
                *to = u64::from_le_bytes(word.try_into().unwrap_or_default());
            }
            // It ends before the first that is not mapped.
            done += if got < part.len() { got + 1 } else { got };
        }
        out
    }

    /// A C string of at most 255 bytes, of printable ASCII.
    pub(crate) fn text(self, address: u64) -> Option<String> {
        let mut bytes = [0; 256];
        let got = self.read(address, &mut bytes);
        let end = bytes[..got].iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&bytes[..end]).ok()?;
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()))
            .then(|| text.to_owned())
    }
}

/// Whether a word can be the address of an object.
pub(crate) fn plausible(word: u64) -> bool {
    word.is_multiple_of(8) && (0x1_0000..1 << 47).contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_do_not_fault() {
        let words = [7_u64, 8, 9];
        let at = words.as_ptr().addr() as u64;
        let peek = Peek::new();
        assert_eq!(peek.words(at, 3), words);
        assert_eq!(peek.word(0x1_0000), None);
        assert_eq!(
            peek.text(c"abc".as_ptr().addr() as u64).as_deref(),
            Some("abc")
        );
        assert_eq!(peek.scattered(&[at, 0x1_0000, at + 16]), [7, 0, 9]);
    }
}

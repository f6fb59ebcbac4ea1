//! The FFI room of the injected backend: memory that a traced process shares with us.
//!
//! The process is not trusted: it may write anything there at any time. So all of it is read as
//! atomics, and the file is sealed, so that no page of it can vanish under us.
#![allow(unsafe_code)]

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::FileExt as _,
    },
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, SealFlag, fcntl},
    sys::{
        memfd::{MFdFlags, memfd_create},
        mman::{MapFlags, ProtFlags, mmap, munmap},
    },
    unistd::ftruncate,
};
use vramscope_ring::Parts;
use vramscope_wire::{
    VS_PROTOCOL, VS_SHARED_BYTES, VS_SHARED_MAGIC, vs_counter, vs_counter_VS_COUNTERS, vs_python,
    vs_shared,
};

const _: () = assert!(size_of::<vs_shared>() <= VS_SHARED_BYTES as usize);

/// Memory with a ring in it, seen from the reader's side.
pub struct Shared {
    memory: OwnedFd,
    start: NonNull<vs_shared>,
    bytes: usize,
    words: usize,
}

// SAFETY: the mapping belongs to this value alone, and what lies in it is used as atomics only.
unsafe impl Send for Shared {}

impl Shared {
    /// Makes it: `ring_bytes` (rounded up to a power of two), how to walk the process's Python, and
    /// where its interpreter's code lies.
    ///
    /// # Errors
    /// The system has no memory or descriptors to give.
    pub fn new(
        ring_bytes: usize,
        python: &vs_python,
        interpreter: std::ops::Range<u64>,
    ) -> io::Result<Shared> {
        let words = (ring_bytes / 8).max(1024).next_power_of_two();
        let bytes = VS_SHARED_BYTES as usize + 8 * words;
        let memory = memfd_create(
            c"vramscope",
            MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING,
        )?;
        ftruncate(&memory, bytes as i64)?;
        let header = vs_shared {
            magic: VS_SHARED_MAGIC,
            protocol: VS_PROTOCOL,
            ring_words: words as u64,
            pad0: [0; 6],
            head: 0,
            pad1: [0; 7],
            tail: 0,
            pad2: [0; 7],
            counters: [0; vs_counter_VS_COUNTERS as usize],
            interpreter_start: interpreter.start,
            interpreter_end: interpreter.end,
            python: *python,
        };
        // SAFETY: a plain struct of integers without padding (wire.h), read as bytes.
        let header_bytes = unsafe {
            std::slice::from_raw_parts((&raw const header).cast::<u8>(), size_of::<vs_shared>())
        };
        let file = File::from(memory);
        file.write_all_at(header_bytes, 0)?;
        let memory = OwnedFd::from(file);
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&memory, FcntlArg::F_ADD_SEALS(seals))?;
        let length = bytes.try_into().map_err(|_| Errno::EINVAL)?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            mmap(
                None,
                length,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED,
                &memory,
                0,
            )?
        };
        Ok(Shared {
            memory,
            start: start.cast(),
            bytes,
            words,
        })
    }

    /// The descriptor for the other side.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// The ring.
    pub fn parts(&self) -> Parts<'_> {
        let shared = self.start.as_ptr();
        // SAFETY: the mapping lives as long as `self`, is page-aligned and large enough; its words
        // are 8-aligned and valid in every bit pattern, and are used as atomics on both sides.
        unsafe {
            let ring = shared.byte_add(VS_SHARED_BYTES as usize);
            Parts {
                head: &*(&raw const (*shared).head).cast::<AtomicU64>(),
                tail: &*(&raw const (*shared).tail).cast::<AtomicU64>(),
                words: std::slice::from_raw_parts(ring.cast::<AtomicU64>(), self.words),
            }
        }
    }

    /// A counter, as the other side has it.
    pub fn counter(&self, counter: vs_counter) -> u64 {
        // SAFETY: as in `parts`.
        let counters = unsafe {
            &*(&raw const (*self.start.as_ptr()).counters)
                .cast::<[AtomicU64; vs_counter_VS_COUNTERS as usize]>()
        };
        counters
            .get(counter as usize)
            .map_or(0, |counter| counter.load(Ordering::Relaxed))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our mapping, and nothing borrows from it any more. It cannot fail for one.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}

/// The processor's time stamp counter.
pub fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; it changes nothing.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The bytes of a message, for a socket.
pub trait Message: Copy {}
impl Message for vramscope_wire::vs_plain {}
impl Message for vramscope_wire::vs_hello {}
impl Message for vramscope_wire::vs_setup {}
impl Message for vramscope_wire::vs_hooked {}
impl Message for vramscope_wire::vs_left {}

/// A message as bytes.
pub fn bytes_of<M: Message>(message: &M) -> &[u8] {
    // SAFETY: `Message` is implemented above for structs of integers without padding.
    unsafe { std::slice::from_raw_parts((message as *const M).cast(), size_of::<M>()) }
}

/// A message from bytes; `None` unless there are exactly as many as it has.
pub fn message<M: Message>(bytes: &[u8]) -> Option<M> {
    (bytes.len() == size_of::<M>()).then(|| {
        // SAFETY: long enough, read unaligned, and every bit pattern is valid for structs of
        // integers.
        unsafe { bytes.as_ptr().cast::<M>().read_unaligned() }
    })
}

#[cfg(test)]
mod tests {
    use vramscope_ring::{Reader, Writer};

    use super::*;

    fn no_python() -> vs_python {
        // SAFETY: a struct of integers.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn records_pass_through_the_memory_and_nobody_can_shrink_it() {
        let shared = Shared::new(8192, &no_python(), 0..0).unwrap();
        let writer = Writer::new(shared.parts()).unwrap();
        let slot = writer.reserve(2).unwrap();
        slot.write(0, 7);
        slot.write(1, 8);
        slot.commit();
        let mut payload = Vec::new();
        let mut reader = Reader::new();
        assert_eq!(reader.next(shared.parts(), &mut payload), Ok(true));
        assert_eq!(payload, [7, 8]);
        for bytes in [0, 4096, 1 << 30] {
            assert_eq!(ftruncate(shared.descriptor(), bytes), Err(Errno::EPERM));
        }
        assert_eq!(shared.counter(u32::MAX), 0);
    }
}

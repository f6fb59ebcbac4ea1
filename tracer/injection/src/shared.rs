//! The memory that is shared with vramscope.

use std::{
    ffi::c_void,
    os::fd::{AsRawFd as _, OwnedFd},
    ptr,
    sync::atomic::AtomicU64,
};

use vramscope_ring::{Parts, Writer};
use vramscope_wire::{self as wire, vs_shared};

use crate::live::Counters;

/// A mapping of it. Unmapped by [`Shared::unmap`] only.
pub struct Shared {
    start: *mut c_void,
    bytes: usize,
}

impl Shared {
    /// Maps the file that was received.
    pub fn map(memory: &OwnedFd) -> std::io::Result<Shared> {
        // SAFETY: a descriptor of ours; the result is checked. The reader has sealed the memory
        // against shrinking, so that it stays readable to its end.
        unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            if libc::fstat(memory.as_raw_fd(), &mut status) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            let bytes = status.st_size as usize;
            let start = libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                // Every page now: a page fault in the middle of an allocation costs more than the
                // record.
                libc::MAP_SHARED | libc::MAP_POPULATE,
                memory.as_raw_fd(),
                0,
            );
            if start == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
            // A fork's child has no business with it.
            libc::madvise(start, bytes, libc::MADV_DONTFORK);
            Ok(Shared { start, bytes })
        }
    }

    /// The ring and the counters in it. They are good until the memory is unmapped, which the
    /// session does after the last thread has left it.
    pub fn parts(&self) -> std::io::Result<(Writer<'static>, &'static Counters, vs_shared)> {
        let damaged = || std::io::Error::from_raw_os_error(libc::EPROTO);
        if self.bytes < wire::VS_SHARED_BYTES as usize {
            return Err(damaged());
        }
        let shared = self.start.cast::<vs_shared>();
        // SAFETY: mapped, page-aligned, and at least wire::VS_SHARED_BYTES long, which is more than the
        // struct; all its fields are integers. From here on the words that both sides change are
        // used as atomics only.
        unsafe {
            let header = shared.read();
            let words = header.ring_words as usize;
            let room = (self.bytes - wire::VS_SHARED_BYTES as usize) / 8;
            if header.magic != wire::VS_SHARED_MAGIC
                || header.protocol != wire::VS_PROTOCOL
                || words > room
            {
                return Err(damaged());
            }
            let ring = self.start.byte_add(wire::VS_SHARED_BYTES as usize);
            let parts = Parts {
                head: &*(&raw const (*shared).head).cast::<AtomicU64>(),
                tail: &*(&raw const (*shared).tail).cast::<AtomicU64>(),
                words: std::slice::from_raw_parts(ring.cast::<AtomicU64>(), words),
            };
            let counters = &*(&raw const (*shared).counters).cast();
            Ok((Writer::new(parts).ok_or_else(damaged)?, counters, header))
        }
    }

    /// Unmaps it.
    ///
    /// # Safety
    /// The session that was made of [`Shared::parts`] has been freed.
    pub unsafe fn unmap(self) {
        // SAFETY: our mapping; nothing refers to it any more.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

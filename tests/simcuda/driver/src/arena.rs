//! The address range in which all device memory lies.
//!
//! One large range is reserved when the driver starts. So an address says by itself
//! whether it is a device address, no other mapping of the process can come to lie
//! where device memory was freed, and a copy to freed memory is an error instead of a
//! crash.

use std::ops::Range;

use crate::ranges::Ranges;

/// Size of a device page, and the granularity of the virtual memory API.
pub const DEVICE_PAGE: usize = 2 << 20;
pub const HOST_PAGE: usize = 4096;

/// Reserved address space, in bytes. Reserving costs nothing; the size leaves room for
/// the many reservations that expandable segments make, each as large as a device.
const ARENA_BYTES: usize = 16 << 40;
/// Tried when the process may not have so much.
const SMALL_ARENA_BYTES: usize = 1 << 40;

/// The arena: what of it is free.
#[derive(Debug)]
pub struct Arena {
    bounds: Range<usize>,
    free: Ranges,
}

/// What is mapped at a place in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Nothing may be touched.
    Nothing,
    /// Zero-filled memory that becomes real when touched.
    Lazy,
}

impl Arena {
    /// Reserves the address range.
    pub fn reserve() -> Option<Self> {
        [ARENA_BYTES, SMALL_ARENA_BYTES]
            .into_iter()
            .find_map(|size| {
                // SAFETY: a new mapping at a place of the kernel's choice.
                let address = unsafe {
                    libc::mmap(
                        std::ptr::null_mut(),
                        size,
                        libc::PROT_NONE,
                        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                        -1,
                        0,
                    )
                };
                if address == libc::MAP_FAILED {
                    return None;
                }
                let start = (address as usize).next_multiple_of(DEVICE_PAGE);
                let end = (address as usize + size) / DEVICE_PAGE * DEVICE_PAGE;
                Some(Self {
                    bounds: start..end,
                    free: Ranges::new(start, end - start),
                })
            })
    }

    /// The whole range; it never changes.
    pub fn bounds(&self) -> Range<usize> {
        self.bounds.clone()
    }

    /// Takes addresses without putting anything there.
    pub fn take(&mut self, size: usize, alignment: usize) -> Option<usize> {
        self.free
            .take(size.next_multiple_of(HOST_PAGE), alignment.max(HOST_PAGE))
    }

    /// Takes exactly these addresses, if they are free.
    pub fn take_at(&mut self, address: usize, size: usize) -> bool {
        let size = size.next_multiple_of(HOST_PAGE);
        self.bounds.contains(&address) && self.free.take_at(address, size)
    }

    /// Drops what is mapped there and makes the addresses free.
    pub fn give_back(&mut self, address: usize, size: usize) {
        let size = size.next_multiple_of(HOST_PAGE);
        back(address, size, Backing::Nothing);
        self.free.give_back(address, size);
    }
}

/// Replaces what is mapped at `address..address + size`, which lies in the arena and is
/// the caller's. Returns whether the kernel agreed.
pub fn back(address: usize, size: usize, backing: Backing) -> bool {
    let protection = match backing {
        Backing::Nothing => libc::PROT_NONE,
        Backing::Lazy => libc::PROT_READ | libc::PROT_WRITE,
    };
    // SAFETY: the range lies in the arena, where only this library maps anything, and
    // was taken by the caller, so no one else's memory is replaced.
    let mapped = unsafe {
        libc::mmap(
            address as *mut _,
            size,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return false;
    }
    if backing == Backing::Lazy {
        // A huge page for each touched segment would cost host memory for nothing.
        // SAFETY: the range was mapped above. The advice changes no content.
        unsafe { libc::madvise(mapped, size, libc::MADV_NOHUGEPAGE) };
    }
    true
}

//! Who runs: the calling thread's block, id and clock.

use core::{
    arch::asm,
    sync::atomic::{AtomicU32, Ordering},
};

/// Where glibc keeps a thread's id in the thread's block, 0 while unknown.
static TID_OFFSET: AtomicU32 = AtomicU32::new(0);
/// `struct pthread` is about 2,300 bytes long in glibc 2.31 to 2.41.
const BLOCK: usize = 2048;

/// The address of the calling thread's block (`pthread_self()`, the FS base).
#[inline]
pub fn block() -> u64 {
    let block: u64;
    // SAFETY: the x86-64 ABI keeps the block's own address in its first word ("ELF Handling For
    // Thread-Local Storage", 3.4.6); reading it changes nothing.
    unsafe { asm!("mov {}, fs:0", out(reg) block, options(nostack, readonly, preserves_flags)) };
    block
}

/// The calling thread's id in its own pid namespace.
#[inline]
pub fn id() -> u32 {
    let offset = TID_OFFSET.load(Ordering::Relaxed);
    if offset == 0 {
        // SAFETY: takes no argument and cannot fail.
        return unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    }
    // SAFETY: `calibrate` read the id there in two threads' blocks; all blocks are alike.
    unsafe { ((block() + u64::from(offset)) as *const u32).read_volatile() }
}

/// The places in the calling thread's block that hold its id.
pub fn id_places() -> Vec<u32> {
    // SAFETY: takes no argument and cannot fail.
    let id = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    let start = block() as *const u32;
    (1..BLOCK / 4)
        // SAFETY: within the block, which is readable memory of this thread.
        .filter(|index| unsafe { start.add(*index).read_volatile() } == id)
        .map(|index| 4 * index as u32)
        .collect()
}

/// Settles where ids are, from the places of two threads. With none, or more than one, every id is
/// asked of the kernel.
pub fn calibrate(one: &[u32], other: &[u32]) {
    let mut both = one.iter().filter(|place| other.contains(place));
    if let (Some(place), None) = (both.next(), both.next()) {
        TID_OFFSET.store(*place, Ordering::Relaxed);
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds, without a system call.
#[inline]
pub fn now() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a place for the result; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// The time stamp counter. The reader asks for it where the kernel trusts it as a clock, and turns
/// it into time: a third of what the clock costs.
#[inline]
pub fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; it changes nothing.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Fetches a word's cache line for writing.
#[inline]
pub fn prefetch(word: &core::sync::atomic::AtomicU64) {
    // SAFETY: a hint; processors without it take it as no operation (AMD64 manual, PREFETCHW).
    unsafe {
        asm!("prefetchw [{}]", in(reg) word, options(nostack, preserves_flags));
    }
}

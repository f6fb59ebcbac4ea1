//! Where a thread is, and the stack that it is on.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::thread;

/// The farthest that a stack reaches above the point where a walk begins.
const DEEPEST: u64 = 64 << 20;

/// The end of the main thread's stack (`__libc_stack_end`), 0 while unknown.
static MAIN_STACK_END: AtomicUsize = AtomicUsize::new(0);

/// Tells where the main thread's stack ends.
pub fn set_main_stack_end(address: usize) {
    MAIN_STACK_END.store(address, Ordering::Relaxed);
}

/// Where a thread is: in the caller of a hooked function.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The return address.
    pub pc: u64,
    /// The stack pointer after the return.
    pub sp: u64,
    /// The frame register.
    pub bp: u64,
}

impl Place {
    /// The function that this is called in, right there.
    #[inline(always)]
    pub fn here() -> Place {
        let (pc, sp, bp);
        // SAFETY: reads registers.
        unsafe {
            core::arch::asm!(
                "lea {}, [rip]",
                "mov {}, rsp",
                "mov {}, rbp",
                out(reg) pc,
                out(reg) sp,
                out(reg) bp,
                options(nomem, nostack, preserves_flags),
            );
        }
        Place { pc, sp, bp }
    }
}

/// How deep in its thread's stack a place is. A thread's block lies above its stack, at the same
/// distance for all threads; the main thread has its own place.
#[inline]
pub fn depth(place: &Place) -> u64 {
    let above = thread::block().wrapping_sub(place.sp);
    if above < DEEPEST { above } else { place.sp }
}

/// The part of the thread's stack that may be read.
pub struct Stack {
    /// The stack pointer of a function that runs.
    pub sp: u64,
    /// See [`stack_end`].
    pub end: u64,
}

impl Stack {
    /// A word of it.
    #[inline]
    pub fn read(&self, address: u64) -> Option<u64> {
        let inside = address >= self.sp && address <= self.end - 8 && address & 7 == 0;
        inside.then(|| {
            // SAFETY: between the stack pointer of a running function of this thread and the end
            // of its stack, which is mapped as a whole (`stack_end`).
            unsafe { (address as *const u64).read_volatile() }
        })
    }
}

/// Where the stack ends that `sp` lies on: a thread's block lies above its stack; the main thread's
/// stack ends where the kernel put the program's arguments. `None` on a stack of another kind.
#[inline]
pub fn stack_end(sp: u64) -> Option<u64> {
    let block = thread::block();
    let main = MAIN_STACK_END.load(Ordering::Relaxed) as u64;
    [block, main]
        .into_iter()
        .find(|end| *end > sp && *end - sp < DEEPEST)
}

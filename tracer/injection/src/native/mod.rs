//! The calling thread's machine-code frames, from the unwind information that compilers write for
//! exceptions: no frame pointers are needed.
//!
//! A rule says how to get from a function to its caller (`rules`). Rules of addresses that were met
//! are kept in a table without locks, so that a walk is a look-up and two loads a frame; a new
//! address's rule is read from its library's `.eh_frame` where it lies (`learn`).
//!
//! A walk reads the thread's own stack only, between its stack pointer and its end, whatever the
//! rules say.

mod learn;
mod rules;

use std::sync::atomic::{AtomicUsize, Ordering};

pub use learn::FindObject;
pub use rules::Rules;

use vramscope_unwind::Cfa;
use vramscope_wire::VS_MAX_NATIVE;

use crate::thread;

/// Frames that are kept on the way to the interpreter, innermost first.
pub const FRAMES: usize = 96;
/// Frames that are kept of a whole stack. Deeper ones are cut.
pub const ALL_FRAMES: usize = VS_MAX_NATIVE as usize;
/// The farthest that a stack reaches above the point where a walk begins.
const DEEPEST: u64 = 64 << 20;
/// The largest frame of a function that is believed.
const WIDEST: u64 = 4 << 20;

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

/// How to unwind, for one session.
pub struct Unwinder {
    /// Rules that were learnt.
    pub rules: Rules,
    /// `_dl_find_object` of the C library.
    pub find_object: FindObject,
}

/// Machine-code frames, innermost first: the place itself, then return addresses.
pub struct Frames<const N: usize> {
    addresses: [u64; N],
    count: usize,
    /// How the walk ended.
    pub end: End,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// At the outermost function, or where unwind information ends.
    Whole,
    /// At memory that is no stack.
    Broken,
    /// Before this place: the interpreter's, or one too many.
    Before(Place),
}

impl<const N: usize> Frames<N> {
    /// The addresses.
    #[inline]
    pub fn addresses(&self) -> &[u64] {
        self.addresses.get(..self.count).unwrap_or(&[])
    }
}

/// Walks from `place` outwards, up to the first function that lies in `until`.
#[inline]
pub fn walk<const N: usize>(
    unwinder: &Unwinder,
    place: Place,
    until: core::ops::Range<u64>,
) -> Frames<N> {
    let mut frames = Frames {
        addresses: [0; N],
        count: 0,
        end: End::Broken,
    };
    let Some(end) = stack_end(place.sp) else {
        return frames;
    };
    let Place {
        mut pc,
        mut sp,
        mut bp,
    } = place;
    loop {
        let free = frames.addresses.get_mut(frames.count);
        let Some(free) = free.filter(|_| !until.contains(&pc)) else {
            frames.end = End::Before(Place { pc, sp, bp });
            break;
        };
        *free = pc;
        frames.count += 1;
        // The call is before the address that it returns to.
        let call = pc.wrapping_sub(1);
        let rule = match unwinder.rules.find(call) {
            Some(rule) => rule,
            None => learn::learn(unwinder, call),
        };
        let stack = Stack { sp, end };
        let cfa = match rule.cfa {
            Cfa::End => {
                frames.end = End::Whole;
                break;
            }
            Cfa::Sp => sp.wrapping_add_signed(rule.offset.into()),
            Cfa::Bp => bp.wrapping_add_signed(rule.offset.into()),
            Cfa::AtBp => match stack.read(bp.wrapping_add_signed(rule.offset.into())) {
                Some(cfa) => cfa,
                None => break,
            },
        };
        // Callers lie above; the frame is at least the return address.
        if cfa <= sp || cfa > end || cfa - sp > WIDEST || cfa & 7 != 0 {
            break;
        }
        if let Some(offset) = rule.bp_at {
            let base = if rule.cfa == Cfa::AtBp { bp } else { cfa };
            match stack.read(base.wrapping_add_signed(offset.into())) {
                Some(saved) => bp = saved,
                None => break,
            }
        }
        match stack.read(cfa - 8) {
            Some(0) => {
                frames.end = End::Whole;
                break;
            }
            Some(caller) => pc = caller,
            None => break,
        }
        sp = cfa;
    }
    frames
}

/// How deep in its thread's stack a place is. A thread's block lies above its stack, at the same
/// distance for all threads; the main thread has its own place.
#[inline]
pub fn depth(place: &Place) -> u64 {
    let above = thread::block().wrapping_sub(place.sp);
    if above < DEEPEST { above } else { place.sp }
}

/// The part of the thread's stack that may be read.
struct Stack {
    sp: u64,
    end: u64,
}

impl Stack {
    #[inline]
    fn read(&self, address: u64) -> Option<u64> {
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
fn stack_end(sp: u64) -> Option<u64> {
    let block = thread::block();
    let main = MAIN_STACK_END.load(Ordering::Relaxed) as u64;
    [block, main]
        .into_iter()
        .find(|end| *end > sp && *end - sp < DEEPEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn backtrace(buffer: *mut *mut core::ffi::c_void, size: i32) -> i32;
    }

    fn unwinder() -> Unwinder {
        // SAFETY: as in the helper.
        unsafe {
            if let Some(end) = crate::got::symbol_anywhere(c"__libc_stack_end") {
                set_main_stack_end(*(end as *const usize));
            }
            let find_object = crate::got::symbol_anywhere(c"_dl_find_object").expect("glibc 2.35");
            Unwinder {
                rules: Rules::new(),
                find_object: core::mem::transmute::<usize, FindObject>(find_object),
            }
        }
    }

    /// Our frames and glibc's of the same moment, without the innermost ones, which differ in where
    /// in this function they are.
    #[inline(never)]
    fn both(unwinder: &Unwinder) -> (Vec<u64>, Vec<u64>) {
        let ours = walk::<FRAMES>(unwinder, Place::here(), 0..0);
        let mut theirs = [core::ptr::null_mut(); FRAMES];
        // SAFETY: room for as many as it is told.
        let count = unsafe { backtrace(theirs.as_mut_ptr(), FRAMES as i32) } as usize;
        let theirs = theirs[..count].iter().map(|address| *address as u64);
        (ours.addresses()[1..].to_vec(), theirs.skip(1).collect())
    }

    #[inline(never)]
    fn deeper(unwinder: &Unwinder, depth: u32, padding: &[u64]) -> (Vec<u64>, Vec<u64>, u64) {
        if depth == 0 {
            let (ours, theirs) = both(unwinder);
            return (ours, theirs, 0);
        }
        // A frame of another size at each depth.
        let more: Vec<u64> = padding.iter().map(|value| value + 1).collect();
        let (ours, theirs, sum) = deeper(unwinder, depth - 1, &more);
        (ours, theirs, sum + more.iter().sum::<u64>())
    }

    #[test]
    fn frames_are_those_of_the_c_library() {
        let unwinder = unwinder();
        for depth in [0, 1, 5, 40] {
            // The second time all rules are known.
            for _ in 0..2 {
                let (ours, theirs, _) = deeper(&unwinder, depth, &[1, 2, 3]);
                assert!(theirs.len() > depth as usize + 5);
                assert_eq!(ours, theirs, "depth {depth}");
            }
        }
    }

    #[test]
    fn nonsense_ends_the_walk_and_nothing_else() {
        let unwinder = unwinder();
        let here = Place::here();
        for pc in [0, 1, here.sp, u64::MAX, 0x1234_5678] {
            let place = Place { pc, ..here };
            assert_eq!(walk::<FRAMES>(&unwinder, place, 0..0).addresses(), [pc]);
        }
        for bp in [0, 7, u64::MAX, here.sp - 4096, here.sp + (1 << 30)] {
            walk::<FRAMES>(&unwinder, Place { bp, ..here }, 0..0);
        }
        for sp in [0, 8, u64::MAX - 7] {
            let place = Place { sp, ..here };
            let frames = walk::<FRAMES>(&unwinder, place, 0..0);
            assert!(frames.addresses().is_empty());
        }
    }
}

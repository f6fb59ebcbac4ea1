//! The calling thread's machine-code frames, from the unwind information that compilers write for
//! exceptions: no frame pointers are needed.
//!
//! A rule says how to get from a function to its caller (`rules`). Rules of addresses that were met
//! are kept in a table without locks, so that a walk is a look-up and two loads a frame; a new
//! address's rule is read from its library's `.eh_frame` where it lies (`learn`). A walk that was made
//! before need not be made again (`memo`).
//!
//! A walk reads the thread's own stack only, between its stack pointer and its end, whatever the
//! rules say.

mod learn;
mod memo;
mod place;
mod rules;

use std::ops::Range;

pub use learn::FindObject;
pub use place::{Place, set_main_stack_end};

use memo::{Dependencies, Memos, Start};
use place::{Stack, depth, stack_end};
use rules::Rules;
use vramscope_unwind::Cfa;
use vramscope_wire::VS_MAX_NATIVE;

/// Frames that are kept on the way to the interpreter, innermost first.
pub const FRAMES: usize = 96;
/// Frames that are kept of a whole stack. Deeper ones are cut.
pub const ALL_FRAMES: usize = VS_MAX_NATIVE as usize;
/// The largest frame of a function that is believed.
const WIDEST: u64 = 4 << 20;

/// How to unwind, for one session.
pub struct Unwinder {
    rules: Rules,
    memos: Memos,
    /// `_dl_find_object` of the C library.
    find_object: FindObject,
}

impl Unwinder {
    /// One that has learnt nothing yet.
    pub fn new(find_object: FindObject) -> Unwinder {
        Unwinder {
            rules: Rules::new(),
            memos: Memos::new(),
            find_object,
        }
    }

    /// Forgets what was learnt: libraries may have gone, and others come in their place. `meanwhile`
    /// is done at a moment when no walk is remembered that began before it.
    pub fn forget(&self, meanwhile: impl FnOnce()) {
        self.memos.forget();
        self.rules.clear();
        meanwhile();
        self.memos.forget();
    }

    /// A number that stands for the frames from `place` outwards, up to the first function that lies
    /// in `until`, and for how deep that one is. Of two walks with one number the frames are the
    /// same. `None` where there are no frames. `seed` begins it; it is read when the epoch is known.
    #[inline]
    pub fn number(
        &self,
        place: Place,
        until: &Range<u64>,
        seed: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let start = Start {
            place,
            end: stack_end(place.sp)?,
            depth: depth(&place),
            until: until.start,
            epoch: self.memos.epoch(),
        };
        match self.memos.recall(&start) {
            Some(number) => Some(number),
            None => self.walk_and_remember(&start, until, seed()),
        }
    }

    #[inline(never)]
    fn walk_and_remember(&self, start: &Start, until: &Range<u64>, seed: u64) -> Option<u64> {
        let mut on = Dependencies::new(start.place.sp);
        let frames = walk_noting::<FRAMES>(self, start.place, until, Some(&mut on));
        if frames.addresses().is_empty() {
            return None;
        }
        let mut number = frames.addresses().iter().fold(seed, |h, a| mix(h, *a));
        match frames.end {
            End::Broken => return Some(number),
            End::Whole => {}
            // What lies beyond the interpreter differs in depth if it differs, but for functions
            // whose frames are of one size.
            End::Before(place) => number = mix(number, depth(&place)),
        }
        self.memos.remember(start, &on, number);
        Some(number)
    }
}

/// Mixes a value into a number (the multiplier of rustc-hash).
#[inline]
pub fn mix(number: u64, value: u64) -> u64 {
    (number.rotate_left(5) ^ value).wrapping_mul(0xf135_7aea_2e62_a9c5)
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
pub fn walk<const N: usize>(unwinder: &Unwinder, place: Place, until: &Range<u64>) -> Frames<N> {
    walk_noting(unwinder, place, until, None)
}

/// The same; notes what the walk depends on.
#[inline]
fn walk_noting<const N: usize>(
    unwinder: &Unwinder,
    place: Place,
    until: &Range<u64>,
    mut on: Option<&mut Dependencies>,
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
    // Where `bp` was read.
    let mut bp_from = None;
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
        if let (Some(on), Cfa::Bp | Cfa::AtBp) = (&mut on, rule.cfa) {
            on.on_place(bp_from, bp);
        }
        let cfa = match rule.cfa {
            Cfa::End => {
                frames.end = End::Whole;
                break;
            }
            Cfa::Sp => sp.wrapping_add_signed(rule.offset.into()),
            Cfa::Bp => bp.wrapping_add_signed(rule.offset.into()),
            Cfa::AtBp => {
                let at = bp.wrapping_add_signed(rule.offset.into());
                let Some(cfa) = stack.read(at) else { break };
                if let Some(on) = &mut on {
                    on.on_place(Some(at), cfa);
                }
                cfa
            }
        };
        // Callers lie above; the frame is at least the return address.
        if cfa <= sp || cfa > end || cfa - sp > WIDEST || cfa & 7 != 0 {
            break;
        }
        if let Some(offset) = rule.bp_at {
            let base = if rule.cfa == Cfa::AtBp { bp } else { cfa };
            let at = base.wrapping_add_signed(offset.into());
            let Some(saved) = stack.read(at) else { break };
            bp = saved;
            bp_from = Some(at);
        }
        let Some(caller) = stack.read(cfa - 8) else {
            break;
        };
        if let Some(on) = &mut on {
            on.on_address(cfa - 8, caller);
        }
        if caller == 0 {
            frames.end = End::Whole;
            break;
        }
        pc = caller;
        sp = cfa;
    }
    frames
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
            Unwinder::new(core::mem::transmute::<usize, FindObject>(find_object))
        }
    }

    /// Our frames and glibc's of the same moment, without the innermost ones, which differ in where
    /// in this function they are.
    #[inline(never)]
    fn both(unwinder: &Unwinder) -> (Vec<u64>, Vec<u64>) {
        let ours = walk::<FRAMES>(unwinder, Place::here(), &(0..0));
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

    /// Compares what is remembered with a walk that is made.
    #[inline(never)]
    fn compare(unwinder: &Unwinder, fresh: &Unwinder, recalled: &mut u32) {
        let place = Place::here();
        let start = Start {
            place,
            end: stack_end(place.sp).unwrap(),
            depth: depth(&place),
            until: 0,
            epoch: unwinder.memos.epoch(),
        };
        let known = unwinder.memos.recall(&start);
        let number = unwinder.number(place, &(0..0), || 1);
        fresh.forget(|| {});
        assert_eq!(number, fresh.number(place, &(0..0), || 1));
        assert!(number.is_some());
        if known.is_some() {
            assert_eq!(known, number);
            *recalled += 1;
        }
    }

    /// Calls along a path that a number's bits tell, with frames of two sizes.
    #[inline(never)]
    fn along(unwinder: &Unwinder, fresh: &Unwinder, path: u32, recalled: &mut u32) -> u64 {
        match path {
            0 | 1 => compare(unwinder, fresh, recalled),
            path if path & 1 == 0 => return along(unwinder, fresh, path / 2, recalled) + 1,
            path => {
                let room = std::hint::black_box([u64::from(path); 9]);
                return along(unwinder, fresh, path / 2, recalled) + room[3];
            }
        }
        0
    }

    #[test]
    fn walks_that_are_remembered_are_those_that_would_be_made() {
        let (unwinder, fresh) = (unwinder(), unwinder());
        let mut recalled = 0;
        for round in 0..20_u32 {
            for path in 0..64 {
                along(&unwinder, &fresh, path, &mut recalled);
            }
            // Twice in a row, some.
            along(&unwinder, &fresh, round, &mut recalled);
        }
        assert!(recalled > 1000, "{recalled} of 1300");
    }

    #[test]
    fn nonsense_ends_the_walk_and_nothing_else() {
        let unwinder = unwinder();
        let here = Place::here();
        for pc in [0, 1, here.sp, u64::MAX, 0x1234_5678] {
            let place = Place { pc, ..here };
            assert_eq!(walk::<FRAMES>(&unwinder, place, &(0..0)).addresses(), [pc]);
        }
        for bp in [0, 7, u64::MAX, here.sp - 4096, here.sp + (1 << 30)] {
            walk::<FRAMES>(&unwinder, Place { bp, ..here }, &(0..0));
        }
        for sp in [0, 8, u64::MAX - 7] {
            let place = Place { sp, ..here };
            let frames = walk::<FRAMES>(&unwinder, place, &(0..0));
            assert!(frames.addresses().is_empty());
        }
    }
}

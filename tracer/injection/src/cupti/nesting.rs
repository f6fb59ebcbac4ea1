//! Which call is the outermost one: a runtime call and the driver calls that it makes are one
//! operation.
//!
//! A thread that is in a watched call has a slot in a fixed table. A thread-local would do the same
//! with less, but in a library that is loaded late the first use on a thread allocates.
//!
//! A slot holds how deep the stack was, so that a slot left by a call whose end was never told
//! (CUPTI went away in between) does not hide the calls that follow: only what is called beneath
//! can lie beneath on the stack.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use vramscope_cupti_sys::raw::{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API};

const SLOTS: usize = 1024;
/// How many places a thread looks at.
const PROBES: usize = 32;

#[repr(align(64))]
struct Slot {
    /// The thread's pointer, 0: free.
    owner: AtomicU64,
    /// Address of a local variable of the callback.
    frame: AtomicU64,
    /// Domain, then correlation number.
    what: AtomicU64,
    /// Which subscription it was: slots of earlier ones are stale.
    epoch: AtomicU32,
}

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        owner: AtomicU64::new(0),
        frame: AtomicU64::new(0),
        what: AtomicU64::new(0),
        epoch: AtomicU32::new(0),
    }
}; SLOTS];

/// A call, as CUPTI describes its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// What is different for every thread and never 0.
    pub thread: u64,
    /// Address of a local variable of the callback: lower for calls beneath.
    pub frame: u64,
    pub domain: u32,
    pub correlation: u32,
    pub epoch: u32,
}

impl Place {
    fn what(self) -> u64 {
        u64::from(self.domain) << 32 | u64::from(self.correlation)
    }
}

/// What a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// An operation, to be told.
    Outermost,
    /// Part of the call above it.
    Nested,
    /// An operation, but calls beneath it will not be known as such: the table is full here.
    Unknown,
}

/// Where a thread's search begins. Thread pointers are far apart and multiples of 64.
fn start_of(thread: u64) -> usize {
    // Fibonacci hashing: 2^64 divided by the golden ratio, the upper ten bits.
    (thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

fn probes(thread: u64) -> impl Iterator<Item = &'static Slot> {
    let start = start_of(thread);
    (start..start + PROBES).filter_map(|index| TABLE.get(index % SLOTS))
}

/// A watched call begins.
pub(super) fn enter(place: Place) -> Entered {
    if let Some(slot) = own(place.thread) {
        if is_beneath(slot, place) {
            return Entered::Nested;
        }
        fill(slot, place);
        return Entered::Outermost;
    }
    for slot in probes(place.thread) {
        let free = slot.owner.load(Ordering::Relaxed) == 0;
        if free
            && slot
                .owner
                .compare_exchange(0, place.thread, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        {
            fill(slot, place);
            return Entered::Outermost;
        }
    }
    Entered::Unknown
}

/// The outermost call of the thread ends.
pub(super) fn leave(thread: u64) {
    if let Some(slot) = own(thread) {
        slot.owner.store(0, Ordering::Release);
    }
}

fn own(thread: u64) -> Option<&'static Slot> {
    probes(thread).find(|slot| slot.owner.load(Ordering::Relaxed) == thread)
}

fn fill(slot: &Slot, place: Place) {
    slot.frame.store(place.frame, Ordering::Relaxed);
    slot.what.store(place.what(), Ordering::Relaxed);
    slot.epoch.store(place.epoch, Ordering::Relaxed);
}

/// Whether a call lies beneath the one that has the thread's slot.
fn is_beneath(slot: &Slot, place: Place) -> bool {
    if slot.epoch.load(Ordering::Relaxed) != place.epoch
        || place.frame >= slot.frame.load(Ordering::Relaxed)
    {
        return false;
    }
    let above = slot.what.load(Ordering::Relaxed);
    let (domain, correlation) = ((above >> 32) as u32, above as u32);
    // Documented: both carry one number. Should a version give each its own, a driver call within
    // a runtime call is that call's all the same.
    correlation == place.correlation
        || (domain == CUPTI_CB_DOMAIN_RUNTIME_API && place.domain == CUPTI_CB_DOMAIN_DRIVER_API)
}

/// A number that no other living thread has: its control block's address.
pub(super) fn this_thread() -> u64 {
    let pointer: u64;
    // SAFETY: reads the first word of the thread control block, which points to itself (x86-64
    // System V ABI, thread-local storage).
    unsafe {
        std::arch::asm!(
            "mov {}, qword ptr fs:[0]",
            out(reg) pointer,
            options(nostack, preserves_flags, readonly)
        );
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(thread: u64, frame: u64, domain: u32, correlation: u32) -> Place {
        Place {
            thread,
            frame,
            domain,
            correlation,
            epoch: 1,
        }
    }
    const DRIVER: u32 = CUPTI_CB_DOMAIN_DRIVER_API;
    const RUNTIME: u32 = CUPTI_CB_DOMAIN_RUNTIME_API;

    #[test]
    fn a_driver_call_beneath_a_runtime_call_is_part_of_it() {
        let thread = 0x7000_0000_1000;
        assert_eq!(enter(place(thread, 900, RUNTIME, 5)), Entered::Outermost);
        assert_eq!(enter(place(thread, 800, DRIVER, 5)), Entered::Nested);
        // With a number of its own too.
        assert_eq!(enter(place(thread, 800, DRIVER, 6)), Entered::Nested);
        leave(thread);
        assert_eq!(enter(place(thread, 800, DRIVER, 7)), Entered::Outermost);
        leave(thread);
    }

    #[test]
    fn a_slot_that_was_left_behind_hides_nothing() {
        let thread = 0x7000_0000_2000;
        assert_eq!(enter(place(thread, 900, DRIVER, 5)), Entered::Outermost);
        assert_eq!(enter(place(thread, 950, DRIVER, 6)), Entered::Outermost);
        assert_eq!(enter(place(thread, 700, DRIVER, 7)), Entered::Outermost);
        assert_eq!(enter(place(thread, 600, RUNTIME, 8)), Entered::Outermost);
        let later = Place {
            epoch: 2,
            ..place(thread, 500, DRIVER, 9)
        };
        assert_eq!(enter(later), Entered::Outermost);
        leave(thread);
    }

    #[test]
    fn threads_do_not_see_each_other() {
        let threads: Vec<u64> = (1..=200)
            .map(|n| 0x7100_0000_0000 + n * 0x80_1000)
            .collect();
        for thread in &threads {
            assert_eq!(enter(place(*thread, 900, RUNTIME, 1)), Entered::Outermost);
        }
        for thread in &threads {
            assert_eq!(enter(place(*thread, 800, DRIVER, 1)), Entered::Nested);
            leave(*thread);
        }
        for thread in &threads {
            assert!(own(*thread).is_none());
        }
    }

    #[test]
    fn a_full_table_is_said() {
        // Two threads whose searches begin at the same place, and 32 others that fill it.
        let base = 0x7200_0000_0000_u64;
        let same = (0..)
            .map(|n| base + n * 64)
            .filter(|t| start_of(*t) == start_of(base));
        let crowd: Vec<u64> = same.take(PROBES + 1).collect();
        for thread in &crowd[..PROBES] {
            assert_eq!(enter(place(*thread, 900, RUNTIME, 1)), Entered::Outermost);
        }
        assert_eq!(
            enter(place(crowd[PROBES], 900, RUNTIME, 1)),
            Entered::Unknown
        );
        crowd.iter().for_each(|thread| leave(*thread));
    }

    #[test]
    fn every_thread_has_a_number_of_its_own() {
        let here = this_thread();
        assert_eq!(here, this_thread());
        std::thread::scope(|scope| {
            let other = scope.spawn(this_thread).join().expect("it does not panic");
            assert_ne!(here, other);
        });
    }
}

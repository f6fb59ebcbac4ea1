//! What the hot path needs of a session, and how it is taken away without a lock.

use core::{
    ptr::null_mut,
    sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering},
};

use vramscope_ring::{
    Writer,
    tables::{CodeTable, StackCache},
};
use vramscope_wire::{vs_counter, vs_counter_VS_COUNTERS, vs_python};

use crate::native::Unwinder;

/// The counters in the shared memory, by `enum vs_counter`.
pub type Counters = [AtomicU64; vs_counter_VS_COUNTERS as usize];

/// A session, seen from the threads of the target. Made and freed by the helper thread.
pub struct Live {
    /// The way out.
    pub ring: Writer<'static>,
    /// What was lost, and more.
    pub counters: &'static Counters,
    /// Whether times are those of the time stamp counter.
    pub tsc: bool,
    /// How to walk this process's Python.
    pub python: vs_python,
    /// The interpreter's code.
    pub interpreter: core::ops::Range<u64>,
    /// Whether machine code is unwound beyond the interpreter at every allocation.
    pub whole_stacks: bool,
    /// `Py_IsFinalizing`, where the interpreter exports it.
    pub is_finalizing: Option<extern "C" fn() -> i32>,
    /// How to unwind machine code, where that was asked for.
    pub unwinder: Option<Unwinder>,
    /// Code objects that were sent.
    pub codes: CodeTable,
    /// Stacks that were sent.
    pub stacks: StackCache,
    /// Rises when a code object that was sent is freed: stacks of before are then unknown.
    pub epoch: AtomicU64,
    /// Rises when other machine code lies where some was: stacks with machine code of before are
    /// then unknown.
    pub replaced: AtomicU64,
    /// The next code object's id.
    pub next_code: AtomicU32,
    /// The next stack's id.
    pub next_stack: AtomicU32,
    /// Threads inside `Engine::execute`.
    pub executing: Executing,
}

impl Live {
    /// Counts one.
    #[inline]
    pub fn count(&self, counter: vs_counter) {
        if let Some(counter) = self.counters.get(counter as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The session, null while there is none.
static LIVE: AtomicPtr<Live> = AtomicPtr::new(null_mut());
/// Threads between [`enter`] and the drop of what it gave.
static INSIDE: AtomicU64 = AtomicU64::new(0);
/// Threads inside the wrapper of `Engine::execute`, whose end runs our code.
static WRAPPED: AtomicU64 = AtomicU64::new(0);

/// A thread at work on a record: the session stays while this lives.
pub struct Inside {
    live: &'static Live,
}

impl Inside {
    /// The session.
    #[inline]
    pub fn live(&self) -> &'static Live {
        self.live
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::Release);
    }
}

/// Begins the work on a record; nothing while there is no session.
#[inline]
pub fn enter() -> Option<Inside> {
    // Sequentially consistent, as are the store and the load in `take`: either this thread sees
    // that the session was taken, or the taker sees this thread.
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let live = LIVE.load(Ordering::SeqCst);
    if live.is_null() {
        INSIDE.fetch_sub(1, Ordering::Release);
        return None;
    }
    // SAFETY: it was made by `Box::into_raw` in `publish`, and is freed only after INSIDE was seen
    // at zero with LIVE being null, which cannot be while this thread is counted.
    let live = unsafe { &*live };
    Some(Inside { live })
}

/// Makes the session learn anew how to unwind; with `stacks`, also send the stacks anew.
pub fn forget_code(stacks: bool) {
    if let Some(inside) = enter()
        && let Some(unwinder) = &inside.live().unwinder
    {
        let replaced = &inside.live().replaced;
        unwinder.forget(|| {
            replaced.fetch_add(u64::from(stacks), Ordering::Relaxed);
        });
    }
}

/// Begins a session.
pub fn publish(live: Box<Live>) {
    LIVE.store(Box::into_raw(live), Ordering::SeqCst);
}

/// Ends the session: no thread begins a record any more. Freed by [`Ended::free`].
pub fn take() -> Option<Ended> {
    let live = LIVE.swap(null_mut(), Ordering::SeqCst);
    (!live.is_null()).then_some(Ended(live))
}

/// Forgets the session without freeing it: in the child of a fork, where another process goes on
/// with it.
pub fn forget() {
    LIVE.store(null_mut(), Ordering::SeqCst);
}

/// A session that has ended.
pub struct Ended(*mut Live);

impl Ended {
    /// Frees it; gives it back while a thread is still at work with it.
    pub fn free(self) -> Result<(), Ended> {
        if INSIDE.load(Ordering::SeqCst) != 0 {
            return Err(self);
        }
        // SAFETY: from `Box::into_raw`; LIVE is null and INSIDE was zero after that, so no thread
        // has it or can get it.
        drop(unsafe { Box::from_raw(self.0) });
        Ok(())
    }
}

/// Threads that are in this library's code, or will come back to it.
pub fn threads_inside() -> u64 {
    INSIDE.load(Ordering::SeqCst) + WRAPPED.load(Ordering::SeqCst)
}

/// A thread inside the wrapper of `Engine::execute`.
pub struct Wrapped;

impl Wrapped {
    /// Counts this thread.
    #[inline]
    pub fn enter() -> Wrapped {
        WRAPPED.fetch_add(1, Ordering::SeqCst);
        Wrapped
    }
}

impl Drop for Wrapped {
    #[inline]
    fn drop(&mut self) {
        WRAPPED.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Threads that can be inside `Engine::execute` at the same time and be told apart. Those beyond
/// are counted as steps all the same; only their autograd threads' allocations have no caller.
const EXECUTING: usize = 64;

/// Who is inside `Engine::execute`, with which Python stack.
pub struct Executing {
    slots: [ExecutingSlot; EXECUTING],
    /// Index + 1 of the slot that was entered last, 0 for none; and the one before it.
    latest: AtomicI32,
    previous: AtomicI32,
}

#[derive(Default)]
struct ExecutingSlot {
    /// The thread's FS base, 0 while free.
    thread: AtomicU64,
    stack: AtomicU32,
}

impl Default for Executing {
    fn default() -> Executing {
        Executing {
            slots: std::array::from_fn(|_| ExecutingSlot::default()),
            latest: AtomicI32::new(0),
            previous: AtomicI32::new(0),
        }
    }
}

impl Executing {
    /// Whether the thread is inside.
    pub fn holds(&self, thread: u64) -> bool {
        self.slots
            .iter()
            .any(|slot| slot.thread.load(Ordering::Relaxed) == thread)
    }

    /// The thread goes in.
    pub fn enter(&self, thread: u64, stack: u32) {
        for (index, slot) in self.slots.iter().enumerate() {
            let free = slot
                .thread
                .compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed);
            if free.is_ok() {
                slot.stack.store(stack, Ordering::Release);
                let number = index as i32 + 1;
                let before = self.latest.swap(number, Ordering::AcqRel);
                if before != number {
                    self.previous.store(before, Ordering::Release);
                }
                return;
            }
        }
    }

    /// The thread comes out.
    pub fn leave(&self, thread: u64) {
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.thread.load(Ordering::Relaxed) != thread {
                continue;
            }
            let number = index as i32 + 1;
            slot.thread.store(0, Ordering::Release);
            let previous = self.previous.load(Ordering::Acquire);
            let was_latest = self
                .latest
                .compare_exchange(number, previous, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
            if was_latest || previous == number {
                self.previous.store(0, Ordering::Release);
            }
            return;
        }
    }

    /// The Python stack of a thread that is inside: of the one that went in last, if it can be told.
    #[inline]
    pub fn caller(&self) -> Option<u32> {
        for number in [&self.latest, &self.previous] {
            let index = number.load(Ordering::Acquire) - 1;
            let Some(slot) = usize::try_from(index).ok().and_then(|i| self.slots.get(i)) else {
                continue;
            };
            let stack = slot.stack.load(Ordering::Acquire);
            if slot.thread.load(Ordering::Acquire) != 0 {
                return Some(stack);
            }
        }
        // With three threads or more, one that went in earlier may be the only one left.
        let mut slots = self.slots.iter();
        slots.find_map(|slot| {
            let stack = slot.stack.load(Ordering::Acquire);
            (slot.thread.load(Ordering::Acquire) != 0).then_some(stack)
        })
    }
}

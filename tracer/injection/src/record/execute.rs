//! `torch::autograd::Engine::execute`: steps, and whom autograd threads work for.

use vramscope_wire::{vs_flag_VS_FLAG_NESTED, vs_kind_VS_BACKWARD, vs_kind_VS_USER, vs_mark};

use super::{Hook, head, original, push, stack};
use crate::{
    live::{self, Wrapped},
    thread,
};

/// The function's arguments and result are words: a hidden pointer to the result, `this`, three
/// references, two `bool`s in registers; one `bool` and one reference on the stack. Four more words
/// of the caller's frame are handed on, should a later PyTorch take more.
type Execute = unsafe extern "C-unwind" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> usize;

/// Stands in for the function. It is called, not jumped to, because its end matters; an exception
/// passes through (`C-unwind`), and the guards' drops run on its way.
///
/// # Safety
/// Called in its place only.
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C-unwind" fn execute(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
    g: usize,
    h: usize,
    i: usize,
    j: usize,
    k: usize,
    l: usize,
) -> usize {
    let _wrapped = Wrapped::enter();
    let _entered = Entered::new();
    // SAFETY: `original` gives the function that this one stands in for (the pointer to this one
    // was placed after that was set); the arguments are the caller's.
    unsafe {
        let execute = core::mem::transmute::<usize, Execute>(original(Hook::Execute));
        execute(a, b, c, d, e, f, g, h, i, j, k, l)
    }
}

/// This thread is inside, if it was not before.
struct Entered {
    thread: Option<u64>,
}

impl Entered {
    fn new() -> Entered {
        let Some(inside) = live::enter() else {
            return Entered { thread: None };
        };
        let live = inside.live();
        let block = thread::block();
        let mut record = vs_mark {
            head: head(live, vs_kind_VS_BACKWARD),
        };
        stack::fill_python(live, &mut record.head);
        let nested = live.executing.holds(block);
        if nested {
            record.head.flags |= vs_flag_VS_FLAG_NESTED as u16;
        } else {
            live.executing.enter(block, record.head.stack);
        }
        push(live, &record);
        Entered {
            thread: (!nested).then_some(block),
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Another session than the one at the entry knows nothing of this thread: harmless.
        if let Some(thread) = self.thread
            && let Some(inside) = live::enter()
        {
            inside.live().executing.leave(thread);
        }
    }
}

/// A function that the user named is about to run: a step begins.
pub extern "C" fn on_step() {
    if let Some(inside) = live::enter() {
        let live = inside.live();
        let record = vs_mark {
            head: head(live, vs_kind_VS_USER),
        };
        push(live, &record);
    }
}

//! External correlation: numbers that a tool gives to what a thread does.

use std::cell::RefCell;
use std::ffi::c_int;

use crate::result::{INVALID_PARAMETER, QUEUE_EMPTY};

/// `CUpti_ExternalCorrelationKind`: unknown, OpenACC, three of the tool's own.
const KINDS: usize = 6;

thread_local! {
    static STACKS: RefCell<[Vec<u64>; KINDS]> = const { RefCell::new([const { Vec::new() }; KINDS]) };
}

fn with_stack<R>(kind: c_int, f: impl FnOnce(&mut Vec<u64>) -> R) -> Option<R> {
    let kind = usize::try_from(kind)
        .ok()
        .filter(|kind| (1..KINDS).contains(kind))?;
    // The thread's stacks may be gone when it ends.
    STACKS
        .try_with(|stacks| f(&mut stacks.borrow_mut()[kind]))
        .ok()
}

/// (kind, number) of each kind that is set on this thread.
pub fn current() -> Vec<(c_int, u64)> {
    (1..KINDS as c_int)
        .filter_map(|kind| {
            let number = with_stack(kind, |stack| stack.last().copied())??;
            Some((kind, number))
        })
        .collect()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityPushExternalCorrelationId(kind: c_int, id: u64) -> c_int {
    with_stack(kind, |stack| stack.push(id)).map_or(INVALID_PARAMETER.0, |()| 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityPopExternalCorrelationId(
    kind: c_int,
    last: *mut u64,
) -> c_int {
    match with_stack(kind, Vec::pop) {
        None => INVALID_PARAMETER.0,
        Some(None) => QUEUE_EMPTY.0,
        Some(Some(id)) => {
            if !last.is_null() {
                // SAFETY: the caller gave a place for a number.
                unsafe { last.write(id) };
            }
            0
        }
    }
}

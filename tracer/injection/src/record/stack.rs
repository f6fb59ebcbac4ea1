//! Who asked: a stack's id, and its body when it was not sent before.

use core::{mem::MaybeUninit, sync::atomic::Ordering};

use vramscope_wire::{
    VS_MAX_FRAMES, vs_counter_VS_COUNT_BODY_LOST, vs_flag_VS_FLAG_BACKWARD,
    vs_flag_VS_FLAG_TRUNCATED, vs_flag_VS_FLAG_UNREADABLE, vs_header, vs_kind_VS_STACK_NATIVE,
    vs_stack_native,
};

use super::{
    codes,
    python::{OWNER_GENERATOR, Walk, walk},
    write,
};
use crate::live::Live;

/// Fills in who asked: the thread's own Python stack; on a thread without one, that of the thread
/// which sits in `Engine::execute`.
#[inline]
pub fn fill(live: &Live, head: &mut vs_header) {
    head.stack = python(live, head);
    if head.stack != 0 || head.flags & vs_flag_VS_FLAG_UNREADABLE as u16 != 0 {
        return;
    }
    if let Some(stack) = live.executing.caller() {
        head.stack = stack;
        head.flags |= vs_flag_VS_FLAG_BACKWARD as u16;
    }
}

/// The id of the calling thread's Python stack, 0 for an empty one. Sends its body if it is new.
#[inline]
pub fn python(live: &Live, head: &mut vs_header) -> u32 {
    let mut place = MaybeUninit::<Walk>::uninit();
    let Some(walk) = walk(live, &mut place) else {
        return 0;
    };
    if walk.truncated {
        head.flags |= vs_flag_VS_FLAG_TRUNCATED as u16;
    }
    if walk.is_empty() {
        return 0;
    }
    if let Some(id) = live.stacks.find(walk.hash) {
        return id;
    }
    match send(live, head, walk) {
        Some(id) => id,
        None => {
            live.count(vs_counter_VS_COUNT_BODY_LOST);
            head.flags |= vs_flag_VS_FLAG_UNREADABLE as u16;
            0
        }
    }
}

/// Sends a stack that is not known, with the code objects that are not; `None` where the ring has
/// no room.
#[cold]
#[inline(never)]
fn send(live: &Live, head: &vs_header, walk: &Walk) -> Option<u32> {
    let mut frames = [0_u64; VS_MAX_FRAMES as usize];
    let mut count = 0;
    for frame in walk.frames() {
        let code = codes::known_or_sent(live, head, frame.code)?;
        let lasti = codes::last_instruction(live, frame);
        // A frame that has not run its first traceable instruction is still being set up: Python
        // itself does not show it. A generator's frame may rest before it.
        let ready = lasti >= code.first_traceable as i32 || frame.owner == OWNER_GENERATOR;
        if live.python.co_code != 0 && !ready {
            continue;
        }
        if let Some(place) = frames.get_mut(count) {
            *place = u64::from(code.id) | u64::from(lasti as u32) << 32;
            count += 1;
        }
    }
    // A stack of set-up frames only stays known as the empty one.
    let mut id = 0;
    if count > 0 {
        id = live.next_stack.fetch_add(1, Ordering::Relaxed);
        let words = size_of::<vs_stack_native>() / 8;
        let slot = live.ring.reserve(words + count)?;
        let body = vs_stack_native {
            head: vs_header {
                kind: vs_kind_VS_STACK_NATIVE as u16,
                device: 0,
                stack: id,
                ..*head
            },
            count: count as u32,
            native_count: 0,
        };
        write(&slot, &body);
        for (index, frame) in frames.iter().take(count).enumerate() {
            slot.write(words + index, *frame);
        }
        slot.commit();
    }
    live.stacks.insert(walk.hash, id);
    Some(id)
}

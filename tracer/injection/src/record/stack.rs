//! Who asked: a stack's id, and its body when it was not sent before.

use core::{mem::MaybeUninit, ops::Range, sync::atomic::Ordering};

use vramscope_wire::{
    VS_FRAME_ENTRY, VS_FRAME_HIDDEN, VS_MAX_FRAMES, vs_counter_VS_COUNT_BODY_LOST,
    vs_flag_VS_FLAG_BACKWARD, vs_flag_VS_FLAG_TRUNCATED, vs_flag_VS_FLAG_UNREADABLE, vs_header,
    vs_kind_VS_STACK_NATIVE, vs_stack_native, vs_walk_state_VS_WALK_BROKEN,
    vs_walk_state_VS_WALK_END, vs_walk_state_VS_WALK_STOPPED,
};

use super::{
    codes,
    python::{OWNER_GENERATOR, Walk, walk},
    write,
};
use crate::{
    live::Live,
    native::{self, ALL_FRAMES, End, FRAMES, Frames, Place, Unwinder, mix},
};

/// What tells hashes of machine code from those of Python alone.
const NATIVE_SEED: u64 = 0x6e61_7469_7665;

/// Fills in who asked: the thread's own Python stack; on a thread without one, that of the thread
/// which sits in `Engine::execute`. With machine code, where the caller of the hooked function is
/// known and that was asked for.
#[inline]
pub fn fill(live: &Live, head: &mut vs_header, place: Option<Place>) {
    let mut room = MaybeUninit::<Walk>::uninit();
    let walk = walk(live, &mut room).filter(|walk| !walk.is_empty());
    if walk.as_ref().is_some_and(|walk| walk.truncated) {
        head.flags |= vs_flag_VS_FLAG_TRUNCATED as u16;
    }
    let native = place.and_then(|place| Native::at(live, place, walk.is_some()));
    let caller = match walk {
        Some(_) => None,
        None => live.executing.caller(),
    };
    if let (Some(caller), None) = (caller, &native) {
        head.stack = caller;
        head.flags |= vs_flag_VS_FLAG_BACKWARD as u16;
        return;
    }
    identify(live, head, walk.as_deref(), native, caller.unwrap_or(0));
}

/// Fills in the calling thread's Python stack, and nothing else.
#[inline]
pub fn fill_python(live: &Live, head: &mut vs_header) {
    let mut room = MaybeUninit::<Walk>::uninit();
    let walk = walk(live, &mut room).filter(|walk| !walk.is_empty());
    identify(live, head, walk.as_deref(), None, 0);
}

/// Machine code below a hooked function.
struct Native<'a> {
    unwinder: &'a Unwinder,
    place: Place,
    until: Range<u64>,
    /// What its frames are known by.
    number: u64,
}

impl Native<'_> {
    /// That of the calling thread, where it was asked for and there is any.
    #[inline]
    fn at(live: &Live, place: Place, python: bool) -> Option<Native<'_>> {
        let unwinder = live.unwinder.as_ref()?;
        // Where there are Python frames, they say the rest.
        let until = if python && !live.whole_stacks {
            live.interpreter.clone()
        } else {
            0..0
        };
        let seed = || mix(NATIVE_SEED, live.replaced.load(Ordering::Relaxed));
        let number = unwinder.number(place, &until, seed)?;
        Some(Native {
            unwinder,
            place,
            until,
            number,
        })
    }
}

/// Finds the id of a stack, or sends the stack and gives it one.
#[inline]
fn identify(
    live: &Live,
    head: &mut vs_header,
    walk: Option<&Walk>,
    native: Option<Native<'_>>,
    caller: u32,
) {
    let mut hash = walk.map_or(0, |walk| walk.hash);
    if let Some(native) = &native {
        hash = mix(mix(hash, native.number), caller.into());
        hash ^= hash >> 29;
    } else if walk.is_none() {
        return;
    }
    if let Some(id) = live.stacks.find(hash) {
        head.stack = id;
        return;
    }
    match send(live, head, walk, native, caller) {
        Some(id) => {
            live.stacks.insert(hash, id);
            head.stack = id;
        }
        None => {
            live.count(vs_counter_VS_COUNT_BODY_LOST);
            head.flags |= vs_flag_VS_FLAG_UNREADABLE as u16;
        }
    }
}

/// Sends a stack that is not known, with the code objects that are not; `None` where the ring has
/// no room. A stack of nothing but frames that are being set up is the empty one, 0.
#[cold]
#[inline(never)]
fn send(
    live: &Live,
    head: &vs_header,
    walk: Option<&Walk>,
    native: Option<Native<'_>>,
    caller: u32,
) -> Option<u32> {
    let near = native
        .as_ref()
        .map(|native| native::walk::<FRAMES>(native.unwinder, native.place, &native.until));
    // What lies beyond the interpreter is told once a stack.
    let beyond = match (&native, near.as_ref().map(|near| near.end)) {
        (Some(native), Some(End::Before(place))) => {
            Some(native::walk::<ALL_FRAMES>(native.unwinder, place, &(0..0)))
        }
        _ => None,
    };
    let end = beyond.as_ref().map(|frames| frames.end);
    let state = match end.or(near.as_ref().map(|frames| frames.end)) {
        Some(End::Broken) => vs_walk_state_VS_WALK_BROKEN,
        Some(End::Before(_)) => vs_walk_state_VS_WALK_STOPPED,
        Some(End::Whole) | None => vs_walk_state_VS_WALK_END,
    };
    let native = near.as_ref().map_or(&[][..], Frames::addresses);
    let beyond = beyond.as_ref().map_or(&[][..], Frames::addresses);
    let mut frames = [0_u64; VS_MAX_FRAMES as usize];
    let mut count = 0;
    for frame in walk.into_iter().flat_map(Walk::frames) {
        let code = codes::known_or_sent(live, head, frame.code)?;
        let lasti = codes::last_instruction(live, frame);
        // A frame that has not run its first traceable instruction is still being set up: Python
        // itself does not show it. A generator's frame may rest before it.
        let ready = lasti >= code.first_traceable as i32 || frame.owner == OWNER_GENERATOR;
        let entry = if frame.entry { VS_FRAME_ENTRY } else { 0 };
        let (id, lasti) = match live.python.co_code != 0 && !ready {
            false => (code.id, lasti as u32 & !VS_FRAME_ENTRY | entry),
            true if frame.entry => (0, VS_FRAME_HIDDEN),
            true => continue,
        };
        if let Some(place) = frames.get_mut(count) {
            *place = u64::from(id) | u64::from(lasti) << 32;
            count += 1;
        }
    }
    if count == 0 && native.is_empty() {
        return Some(0);
    }
    let id = live.next_stack.fetch_add(1, Ordering::Relaxed);
    let words = size_of::<vs_stack_native>() / 8;
    let slot = live
        .ring
        .reserve(words + count + native.len() + beyond.len())?;
    let body = vs_stack_native {
        head: vs_header {
            kind: vs_kind_VS_STACK_NATIVE as u16,
            device: 0,
            stack: id,
            ..*head
        },
        count: count as u32,
        native_count: (native.len() + beyond.len()) as u32,
        caller,
        state,
    };
    write(&slot, &body);
    let rest = frames.iter().take(count).chain(native).chain(beyond);
    for (index, word) in rest.enumerate() {
        slot.write(words + index, *word);
    }
    slot.commit();
    Some(id)
}

//! The calling thread's Python frames, read where they lie.
//!
//! This is safe without the GIL: a frame belongs to the thread that runs it, which is busy here,
//! and a frame keeps its code object alive. What may vanish is a thread state of another thread
//! while the interpreter is being finalized; see [`thread_state`].

use core::mem::MaybeUninit;

use vramscope_wire::{
    VS_MAX_FRAMES, VS_NONE, vs_entries_VS_ENTRY_FLAG, vs_instr_kind_VS_INSTR_POINTER, vs_python,
};

use crate::{live::Live, native::mix, thread};

/// Frames that are kept.
pub const FRAMES: usize = VS_MAX_FRAMES as usize;
/// Frames visited before a chain counts as endless.
const VISITS: usize = 4 * FRAMES;
/// Frames of this owner, or above, are entry points of the interpreter and not functions.
const OWNER_NOT_PYTHON: u8 = 3;
/// A generator's frame.
pub const OWNER_GENERATOR: u8 = 1;

/// A frame as it was found.
#[derive(Clone, Copy)]
pub struct RawFrame {
    /// Its code object.
    pub code: u64,
    /// Where it is in it, as the interpreter stores it.
    pub instruction: u64,
    /// `_PyInterpreterFrame.owner`, 0 before 3.11.
    pub owner: u8,
    /// The interpreter's C function was called for it.
    pub entry: bool,
}

/// The frames of one walk, innermost first.
pub struct Walk {
    frames: [MaybeUninit<RawFrame>; FRAMES],
    count: usize,
    /// A number for all of them.
    pub hash: u64,
    /// There were more.
    pub truncated: bool,
}

impl Walk {
    /// The frames.
    #[inline]
    pub fn frames(&self) -> impl Iterator<Item = RawFrame> {
        self.frames
            .iter()
            .take(self.count)
            // SAFETY: the first `count` were written by `python`.
            .map(|frame| unsafe { frame.assume_init() })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Reads a value of the process.
///
/// # Safety
/// There is one, of this type, at `address + offset`.
#[inline]
pub unsafe fn read<T: Copy>(address: u64, offset: u32) -> T {
    // SAFETY: the caller's promise; CPython aligns its fields, `unaligned` asks for nothing.
    unsafe { ((address.wrapping_add(u64::from(offset))) as *const T).read_unaligned() }
}

/// The calling thread's `PyThreadState`, 0 if it has none or must not be looked at.
#[inline]
fn thread_state(live: &Live) -> u64 {
    let python = &live.python;
    if python.runtime == 0 {
        return 0;
    }
    // While the interpreter ends, the thread that ends it frees the thread states of all others.
    // That is the main thread, but for programs that embed Python.
    if live.is_finalizing.is_some_and(|asks| asks() != 0) && thread::id() != process_id() {
        return 0;
    }
    if python.tss_slot != VS_NONE {
        // SAFETY: the reader found that all threads' blocks have the pointer there.
        return unsafe { read(thread::block(), python.tss_slot) };
    }
    if python.tss_key != VS_NONE {
        // SAFETY: glibc answers null for a key that does not exist.
        return unsafe { libc::pthread_getspecific(python.tss_key) } as u64;
    }
    0
}

fn process_id() -> u32 {
    // SAFETY: takes no argument and cannot fail.
    unsafe { libc::getpid() as u32 }
}

/// Walks the calling thread's frames.
#[inline]
pub fn walk<'a>(live: &Live, walk: &'a mut MaybeUninit<Walk>) -> Option<&'a mut Walk> {
    let python = &live.python;
    let state = thread_state(live);
    if state == 0 {
        return None;
    }
    let walk = walk.as_mut_ptr();
    // SAFETY: fields of a place for a Walk are written, none is read; the frames need no initial
    // value, being MaybeUninit. After it, all fields are initialised.
    let walk = unsafe {
        (*walk).count = 0;
        (*walk).truncated = false;
        // Multiplied before the first address comes in: close epochs and close addresses would
        // otherwise cancel each other out.
        let epoch = live.epoch.load(core::sync::atomic::Ordering::Relaxed);
        (*walk).hash = mix(0, epoch);
        &mut *walk
    };
    // SAFETY: the thread state is the calling thread's own; it and the frames below it stay while
    // this thread is here.
    unsafe { visit(python, state, walk) };
    walk.hash = mix(walk.hash, walk.count as u64);
    walk.hash ^= walk.hash >> 29;
    Some(walk)
}

/// # Safety
/// `state` is the calling thread's `PyThreadState`, laid out as `python` says.
#[inline]
unsafe fn visit(python: &vs_python, state: u64, walk: &mut Walk) {
    // SAFETY: the caller's promise, for every read here.
    unsafe {
        let mut frame: u64 = read(state, python.ts_frame);
        if python.cframe_frame != VS_NONE && frame != 0 {
            frame = read(frame, python.cframe_frame);
        }
        let by_pointer = python.instr_kind == vs_instr_kind_VS_INSTR_POINTER;
        for _ in 0..VISITS {
            if frame == 0 {
                return;
            }
            let code = read::<u64>(frame, python.frame_code) & python.code_mask;
            let instruction = if by_pointer {
                read::<u64>(frame, python.frame_instr)
            } else {
                u64::from(read::<u32>(frame, python.frame_instr))
            };
            let (owner, entry) = if python.frame_owner == VS_NONE {
                (0, true)
            } else {
                let owner = read::<u8>(frame, python.frame_owner);
                let flagged = python.entries == vs_entries_VS_ENTRY_FLAG
                    && read::<u8>(frame, python.frame_owner.wrapping_sub(1)) != 0;
                (owner, flagged)
            };
            frame = read(frame, python.frame_previous);
            if owner >= OWNER_NOT_PYTHON || code == 0 {
                // The frame before this one began a call of the interpreter.
                let last = walk.count.wrapping_sub(1);
                if let Some(last) = walk.frames.get_mut(last) {
                    last.assume_init_mut().entry = true;
                    walk.hash = mix(walk.hash, 1);
                }
                continue;
            }
            let Some(place) = walk.frames.get_mut(walk.count) else {
                walk.truncated = true;
                return;
            };
            place.write(RawFrame {
                code,
                instruction,
                owner,
                entry,
            });
            walk.count += 1;
            walk.hash = mix(
                walk.hash,
                code ^ instruction.rotate_left(32) ^ u64::from(entry),
            );
        }
    }
}

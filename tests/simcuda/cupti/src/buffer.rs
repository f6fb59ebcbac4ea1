//! Buffers of activity records: asked from the tool, filled, given back.

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use crate::record;
use crate::result::{
    INVALID_KIND, INVALID_OPERATION, INVALID_PARAMETER, MAX_LIMIT_REACHED, finish,
};

type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

#[derive(Clone, Copy)]
struct Functions {
    request: Request,
    complete: Complete,
}

struct Buffer {
    start: *mut u8,
    size: usize,
    used: usize,
    /// How many records may still be put in.
    room: usize,
}

// SAFETY: the buffer is the tool's memory, handed over until it is completed.
unsafe impl Send for Buffer {}

struct State {
    functions: Option<Functions>,
    current: Option<Buffer>,
    dropped: usize,
}

static STATE: Mutex<State> = Mutex::new(State {
    functions: None,
    current: None,
    dropped: 0,
});

fn complete(functions: Functions, buffer: &Buffer) {
    // SAFETY: the tool's function gets back the tool's buffer.
    unsafe {
        (functions.complete)(
            std::ptr::null_mut(),
            0,
            buffer.start,
            buffer.size,
            buffer.used,
        );
    }
}

fn request(functions: Functions) -> Option<Buffer> {
    let (mut start, mut size, mut most) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the places are valid.
    unsafe { (functions.request)(&raw mut start, &raw mut size, &raw mut most) };
    (!start.is_null()).then_some(Buffer {
        start,
        size,
        used: 0,
        room: if most == 0 { usize::MAX } else { most },
    })
}

/// Puts one record into the buffer. A full buffer goes to the tool on this thread.
pub fn append(record: &[u8]) {
    let mut state = STATE.lock().expect("no panics");
    let Some(functions) = state.functions else {
        state.dropped += 1;
        return;
    };
    let fits = |buffer: &Buffer| buffer.room > 0 && buffer.size - buffer.used >= record.len();
    let full = match &state.current {
        Some(buffer) if !fits(buffer) => state.current.take(),
        _ => None,
    };
    if state.current.is_none() {
        state.current = request(functions);
    }
    match &mut state.current {
        Some(buffer) if fits(buffer) => {
            // SAFETY: the buffer has room for the record behind what is used.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    record.as_ptr(),
                    buffer.start.add(buffer.used),
                    record.len(),
                );
            }
            buffer.used += record.len();
            buffer.room -= 1;
        }
        _ => state.dropped += 1,
    }
    drop(state);
    if let Some(buffer) = full {
        complete(functions, &buffer);
    }
}

/// Gives the tool what there is; false if it never said how.
pub fn flush() -> bool {
    let mut state = STATE.lock().expect("no panics");
    let Some(functions) = state.functions else {
        return false;
    };
    let buffer = state.current.take();
    drop(state);
    if let Some(buffer) = buffer {
        complete(functions, &buffer);
    }
    true
}

/// As after a start of the process.
pub fn reset() {
    flush();
    let mut state = STATE.lock().expect("no panics");
    state.functions = None;
    state.dropped = 0;
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(
    request: Option<Request>,
    complete: Option<Complete>,
) -> c_int {
    let (Some(request), Some(complete)) = (request, complete) else {
        return INVALID_PARAMETER.0;
    };
    STATE.lock().expect("no panics").functions = Some(Functions { request, complete });
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(_flag: u32) -> c_int {
    finish(flush().then_some(()).ok_or(INVALID_OPERATION))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(
    _context: *mut c_void,
    _stream: u32,
    dropped: *mut usize,
) -> c_int {
    if dropped.is_null() {
        return INVALID_PARAMETER.0;
    }
    let count = std::mem::take(&mut STATE.lock().expect("no panics").dropped);
    // SAFETY: the caller gave a place for a number.
    unsafe { dropped.write(count) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(
    buffer: *mut u8,
    size: usize,
    record: *mut *mut u8,
) -> c_int {
    if buffer.is_null() || record.is_null() {
        return INVALID_PARAMETER.0;
    }
    let kind_at = |offset: usize| {
        let fits = size
            .checked_sub(offset)
            .is_some_and(|rest| rest >= size_of::<u32>());
        // SAFETY: the caller's buffer has `size` bytes.
        fits.then(|| unsafe { buffer.add(offset).cast::<u32>().read_unaligned() })
    };
    // SAFETY: the caller gave null, or what this function gave before.
    let before = unsafe { record.read() };
    let offset = if before.is_null() {
        0
    } else {
        let offset = (before as usize).wrapping_sub(buffer as usize);
        match kind_at(offset).and_then(record::size_of_kind) {
            Some(bytes) => offset + bytes,
            None => return INVALID_KIND.0,
        }
    };
    match kind_at(offset) {
        None => MAX_LIMIT_REACHED.0,
        Some(kind) if record::size_of_kind(kind).is_none_or(|bytes| size - offset < bytes) => {
            INVALID_KIND.0
        }
        Some(_) => {
            // SAFETY: within the buffer; the place is the caller's.
            unsafe { record.write(buffer.add(offset)) };
            0
        }
    }
}

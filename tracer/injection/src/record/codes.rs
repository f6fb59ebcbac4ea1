//! Code objects: sent once, whole, and forgotten when they are freed.

use core::sync::atomic::Ordering;

use vramscope_ring::tables::Code;
use vramscope_wire::{
    vs_code_whole, vs_counter_VS_COUNT_CODE_FREED, vs_header, vs_instr_kind_VS_INSTR_POINTER,
    vs_kind_VS_CODE_WHOLE, vs_text,
};

use super::{
    python::{RawFrame, read},
    write,
};
use crate::live::{self, Live};

/// Bytes of a code object's file name, name or line table beyond which it is sent without them.
const LONGEST: u64 = 1 << 20;

/// Bytes in the process.
#[derive(Clone, Copy)]
struct Bytes {
    start: u64,
    count: u64,
    /// Bytes a character.
    width: u32,
}

const NOTHING: Bytes = Bytes {
    start: 0,
    count: 0,
    width: 1,
};

/// How far a frame has come: bytes, or code units before 3.11.
#[inline]
pub fn last_instruction(live: &Live, frame: RawFrame) -> i32 {
    if live.python.instr_kind == vs_instr_kind_VS_INSTR_POINTER {
        let start = frame.code.wrapping_add(u64::from(live.python.co_code));
        frame.instruction.wrapping_sub(start) as i32
    } else {
        frame.instruction as i32
    }
}

/// What is known of the code object at `address`, which a frame of the calling thread runs. Sends
/// it if nothing is; `None` where the ring has no room.
pub fn known_or_sent(live: &Live, head: &vs_header, address: u64) -> Option<Code> {
    if let Some(code) = live.codes.find(address) {
        return Some(code);
    }
    let python = &live.python;
    let by_pointer = python.instr_kind == vs_instr_kind_VS_INSTR_POINTER;
    let first_traceable: u32 = if by_pointer {
        // SAFETY: a code object in use, laid out as the reader found; so below.
        2_u32.wrapping_mul(unsafe { read(address, python.co_first_traceable) })
    } else {
        0
    };
    let code = Code {
        id: live.next_code.fetch_add(1, Ordering::Relaxed),
        first_traceable,
    };
    send(live, head, address, code.id)?;
    live.codes.insert(address, code);
    Some(code)
}

fn send(live: &Live, head: &vs_header, address: u64, id: u32) -> Option<()> {
    let python = &live.python;
    // SAFETY: as above; the three objects belong to the code object.
    let (file, name, lines, first_line) = unsafe {
        (
            text(live, read(address, python.co_filename)),
            text(live, read(address, python.co_name)),
            bytes(live, read(address, python.co_linetable)),
            read::<u32>(address, python.co_firstlineno),
        )
    };
    let readable = file.is_some() && name.is_some() && lines.is_some();
    let (file, name, lines) = (
        file.unwrap_or(NOTHING),
        name.unwrap_or(NOTHING),
        lines.unwrap_or(NOTHING),
    );
    let record = vs_code_whole {
        head: vs_header {
            kind: vs_kind_VS_CODE_WHOLE as u16,
            device: 0,
            stack: 0,
            ..*head
        },
        address,
        id,
        first_line,
        file: vs_text {
            bytes: file.count as u32,
            width: file.width,
        },
        name: vs_text {
            bytes: name.count as u32,
            width: name.width,
        },
        lines_bytes: lines.count as u32,
        unreadable: u32::from(!readable),
    };
    let words = size_of::<vs_code_whole>() / 8;
    let total = file.count + name.count + lines.count;
    let slot = live.ring.reserve(words + total.div_ceil(8) as usize)?;
    write(&slot, &record);
    let mut packer = Packer {
        slot: &slot,
        index: words,
        word: 0,
        filled: 0,
    };
    // SAFETY: `text` and `bytes` found them to be there.
    unsafe {
        packer.take(file);
        packer.take(name);
        packer.take(lines);
    }
    packer.finish();
    slot.commit();
    Some(())
}

/// Puts bytes into words.
struct Packer<'a> {
    slot: &'a vramscope_ring::Slot<'a>,
    index: usize,
    word: u64,
    filled: u32,
}

impl Packer<'_> {
    /// # Safety
    /// The bytes can be read.
    unsafe fn take(&mut self, bytes: Bytes) {
        for at in 0..bytes.count {
            // SAFETY: the caller's promise.
            let byte: u8 = unsafe { read(bytes.start.wrapping_add(at), 0) };
            self.word |= u64::from(byte) << (8 * self.filled);
            self.filled += 1;
            if self.filled == 8 {
                self.finish();
            }
        }
    }

    fn finish(&mut self) {
        if self.filled > 0 {
            self.slot.write(self.index, self.word);
            self.index += 1;
            self.word = 0;
            self.filled = 0;
        }
    }
}

/// The characters of a `str`.
///
/// # Safety
/// `object` is null or a `str`.
unsafe fn text(live: &Live, object: u64) -> Option<Bytes> {
    if object == 0 {
        return None;
    }
    let python = &live.python;
    // SAFETY: the caller's promise.
    let (length, state) = unsafe {
        (
            read::<u64>(object, python.str_length),
            read::<u32>(object, python.str_state),
        )
    };
    // Kind (3 bits), compact, ascii. Some builds of 3.14 give the field before them 16 bits.
    let mut bits = state >> (python.str_kind_shift & 31);
    if bits & 7 == 0 {
        bits = state >> 16;
    }
    let width = bits & 7;
    let count = length.checked_mul(u64::from(width))?;
    if !matches!(width, 1 | 2 | 4) || count > LONGEST {
        return None;
    }
    let data = if bits & 16 != 0 {
        python.str_ascii
    } else {
        python.str_compact
    };
    Some(Bytes {
        start: object.wrapping_add(u64::from(data)),
        count,
        width,
    })
}

/// The contents of a `bytes`.
///
/// # Safety
/// `object` is null or a `bytes`.
unsafe fn bytes(live: &Live, object: u64) -> Option<Bytes> {
    if object == 0 {
        return None;
    }
    // SAFETY: the caller's promise.
    let count: u64 = unsafe { read(object, live.python.bytes_size) };
    (count <= LONGEST).then(|| Bytes {
        start: object.wrapping_add(u64::from(live.python.bytes_data)),
        count,
        width: 1,
    })
}

/// CPython's `code_dealloc(PyObject *)` is about to run.
pub extern "C" fn on_freed(code: u64) {
    if let Some(inside) = live::enter() {
        let live = inside.live();
        if live.codes.remove(code) {
            live.epoch.fetch_add(1, Ordering::Relaxed);
            live.count(vs_counter_VS_COUNT_CODE_FREED);
        }
    }
}

//! Walking the frames of a thread.
//!
//! The rules, which a walk in BPF shares:
//!
//! 1. The newest frame is `thread_frame` of the thread state, or, where the
//!    layout has `cframe_frame`, the pointer at that offset in what
//!    `thread_frame` points to. Its callers follow by `frame_previous`.
//! 2. Before 3.11 a frame is a `PyFrameObject`, and every one counts.
//! 3. From 3.11 on, a frame whose `frame_owner` is 3 or more is the
//!    interpreter's own and is passed over. (3.12 and 3.13: 3, a shim on the C
//!    stack. 3.14: 3 interpreter, 4 C stack.)
//! 4. The code object is `frame_code` without `frame_code_tag_bits`; a frame
//!    without one is passed over.
//! 5. The byte offset is `frame_instruction` minus the address of the code
//!    object's bytecode (3.11+), twice the number there (3.10), or the number
//!    itself (3.8, 3.9). It is negative before the first instruction.
//! 6. From 3.11 on, a frame that is not a generator's (owner 1) is passed over
//!    while its byte offset is below `2 * _co_firsttraceable`: it is still
//!    being set up, and Python hides it too (`_PyFrame_IsIncomplete`).

use std::collections::HashMap;

use crate::code::{CodeError, CodeHeader};
use crate::error::ReadError;
use crate::find::Python;
use crate::offsets::{InstructionKind, Offsets};
use crate::process::{Address, Process};
use crate::text::{u32_at, u64_at};

/// `FRAME_OWNED_BY_GENERATOR`.
pub const OWNER_GENERATOR: u8 = 1;
/// The least owner of a frame that is not Python code.
pub const OWNER_INTERPRETER: u8 = 3;
/// Longest stack that is walked; what lies beyond is left out.
pub const MOST_FRAMES: usize = 1 << 16;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Its code object.
    pub code: Address,
    /// Where it is in its bytecode, in bytes; negative before the first
    /// instruction. [`CodeObject::line`](crate::CodeObject::line) takes it.
    pub offset: i32,
    /// Who owns it (3.11+; before, 0); [`OWNER_GENERATOR`] is one.
    pub owner: u8,
}

/// The frames of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// False when the walk ended early: at memory that could not be read, as
    /// happens when the thread runs meanwhile, or after [`MOST_FRAMES`].
    pub is_complete: bool,
}

/// Walks the stack of one thread, given its `PyThreadState`.
///
/// # Errors
/// [`ReadError`] when the process is gone, may not be read, or the thread
/// state itself is not mapped.
pub fn walk_thread(
    process: &Process,
    python: &Python,
    thread_state: Address,
) -> Result<Stack, ReadError> {
    let offsets = &python.offsets;
    let mut stack = Stack::default();
    let mut codes = HashMap::new();
    let mut next = newest_frame(process, offsets, thread_state)?;
    let mut steps = 0;
    while !next.is_null() {
        if steps == MOST_FRAMES {
            return Ok(stack);
        }
        steps += 1;
        let raw = match process.read_vec(next, offsets.frame_size as usize) {
            Ok(raw) => raw,
            Err(ReadError::Fault { .. }) => return Ok(stack),
            Err(error) => return Err(error),
        };
        let Some(raw) = RawFrame::parse(offsets, &raw) else {
            return Ok(stack);
        };
        next = raw.previous;
        if raw.owner >= OWNER_INTERPRETER || raw.code.is_null() {
            continue;
        }
        let header = match codes.get(&raw.code) {
            Some(header) => *header,
            None => match CodeHeader::read(process, offsets, raw.code) {
                Ok(header) => *codes.entry(raw.code).or_insert(header),
                Err(CodeError::Read {
                    source: error @ (ReadError::Gone { .. } | ReadError::Denied { .. }),
                    ..
                }) => return Err(error),
                Err(_) => return Ok(stack),
            },
        };
        stack.frames.extend(raw.frame(offsets, &header));
    }
    stack.is_complete = true;
    Ok(stack)
}

fn newest_frame(
    process: &Process,
    offsets: &Offsets,
    thread_state: Address,
) -> Result<Address, ReadError> {
    let frame = process.read_pointer(thread_state.field(offsets.thread_frame))?;
    match offsets.cframe_frame {
        Some(offset) if !frame.is_null() => process.read_pointer(frame.field(offset)),
        _ => Ok(frame),
    }
}

/// The fields of a frame as they are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RawFrame {
    code: Address,
    previous: Address,
    instruction: u64,
    owner: u8,
}

impl RawFrame {
    fn parse(offsets: &Offsets, bytes: &[u8]) -> Option<Self> {
        let tag_bits = u64::from(offsets.frame_code_tag_bits);
        Some(Self {
            code: Address(u64_at(bytes, offsets.frame_code)? & !tag_bits),
            previous: Address(u64_at(bytes, offsets.frame_previous)?),
            instruction: match offsets.instruction_kind {
                InstructionKind::Pointer => u64_at(bytes, offsets.frame_instruction)?,
                InstructionKind::Bytes | InstructionKind::Units => {
                    u32_at(bytes, offsets.frame_instruction)?.into()
                }
            },
            owner: match offsets.frame_owner {
                Some(offset) => *bytes.get(offset as usize)?,
                None => 0,
            },
        })
    }

    /// None while the frame is being set up.
    fn frame(&self, offsets: &Offsets, code: &CodeHeader) -> Option<Frame> {
        let offset = match offsets.instruction_kind {
            InstructionKind::Bytes => (self.instruction as u32).cast_signed(),
            InstructionKind::Units => (self.instruction as u32).cast_signed().saturating_mul(2),
            InstructionKind::Pointer => {
                let start = self.code.field(code.instructions);
                let distance = self.instruction.wrapping_sub(start.0).cast_signed();
                distance.clamp(i32::MIN.into(), i32::MAX.into()) as i32
            }
        };
        let is_incomplete = offsets.instruction_kind == InstructionKind::Pointer
            && self.owner != OWNER_GENERATOR
            && offset < code.first_traceable;
        (!is_incomplete).then_some(Frame {
            code: self.code,
            offset,
            owner: self.owner,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python_version::Version;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_accepted(
            minor in 8u8..=14,
            bytes in proptest::collection::vec(any::<u8>(), 0..120),
            code in proptest::collection::vec(any::<u8>(), 200),
        ) {
            let offsets = crate::tables::layout(Version::new(3, minor, 0)).unwrap().offsets;
            let header = CodeHeader::parse(&offsets, &code).unwrap();
            if let Some(raw) = RawFrame::parse(&offsets, &bytes) {
                raw.frame(&offsets, &header);
            }
        }
    }
}

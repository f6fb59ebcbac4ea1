//! Bytes from a ring, turned into typed records.

use std::mem::{offset_of, size_of};

use crate::raw::{
    VS_FILE_BYTES, VS_LINES_BYTES, VS_MAX_FRAMES, VS_MAX_NATIVE, VS_NAME_BYTES, VS_STACK_BYTES,
    vs_code, vs_code_whole, vs_driver, vs_frame, vs_header, vs_kind_VS_BACKWARD, vs_kind_VS_CODE,
    vs_kind_VS_CODE_WHOLE, vs_kind_VS_DRIVER, vs_kind_VS_OOM, vs_kind_VS_STACK,
    vs_kind_VS_STACK_COPY, vs_kind_VS_STACK_MIXED, vs_kind_VS_STACK_NATIVE, vs_kind_VS_TENSOR,
    vs_kind_VS_USER, vs_mark, vs_oom, vs_stack, vs_stack_copy, vs_stack_mixed, vs_stack_native,
    vs_tensor, vs_text,
};

// What the producers rely on: no padding that was not written down.
const _: () = {
    assert!(size_of::<vs_header>() == 24);
    assert!(size_of::<vs_tensor>() == 56);
    assert!(size_of::<vs_oom>() == 48);
    assert!(size_of::<vs_mark>() == 24);
    assert!(size_of::<vs_driver>() == 72);
    assert!(size_of::<vs_frame>() == 8);
    assert!(size_of::<vs_stack>() == 32 + 8 * VS_MAX_FRAMES as usize);
    assert!(size_of::<vs_stack_native>() == 40);
    assert!(size_of::<vs_stack_mixed>() == 48 + 8 * VS_MAX_NATIVE as usize);
    assert!(
        size_of::<vs_stack_copy>() == size_of::<vs_stack_mixed>() + 32 + VS_STACK_BYTES as usize
    );
    assert!(size_of::<vs_code_whole>() == 64);
    assert!(size_of::<vs_code>() == 64 + (VS_FILE_BYTES + VS_NAME_BYTES + VS_LINES_BYTES) as usize);
};

/// A record as it lay in the ring.
#[derive(Debug)]
pub enum Record<'a> {
    /// A block was handed out or given back by the framework.
    Tensor(vs_tensor),
    /// The framework could not serve a request.
    OutOfMemory(vs_oom),
    /// `Engine::execute` was entered.
    Backward(vs_mark),
    /// A place that the user named was passed.
    User(vs_mark),
    /// A function of libcuda did its work.
    Driver(vs_driver),
    /// The body of a new stack.
    Stack(Stack<'a>),
    /// The machine code of a new stack, whose Python part is a stack of its own.
    Mixed(Mixed<'a>),
    /// The same as far as it was known, and the memory that tells the rest.
    Copy(StackCopy<'a>),
    /// A new code object.
    Code(Code<'a>),
}

/// The body of a stack, innermost frame first.
#[derive(Debug)]
pub struct Stack<'a> {
    /// `head.stack` is its id.
    pub head: vs_header,
    /// Id of the stack that called `backward()` for it, 0 for none.
    pub caller: u32,
    /// `enum vs_walk_state` of its machine code.
    pub state: u32,
    frames: &'a [u8],
    native: &'a [u8],
}

impl Stack<'_> {
    /// Its frames.
    pub fn frames(&self) -> impl Iterator<Item = vs_frame> {
        self.frames
            .chunks_exact(size_of::<vs_frame>())
            .map(|bytes| vs_frame {
                code: u32_at(bytes, 0),
                lasti: u32_at(bytes, 4),
            })
    }

    /// Addresses in machine code: where the innermost function is, then return addresses. Empty
    /// where they were not asked for.
    pub fn native(&self) -> impl Iterator<Item = u64> {
        self.native.chunks_exact(8).map(|bytes| u64_at(bytes, 0))
    }
}

/// A stack with machine code, as the kernel sends it.
#[derive(Clone, Copy, Debug)]
pub struct Mixed<'a> {
    /// `head.stack` is its id.
    pub head: vs_header,
    /// Id of its Python part, 0 for none.
    pub python: u32,
    /// Id of the stack that called `backward()` for it, 0 for none.
    pub caller: u32,
    /// In which time of the process's code the addresses mean something.
    pub epoch: u64,
    /// `enum vs_walk_state`.
    pub state: u32,
    native: &'a [u8],
}

impl Mixed<'_> {
    /// Addresses to return to, innermost first.
    pub fn native(&self) -> impl Iterator<Item = u64> {
        self.native.chunks_exact(8).map(|bytes| u64_at(bytes, 0))
    }
}

/// A walk that met an address without a rule.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    /// The frames before it.
    pub before: Mixed<'a>,
    /// That address: one to return to.
    pub pc: u64,
    /// The stack pointer after that return, and the address of `stack`.
    pub sp: u64,
    /// The frame register there.
    pub bp: u64,
    /// The stack's bytes.
    pub stack: &'a [u8],
}

impl StackCopy<'_> {
    /// A word of the stack; `None` outside of what was copied, and for odd addresses.
    pub fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.sp)?).ok()?;
        if !address.is_multiple_of(8) {
            return None;
        }
        let bytes = self.stack.get(at..at.checked_add(8)?)?;
        Some(u64_at(bytes, 0))
    }
}

/// A string object's first bytes.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// Bytes a character: 1, 2 or 4.
    pub width: u32,
    /// How many bytes it has in the process; more than `data` when it was cut.
    pub bytes: usize,
    /// What was copied.
    pub data: &'a [u8],
}

impl Text<'_> {
    /// Whether all of it was copied.
    pub fn complete(&self) -> bool {
        self.data.len() == self.bytes
    }
}

/// A code object's identity and contents.
#[derive(Debug)]
pub struct Code<'a> {
    /// Who saw it.
    pub head: vs_header,
    /// Where it lies in the process.
    pub address: u64,
    /// The id that frames use for it.
    pub id: u32,
    /// `co_firstlineno`.
    pub first_line: u32,
    /// `co_filename`.
    pub file: Text<'a>,
    /// `co_qualname`, before 3.11 `co_name`.
    pub name: Text<'a>,
    /// The line table's first bytes.
    pub lines: &'a [u8],
    /// How many bytes the line table has in the process.
    pub lines_bytes: usize,
    /// Whether some part of it could not be read when it was seen.
    pub unreadable: bool,
}

/// The index of the process that a record is of, whatever its kind. `None` if it is too short.
pub fn process(bytes: &[u8]) -> Option<u16> {
    header(bytes).map(|head| head.process)
}

impl<'a> Record<'a> {
    /// Decodes one record. `None` if it is too short for its kind or of no known kind.
    pub fn parse(bytes: &'a [u8]) -> Option<Record<'a>> {
        let head = header(bytes)?;
        let fits = |size: usize| (bytes.len() >= size).then_some(());
        #[allow(non_upper_case_globals)]
        match u32::from(head.kind) {
            vs_kind_VS_TENSOR => {
                fits(size_of::<vs_tensor>())?;
                Some(Record::Tensor(vs_tensor {
                    head,
                    address: u64_at(bytes, offset_of!(vs_tensor, address)),
                    size: u64_at(bytes, offset_of!(vs_tensor, size)) as i64,
                    allocated: u64_at(bytes, offset_of!(vs_tensor, allocated)),
                    reserved: u64_at(bytes, offset_of!(vs_tensor, reserved)),
                }))
            }
            vs_kind_VS_OOM => {
                fits(size_of::<vs_oom>())?;
                Some(Record::OutOfMemory(vs_oom {
                    head,
                    requested: u64_at(bytes, offset_of!(vs_oom, requested)),
                    allocated: u64_at(bytes, offset_of!(vs_oom, allocated)),
                    reserved: u64_at(bytes, offset_of!(vs_oom, reserved)),
                }))
            }
            vs_kind_VS_BACKWARD => Some(Record::Backward(vs_mark { head })),
            vs_kind_VS_USER => Some(Record::User(vs_mark { head })),
            vs_kind_VS_DRIVER => {
                fits(size_of::<vs_driver>())?;
                Some(Record::Driver(vs_driver {
                    head,
                    address: u64_at(bytes, offset_of!(vs_driver, address)),
                    size: u64_at(bytes, offset_of!(vs_driver, size)),
                    extra: u64_at(bytes, offset_of!(vs_driver, extra)),
                    function: u32_at(bytes, offset_of!(vs_driver, function)),
                    result: u32_at(bytes, offset_of!(vs_driver, result)) as i32,
                    device: u32_at(bytes, offset_of!(vs_driver, device)) as i32,
                    pad: 0,
                    context: u64_at(bytes, offset_of!(vs_driver, context)),
                }))
            }
            vs_kind_VS_STACK => stack(head, bytes).map(Record::Stack),
            vs_kind_VS_STACK_NATIVE => native_stack(head, bytes).map(Record::Stack),
            vs_kind_VS_STACK_MIXED => mixed(head, bytes).map(Record::Mixed),
            vs_kind_VS_STACK_COPY => stack_copy(head, bytes).map(Record::Copy),
            vs_kind_VS_CODE => code(head, bytes).map(Record::Code),
            vs_kind_VS_CODE_WHOLE => whole_code(head, bytes).map(Record::Code),
            _ => None,
        }
    }
}

fn header(bytes: &[u8]) -> Option<vs_header> {
    (bytes.len() >= size_of::<vs_header>()).then(|| vs_header {
        kind: u16_at(bytes, offset_of!(vs_header, kind)),
        device: u16_at(bytes, offset_of!(vs_header, device)),
        process: u16_at(bytes, offset_of!(vs_header, process)),
        flags: u16_at(bytes, offset_of!(vs_header, flags)),
        time: u64_at(bytes, offset_of!(vs_header, time)),
        tid: u32_at(bytes, offset_of!(vs_header, tid)),
        stack: u32_at(bytes, offset_of!(vs_header, stack)),
    })
}

fn stack(head: vs_header, bytes: &[u8]) -> Option<Stack<'_>> {
    let start = offset_of!(vs_stack, frames);
    if bytes.len() < start {
        return None;
    }
    let count = u32_at(bytes, offset_of!(vs_stack, count)) as usize;
    if count > VS_MAX_FRAMES as usize {
        return None;
    }
    let frames = bytes.get(start..start + count * size_of::<vs_frame>())?;
    Some(Stack {
        head,
        caller: 0,
        state: 0,
        frames,
        native: &[],
    })
}

fn native_stack(head: vs_header, bytes: &[u8]) -> Option<Stack<'_>> {
    let start = size_of::<vs_stack_native>();
    if bytes.len() < start {
        return None;
    }
    let count = u32_at(bytes, offset_of!(vs_stack_native, count)) as usize;
    let native = u32_at(bytes, offset_of!(vs_stack_native, native_count)) as usize;
    let middle = start.checked_add(count.checked_mul(size_of::<vs_frame>())?)?;
    let end = middle.checked_add(native.checked_mul(8)?)?;
    Some(Stack {
        head,
        caller: u32_at(bytes, offset_of!(vs_stack_native, caller)),
        state: u32_at(bytes, offset_of!(vs_stack_native, state)),
        frames: bytes.get(start..middle)?,
        native: bytes.get(middle..end)?,
    })
}

fn mixed(head: vs_header, bytes: &[u8]) -> Option<Mixed<'_>> {
    let start = offset_of!(vs_stack_mixed, native);
    if bytes.len() < start {
        return None;
    }
    let count = u32_at(bytes, offset_of!(vs_stack_mixed, count)) as usize;
    if count > VS_MAX_NATIVE as usize {
        return None;
    }
    Some(Mixed {
        head,
        python: u32_at(bytes, offset_of!(vs_stack_mixed, python)),
        caller: u32_at(bytes, offset_of!(vs_stack_mixed, caller)),
        epoch: u64_at(bytes, offset_of!(vs_stack_mixed, epoch)),
        state: u32_at(bytes, offset_of!(vs_stack_mixed, state)),
        native: bytes.get(start..start + 8 * count)?,
    })
}

fn stack_copy(head: vs_header, bytes: &[u8]) -> Option<StackCopy<'_>> {
    let start = offset_of!(vs_stack_copy, stack);
    if bytes.len() < start {
        return None;
    }
    let copied = u32_at(bytes, offset_of!(vs_stack_copy, bytes)) as usize;
    if copied > VS_STACK_BYTES as usize {
        return None;
    }
    Some(StackCopy {
        before: mixed(head, bytes)?,
        pc: u64_at(bytes, offset_of!(vs_stack_copy, pc)),
        sp: u64_at(bytes, offset_of!(vs_stack_copy, sp)),
        bp: u64_at(bytes, offset_of!(vs_stack_copy, bp)),
        stack: bytes.get(start..start + copied)?,
    })
}

fn whole_code(head: vs_header, bytes: &[u8]) -> Option<Code<'_>> {
    let start = size_of::<vs_code_whole>();
    if bytes.len() < start {
        return None;
    }
    let mut rest = &bytes[start..];
    let mut text = |at: usize| {
        let size = u32_at(bytes, at + offset_of!(vs_text, bytes)) as usize;
        let (data, behind) = rest.split_at_checked(size)?;
        rest = behind;
        Some(Text {
            width: u32_at(bytes, at + offset_of!(vs_text, width)),
            bytes: size,
            data,
        })
    };
    let file = text(offset_of!(vs_code_whole, file))?;
    let name = text(offset_of!(vs_code_whole, name))?;
    let lines_bytes = u32_at(bytes, offset_of!(vs_code_whole, lines_bytes)) as usize;
    Some(Code {
        head,
        address: u64_at(bytes, offset_of!(vs_code_whole, address)),
        id: u32_at(bytes, offset_of!(vs_code_whole, id)),
        first_line: u32_at(bytes, offset_of!(vs_code_whole, first_line)),
        file,
        name,
        lines: rest.get(..lines_bytes)?,
        lines_bytes,
        unreadable: u32_at(bytes, offset_of!(vs_code_whole, unreadable)) != 0,
    })
}

fn code(head: vs_header, bytes: &[u8]) -> Option<Code<'_>> {
    let start = offset_of!(vs_code, lines);
    if bytes.len() < start {
        return None;
    }
    let text = |at: usize, data: usize, room: u32| {
        let size = u32_at(bytes, at + offset_of!(vs_text, bytes)) as usize;
        Text {
            width: u32_at(bytes, at + offset_of!(vs_text, width)),
            bytes: size,
            data: &bytes[data..data + size.min(room as usize)],
        }
    };
    let lines_bytes = u32_at(bytes, offset_of!(vs_code, lines_bytes)) as usize;
    let copied = lines_bytes.min(VS_LINES_BYTES as usize);
    Some(Code {
        head,
        address: u64_at(bytes, offset_of!(vs_code, address)),
        id: u32_at(bytes, offset_of!(vs_code, id)),
        first_line: u32_at(bytes, offset_of!(vs_code, first_line)),
        file: text(
            offset_of!(vs_code, file),
            offset_of!(vs_code, file_data),
            VS_FILE_BYTES,
        ),
        name: text(
            offset_of!(vs_code, name),
            offset_of!(vs_code, name_data),
            VS_NAME_BYTES,
        ),
        lines: bytes.get(start..start + copied)?,
        lines_bytes,
        unreadable: u32_at(bytes, offset_of!(vs_code, unreadable)) != 0,
    })
}

// The callers have checked that `at` and the bytes behind it lie within `bytes`.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests;

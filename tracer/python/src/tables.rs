//! The layouts of CPython by version. Generated from CPython's headers; see
//! `offsets/README.md` for how to do that again.

use crate::lines::LineFormat;
use crate::offsets::{InstructionKind, Offsets};
use crate::python_version::Version;

/// A layout, and what is known about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub offsets: Offsets,
    /// Its walk has been compared with Python's own tracebacks.
    pub tested: bool,
    /// Too little is known without the process's own `_Py_DebugOffsets`.
    pub needs_debug_offsets: bool,
}

/// The layout of a build with the GIL and without `Py_DEBUG`.
///
/// Each row covers all micro versions of its minor version: the headers of
/// 3.11.2 and 3.11.7 give the same numbers, and 3.13+ tells its own. A row can
/// be split by micro version where one is found to differ.
pub(crate) fn layout(version: Version) -> Option<Layout> {
    if version.free_threaded || version.major != 3 {
        return None;
    }
    let tested = |offsets| Layout {
        offsets,
        tested: true,
        needs_debug_offsets: false,
    };
    match (version.minor, version.micro) {
        (8, _) => Some(tested(V3_8)),
        (9, _) => Some(tested(V3_9)),
        (10, _) => Some(tested(V3_10)),
        (11, _) => Some(tested(V3_11)),
        (12, _) => Some(tested(V3_12)),
        (13, _) => Some(tested(V3_13)),
        (14, _) => Some(Layout {
            offsets: V3_14,
            tested: true,
            // Its micro versions differ: what a process tells of itself comes first.
            needs_debug_offsets: true,
        }),
        _ => None,
    }
}

/// From the headers of 3.8.18.
const V3_8: Offsets = Offsets {
    runtime_interpreters: 32,
    runtime_tss_key: Some(1396),
    interpreter_next: 0,
    interpreter_threads: 8,
    thread_next: 8,
    thread_pthread: 176,
    thread_native_id: None,
    thread_frame: 24,
    cframe_frame: None,
    thread_chunk: None,
    thread_chunk_top: None,
    frame_code: 32,
    frame_code_tag_bits: 0,
    frame_previous: 24,
    frame_instruction: 104,
    frame_owner: None,
    frame_size: 108,
    code_filename: 104,
    code_qualname: 112,
    code_name: 112,
    code_line_table: 120,
    code_first_line: 40,
    code_first_traceable: None,
    code_instructions: None,
    code_size: 128,
    str_length: 16,
    str_state: 32,
    str_kind_shift: 2,
    str_ascii_data: 48,
    str_compact_data: 72,
    bytes_length: 16,
    bytes_data: 32,
    type_dealloc: 48,
    instruction_kind: InstructionKind::Bytes,
    line_format: LineFormat::Lnotab,
};

/// From the headers of 3.9.18.
const V3_9: Offsets = Offsets {
    runtime_interpreters: 32,
    runtime_tss_key: Some(588),
    interpreter_next: 0,
    interpreter_threads: 8,
    thread_next: 8,
    thread_pthread: 176,
    thread_native_id: None,
    thread_frame: 24,
    cframe_frame: None,
    thread_chunk: None,
    thread_chunk_top: None,
    frame_code: 32,
    frame_code_tag_bits: 0,
    frame_previous: 24,
    frame_instruction: 104,
    frame_owner: None,
    frame_size: 108,
    code_filename: 104,
    code_qualname: 112,
    code_name: 112,
    code_line_table: 120,
    code_first_line: 40,
    code_first_traceable: None,
    code_instructions: None,
    code_size: 128,
    str_length: 16,
    str_state: 32,
    str_kind_shift: 2,
    str_ascii_data: 48,
    str_compact_data: 72,
    bytes_length: 16,
    bytes_data: 32,
    type_dealloc: 48,
    instruction_kind: InstructionKind::Bytes,
    line_format: LineFormat::Lnotab,
};

/// From the headers of 3.10.13.
const V3_10: Offsets = Offsets {
    runtime_interpreters: 32,
    runtime_tss_key: Some(588),
    interpreter_next: 0,
    interpreter_threads: 8,
    thread_next: 8,
    thread_pthread: 176,
    thread_native_id: None,
    thread_frame: 24,
    cframe_frame: None,
    thread_chunk: None,
    thread_chunk_top: None,
    frame_code: 32,
    frame_code_tag_bits: 0,
    frame_previous: 24,
    frame_instruction: 96,
    frame_owner: None,
    frame_size: 100,
    code_filename: 104,
    code_qualname: 112,
    code_name: 112,
    code_line_table: 120,
    code_first_line: 40,
    code_first_traceable: None,
    code_instructions: None,
    code_size: 128,
    str_length: 16,
    str_state: 32,
    str_kind_shift: 2,
    str_ascii_data: 48,
    str_compact_data: 72,
    bytes_length: 16,
    bytes_data: 32,
    type_dealloc: 48,
    instruction_kind: InstructionKind::Units,
    line_format: LineFormat::Pep626,
};

/// From the headers of 3.11.7.
const V3_11: Offsets = Offsets {
    runtime_interpreters: 40,
    runtime_tss_key: Some(596),
    interpreter_next: 0,
    interpreter_threads: 16,
    thread_next: 8,
    thread_pthread: 152,
    thread_native_id: Some(160),
    thread_frame: 56,
    cframe_frame: Some(8),
    thread_chunk: Some(296),
    thread_chunk_top: Some(304),
    frame_code: 32,
    frame_code_tag_bits: 0,
    frame_previous: 48,
    frame_instruction: 56,
    frame_owner: Some(69),
    frame_size: 70,
    code_filename: 112,
    code_qualname: 128,
    code_name: 120,
    code_line_table: 136,
    code_first_line: 72,
    code_first_traceable: Some(168),
    code_instructions: Some(184),
    code_size: 172,
    str_length: 16,
    str_state: 32,
    str_kind_shift: 2,
    str_ascii_data: 48,
    str_compact_data: 72,
    bytes_length: 16,
    bytes_data: 32,
    type_dealloc: 48,
    instruction_kind: InstructionKind::Pointer,
    line_format: LineFormat::Pep657,
};

/// From the headers of 3.12.1.
const V3_12: Offsets = Offsets {
    runtime_interpreters: 40,
    runtime_tss_key: Some(1548),
    interpreter_next: 0,
    interpreter_threads: 72,
    thread_next: 8,
    thread_pthread: 136,
    thread_native_id: Some(144),
    thread_frame: 56,
    cframe_frame: Some(0),
    thread_chunk: Some(232),
    thread_chunk_top: Some(240),
    frame_code: 0,
    frame_code_tag_bits: 0,
    frame_previous: 8,
    frame_instruction: 56,
    frame_owner: Some(70),
    frame_size: 71,
    code_filename: 112,
    code_qualname: 128,
    code_name: 120,
    code_line_table: 136,
    code_first_line: 68,
    code_first_traceable: Some(176),
    code_instructions: Some(192),
    code_size: 180,
    str_length: 16,
    str_state: 32,
    str_kind_shift: 2,
    str_ascii_data: 40,
    str_compact_data: 56,
    bytes_length: 16,
    bytes_data: 32,
    type_dealloc: 48,
    instruction_kind: InstructionKind::Pointer,
    line_format: LineFormat::Pep657,
};

/// From the headers of 3.13.0.
const V3_13: Offsets = Offsets {
    runtime_interpreters: 632,
    runtime_tss_key: Some(2164),
    interpreter_next: 7264,
    interpreter_threads: 7344,
    thread_next: 8,
    thread_pthread: 152,
    thread_native_id: Some(160),
    thread_frame: 72,
    cframe_frame: None,
    thread_chunk: Some(232),
    thread_chunk_top: Some(240),
    frame_code: 0,
    frame_code_tag_bits: 0,
    frame_previous: 8,
    frame_instruction: 56,
    frame_owner: Some(70),
    frame_size: 71,
    code_filename: 112,
    code_qualname: 128,
    code_name: 120,
    code_line_table: 136,
    code_first_line: 68,
    code_first_traceable: Some(184),
    code_instructions: Some(200),
    code_size: 188,
    str_length: 16,
    str_state: 32,
    str_kind_shift: 2,
    str_ascii_data: 40,
    str_compact_data: 56,
    bytes_length: 16,
    bytes_data: 32,
    type_dealloc: 48,
    instruction_kind: InstructionKind::Pointer,
    line_format: LineFormat::Pep657,
};

/// From the headers of 3.14.10; what its `_Py_DebugOffsets` tell (all but
/// the tag bits and what follows from other fields) replaces these numbers.
const V3_14: Offsets = Offsets {
    runtime_interpreters: 808,
    // 2340, but a process does not tell it, and it is not needed: the slot is searched for.
    runtime_tss_key: None,
    interpreter_next: 7272,
    frame_code_tag_bits: 3,
    frame_owner: Some(74),
    frame_size: 75,
    code_first_traceable: Some(192),
    code_instructions: Some(208),
    code_size: 196,
    ..V3_13
};

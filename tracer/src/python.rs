//! From what is known of an interpreter to what a walk needs.

use vramscope_python::{InstructionKind, Offsets, Process, Python, ReadError, calibrate_tsd};
use vramscope_wire::{
    VS_NONE, vs_entries, vs_entries_VS_ENTRY_EVERY, vs_entries_VS_ENTRY_FLAG,
    vs_entries_VS_ENTRY_SHIM, vs_instr_kind_VS_INSTR_INDEX, vs_instr_kind_VS_INSTR_POINTER,
    vs_python,
};

/// The walk's configuration for one process, and whether it finds thread states the quick way.
///
/// # Errors
/// [`ReadError`] when the process cannot be read.
pub fn walk_configuration(
    process: &Process,
    python: &Python,
) -> Result<(vs_python, bool), ReadError> {
    let slot = calibrate_tsd(process, python)?;
    let offsets = &python.offsets;
    let or_none = |offset: Option<u32>| offset.unwrap_or(VS_NONE);
    let configuration = vs_python {
        runtime: python.runtime.0,
        code_mask: !u64::from(offsets.frame_code_tag_bits),
        tss_slot: or_none(slot.map(|slot| slot.offset)),
        interp_head: offsets.runtime_interpreters,
        interp_next: offsets.interpreter_next,
        threads_head: offsets.interpreter_threads,
        ts_next: offsets.thread_next,
        ts_thread_id: offsets.thread_pthread,
        ts_frame: offsets.thread_frame,
        cframe_frame: or_none(offsets.cframe_frame),
        frame_code: offsets.frame_code,
        frame_previous: offsets.frame_previous,
        frame_instr: offsets.frame_instruction,
        frame_owner: or_none(offsets.frame_owner),
        instr_kind: match offsets.instruction_kind {
            InstructionKind::Pointer => vs_instr_kind_VS_INSTR_POINTER,
            InstructionKind::Bytes | InstructionKind::Units => vs_instr_kind_VS_INSTR_INDEX,
        },
        ts_chunk: or_none(offsets.thread_chunk),
        ts_top: or_none(offsets.thread_chunk_top),
        ts_bytes: thread_state_bytes(offsets),
        code_size: offsets.code_size.next_multiple_of(8),
        co_code: offsets.code_instructions.unwrap_or(0),
        co_first_traceable: offsets.code_first_traceable.unwrap_or(0),
        co_filename: offsets.code_filename,
        co_name: offsets.code_qualname,
        co_linetable: offsets.code_line_table,
        co_firstlineno: offsets.code_first_line,
        str_length: offsets.str_length,
        str_state: offsets.str_state,
        str_kind_shift: offsets.str_kind_shift,
        str_ascii: offsets.str_ascii_data,
        str_compact: offsets.str_compact_data,
        bytes_size: offsets.bytes_length,
        bytes_data: offsets.bytes_data,
        tss_key: or_none(python.tss_key),
        entries: entries(python),
        generation: 0,
        pad: 0,
    };
    Ok((configuration, slot.is_some()))
}

/// How one sees which frames the interpreter's C function was called for. `_PyInterpreterFrame` of
/// 3.11 has `is_entry` before `owner`; since 3.12 that function has a frame of its own kind.
fn entries(python: &Python) -> vs_entries {
    match (python.version.major, python.version.minor) {
        (3, ..=10) => vs_entries_VS_ENTRY_EVERY,
        (3, 11) => vs_entries_VS_ENTRY_FLAG,
        _ => vs_entries_VS_ENTRY_SHIM,
    }
}

/// The configuration for a process without a Python that can be walked.
pub fn no_python() -> vs_python {
    vs_python {
        runtime: 0,
        code_mask: 0,
        tss_slot: VS_NONE,
        interp_head: 0,
        interp_next: 0,
        threads_head: 0,
        ts_next: 0,
        ts_thread_id: 0,
        ts_frame: 0,
        cframe_frame: VS_NONE,
        frame_code: 0,
        frame_previous: 0,
        frame_instr: 0,
        frame_owner: VS_NONE,
        instr_kind: vs_instr_kind_VS_INSTR_INDEX,
        ts_chunk: VS_NONE,
        ts_top: VS_NONE,
        ts_bytes: 0,
        code_size: 0,
        co_code: 0,
        co_first_traceable: 0,
        co_filename: 0,
        co_name: 0,
        co_linetable: 0,
        co_firstlineno: 0,
        str_length: 0,
        str_state: 0,
        str_kind_shift: 0,
        str_ascii: 0,
        str_compact: 0,
        bytes_size: 0,
        bytes_data: 0,
        tss_key: VS_NONE,
        entries: vs_entries_VS_ENTRY_EVERY,
        generation: 0,
        pad: 0,
    }
}

/// Bytes of a thread state that hold the three fields that a walk needs.
fn thread_state_bytes(offsets: &Offsets) -> u32 {
    [
        Some(offsets.thread_frame),
        offsets.thread_chunk,
        offsets.thread_chunk_top,
    ]
    .into_iter()
    .flatten()
    .max()
    .unwrap_or(0)
        + 8
}

/// What a frame stores as its place in the code, as the byte offset that line tables use.
pub fn byte_offset(kind: InstructionKind, lasti: i32) -> i32 {
    match kind {
        InstructionKind::Units => lasti.saturating_mul(2),
        InstructionKind::Pointer | InstructionKind::Bytes => lasti,
    }
}

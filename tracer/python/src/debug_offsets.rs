//! `_Py_DebugOffsets`: what a CPython since 3.13 tells of its own layout, at
//! the start of its `_PyRuntime`.
//!
//! Source: `Include/internal/pycore_runtime.h` of 3.13 and
//! `Include/internal/pycore_debug_offsets.h` of 3.14. It is an eight-byte
//! cookie and then 64-bit numbers only; the structure grew from 3.13 to 3.14.
//! It lacks the pthread key of the thread state, `_co_firsttraceable`,
//! `datastack_top` and the size of `PyCompactUnicodeObject`; the last three
//! are derived from their neighbours here.

use crate::offsets::Offsets;
use crate::python_version::Version;

const COOKIE: &[u8; 8] = b"xdebugpy";

/// Bytes to read from `_PyRuntime`: enough for all versions known here.
pub(crate) const SIZE: usize = 81 * 8;

/// An own description that was read and makes sense.
#[derive(Clone, Debug)]
pub(crate) struct DebugOffsets {
    pub free_threaded: bool,
    words: Vec<u64>,
    positions: Positions,
}

/// Index of each number, in 64-bit words from the start.
#[derive(Clone, Copy, Debug)]
struct Positions {
    runtime_interpreters: usize,
    interpreter_size: usize,
    interpreter_next: usize,
    interpreter_threads: usize,
    thread_size: usize,
    thread_next: usize,
    thread_frame: usize,
    thread_pthread: usize,
    thread_native_id: usize,
    thread_chunk: usize,
    frame_size: usize,
    frame_previous: usize,
    frame_code: usize,
    frame_instruction: usize,
    frame_owner: usize,
    code_size: usize,
    code_filename: usize,
    code_name: usize,
    code_qualname: usize,
    code_line_table: usize,
    code_first_line: usize,
    code_instructions: usize,
    object_size: usize,
    object_type: usize,
    bytes_length: usize,
    bytes_data: usize,
    str_state: usize,
    str_length: usize,
    str_ascii_data: usize,
}

const V3_13: Positions = Positions {
    runtime_interpreters: 5,
    interpreter_size: 6,
    interpreter_next: 8,
    interpreter_threads: 9,
    thread_size: 19,
    thread_next: 21,
    thread_frame: 23,
    thread_pthread: 24,
    thread_native_id: 25,
    thread_chunk: 26,
    frame_size: 28,
    frame_previous: 29,
    frame_code: 30,
    frame_instruction: 31,
    frame_owner: 33,
    code_size: 34,
    code_filename: 35,
    code_name: 36,
    code_qualname: 37,
    code_line_table: 38,
    code_first_line: 39,
    code_instructions: 43,
    object_size: 44,
    object_type: 45,
    bytes_length: 65,
    bytes_data: 66,
    str_state: 68,
    str_length: 69,
    str_ascii_data: 70,
};

const V3_14: Positions = Positions {
    runtime_interpreters: 5,
    interpreter_size: 6,
    interpreter_next: 8,
    interpreter_threads: 9,
    thread_size: 22,
    thread_next: 24,
    thread_frame: 26,
    thread_pthread: 27,
    thread_native_id: 28,
    thread_chunk: 29,
    frame_size: 31,
    frame_previous: 32,
    frame_code: 33,
    frame_instruction: 34,
    frame_owner: 36,
    code_size: 39,
    code_filename: 40,
    code_name: 41,
    code_qualname: 42,
    code_line_table: 43,
    code_first_line: 44,
    code_instructions: 48,
    object_size: 50,
    object_type: 51,
    bytes_length: 75,
    bytes_data: 76,
    str_state: 78,
    str_length: 79,
    str_ascii_data: 80,
};

impl DebugOffsets {
    /// Reads the structure of an interpreter of this version.
    ///
    /// # Errors
    /// What was expected and what was found instead.
    pub(crate) fn parse(version: Version, bytes: &[u8]) -> Result<Self, String> {
        let positions = match version.minor {
            13 => V3_13,
            14 => V3_14,
            minor => return Err(format!("none is known for 3.{minor}")),
        };
        if !bytes.starts_with(COOKIE) {
            return Err("the cookie \"xdebugpy\" is not at its start".to_owned());
        }
        let (words, _) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        if words.len() * 8 < SIZE {
            return Err(format!("only {} of {SIZE} bytes of it", words.len() * 8));
        }
        let told = Version::from_hex(words[1] as u32);
        if told != version {
            return Err(format!("it tells version {told}"));
        }
        let parsed = Self {
            free_threaded: words[2] != 0,
            words,
            positions,
        };
        if !parsed.free_threaded {
            parsed.check()?;
        }
        Ok(parsed)
    }

    /// A layout that has shifted by a word fails here: the object head has a
    /// fixed size, and each field lies within its structure.
    fn check(&self) -> Result<(), String> {
        let at = &self.positions;
        let expect = |name, index: usize, wanted| match self.words[index] {
            found if found == wanted => Ok(()),
            found => Err(format!("{name} is {found} where {wanted} is expected")),
        };
        expect("pyobject.size", at.object_size, 16)?;
        expect("pyobject.ob_type", at.object_type, 8)?;
        expect("bytes_object.ob_size", at.bytes_length, 16)?;
        expect("unicode_object.length", at.str_length, 16)?;
        let within = |name, size: usize, fields: &[usize]| {
            let size = self.words[size];
            let is_credible = size < 16 << 20;
            if is_credible && fields.iter().all(|index| self.words[*index] < size) {
                Ok(())
            } else {
                Err(format!(
                    "a field of {name} lies outside of its {size} bytes"
                ))
            }
        };
        within(
            "interpreter_state",
            at.interpreter_size,
            &[at.interpreter_next, at.interpreter_threads],
        )?;
        within(
            "thread_state",
            at.thread_size,
            &[
                at.thread_next,
                at.thread_frame,
                at.thread_pthread,
                at.thread_native_id,
                at.thread_chunk,
            ],
        )?;
        within(
            "interpreter_frame",
            at.frame_size,
            &[
                at.frame_previous,
                at.frame_code,
                at.frame_instruction,
                at.frame_owner,
            ],
        )?;
        within(
            "code_object",
            at.code_size,
            &[
                at.code_filename,
                at.code_name,
                at.code_qualname,
                at.code_line_table,
                at.code_first_line,
                at.code_instructions,
            ],
        )
    }

    /// The table's offsets with the process's own in their place.
    pub(crate) fn apply(&self, table: &Offsets) -> Offsets {
        let at = &self.positions;
        // `check` has bounded all of these far below 2^32.
        let told = |index: usize| self.words[index] as u32;
        let mut offsets = Offsets {
            runtime_interpreters: told(at.runtime_interpreters),
            interpreter_next: told(at.interpreter_next),
            interpreter_threads: told(at.interpreter_threads),
            thread_next: told(at.thread_next),
            thread_frame: told(at.thread_frame),
            thread_pthread: told(at.thread_pthread),
            thread_native_id: Some(told(at.thread_native_id)),
            thread_chunk: Some(told(at.thread_chunk)),
            thread_chunk_top: Some(told(at.thread_chunk) + 8),
            frame_previous: told(at.frame_previous),
            frame_code: told(at.frame_code),
            frame_instruction: told(at.frame_instruction),
            frame_owner: Some(told(at.frame_owner)),
            code_filename: told(at.code_filename),
            code_name: told(at.code_name),
            code_qualname: told(at.code_qualname),
            code_line_table: told(at.code_line_table),
            code_first_line: told(at.code_first_line),
            // Before the bytecode: the number, padding and `co_extra`.
            code_first_traceable: told(at.code_instructions).checked_sub(16),
            code_instructions: Some(told(at.code_instructions)),
            bytes_length: told(at.bytes_length),
            bytes_data: told(at.bytes_data),
            str_state: told(at.str_state),
            str_length: told(at.str_length),
            str_ascii_data: told(at.str_ascii_data),
            // Two words more: `utf8_length` and `utf8`.
            str_compact_data: told(at.str_ascii_data) + 16,
            ..*table
        };
        offsets.frame_size = [
            offsets.frame_code + 8,
            offsets.frame_previous + 8,
            offsets.frame_instruction + 8,
            told(at.frame_owner) + 1,
        ]
        .into_iter()
        .fold(0, u32::max);
        offsets.code_size = [
            offsets.code_filename + 8,
            offsets.code_qualname + 8,
            offsets.code_name + 8,
            offsets.code_line_table + 8,
            offsets.code_first_line + 4,
            offsets.code_first_traceable.unwrap_or(0) + 4,
        ]
        .into_iter()
        .fold(0, u32::max);
        offsets
    }
}

/// The fields in which two layouts differ: (name, table's, process's own).
pub(crate) fn differences(
    table: &Offsets,
    own: &Offsets,
) -> Vec<(&'static str, Option<u32>, Option<u32>)> {
    table
        .fields()
        .into_iter()
        .zip(own.fields())
        .filter(|(table, own)| table.1 != own.1)
        .map(|((name, table), (_, own))| (name, table, own))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn foreign_bytes_are_refused() {
        let version = Version::new(3, 13, 0);
        assert!(DebugOffsets::parse(version, b"xdebugpy").is_err());
        let mut bytes = vec![0; SIZE];
        bytes[..8].copy_from_slice(COOKIE);
        let error = DebugOffsets::parse(version, &bytes).unwrap_err();
        assert_eq!(error, "it tells version 0.0.0");
        bytes[8..12].copy_from_slice(&0x030d_00f0u32.to_le_bytes());
        let error = DebugOffsets::parse(version, &bytes).unwrap_err();
        assert_eq!(error, "pyobject.size is 0 where 16 is expected");
    }

    proptest! {
        #[test]
        fn any_words_are_accepted(
            minor in 12u8..=15,
            words in proptest::collection::vec(prop_oneof![0u64..200, any::<u64>()], SIZE / 8),
        ) {
            let version = Version::new(3, minor, 0);
            let hex = u64::from(minor) << 16 | 0x0300_0000;
            let mut bytes = COOKIE.to_vec();
            bytes.extend_from_slice(&hex.to_le_bytes());
            for word in &words[2..] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            if let Ok(own) = DebugOffsets::parse(version, &bytes) {
                let table = crate::tables::layout(version).unwrap().offsets;
                if !own.free_threaded {
                    own.apply(&table);
                }
            }
        }
    }
}

//! `_Py_DebugOffsets`: what a CPython since 3.13 tells of its own layout, at
//! the start of its `_PyRuntime`.
//!
//! Source: `Include/internal/pycore_runtime.h` of 3.13 and
//! `Include/internal/pycore_debug_offsets.h` of 3.14. It is an eight-byte
//! cookie and then 64-bit numbers only; the structure grew from 3.13 to 3.14.
//! It lacks the pthread key of the thread state, `_co_firsttraceable`,
//! `datastack_top` and the size of `PyCompactUnicodeObject`; the last three
//! are derived from their neighbours here.

use std::collections::HashMap;

use crate::offsets::Offsets;
use crate::python_version::Version;

const COOKIE: &[u8; 8] = b"xdebugpy";

/// The numbers after the cookie, in order: (structure, its fields).
type Contents = [(&'static str, &'static [&'static str])];

const V3_13: &Contents = &[
    ("", &["version", "free_threaded"]),
    (
        "runtime_state",
        &["size", "finalizing", "interpreters_head"],
    ),
    (
        "interpreter_state",
        &[
            "size",
            "id",
            "next",
            "threads_head",
            "gc",
            "imports_modules",
            "sysdict",
            "builtins",
            "ceval_gil",
            "gil_runtime_state",
            "gil_runtime_state_enabled",
            "gil_runtime_state_locked",
            "gil_runtime_state_holder",
        ],
    ),
    ("thread_state", THREAD_STATE),
    ("interpreter_frame", INTERPRETER_FRAME_3_13),
    ("code_object", CODE_OBJECT_3_13),
    ("pyobject", &["size", "ob_type"]),
    ("type_object", &["size", "tp_name", "tp_repr", "tp_flags"]),
    ("tuple_object", &["size", "ob_item", "ob_size"]),
    ("list_object", &["size", "ob_item", "ob_size"]),
    ("dict_object", &["size", "ma_keys", "ma_values"]),
    ("float_object", &["size", "ob_fval"]),
    ("long_object", &["size", "lv_tag", "ob_digit"]),
    ("bytes_object", &["size", "ob_size", "ob_sval"]),
    (
        "unicode_object",
        &["size", "state", "length", "asciiobject_size"],
    ),
];

const V3_14: &Contents = &[
    ("", &["version", "free_threaded"]),
    (
        "runtime_state",
        &["size", "finalizing", "interpreters_head"],
    ),
    (
        "interpreter_state",
        &[
            "size",
            "id",
            "next",
            "threads_head",
            "threads_main",
            "gc",
            "imports_modules",
            "sysdict",
            "builtins",
            "ceval_gil",
            "gil_runtime_state",
            "gil_runtime_state_enabled",
            "gil_runtime_state_locked",
            "gil_runtime_state_holder",
            "code_object_generation",
            "tlbc_generation",
        ],
    ),
    ("thread_state", THREAD_STATE),
    ("interpreter_frame", INTERPRETER_FRAME_3_13),
    ("", &["stackpointer", "tlbc_index"]),
    ("code_object", CODE_OBJECT_3_13),
    ("", &["co_tlbc"]),
    ("pyobject", &["size", "ob_type"]),
    ("type_object", &["size", "tp_name", "tp_repr", "tp_flags"]),
    ("tuple_object", &["size", "ob_item", "ob_size"]),
    ("list_object", &["size", "ob_item", "ob_size"]),
    ("set_object", &["size", "used", "table", "mask"]),
    ("dict_object", &["size", "ma_keys", "ma_values"]),
    ("float_object", &["size", "ob_fval"]),
    ("long_object", &["size", "lv_tag", "ob_digit"]),
    ("bytes_object", &["size", "ob_size", "ob_sval"]),
    (
        "unicode_object",
        &["size", "state", "length", "asciiobject_size"],
    ),
];

const THREAD_STATE: &[&str] = &[
    "size",
    "prev",
    "next",
    "interp",
    "current_frame",
    "thread_id",
    "native_thread_id",
    "datastack_chunk",
    "status",
];

/// 3.14 has more fields at the end.
const INTERPRETER_FRAME_3_13: &[&str] = &[
    "size",
    "previous",
    "executable",
    "instr_ptr",
    "localsplus",
    "owner",
];

/// 3.14 has one more field at the end.
const CODE_OBJECT_3_13: &[&str] = &[
    "size",
    "filename",
    "name",
    "qualname",
    "linetable",
    "firstlineno",
    "argcount",
    "localsplusnames",
    "localspluskinds",
    "co_code_adaptive",
];

fn count(contents: &Contents) -> usize {
    contents.iter().map(|(_, fields)| fields.len()).sum()
}

/// Bytes to read from `_PyRuntime`: enough for all versions known here. In 3.13
/// some of them are of what follows the structure in the runtime.
pub(crate) fn size() -> usize {
    8 * (1 + count(V3_13).max(count(V3_14)))
}

/// An own description that was read and makes sense.
#[derive(Clone, Debug)]
pub(crate) struct DebugOffsets {
    pub free_threaded: bool,
    /// (structure, field) -> number. All but the version fit in 32 bits in any
    /// description that passes the check.
    numbers: HashMap<(&'static str, &'static str), u64>,
}

impl DebugOffsets {
    /// Reads the structure of an interpreter of this version.
    ///
    /// # Errors
    /// What was expected and what was found instead.
    pub(crate) fn parse(version: Version, bytes: &[u8]) -> Result<Self, String> {
        let contents = match version.minor {
            13 => V3_13,
            14 => V3_14,
            minor => return Err(format!("none is known for 3.{minor}")),
        };
        let wanted = 8 * (1 + count(contents));
        let Some(bytes) = bytes.get(..wanted) else {
            return Err(format!("only {} of {wanted} bytes of it", bytes.len()));
        };
        let Some(numbers) = bytes.strip_prefix(COOKIE) else {
            return Err("the cookie \"xdebugpy\" is not at its start".to_owned());
        };
        let (words, _) = numbers.as_chunks::<8>();
        let names = contents
            .iter()
            .flat_map(|(structure, fields)| fields.iter().map(|field| (*structure, *field)));
        let parsed = Self {
            free_threaded: false,
            numbers: names
                .zip(words.iter().map(|word| u64::from_le_bytes(*word)))
                .collect(),
        };
        let told = Version::from_hex(parsed.number("", "version") as u32);
        if told != version {
            return Err(format!("it tells version {told}"));
        }
        if parsed.number("", "free_threaded") != 0 {
            return Ok(Self {
                free_threaded: true,
                ..parsed
            });
        }
        parsed.check()?;
        Ok(parsed)
    }

    fn number(&self, structure: &'static str, field: &'static str) -> u64 {
        // Every name asked for is in the lists above; the tests ask for all.
        self.numbers[&(structure, field)]
    }

    /// A layout that has shifted by a word fails here: the object head has a
    /// fixed size, and each field lies within its structure.
    fn check(&self) -> Result<(), String> {
        const FIXED: [(&str, &str, u64); 4] = [
            ("pyobject", "size", 16),
            ("pyobject", "ob_type", 8),
            ("bytes_object", "ob_size", 16),
            ("unicode_object", "length", 16),
        ];
        for (structure, field, wanted) in FIXED {
            let found = self.number(structure, field);
            if found != wanted {
                return Err(format!(
                    "{structure}.{field} is {found} where {wanted} is expected"
                ));
            }
        }
        const WITHIN: [&str; 7] = [
            "runtime_state",
            "interpreter_state",
            "thread_state",
            "interpreter_frame",
            "code_object",
            "bytes_object",
            "unicode_object",
        ];
        for ((structure, field), number) in &self.numbers {
            if !WITHIN.contains(structure) {
                continue;
            }
            let size = self.number(structure, "size");
            if size >= 16 << 20 || *number > size {
                return Err(format!(
                    "{structure}.{field} is {number} in a structure of {size} bytes"
                ));
            }
        }
        Ok(())
    }

    /// The table's offsets with the process's own in their place.
    pub(crate) fn apply(&self, table: &Offsets) -> Offsets {
        let told = |structure, field| self.number(structure, field) as u32;
        let chunk = told("thread_state", "datastack_chunk");
        let instructions = told("code_object", "co_code_adaptive");
        let owner = told("interpreter_frame", "owner");
        let ascii_data = told("unicode_object", "asciiobject_size");
        let mut offsets = Offsets {
            runtime_interpreters: told("runtime_state", "interpreters_head"),
            interpreter_next: told("interpreter_state", "next"),
            interpreter_threads: told("interpreter_state", "threads_head"),
            thread_next: told("thread_state", "next"),
            thread_frame: told("thread_state", "current_frame"),
            thread_pthread: told("thread_state", "thread_id"),
            thread_native_id: Some(told("thread_state", "native_thread_id")),
            thread_chunk: Some(chunk),
            thread_chunk_top: Some(chunk + 8),
            frame_previous: told("interpreter_frame", "previous"),
            frame_code: told("interpreter_frame", "executable"),
            frame_instruction: told("interpreter_frame", "instr_ptr"),
            frame_owner: Some(owner),
            code_filename: told("code_object", "filename"),
            code_name: told("code_object", "name"),
            code_qualname: told("code_object", "qualname"),
            code_line_table: told("code_object", "linetable"),
            code_first_line: told("code_object", "firstlineno"),
            // Before the bytecode: the number, padding and `co_extra`.
            code_first_traceable: instructions.checked_sub(16),
            code_instructions: Some(instructions),
            bytes_length: told("bytes_object", "ob_size"),
            bytes_data: told("bytes_object", "ob_sval"),
            str_state: told("unicode_object", "state"),
            str_length: told("unicode_object", "length"),
            str_ascii_data: ascii_data,
            // Two words more: `utf8_length` and `utf8`.
            str_compact_data: ascii_data + 16,
            ..*table
        };
        offsets.frame_size = [
            offsets.frame_code + 8,
            offsets.frame_previous + 8,
            offsets.frame_instruction + 8,
            owner + 1,
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
        let mut bytes = vec![0; size()];
        let error = DebugOffsets::parse(version, &bytes).unwrap_err();
        assert_eq!(error, "the cookie \"xdebugpy\" is not at its start");
        bytes[..8].copy_from_slice(COOKIE);
        let error = DebugOffsets::parse(version, &bytes).unwrap_err();
        assert_eq!(error, "it tells version 0.0.0");
        bytes[8..12].copy_from_slice(&0x030d_00f0u32.to_le_bytes());
        let error = DebugOffsets::parse(version, &bytes).unwrap_err();
        assert_eq!(error, "pyobject.size is 0 where 16 is expected");
    }

    /// Numbers that each are their own index, but for those that are checked:
    /// the fields of the result then tell which word each came from, counted
    /// in the header of 3.14; a running one is asked in `tests/layouts.rs`.
    #[test]
    fn words_of_3_14() {
        let mut words: Vec<u64> = (0..81).collect();
        words[0] = u64::from_le_bytes(*COOKIE);
        words[1] = 0x030e_02f0;
        words[2] = 0;
        for (size, of) in [
            (3, 5000),
            (6, 9000),
            (22, 400),
            (31, 80),
            (39, 216),
            (74, 100),
            (77, 100),
        ] {
            words[size] = of;
        }
        (words[48], words[49]) = (200, 0);
        (words[50], words[51], words[75], words[79]) = (16, 8, 16, 16);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let version = Version::new(3, 14, 2);
        let own = DebugOffsets::parse(version, &bytes).unwrap();
        let table = Offsets::for_version(version).unwrap();
        let offsets = own.apply(&table);
        let expected = Offsets {
            runtime_interpreters: 5,
            interpreter_next: 8,
            interpreter_threads: 9,
            thread_next: 24,
            thread_frame: 26,
            thread_pthread: 27,
            thread_native_id: Some(28),
            thread_chunk: Some(29),
            thread_chunk_top: Some(37),
            frame_previous: 32,
            frame_code: 33,
            frame_instruction: 34,
            frame_owner: Some(36),
            frame_size: 42,
            code_filename: 40,
            code_name: 41,
            code_qualname: 42,
            code_line_table: 43,
            code_first_line: 44,
            code_first_traceable: Some(184),
            code_instructions: Some(200),
            code_size: 188,
            bytes_data: 76,
            str_state: 78,
            str_ascii_data: 80,
            str_compact_data: 96,
            ..table
        };
        assert_eq!(offsets, expected);
        words[50] = 8;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(DebugOffsets::parse(version, &bytes).is_err());
    }

    proptest! {
        #[test]
        fn any_words_are_accepted(
            minor in 12u8..=15,
            words in proptest::collection::vec(prop_oneof![0u64..200, any::<u64>()], size() / 8),
        ) {
            let version = Version::new(3, minor, 0);
            let hex = u64::from(minor) << 16 | 0x0300_0000;
            let mut bytes = COOKIE.to_vec();
            bytes.extend_from_slice(&hex.to_le_bytes());
            for word in &words[2..] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            if let Ok(own) = DebugOffsets::parse(version, &bytes) {
                let table = Offsets::for_version(version).unwrap();
                if !own.free_threaded {
                    own.apply(&table);
                }
            }
        }
    }
}

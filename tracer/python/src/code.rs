//! Code objects: what a frame was running, and where that stands in the source.

use crate::error::ReadError;
use crate::find::Python;
use crate::lines::LineTable;
use crate::offsets::Offsets;
use crate::process::{Address, Process};
use crate::text::{DecodeError, StrHeader, decode_str, u32_at, u64_at};

/// A code object, decoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeObject {
    /// `co_filename`, as Python has it: absolute or relative to where it was
    /// started, or a made-up name such as `<string>`.
    pub file: String,
    /// `co_qualname`, such as `Model.forward`; before 3.11, which has none,
    /// `co_name`, such as `forward`.
    pub qualname: String,
    /// `co_firstlineno`: the line of the first decorator or the `def`.
    pub first_line: i32,
    /// From bytecode to lines.
    pub line_table: LineTable,
}

impl CodeObject {
    /// The line that a traceback shows for a frame at this byte offset; see
    /// [`LineTable::line`].
    pub fn line(&self, offset: i32) -> Option<u32> {
        self.line_table.line(offset)
    }
}

/// A code object could not be read or decoded.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// Its memory could not be read.
    #[error("code object at {address}: {source}")]
    Read {
        /// Where it should be.
        address: Address,
        /// Why not.
        source: ReadError,
    },
    /// What is there is no code object (any more).
    #[error("code object at {address}: {source}; it was freed or the address is wrong")]
    Decode {
        /// Where it should be.
        address: Address,
        /// What is wrong with it.
        source: DecodeError,
    },
}

/// The fields of a code object itself: numbers, and pointers to the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeHeader {
    /// `co_filename`: a `str`.
    pub filename: Address,
    /// `co_qualname`, or `co_name` before 3.11: a `str`.
    pub qualname: Address,
    /// `co_lnotab` or `co_linetable`: a `bytes`.
    pub line_table: Address,
    /// `co_firstlineno`.
    pub first_line: i32,
    /// Where the bytecode begins that a frame's pointer points into, as an
    /// offset from the code object (3.11+; before, 0).
    pub instructions: u32,
    /// A frame of this code is hidden while its byte offset is below this
    /// (3.11+; before, 0).
    pub first_traceable: i32,
}

impl CodeHeader {
    /// Reads the fields from the object's first [`Offsets::code_size`] bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when there are fewer.
    pub fn parse(offsets: &Offsets, object: &[u8]) -> Result<Self, DecodeError> {
        let truncated = || DecodeError::Truncated {
            what: "code object",
            wanted: offsets.code_size as usize,
            got: object.len(),
        };
        let pointer = |offset| u64_at(object, offset).map(Address).ok_or_else(truncated);
        let number = |offset| {
            u32_at(object, offset)
                .map(u32::cast_signed)
                .ok_or_else(truncated)
        };
        Ok(Self {
            filename: pointer(offsets.code_filename)?,
            qualname: pointer(offsets.code_qualname)?,
            line_table: pointer(offsets.code_line_table)?,
            first_line: number(offsets.code_first_line)?,
            instructions: offsets.code_instructions.unwrap_or(0),
            first_traceable: match offsets.code_first_traceable {
                Some(offset) => number(offset)?.saturating_mul(2),
                None => 0,
            },
        })
    }

    /// Reads them from the memory of a process.
    ///
    /// # Errors
    /// Any [`CodeError`].
    pub fn read(process: &Process, offsets: &Offsets, code: Address) -> Result<Self, CodeError> {
        let object = process
            .read_vec(code, offsets.code_size as usize)
            .map_err(|source| CodeError::Read {
                address: code,
                source,
            })?;
        Self::parse(offsets, &object).map_err(|source| CodeError::Decode {
            address: code,
            source,
        })
    }
}

/// Longest line table accepted, in bytes.
const LINE_TABLE_LIMIT: u64 = 4 << 20;

/// Reads a code object and all that it points to.
///
/// The process runs on meanwhile. A code object that a live frame refers to
/// does not change; one that has been freed may give an error or, if its
/// memory holds another by now, that other one.
///
/// # Errors
/// [`CodeError`] when the memory is not mapped or holds no code object.
pub fn read_code(
    process: &Process,
    python: &Python,
    code: Address,
) -> Result<CodeObject, CodeError> {
    let offsets = &python.offsets;
    let header = CodeHeader::read(process, offsets, code)?;
    let line_table = read_bytes(process, offsets, header.line_table)?;
    Ok(CodeObject {
        file: read_str(process, offsets, header.filename)?,
        qualname: read_str(process, offsets, header.qualname)?,
        first_line: header.first_line,
        line_table: LineTable::new(offsets.line_format, header.first_line, line_table),
    })
}

fn read_str(process: &Process, offsets: &Offsets, text: Address) -> Result<String, CodeError> {
    let read = |source| CodeError::Read {
        address: text,
        source,
    };
    let object = process
        .read_vec(text, StrHeader::size(offsets))
        .map_err(read)?;
    let header = StrHeader::parse(offsets, &object).map_err(|source| CodeError::Decode {
        address: text,
        source,
    })?;
    let data = process
        .read_vec(text.field(header.data), header.length)
        .map_err(read)?;
    Ok(decode_str(header.kind, &data))
}

fn read_bytes(process: &Process, offsets: &Offsets, bytes: Address) -> Result<Vec<u8>, CodeError> {
    let read = |source| CodeError::Read {
        address: bytes,
        source,
    };
    let length = process
        .read_u64(bytes.field(offsets.bytes_length))
        .map_err(read)?;
    if length > LINE_TABLE_LIMIT {
        return Err(CodeError::Decode {
            address: bytes,
            source: DecodeError::TooLong {
                what: "line table",
                length,
                limit: LINE_TABLE_LIMIT,
            },
        });
    }
    process
        .read_vec(bytes.field(offsets.bytes_data), length as usize)
        .map_err(read)
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
            bytes in proptest::collection::vec(any::<u8>(), 0..260),
        ) {
            let offsets = crate::tables::layout(Version::new(3, minor, 0)).unwrap().offsets;
            let parsed = CodeHeader::parse(&offsets, &bytes);
            prop_assert_eq!(parsed.is_ok(), bytes.len() >= offsets.code_size as usize);
        }
    }
}

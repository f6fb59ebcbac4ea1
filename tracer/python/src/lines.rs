//! From an offset in the bytecode to a source line: the three forms in which
//! CPython has kept its line tables. All accept any bytes, and do work
//! proportional to the table's length.
//!
//! Sources: `Objects/lnotab_notes.txt` of CPython 3.9, the same file of 3.10
//! (PEP 626), `Objects/locations.md` of 3.11 (PEP 657).

/// How a line table is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineFormat {
    /// 3.9 and before: `co_lnotab`, pairs of (bytes forward, lines forward).
    Lnotab,
    /// 3.10: `co_linetable`, pairs of (length in bytes, lines forward).
    Pep626,
    /// 3.11 and later: `co_linetable`, entries of one head byte and data.
    Pep657,
}

/// A stretch of bytecode that belongs to one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    /// First byte offset.
    pub start: u32,
    /// First byte offset after it; `u32::MAX` for the last range of
    /// [`LineFormat::Lnotab`], which does not tell where the code ends.
    pub end: u32,
    /// The line; None where the bytecode belongs to none.
    pub line: Option<u32>,
}

/// A line table with the line that it counts from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LineTable {
    format: LineFormat,
    first_line: i32,
    bytes: Box<[u8]>,
}

impl LineTable {
    /// Takes the raw bytes of `co_lnotab` or `co_linetable`, and
    /// `co_firstlineno`.
    pub fn new(format: LineFormat, first_line: i32, bytes: impl Into<Box<[u8]>>) -> Self {
        Self {
            format,
            first_line,
            bytes: bytes.into(),
        }
    }

    /// The line that a traceback shows for a frame at this byte offset.
    ///
    /// A negative offset is a frame before its first instruction: the line of
    /// the code object itself. None where the bytecode belongs to no line, or
    /// the offset is past the table's end.
    pub fn line(&self, offset: i32) -> Option<u32> {
        let Ok(offset) = u32::try_from(offset) else {
            return valid(self.first_line);
        };
        self.ranges()
            .find(|range| offset < range.end)
            .and_then(|range| range.line)
    }

    /// All ranges in order; the first begins at 0, each other where the one
    /// before it ends. Some may be empty.
    pub fn ranges(&self) -> Ranges<'_> {
        Ranges {
            format: self.format,
            rest: &self.bytes,
            line: self.first_line,
            end: 0,
            done: false,
        }
    }
}

/// Iterator of [`LineTable::ranges`].
#[derive(Clone, Debug)]
pub struct Ranges<'a> {
    format: LineFormat,
    rest: &'a [u8],
    line: i32,
    end: u32,
    done: bool,
}

impl Iterator for Ranges<'_> {
    type Item = LineRange;

    fn next(&mut self) -> Option<LineRange> {
        match self.format {
            LineFormat::Lnotab => self.next_lnotab(),
            LineFormat::Pep626 => self.next_pep626(),
            LineFormat::Pep657 => self.next_pep657(),
        }
    }
}

impl Ranges<'_> {
    fn range(&mut self, length: u32, line: Option<u32>) -> LineRange {
        let start = self.end;
        self.end = start.saturating_add(length);
        LineRange {
            start,
            end: self.end,
            line,
        }
    }

    /// A pair says how far the current line reaches, then how to come from it
    /// to the next. The last line reaches to the end of the code.
    fn next_lnotab(&mut self) -> Option<LineRange> {
        if self.done {
            return None;
        }
        let line = valid(self.line);
        let Some((&[forward, lines], rest)) = self.rest.split_first_chunk() else {
            self.done = true;
            return Some(self.range(u32::MAX, line));
        };
        self.rest = rest;
        self.line = self.line.wrapping_add(lines.cast_signed().into());
        Some(self.range(forward.into(), line))
    }

    fn next_pep626(&mut self) -> Option<LineRange> {
        const NO_LINE: i8 = -128;
        let (&[length, lines], rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        let lines = lines.cast_signed();
        let line = if lines == NO_LINE {
            None
        } else {
            self.line = self.line.wrapping_add(lines.into());
            valid(self.line)
        };
        Some(self.range(length.into(), line))
    }

    /// A head byte has its top bit set, then four bits of what follows and
    /// three of the length in code units, less one.
    fn next_pep657(&mut self) -> Option<LineRange> {
        const LONG: u8 = 14;
        const NO_COLUMNS: u8 = 13;
        const NONE: u8 = 15;
        let (&head, rest) = self.rest.split_first()?;
        let kind = (head >> 3) & 15;
        let units = u32::from(head & 7) + 1;
        let lines = match kind {
            LONG | NO_COLUMNS => signed_varint(rest),
            10..=12 => i32::from(kind) - 10,
            _ => 0,
        };
        self.line = self.line.wrapping_add(lines);
        let line = if kind == NONE { None } else { valid(self.line) };
        let data = rest.iter().position(|byte| byte & 0x80 != 0);
        self.rest = &rest[data.unwrap_or(rest.len())..];
        Some(self.range(units * 2, line))
    }
}

/// Six bits a byte, lowest first, bit 6 set when more follow; the lowest bit
/// of the whole is the sign.
fn signed_varint(bytes: &[u8]) -> i32 {
    let mut value = 0u32;
    for (index, byte) in bytes.iter().enumerate() {
        let bits = u32::from(byte & 63);
        value |= bits.checked_shl(6 * index.min(8) as u32).unwrap_or(0);
        if byte & 64 == 0 {
            break;
        }
    }
    let magnitude = (value >> 1).cast_signed();
    if value & 1 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

fn valid(line: i32) -> Option<u32> {
    u32::try_from(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(format: LineFormat, bytes: &[u8], offsets: &[i32]) -> Vec<Option<u32>> {
        let table = LineTable::new(format, 10, bytes);
        offsets.iter().map(|offset| table.line(*offset)).collect()
    }

    #[test]
    fn lnotab() {
        let bytes = [0, 1, 6, 2, 4, 0xff, 0xff, 0, 2, 5];
        assert_eq!(
            lines(
                LineFormat::Lnotab,
                &bytes,
                &[-1, 0, 5, 6, 9, 10, 266, 267, 9999]
            ),
            [10, 11, 11, 13, 13, 12, 12, 17, 17].map(Some)
        );
        assert_eq!(lines(LineFormat::Lnotab, &[], &[0, 8]), [Some(10); 2]);
    }

    #[test]
    fn pep626() {
        let bytes = [6, 1, 4, 0x80, 0, 3, 2, 0xfe];
        assert_eq!(
            lines(LineFormat::Pep626, &bytes, &[-1, 0, 4, 6, 8, 10, 12]),
            [Some(10), Some(11), Some(11), None, None, Some(12), None]
        );
    }

    #[test]
    fn pep657() {
        // One unit with no change, one with no columns and +33 lines (varint
        // of 66), two units of no location, one of the line after.
        let bytes = [
            0x80,
            0x00,
            0x80 | 13 << 3,
            0x42,
            0x01,
            0x80 | 15 << 3 | 1,
            0x80 | 11 << 3,
            1,
            2,
        ];
        assert_eq!(
            lines(LineFormat::Pep657, &bytes, &[-1, 0, 2, 4, 6, 8, 10]),
            [Some(10), Some(10), Some(43), None, None, Some(44), None]
        );
    }

    #[test]
    fn varints() {
        assert_eq!(signed_varint(&[]), 0);
        assert_eq!(signed_varint(&[3]), -1);
        assert_eq!(signed_varint(&[0x44, 0x01]), 34);
        assert_eq!(signed_varint(&[0x7f; 40]), -i32::MAX);
    }

    proptest! {
        #[test]
        fn any_bytes_are_accepted(
            format in prop_oneof![
                Just(LineFormat::Lnotab),
                Just(LineFormat::Pep626),
                Just(LineFormat::Pep657),
            ],
            first_line: i32,
            bytes: Vec<u8>,
            offset: i32,
        ) {
            let table = LineTable::new(format, first_line, bytes.clone());
            table.line(offset);
            let ranges: Vec<_> = table.ranges().collect();
            prop_assert!(ranges.len() <= bytes.len() + 1);
            let starts_at_last_end = ranges.windows(2).all(|pair| pair[0].end == pair[1].start);
            prop_assert!(starts_at_last_end);
        }
    }
}

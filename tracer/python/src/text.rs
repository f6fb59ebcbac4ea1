//! Python `str` objects from their raw bytes (PEP 393).

use std::fmt::Write;

use crate::offsets::Offsets;

/// Raw bytes that are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Fewer bytes than the structure has.
    #[error("{what}: {got} bytes where {wanted} are needed")]
    Truncated {
        /// The structure.
        what: &'static str,
        /// Its size in bytes.
        wanted: usize,
        /// What there is of it.
        got: usize,
    },
    /// A length that no real object has; the memory was overwritten.
    #[error("{what}: a length of {length} bytes, above the limit of {limit}")]
    TooLong {
        /// The object.
        what: &'static str,
        /// The length that it claims.
        length: u64,
        /// The longest that is accepted.
        limit: u64,
    },
    /// Neither 1, 2 nor 4 bytes a character.
    #[error("a str of kind {0}, which is not 1, 2 or 4")]
    Kind(u32),
    /// A `str` that keeps its text elsewhere, as no name in a code object does.
    #[error("a str that is not compact")]
    NotCompact,
}

/// Bytes for each character of a `str`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StrKind {
    /// Code points up to U+00FF.
    One,
    /// Code points up to U+FFFF.
    Two,
    /// All code points.
    Four,
}

impl StrKind {
    /// Bytes for one character.
    pub const fn width(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }
}

/// The head of a `str`: what its text is made of, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrHeader {
    /// Bytes for each character.
    pub kind: StrKind,
    /// Offset of the text from the start of the object, in bytes.
    pub data: u32,
    /// Length of the text in bytes.
    pub length: usize,
}

impl StrHeader {
    /// Longest text accepted, in bytes.
    pub const LIMIT: usize = 64 << 10;

    /// Bytes of a `str` object that [`parse`](Self::parse) needs.
    pub const fn size(offsets: &Offsets) -> usize {
        offsets.str_state as usize + 4
    }

    /// Reads the head from the object's first bytes.
    ///
    /// # Errors
    /// [`DecodeError`] when it is no compact `str` of a credible length.
    pub fn parse(offsets: &Offsets, object: &[u8]) -> Result<Self, DecodeError> {
        let truncated = DecodeError::Truncated {
            what: "head of a str",
            wanted: Self::size(offsets),
            got: object.len(),
        };
        let (Some(length), Some(state)) = (
            u64_at(object, offsets.str_length),
            u32_at(object, offsets.str_state),
        ) else {
            return Err(truncated);
        };
        let flags = kind_bits(offsets, state);
        let kind = match flags & 7 {
            1 => StrKind::One,
            2 => StrKind::Two,
            4 => StrKind::Four,
            kind => return Err(DecodeError::Kind(kind)),
        };
        if flags & 8 == 0 {
            return Err(DecodeError::NotCompact);
        }
        let bytes = length.saturating_mul(kind.width() as u64);
        if bytes > Self::LIMIT as u64 {
            return Err(DecodeError::TooLong {
                what: "str",
                length: bytes,
                limit: Self::LIMIT as u64,
            });
        }
        let is_ascii = flags & 16 != 0;
        Ok(Self {
            kind,
            data: if is_ascii {
                offsets.str_ascii_data
            } else {
                offsets.str_compact_data
            },
            length: bytes as usize,
        })
    }
}

/// The text of a `str` from the raw bytes of the whole object: its head and
/// all of its characters.
///
/// # Errors
/// [`DecodeError`] when it is no compact `str` or ends too early.
pub fn decode_str_object(offsets: &Offsets, object: &[u8]) -> Result<String, DecodeError> {
    let header = StrHeader::parse(offsets, object)?;
    let start = header.data as usize;
    let wanted = start + header.length;
    let Some(data) = object.get(start..wanted) else {
        return Err(DecodeError::Truncated {
            what: "str",
            wanted,
            got: object.len(),
        });
    };
    Ok(decode_str(header.kind, data))
}

/// kind (3 bits), compact, ascii. Some builds of 3.14 give the field before
/// them 16 bits instead of 2; the kind is never 0, so the two can be told
/// apart.
fn kind_bits(offsets: &Offsets, state: u32) -> u32 {
    let bits = state.checked_shr(offsets.str_kind_shift).unwrap_or(0);
    if bits & 7 == 0 { state >> 16 } else { bits }
}

/// The text of a `str` from the raw bytes of its characters. What Python
/// allows and Rust does not (lone surrogates, as in file names that are not
/// UTF-8) comes out as Python's `backslashreplace` writes it: `\udc80`. A
/// character cut off at the end is left out.
pub fn decode_str(kind: StrKind, data: &[u8]) -> String {
    match kind {
        StrKind::One => data.iter().map(|byte| char::from(*byte)).collect(),
        StrKind::Two => from_code_points(
            data.as_chunks::<2>()
                .0
                .iter()
                .map(|bytes| u16::from_le_bytes(*bytes).into()),
        ),
        StrKind::Four => from_code_points(
            data.as_chunks::<4>()
                .0
                .iter()
                .map(|bytes| u32::from_le_bytes(*bytes)),
        ),
    }
}

fn from_code_points(points: impl Iterator<Item = u32>) -> String {
    let mut text = String::new();
    for point in points {
        match char::from_u32(point) {
            Some(character) => text.push(character),
            None if point <= 0xffff => write_escape(&mut text, format_args!("\\u{point:04x}")),
            None => write_escape(&mut text, format_args!("\\U{point:08x}")),
        }
    }
    text
}

fn write_escape(text: &mut String, escape: std::fmt::Arguments<'_>) {
    text.write_fmt(escape)
        .expect("writing to a String succeeds");
}

pub(crate) fn u32_at(bytes: &[u8], offset: u32) -> Option<u32> {
    let field = bytes.get(offset as usize..)?.first_chunk()?;
    Some(u32::from_le_bytes(*field))
}

pub(crate) fn u64_at(bytes: &[u8], offset: u32) -> Option<u64> {
    let field = bytes.get(offset as usize..)?.first_chunk()?;
    Some(u64::from_le_bytes(*field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python_version::Version;
    use proptest::prelude::*;

    fn offsets() -> Offsets {
        crate::tables::layout(Version::new(3, 12, 0))
            .unwrap()
            .offsets
    }

    fn object(length: u64, state: u32) -> Vec<u8> {
        let mut bytes = vec![0; 16];
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&state.to_le_bytes());
        bytes
    }

    fn state(kind: u32, compact: bool, ascii: bool) -> u32 {
        (kind | u32::from(compact) << 3 | u32::from(ascii) << 4) << 2
    }

    #[test]
    fn heads() {
        let offsets = offsets();
        let parse = |bytes: &[u8]| StrHeader::parse(&offsets, bytes);
        let ascii = parse(&object(5, state(1, true, true) | 1)).unwrap();
        assert_eq!(
            (ascii.kind, ascii.data, ascii.length),
            (StrKind::One, 40, 5)
        );
        let wide = parse(&object(5, state(2, true, false))).unwrap();
        assert_eq!((wide.kind, wide.data, wide.length), (StrKind::Two, 56, 10));
        let shifted = parse(&object(3, state(1, true, true) << 14 | 1)).unwrap();
        assert_eq!(
            (shifted.kind, shifted.data, shifted.length),
            (StrKind::One, 40, 3)
        );
        assert_eq!(
            parse(&object(5, state(3, true, false))),
            Err(DecodeError::Kind(3))
        );
        assert_eq!(
            parse(&object(5, state(1, false, false))),
            Err(DecodeError::NotCompact)
        );
        assert!(matches!(
            parse(&object(u64::MAX, state(4, true, false))),
            Err(DecodeError::TooLong { .. })
        ));
        assert!(matches!(
            parse(&[0; 35]),
            Err(DecodeError::Truncated { got: 35, .. })
        ));
    }

    #[test]
    fn whole_objects() {
        let offsets = offsets();
        let mut bytes = object(2, state(2, true, false));
        bytes.resize(offsets.str_compact_data as usize, 0);
        bytes.extend_from_slice(&[0xa2, 0x95, 0x70, 0x65]);
        assert_eq!(decode_str_object(&offsets, &bytes).as_deref(), Ok("関数"));
        assert_eq!(
            decode_str_object(&offsets, &bytes[..58]),
            Err(DecodeError::Truncated {
                what: "str",
                wanted: 60,
                got: 58
            })
        );
    }

    #[test]
    fn texts() {
        assert_eq!(decode_str(StrKind::One, b"gr\xfcn"), "grün");
        let two: Vec<u8> = [0x95a2u16, 0xdc80, 0xd83d, 0xde00]
            .iter()
            .flat_map(|unit| unit.to_le_bytes())
            .collect();
        assert_eq!(decode_str(StrKind::Two, &two), "関\\udc80\\ud83d\\ude00");
        assert_eq!(decode_str(StrKind::Two, &two[..3]), "関");
        let four: Vec<u8> = [0x1d4b3u32, 0xd800, 0x11_0000]
            .iter()
            .flat_map(|point| point.to_le_bytes())
            .collect();
        assert_eq!(decode_str(StrKind::Four, &four), "𝒳\\ud800\\U00110000");
    }

    proptest! {
        #[test]
        fn any_bytes_are_accepted(bytes: Vec<u8>, shift in 0u32..40) {
            let mut offsets = offsets();
            offsets.str_kind_shift = shift;
            if let Ok(head) = StrHeader::parse(&offsets, &bytes) {
                prop_assert!(head.length <= StrHeader::LIMIT);
            }
            let _ = decode_str_object(&offsets, &bytes);
            for kind in [StrKind::One, StrKind::Two, StrKind::Four] {
                let text = decode_str(kind, &bytes);
                prop_assert!(text.len() <= bytes.len() * 3 + 10);
            }
        }
    }
}

//! The version of an interpreter, as a number and as found in its memory.

use std::fmt;

/// A CPython version and the one build option that changes every layout.
///
/// Ordered by (major, minor, micro); a free-threaded build sorts after the
/// build with the GIL of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 3 in 3.11.7.
    pub major: u8,
    /// 11 in 3.11.7.
    pub minor: u8,
    /// 7 in 3.11.7.
    pub micro: u8,
    /// Built with `--disable-gil` (the "t" builds of 3.13 and later).
    pub free_threaded: bool,
}

impl Version {
    /// A build with the GIL.
    pub const fn new(major: u8, minor: u8, micro: u8) -> Self {
        Self {
            major,
            minor,
            micro,
            free_threaded: false,
        }
    }

    /// From `Py_Version` (3.11+) or the `version` of `_Py_DebugOffsets`: one
    /// byte each for major, minor and micro, above the release level.
    pub const fn from_hex(hex: u32) -> Self {
        let [major, minor, micro, _release] = hex.to_be_bytes();
        Self::new(major, minor, micro)
    }

    /// From the start of a string such as `3.9.18+` or `3.10.0rc1`.
    /// The number of bytes used is returned with it.
    pub(crate) fn from_prefix(text: &[u8]) -> Option<(Self, usize)> {
        let mut parts = [0u8; 3];
        let mut at = 0;
        for (index, part) in parts.iter_mut().enumerate() {
            if index > 0 {
                if text.get(at) != Some(&b'.') {
                    return None;
                }
                at += 1;
            }
            let digits = text[at..]
                .iter()
                .take(3)
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            if digits == 0 {
                return None;
            }
            for byte in &text[at..at + digits] {
                *part = part.checked_mul(10)?.checked_add(byte - b'0')?;
            }
            at += digits;
        }
        let [major, minor, micro] = parts;
        Some((Self::new(major, minor, micro), at))
    }

    /// 3.11 and later: frames live on their own stack, not in frame objects.
    pub const fn has_interpreter_frames(self) -> bool {
        self.major > 3 || (self.major == 3 && self.minor >= 11)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.micro)?;
        if self.free_threaded {
            f.write_str("t")?;
        }
        Ok(())
    }
}

/// Finds what `Py_GetVersion` formatted into its static buffer, in the
/// writable data of an interpreter: `3.9.18 (main, Feb  1 2024, 10:11:12) `, a
/// newline before 3.10, `[GCC 12.2.0]`. The interpreter fills it at start for
/// `sys.version`, so a running one has it. (The number alone is no help: some
/// builds have no such constant, and other libraries have numbers like it.)
pub(crate) fn version_in_data(data: &[u8]) -> Option<Version> {
    // The buffer is 250 bytes in all versions that need this (3.8 to 3.10).
    const BUFFER: usize = 250;
    let starts = data.windows(2).enumerate().filter(|(_, two)| *two == b"3.");
    starts.map(|(at, _)| at).find_map(|at| {
        let text = &data[at..data.len().min(at + BUFFER)];
        let text = &text[..text.iter().position(|byte| *byte == 0)?];
        let (version, used) = Version::from_prefix(text)?;
        let rest = &text[used..];
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let is_banner = rest[space..].starts_with(b" (")
            && (contains(rest, b") \n[") || contains(rest, b") ["))
            && rest.ends_with(b"]");
        is_banner.then_some(version)
    })
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The version that a file name such as `libpython3.9.so.1.0`, `python3.12` or
/// `libpython3.13t.so` claims: (major, minor, ABI letters after it).
pub(crate) fn version_in_name(name: &str) -> Option<(u8, u8, &str)> {
    let rest = name
        .strip_prefix("libpython")
        .or_else(|| name.strip_prefix("python"))?;
    let (major, rest) = split_number(rest)?;
    let (minor, rest) = split_number(rest.strip_prefix('.')?)?;
    let letters = rest.len()
        - rest
            .trim_start_matches(|c: char| c.is_ascii_lowercase())
            .len();
    Some((major, minor, &rest[..letters]))
}

fn split_number(text: &str) -> Option<(u8, &str)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_versions() {
        assert_eq!(Version::from_hex(0x030b_07f0), Version::new(3, 11, 7));
        assert_eq!(Version::from_hex(0x030d_00a4).to_string(), "3.13.0");
    }

    #[test]
    fn prefixes() {
        let of =
            |text: &str| Version::from_prefix(text.as_bytes()).map(|(v, n)| (v.to_string(), n));
        assert_eq!(of("3.9.18+"), Some(("3.9.18".into(), 6)));
        assert_eq!(of("3.10.0rc1"), Some(("3.10.0".into(), 6)));
        assert_eq!(of("3.9"), None);
        assert_eq!(of("3.999.1"), None);
        assert_eq!(of("3.9999.1"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn banner() {
        let mut data = b"\x003.8.1 (junk\0".to_vec();
        data.extend_from_slice(b"3.9.18 (default, Feb  1 2024, 10:11:12) \n[GCC 12.2.0]\0rest");
        assert_eq!(version_in_data(&data), Some(Version::new(3, 9, 18)));
        assert_eq!(version_in_data(&data[..40]), None);
        let newer = b"3.10.13 (main, May  9 2026, 07:34:36) [Clang 17.0.6 ]\0";
        assert_eq!(version_in_data(newer), Some(Version::new(3, 10, 13)));
    }

    #[test]
    fn names() {
        assert_eq!(version_in_name("libpython3.9.so.1.0"), Some((3, 9, "")));
        assert_eq!(version_in_name("libpython3.13t.so.1.0"), Some((3, 13, "t")));
        assert_eq!(version_in_name("libpython3.7m.so"), Some((3, 7, "m")));
        assert_eq!(version_in_name("python3.12"), Some((3, 12, "")));
        assert_eq!(version_in_name("python3.9-dbg"), Some((3, 9, "")));
        assert_eq!(version_in_name("python3"), None);
        assert_eq!(version_in_name("bash"), None);
    }
}

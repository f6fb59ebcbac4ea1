//! `/proc/PID/maps`, line by line (proc(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What a mapping allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// `r`
    pub read: bool,
    /// `w`
    pub write: bool,
    /// `x`
    pub execute: bool,
}

/// One line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// What it allows.
    pub permissions: Permissions,
    /// Offset of `start` in the file, in bytes.
    pub offset: u64,
    /// Inode of the file; 0 where there is none.
    pub inode: u64,
    /// The file's path as the process sees it, without the ` (deleted)` mark;
    /// None for anonymous memory and for names in brackets such as `[heap]`.
    pub path: Option<PathBuf>,
    /// The path leads there no more.
    pub deleted: bool,
}

impl Mapping {
    /// The last part of the path, if it is valid text.
    pub fn file_name(&self) -> Option<&str> {
        self.path.as_deref()?.file_name()?.to_str()
    }
}

/// All mappings, in the order of their addresses. Lines that do not parse are
/// left out: a new kernel may add kinds of lines, and none that we need.
pub(crate) fn parse(maps: &[u8]) -> Vec<Mapping> {
    maps.split(|byte| *byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let start = rest.iter().position(|byte| *byte != b' ')?;
        let from = &rest[start..];
        let end = from
            .iter()
            .position(|byte| *byte == b' ')
            .unwrap_or(from.len());
        let (word, left) = from.split_at(end);
        rest = left;
        std::str::from_utf8(word).ok()
    };
    let (start, end) = field()?.split_once('-')?;
    let permissions = field()?.as_bytes();
    let offset = field()?;
    let _device = field()?;
    let inode = field()?;
    let name = &rest[rest
        .iter()
        .position(|byte| *byte != b' ')
        .unwrap_or(rest.len())..];
    let is_file = name.starts_with(b"/");
    let (name, deleted) = match name.strip_suffix(b" (deleted)") {
        Some(name) => (name, true),
        None => (name, false),
    };
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        permissions: Permissions {
            read: permissions.first() == Some(&b'r'),
            write: permissions.get(1) == Some(&b'w'),
            execute: permissions.get(2) == Some(&b'x'),
        },
        offset: u64::from_str_radix(offset, 16).ok()?,
        inode: inode.parse().ok()?,
        path: is_file.then(|| PathBuf::from(OsString::from_vec(unescape(name)))),
        deleted: is_file && deleted,
    })
}

/// The kernel writes a newline in a path as `\012`, and only that.
fn unescape(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, tail)) = rest.split_first() {
        match rest.strip_prefix(b"\\012") {
            Some(after) => {
                out.push(b'\n');
                rest = after;
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let maps = b"55a0-55b0 r-xp 00001000 fd:01 77                         /opt/my python/bin/python3.9\n\
            7f00-7f10 rw-p 00000000 00:00 0 \n\
            7f20-7f30 rw-p 00000000 00:00 0                          [heap]\n\
            7f40-7f50 r--p 00000000 fd:01 78                         /tmp/a\\012b.so (deleted)\n\
            nonsense\n";
        let parsed = parse(maps);
        assert_eq!(parsed.len(), 4);
        assert_eq!(parsed[0].file_name(), Some("python3.9"));
        assert_eq!((parsed[0].start, parsed[0].end), (0x55a0, 0x55b0));
        assert_eq!((parsed[0].offset, parsed[0].inode), (0x1000, 77));
        assert!(parsed[0].permissions.execute && !parsed[0].permissions.write);
        assert_eq!(parsed[1].path, None);
        assert_eq!(parsed[2].path, None);
        assert_eq!(
            parsed[3].path.as_deref().unwrap().to_str(),
            Some("/tmp/a\nb.so")
        );
        assert!(parsed[3].deleted && !parsed[0].deleted);
    }

    #[test]
    fn any_bytes_are_accepted() {
        proptest::proptest!(|(bytes: Vec<u8>)| {
            parse(&bytes);
        });
    }
}

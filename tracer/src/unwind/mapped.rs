//! Mappings of code, in the order of their addresses.

use std::{cell::OnceCell, ops::Range, sync::Arc};

use vramscope_python::Mapping;

use super::code::Module;

/// A mapping, and its file once that was asked for.
#[derive(Debug)]
pub struct Mapped {
    /// Where it is, and of what.
    pub mapping: Mapping,
    /// Its file.
    pub module: OnceCell<Arc<Module>>,
}

impl Mapped {
    /// One whose file nobody has asked for.
    pub fn new(mapping: Mapping) -> Mapped {
        Mapped {
            mapping,
            module: OnceCell::new(),
        }
    }
}

/// The mapping that an address lies in.
pub fn index(mappings: &[Mapped], address: u64) -> Option<usize> {
    let behind = mappings.partition_point(|mapped| mapped.mapping.start <= address);
    let index = behind.checked_sub(1)?;
    (address < mappings[index].mapping.end).then_some(index)
}

/// The mappings that have addresses in common with these.
pub fn overlapping<'a>(mappings: &'a [Mapped], addresses: &Range<u64>) -> &'a [Mapped] {
    let first = mappings.partition_point(|mapped| mapped.mapping.end <= addresses.start);
    let behind = mappings.partition_point(|mapped| mapped.mapping.start < addresses.end);
    mappings.get(first..behind).unwrap_or_default()
}

/// Whether something of the code that was `known` is not there `now`.
pub fn has_gone(known: &[Mapping], now: &[Mapping]) -> bool {
    known.iter().any(|one| !is_there(one, now))
}

/// Whether the same code lies where a mapping had it, in however many pieces. The file's name may
/// have changed.
fn is_there<'a>(one: &Mapping, now: impl IntoIterator<Item = &'a Mapping>) -> bool {
    let mut reached = one.start;
    for mapping in now {
        let part = mapping.start.max(one.start)..mapping.end.min(one.end);
        if part.is_empty() {
            continue;
        }
        let begins = |of: &Mapping| of.start.wrapping_sub(of.offset);
        let same = match (&one.path, &mapping.path) {
            (Some(_), Some(_)) => mapping.inode == one.inode && begins(mapping) == begins(one),
            (None, None) => true,
            _ => false,
        };
        if !same || part.start != reached {
            return false;
        }
        reached = part.end;
    }
    reached == one.end
}

/// Whether what lies at these addresses `now` is other code than what was `known` there. `asked`:
/// addresses that were asked for; those outside of all mappings were no library's code then.
pub fn is_replaced(
    known: &[Mapped],
    now: &[Mapped],
    addresses: &Range<u64>,
    mut asked: impl Iterator<Item = u64>,
) -> bool {
    let still_there = |one: &Mapped| {
        let its = one.mapping.start..one.mapping.end;
        let now = overlapping(now, &its).iter();
        is_there(&one.mapping, now.map(|mapped| &mapped.mapping))
    };
    !overlapping(known, addresses).iter().all(still_there)
        || asked.any(|address| {
            addresses.contains(&address)
                && index(known, address).is_none()
                && index(now, address).is_some()
        })
}

#[cfg(test)]
mod tests {
    use vramscope_python::Permissions;

    use super::*;

    fn mapped(addresses: Range<u64>, path: &str, offset: u64) -> Mapped {
        Mapped::new(Mapping {
            start: addresses.start,
            end: addresses.end,
            permissions: Permissions {
                read: true,
                write: false,
                execute: true,
            },
            offset,
            inode: path.len() as u64,
            path: Some(path.into()),
            deleted: false,
        })
    }

    /// One library at two addresses, and another one.
    fn libraries() -> Vec<Mapped> {
        vec![
            mapped(0x1000..0x5000, "/a.so", 0x1000),
            mapped(0x8000..0xc000, "/a.so", 0x1000),
            mapped(0xc000..0xd000, "/other.so", 0),
        ]
    }

    fn at(mappings: &[Mapped], address: u64) -> Option<(&str, u64)> {
        let mapping = &mappings[index(mappings, address)?].mapping;
        let path = mapping.path.as_ref()?.to_str()?;
        Some((path, address - mapping.start + mapping.offset))
    }

    #[test]
    fn an_address_is_in_one_mapping() {
        let known = libraries();
        assert_eq!(at(&known, 0xfff), None);
        assert_eq!(at(&known, 0x1000), Some(("/a.so", 0x1000)));
        assert_eq!(at(&known, 0x4fff), Some(("/a.so", 0x4fff)));
        assert_eq!(at(&known, 0x5000), None);
        // The same place of the same file, at another address.
        assert_eq!(at(&known, 0x8010), Some(("/a.so", 0x1010)));
        assert_eq!(at(&known, 0xbfff), Some(("/a.so", 0x4fff)));
        assert_eq!(at(&known, 0xc000), Some(("/other.so", 0)));
        assert_eq!(at(&known, u64::MAX), None);
        assert_eq!(at(&[], 0), None);
    }

    #[test]
    fn ranges_meet_the_mappings_that_they_touch() {
        let known = libraries();
        let count = |addresses: Range<u64>| overlapping(&known, &addresses).len();
        assert_eq!(count(0..0x1000), 0);
        assert_eq!(count(0..0x1001), 1);
        assert_eq!(count(0x4fff..0x8000), 1);
        assert_eq!(count(0x5000..0x8000), 0);
        assert_eq!(count(0xbfff..0xc001), 2);
        assert_eq!(count(0..u64::MAX), 3);
        // What nobody should say.
        #[expect(clippy::reversed_empty_ranges)]
        let reversed = 0xd000..0x1000;
        assert_eq!(count(reversed), 0);
    }

    #[test]
    fn code_over_code_is_seen() {
        let known = libraries();
        let asked = [0x1234, 0x6000];
        let replaced = |now: &[Mapped], addresses: Range<u64>| {
            is_replaced(&known, now, &addresses, asked.into_iter())
        };
        let all = 0..u64::MAX;
        assert!(!replaced(&libraries(), all.clone()));
        // A page of another file in the midst of it; anonymous memory, which is no library's.
        for within in [Some(mapped(0x2000..0x3000, "/b.so", 0)), None] {
            let mut now = vec![mapped(0x1000..0x2000, "/a.so", 0x1000)];
            now.extend(within);
            now.push(mapped(0x3000..0x5000, "/a.so", 0x3000));
            now.extend(libraries().into_iter().skip(1));
            assert!(replaced(&now, 0x2000..0x3000));
            assert!(replaced(&now, all.clone()));
            // Elsewhere all is as it was.
            assert!(!replaced(&now, 0x8000..0xd000));
        }
        // Another file at the same place; another part of the same one.
        for other in [
            mapped(0x1000..0x5000, "/bb.so", 0x1000),
            mapped(0x1000..0x5000, "/a.so", 0x2000),
        ] {
            let mut now = libraries();
            now[0] = other;
            assert!(replaced(&now, 0x1000..0x5000));
            assert!(!replaced(&now, 0x5000..0x9000));
        }
        // A library more: nothing to forget, unless something was asked for there.
        let mut now = libraries();
        now.insert(1, mapped(0x5000..0x5800, "/new.so", 0));
        assert!(!replaced(&now, 0x5000..0x5800));
        now.insert(2, mapped(0x5800..0x7000, "/new.so", 0x800));
        assert!(replaced(&now, 0x5800..0x7000));
    }
}

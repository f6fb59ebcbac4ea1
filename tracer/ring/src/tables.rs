//! What was sent already: stacks and code objects, in tables without locks. Only the writers' side
//! has them.

use crate::{AtomicU64, Ordering};

/// Ways of a set in the stack cache.
const WAYS: usize = 4;
/// Bits of a stack's id that an entry holds.
const ID_BITS: u32 = 24;

/// Stack hash -> id. A cache: what it forgets is sent again under a new id, which costs time and
/// says the same.
///
/// An entry is one word, 40 bits of the hash and the id, so that it is never half written. Hash
/// bits that choose the set are not among the 40: two stacks are mistaken for one another when 56
/// bits agree, with 65,536 sets; with 100,000 distinct stacks that is once in 10 million runs.
pub struct StackCache {
    entries: Box<[AtomicU64]>,
}

impl StackCache {
    /// An empty one in words that are zero: four times a power of two of them, at most 2^18; of any
    /// other number it remembers nothing.
    pub fn new(entries: Box<[AtomicU64]>) -> StackCache {
        StackCache { entries }
    }

    #[inline]
    fn set(&self, hash: u64) -> &[AtomicU64] {
        let sets = self.entries.len() / WAYS;
        let start = (hash as usize & sets.wrapping_sub(1)) * WAYS;
        self.entries.get(start..start + WAYS).unwrap_or(&[])
    }

    /// The id of a stack that was sent.
    #[inline]
    pub fn find(&self, hash: u64) -> Option<u32> {
        let tag = hash >> ID_BITS << ID_BITS;
        for entry in self.set(hash) {
            let entry = entry.load(Ordering::Relaxed);
            // The lowest bit is always set in an entry that is used.
            if entry & !low_bits() == tag && entry & low_bits() != 0 {
                return Some(((entry & low_bits()) - 1) as u32);
            }
        }
        None
    }

    /// Remembers a stack.
    pub fn insert(&self, hash: u64, id: u32) {
        let stored = u64::from(id) + 1;
        if stored > low_bits() {
            return;
        }
        let entry = (hash >> ID_BITS << ID_BITS) | stored;
        let set = self.set(hash);
        for slot in set {
            if slot
                .compare_exchange(0, entry, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
        }
        // All ways are taken: one goes, a different one each time.
        if let Some(slot) = set.get(id as usize % WAYS) {
            slot.store(entry, Ordering::Relaxed);
        }
    }
}

const fn low_bits() -> u64 {
    (1 << ID_BITS) - 1
}

/// Entries looked at before a code object counts as unknown.
const PROBES: usize = 32;
/// In place of an address: was used, may be used again.
const GONE: u64 = 1;

/// What is known of a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The id it was sent under.
    pub id: u32,
    /// Bytes from the beginning of its instructions to the first that Python shows.
    pub first_traceable: u32,
}

/// Code object's address -> what is known of it. An entry goes when its object is freed; it cannot
/// go while a frame of the calling thread runs it.
pub struct CodeTable {
    addresses: Box<[AtomicU64]>,
    values: Box<[AtomicU64]>,
}

impl CodeTable {
    /// An empty one in words that are zero, as many of the one as of the other: a power of two.
    pub fn new(addresses: Box<[AtomicU64]>, values: Box<[AtomicU64]>) -> CodeTable {
        CodeTable { addresses, values }
    }

    fn places(&self, address: u64) -> impl Iterator<Item = (&AtomicU64, &AtomicU64)> {
        let start = (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (0..PROBES).filter_map(move |probe| {
            let index = (start as usize).wrapping_add(probe) & self.addresses.len().wrapping_sub(1);
            Some((self.addresses.get(index)?, self.values.get(index)?))
        })
    }

    /// What is known of the code object at `address`.
    pub fn find(&self, address: u64) -> Option<Code> {
        for (key, value) in self.places(address) {
            match key.load(Ordering::Acquire) {
                0 => return None,
                found if found == address => {
                    // 0: another thread is about to write it.
                    let value = value.load(Ordering::Acquire);
                    if key.load(Ordering::Acquire) != address {
                        return None;
                    }
                    return (value != 0).then_some(Code {
                        id: (value >> 32) as u32,
                        first_traceable: value as u32,
                    });
                }
                _ => {}
            }
        }
        None
    }

    /// Remembers a code object; forgets to where the table is full, so that it is sent each time.
    pub fn insert(&self, address: u64, code: Code) {
        let packed = u64::from(code.id) << 32 | u64::from(code.first_traceable);
        for (key, value) in self.places(address) {
            let seen = key.load(Ordering::Acquire);
            if seen == address {
                return;
            }
            if seen > GONE {
                continue;
            }
            if key
                .compare_exchange(seen, address, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                value.store(packed, Ordering::Release);
                return;
            }
        }
    }

    /// Forgets a code object; whether it was known.
    pub fn remove(&self, address: u64) -> bool {
        let mut known = false;
        for (key, value) in self.places(address) {
            match key.load(Ordering::Acquire) {
                0 => break,
                // Goes on: two threads that met it at once may have put it in twice.
                found if found == address => {
                    value.store(0, Ordering::Release);
                    key.store(GONE, Ordering::Release);
                    known = true;
                }
                _ => {}
            }
        }
        known
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn zeroed(count: usize) -> Box<[AtomicU64]> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn stacks_are_found_again_and_the_oldest_way_gives_room() {
        let cache = StackCache::new(zeroed(64 * WAYS));
        assert_eq!(cache.find(7), None);
        cache.insert(7, 0);
        assert_eq!(cache.find(7), Some(0));
        // The same set, other tags.
        let hashes: Vec<u64> = (1..=8).map(|tag| (tag << ID_BITS) | 7).collect();
        for (id, hash) in hashes.iter().enumerate() {
            cache.insert(*hash, id as u32);
            assert_eq!(cache.find(*hash), Some(id as u32));
        }
        let kept = hashes.iter().filter(|hash| cache.find(**hash).is_some());
        assert_eq!(kept.count(), WAYS);
    }

    #[test]
    fn an_id_that_does_not_fit_is_not_remembered() {
        let cache = StackCache::new(zeroed(64 * WAYS));
        cache.insert(7, (1 << ID_BITS) - 1);
        assert_eq!(cache.find(7), None);
    }

    #[test]
    fn codes_come_and_go() {
        let table = CodeTable::new(zeroed(4096), zeroed(4096));
        let code = |id| Code {
            id,
            first_traceable: 4,
        };
        for id in 0..1000 {
            table.insert(0x7000_0000 + 64 * u64::from(id), code(id));
        }
        for id in 0..1000 {
            assert_eq!(table.find(0x7000_0000 + 64 * u64::from(id)), Some(code(id)));
        }
        assert!(table.remove(0x7000_0000));
        assert!(!table.remove(0x7000_0000));
        assert_eq!(table.find(0x7000_0000), None);
        assert_eq!(table.find(0x7000_0040), Some(code(1)));
        table.insert(0x7000_0000, code(5000));
        assert_eq!(table.find(0x7000_0000), Some(code(5000)));
    }
}

//! Rules from a function to its caller, in a table without locks.

use core::sync::atomic::{AtomicU64, Ordering};

use vramscope_unwind::{Rule, mix};

use crate::zeroed::zeroed;

/// Sets of the table; two entries of 16 bytes each: 2 MiB, touched as it fills. A training meets a
/// few thousand addresses.
const SETS: usize = 1 << 16;

/// Address -> rule. A cache: what it forgets is learnt again.
///
/// An entry is two words, written without a lock: the rule, and the address mixed with it. A reader
/// that sees the halves of two writes sees that they do not belong together.
pub struct Rules {
    entries: Box<[AtomicU64]>,
}

impl Rules {
    /// An empty one.
    pub fn new() -> Rules {
        Rules {
            entries: zeroed(4 * SETS),
        }
    }

    #[inline]
    fn set(&self, address: u64) -> &[[AtomicU64; 2]] {
        let set = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        let start = 4 * set as usize;
        let words = self.entries.get(start..start + 4).unwrap_or(&[]);
        words.as_chunks().0
    }

    /// The rule of an address that was learnt.
    #[inline]
    pub fn find(&self, address: u64) -> Option<Rule> {
        for [rule, key] in self.set(address) {
            let rule = rule.load(Ordering::Relaxed);
            if rule != 0 && key.load(Ordering::Relaxed) == mix(address, rule) {
                return Some(Rule::unpack(rule));
            }
        }
        None
    }

    /// Keeps a rule; of two that were there before, one goes.
    pub fn insert(&self, address: u64, rule: Rule) {
        let packed = rule.pack();
        let set = self.set(address);
        let empty = set
            .iter()
            .position(|[rule, _]| rule.load(Ordering::Relaxed) == 0);
        let way = empty.unwrap_or((address >> 4) as usize & 1);
        if let Some([rule, key]) = set.get(way) {
            rule.store(packed, Ordering::Relaxed);
            key.store(mix(address, packed), Ordering::Relaxed);
        }
    }

    /// Forgets everything: libraries may have gone, and others come in their place.
    pub fn clear(&self) {
        for [rule, _] in self.entries.as_chunks().0 {
            rule.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use vramscope_unwind::Cfa;

    use super::*;

    #[test]
    fn rules_are_found_until_they_are_forgotten() {
        let rules = Rules::new();
        let rule = |offset| Rule {
            cfa: Cfa::Sp,
            offset,
            bp_at: Some(-16),
        };
        for address in 0..1000 {
            assert_eq!(rules.find(0x7f00_0000 + address), None);
            rules.insert(0x7f00_0000 + address, rule(8 * address as i32));
            assert_eq!(
                rules.find(0x7f00_0000 + address),
                Some(rule(8 * address as i32))
            );
        }
        rules.clear();
        assert_eq!(rules.find(0x7f00_0000), None);
    }
}

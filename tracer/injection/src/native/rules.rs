//! Rules from a function to its caller, packed into a word, in a table without locks.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::zeroed::zeroed;

/// How the canonical frame address (the stack pointer of the caller after the return) is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cfa {
    /// Not at all: the outermost function, or one whose rule is of a kind that is not known.
    End,
    /// Stack pointer plus offset.
    Sp,
    /// Frame register plus offset.
    Bp,
    /// What lies at frame register plus offset (functions that align their stack).
    AtBp,
}

/// The way from a function, at one place in it, to its caller. The return address lies 8 bytes
/// below the canonical frame address, as everywhere on x86-64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// How the canonical frame address is found.
    pub cfa: Cfa,
    /// Its offset.
    pub offset: i32,
    /// Where the caller's frame register is, from the canonical frame address ([`Cfa::AtBp`]: from
    /// the frame register); `None`: unchanged.
    pub bp_at: Option<i32>,
}

const OFFSET_BITS: u32 = 28;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

impl Rule {
    /// The rule in a word, which is never 0. Offsets beyond 128 MiB are not kept: the rule ends
    /// there.
    pub fn pack(self) -> u64 {
        let fits = |offset: i32| {
            (i64::from(offset) << (64 - OFFSET_BITS)) >> (64 - OFFSET_BITS) == i64::from(offset)
        };
        if !fits(self.offset) || !self.bp_at.is_none_or(fits) {
            return Rule::END.pack();
        }
        let kind = match self.cfa {
            Cfa::End => 0,
            Cfa::Sp => 1,
            Cfa::Bp => 2,
            Cfa::AtBp => 3,
        };
        let field = |offset: i32| u64::from(offset as u32) & OFFSET_MASK;
        let saved = u64::from(self.bp_at.is_some());
        1 << 63
            | kind << 61
            | saved << 60
            | field(self.offset) << OFFSET_BITS
            | field(self.bp_at.unwrap_or(0))
    }

    /// The rule of a packed word.
    pub fn unpack(word: u64) -> Rule {
        let field = |shift: u32| {
            let value = (word >> shift & OFFSET_MASK) as u32;
            ((value << (32 - OFFSET_BITS)) as i32) >> (32 - OFFSET_BITS)
        };
        Rule {
            cfa: match word >> 61 & 3 {
                1 => Cfa::Sp,
                2 => Cfa::Bp,
                3 => Cfa::AtBp,
                _ => Cfa::End,
            },
            offset: field(OFFSET_BITS),
            bp_at: (word >> 60 & 1 == 1).then(|| field(0)),
        }
    }
}

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

#[inline]
fn mix(address: u64, rule: u64) -> u64 {
    address ^ rule.wrapping_mul(0xf135_7aea_2e62_a9c5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_survive_packing() {
        for cfa in [Cfa::End, Cfa::Sp, Cfa::Bp, Cfa::AtBp] {
            for offset in [0, 8, -8, 4096, (1 << 27) - 1, -(1 << 27)] {
                for bp_at in [None, Some(-16), Some(offset)] {
                    let rule = Rule { cfa, offset, bp_at };
                    assert_eq!(Rule::unpack(rule.pack()), rule);
                    assert_ne!(rule.pack(), 0);
                }
            }
        }
        let too_wide = Rule {
            cfa: Cfa::Sp,
            offset: 1 << 27,
            bp_at: None,
        };
        assert_eq!(Rule::unpack(too_wide.pack()), Rule::END);
    }

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

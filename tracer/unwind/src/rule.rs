//! Rules, packed.

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
    /// There is no caller, or it cannot be found.
    pub const END: Rule = Rule {
        cfa: Cfa::End,
        offset: 0,
        bp_at: None,
    };

    /// The rule in a word, which is never 0. Offsets beyond 128 MiB are not kept: the rule ends
    /// there. From the highest bit: 1, kind (2 bits, in the order of [`Cfa`]), whether there is a
    /// `bp_at`, 4 bits of nothing, `offset` and `bp_at` of 28 bits each, signed.
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
    #[inline]
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

/// What is kept beside a rule so that a reader sees whether both words are of one write.
#[inline]
pub fn mix(address: u64, rule: u64) -> u64 {
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
}

//! The kernel's table of unwind rules, as it is written.

use rustc_hash::FxHashMap;
use vramscope_unwind::{Rule, mix};
use vramscope_wire::{VS_RULE_SETS, VS_RULE_SPREAD, VS_RULE_WAYS, vs_rules};

/// The header's constants come over as signed.
const SPREAD: u64 = VS_RULE_SPREAD.cast_unsigned();
const WAYS: usize = VS_RULE_WAYS as usize;
const _: () = assert!(VS_RULE_SETS == 1 << SET_BITS);
const SET_BITS: u32 = 15;

/// Rules that the kernel is told, by address and epoch.
#[derive(Debug, Default)]
pub struct RuleTable {
    sets: FxHashMap<u32, Set>,
    changed: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Set {
    rules: vs_rules,
    /// Whose turn it is to go when there is no room.
    next: usize,
}

impl RuleTable {
    /// Adds a rule.
    pub fn insert(&mut self, address: u64, epoch: u64, rule: Rule) {
        let key = address ^ epoch.wrapping_mul(SPREAD);
        let index = (key.wrapping_mul(SPREAD) >> (64 - SET_BITS)) as u32;
        let rule = rule.pack();
        let check = mix(key, rule);
        let set = self.sets.entry(index).or_insert(Set {
            rules: vs_rules {
                rule: [0; WAYS],
                check: [0; WAYS],
            },
            next: 0,
        });
        let known = (set.rules.rule.iter().zip(&set.rules.check))
            .any(|(known, its)| *known != 0 && (*known, *its) == (rule, check));
        if known {
            return;
        }
        let free = set.rules.rule.iter().position(|rule| *rule == 0);
        let way = free.unwrap_or_else(|| {
            set.next = (set.next + 1) % WAYS;
            set.next
        });
        set.rules.rule[way] = rule;
        set.rules.check[way] = check;
        self.changed.push(index);
    }

    /// Sets that have changed since this was asked last.
    pub fn changes(&mut self) -> impl Iterator<Item = (u32, vs_rules)> {
        let sets = &self.sets;
        self.changed
            .drain(..)
            .filter_map(|index| Some((index, sets.get(&index)?.rules)))
    }

    /// Whether the kernel is to be told something.
    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use vramscope_unwind::Cfa;
    use vramscope_wire::VS_RULE_CHECK;

    use super::*;

    /// As the kernel's program looks a rule up.
    fn find(sets: &FxHashMap<u32, vs_rules>, address: u64, epoch: u64) -> Option<Rule> {
        let key = address ^ epoch.wrapping_mul(SPREAD);
        let set = sets.get(&((key.wrapping_mul(SPREAD) >> 49) as u32))?;
        (set.rule.iter().zip(&set.check))
            .find(|(rule, check)| {
                **rule != 0 && **check == key ^ rule.wrapping_mul(VS_RULE_CHECK.cast_unsigned())
            })
            .map(|(rule, _)| Rule::unpack(*rule))
    }

    #[test]
    fn rules_are_found_in_their_epoch_alone() {
        let mut table = RuleTable::default();
        let rule = |offset| Rule {
            cfa: Cfa::Sp,
            offset,
            bp_at: None,
        };
        for address in 0..5000 {
            table.insert(
                0x7f00_0000_0000 + 24 * address,
                7,
                rule(8 + 8 * address as i32),
            );
        }
        let sets: FxHashMap<u32, vs_rules> = table.changes().collect();
        assert!(!table.has_changes());
        let found = |epoch| {
            (0..5000_u64)
                .filter(|address| {
                    find(&sets, 0x7f00_0000_0000 + 24 * address, epoch)
                        == Some(rule(8 + 8 * *address as i32))
                })
                .count()
        };
        assert!(found(7) >= 4999, "{}", found(7));
        assert_eq!(found(8), 0);
    }
}

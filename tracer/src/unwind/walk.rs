//! A walk that the kernel could not finish.

use vramscope_unwind::{Cfa, Rule};
use vramscope_wire::{StackCopy, VS_MAX_NATIVE};

/// The largest frame of a function that is believed.
const WIDEST: u64 = 4 << 20;

/// A whole walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// Addresses to return to, innermost first.
    pub addresses: Vec<u64>,
    /// It reached the outermost function, or where unwind information ends.
    pub complete: bool,
}

/// Goes on where the kernel's walk stopped. `rule_of` is asked for the rule of a call's address.
pub fn resume(copy: &StackCopy<'_>, mut rule_of: impl FnMut(u64) -> Option<Rule>) -> Walk {
    let mut walk = Walk {
        addresses: copy.before.native().collect(),
        complete: false,
    };
    let (mut pc, mut sp, mut bp) = (copy.pc, copy.sp, copy.bp);
    while walk.addresses.len() < VS_MAX_NATIVE as usize {
        walk.addresses.push(pc);
        let Some(rule) = rule_of(pc.wrapping_sub(1)) else {
            break;
        };
        let cfa = match rule.cfa {
            Cfa::End => {
                walk.complete = true;
                break;
            }
            Cfa::Sp => sp.wrapping_add_signed(rule.offset.into()),
            Cfa::Bp => bp.wrapping_add_signed(rule.offset.into()),
            Cfa::AtBp => match copy.word(bp.wrapping_add_signed(rule.offset.into())) {
                Some(cfa) => cfa,
                None => break,
            },
        };
        // Callers lie above; the frame is at least the return address.
        if cfa <= sp || cfa - sp > WIDEST {
            break;
        }
        if let Some(offset) = rule.bp_at {
            let base = if rule.cfa == Cfa::AtBp { bp } else { cfa };
            match copy.word(base.wrapping_add_signed(offset.into())) {
                Some(saved) => bp = saved,
                None => break,
            }
        }
        match copy.word(cfa - 8) {
            Some(0) => {
                walk.complete = true;
                break;
            }
            Some(caller) => pc = caller,
            None => break,
        }
        sp = cfa;
    }
    walk
}

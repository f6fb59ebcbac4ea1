//! A row of unwind information as a rule.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian, Operation,
    Register, RegisterRule, UnwindContext, UnwindContextStorage, UnwindTableRow, X86_64,
};

use crate::rule::{Cfa, Rule};

/// What a library's `.eh_frame` says of one function.
pub type Entry<'a> = FrameDescriptionEntry<EndianSlice<'a, LittleEndian>>;

/// Room for unwind rules on the stack: x86-64 has 17 registers, and compilers nest at most one
/// remembered state.
struct OnStack;

impl<T: gimli::ReaderOffset> UnwindContextStorage<T> for OnStack {
    type Rules = [(Register, RegisterRule<T>); 32];
    type Stack = [UnwindTableRow<T, Self>; 4];
}

/// The rule of `address`, which `entry` is of; `None` if there is no caller, or if it cannot be
/// found by a [`Rule`].
pub fn rule_of(
    entry: &Entry<'_>,
    frames: &EhFrame<EndianSlice<'_, LittleEndian>>,
    bases: &BaseAddresses,
    address: u64,
) -> Option<Rule> {
    if entry.is_signal_trampoline() {
        return None;
    }
    let mut context = UnwindContext::<usize, OnStack>::new_in();
    let row = entry
        .unwind_info_for_address(frames, bases, &mut context, address)
        .ok()?;
    from_row(row, frames, entry.cie().encoding())
}

fn from_row(
    row: &UnwindTableRow<usize, OnStack>,
    frames: &EhFrame<EndianSlice<'_, LittleEndian>>,
    encoding: gimli::Encoding,
) -> Option<Rule> {
    match row.register(X86_64::RA) {
        Some(RegisterRule::Offset(-8)) => {}
        // The outermost function says that it has no caller.
        _ => return None,
    }
    let bp_at = match row.register(X86_64::RBP) {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => None,
        Some(RegisterRule::Offset(offset)) => Some(i32::try_from(offset).ok()?),
        Some(RegisterRule::Expression(saved)) => {
            let saved = saved.get(frames).ok()?;
            let saved = single_offset(saved.operations(encoding))?;
            return aligned(row, saved, frames, encoding);
        }
        _ => return None,
    };
    let (cfa, offset) = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => match *register {
            X86_64::RSP => (Cfa::Sp, *offset),
            X86_64::RBP => (Cfa::Bp, *offset),
            _ => return None,
        },
        CfaRule::Expression(_) => return None,
    };
    Some(Rule {
        cfa,
        offset: i32::try_from(offset).ok()?,
        bp_at,
    })
}

/// GCC's form for a function that aligns its stack: the canonical frame address was saved below the
/// frame register, and the caller's frame register lies where that points to.
fn aligned(
    row: &UnwindTableRow<usize, OnStack>,
    saved: (Register, i64, bool),
    frames: &EhFrame<EndianSlice<'_, LittleEndian>>,
    encoding: gimli::Encoding,
) -> Option<Rule> {
    let CfaRule::Expression(expression) = row.cfa() else {
        return None;
    };
    let expression = expression.get(frames).ok()?;
    match (single_offset(expression.operations(encoding))?, saved) {
        ((X86_64::RBP, offset, true), (X86_64::RBP, saved, false)) => Some(Rule {
            cfa: Cfa::AtBp,
            offset: i32::try_from(offset).ok()?,
            bp_at: Some(i32::try_from(saved).ok()?),
        }),
        _ => None,
    }
}

/// The one register and offset of an expression, and whether what lies there is meant.
fn single_offset(
    mut operations: gimli::OperationIter<EndianSlice<'_, LittleEndian>>,
) -> Option<(Register, i64, bool)> {
    let Operation::RegisterOffset {
        register, offset, ..
    } = operations.next().ok()??
    else {
        return None;
    };
    match operations.next().ok()? {
        None => Some((register, offset, false)),
        Some(Operation::Deref { .. }) if operations.next().ok()?.is_none() => {
            Some((register, offset, true))
        }
        Some(_) => None,
    }
}

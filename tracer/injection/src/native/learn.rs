//! A new address's rule, from the unwind information of its library.
//!
//! Runs once an address, on the thread that met it: no lock (`_dl_find_object` takes none), no
//! memory but the stack's. Foreign bytes are parsed by gimli, which gives errors and does not
//! panic; should it do so all the same, the panic ends here, and the walk with it.

use core::{ffi::c_void, mem::MaybeUninit, slice};
use std::panic::{AssertUnwindSafe, catch_unwind};

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Operation, Register,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindSection as _, UnwindTableRow, X86_64,
};

use super::{
    Unwinder,
    rules::{Cfa, Rule},
};

/// glibc's `struct dl_find_object` (dlfcn.h, since 2.35).
#[repr(C)]
pub struct FoundObject {
    flags: u64,
    map_start: *const u8,
    map_end: *const u8,
    link_map: *const c_void,
    /// `.eh_frame_hdr` of the object.
    eh_frame: *const u8,
    reserved: [u64; 7],
}

/// `int _dl_find_object(void *address, struct dl_find_object *result)`: 0 if an object was found.
pub type FindObject = unsafe extern "C" fn(*const c_void, *mut FoundObject) -> i32;

/// Room for unwind rules on the stack: x86-64 has 17 registers, and compilers nest at most one
/// remembered state.
struct OnStack;

impl<T: gimli::ReaderOffset> UnwindContextStorage<T> for OnStack {
    type Rules = [(Register, RegisterRule<T>); 32];
    type Stack = [UnwindTableRow<T, Self>; 4];
}

/// Finds the rule of `address` and keeps it.
#[cold]
#[inline(never)]
pub fn learn(unwinder: &Unwinder, address: u64) -> Rule {
    let found = catch_unwind(AssertUnwindSafe(|| rule(unwinder, address)));
    let rule = found.ok().flatten().unwrap_or(Rule::END);
    unwinder.rules.insert(address, rule);
    rule
}

fn rule(unwinder: &Unwinder, address: u64) -> Option<Rule> {
    let mut object = MaybeUninit::<FoundObject>::zeroed();
    // SAFETY: the function's own contract; zeroes are a valid FoundObject.
    let object = unsafe {
        if (unwinder.find_object)(address as *const c_void, object.as_mut_ptr()) != 0 {
            return None;
        }
        object.assume_init()
    };
    let (start, end) = (object.map_start as u64, object.map_end as u64);
    let header_at = object.eh_frame as u64;
    if !(start..end).contains(&header_at) || !(start..end).contains(&address) {
        return None;
    }
    // SAFETY: `address` is on this thread's stack as a place to return to, so its object is loaded
    // and stays so while this thread is here; its read-only data is mapped with it. gimli touches
    // what the object's own tables lead to.
    let header =
        unsafe { slice::from_raw_parts(header_at as *const u8, (end - header_at) as usize) };
    let bases = BaseAddresses::default().set_eh_frame_hdr(header_at);
    let header = EhFrameHdr::new(header, LittleEndian)
        .parse(&bases, 8)
        .ok()?;
    let frames_at = header.eh_frame_ptr().direct().ok()?;
    if !(start..end).contains(&frames_at) {
        return None;
    }
    // SAFETY: as above.
    let frames =
        unsafe { slice::from_raw_parts(frames_at as *const u8, (end - frames_at) as usize) };
    let frames = EhFrame::new(frames, LittleEndian);
    let bases = bases.set_eh_frame(frames_at);
    let table = header.table()?;
    let entry = table
        .fde_for_address(&frames, &bases, address, EhFrame::cie_from_offset)
        .ok()?;
    if entry.is_signal_trampoline() {
        return None;
    }
    let mut context = UnwindContext::<usize, OnStack>::new_in();
    let row = entry
        .unwind_info_for_address(&frames, &bases, &mut context, address)
        .ok()?;
    from_row(row, &frames, entry.cie().encoding())
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

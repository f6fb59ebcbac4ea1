//! A new address's rule, from the unwind information of its library.
//!
//! Runs once an address, on the thread that met it: no lock (`_dl_find_object` takes none), no
//! memory but the stack's. Foreign bytes are parsed by gimli, which gives errors and does not
//! panic; should it do so all the same, the panic ends here, and the walk with it.

use core::{ffi::c_void, mem::MaybeUninit, slice};
use std::panic::{AssertUnwindSafe, catch_unwind};

use vramscope_unwind::{
    Rule,
    gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian, UnwindSection as _},
    rule_of,
};

use super::Unwinder;

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
    rule_of(&entry, &frames, &bases, address)
}

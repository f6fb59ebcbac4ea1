//! Callback ids: which number and which name a function of the simulation has in CUPTI.
//!
//! `ids.txt` is written by `ids.py` from CUPTI's headers.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::result::INVALID_PARAMETER;

pub const DRIVER: u32 = 1;
pub const RUNTIME: u32 = 2;
/// Domains are numbered from 1 to 6: driver, runtime, resource, synchronize, NVTX, state.
pub const DOMAINS: u32 = 6;
/// More than any callback id (863 is the highest in CUDA 13.5).
pub const IDS: usize = 1024;

#[derive(Debug, Default)]
struct Tables {
    /// (domain, exported name) -> id
    by_name: HashMap<(u32, &'static str), u32>,
    /// (domain, id) -> CUPTI's name
    names: HashMap<(u32, u32), CString>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables = Tables::default();
        let major = if cfg!(feature = "cuda13") { "13" } else { "12" };
        for line in include_str!("../ids.txt").lines() {
            let mut fields = line.split(' ');
            let mut next = || fields.next().expect("ids.txt has five fields a line");
            if next() != major {
                continue;
            }
            let domain = if next() == "driver" { DRIVER } else { RUNTIME };
            let (name, callback) = (next(), next());
            let id = next().parse().expect("a number");
            tables.by_name.insert((domain, name), id);
            let callback = CString::new(callback).expect("no zero in a name");
            tables.names.insert((domain, id), callback);
        }
        tables
    })
}

/// The id of a function by its name's address, which is one for each function: as quick as the real
/// library, which knows a call's number and looks nothing up.
pub fn id_of_call(domain: u32, name: &'static CStr) -> Option<u32> {
    /// Address of a name, shifted, and the id + 1 (0: no id) below it.
    static KNOWN: [AtomicU64; 2048] = [const { AtomicU64::new(0) }; 2048];
    let address = name.as_ptr() as u64;
    let place = &KNOWN[(address >> 3) as usize % KNOWN.len()];
    let known = place.load(Ordering::Relaxed);
    if known >> 16 == address && address != 0 {
        return (known as u16).checked_sub(1).map(u32::from);
    }
    let id = id_of(domain, name);
    let stored = id.map_or(0, |id| u64::from(id) + 1);
    place.store(address << 16 | stored, Ordering::Relaxed);
    id
}

/// The id of a function; none for what CUPTI does not know.
pub fn id_of(domain: u32, name: &CStr) -> Option<u32> {
    let name = name.to_str().ok()?;
    tables().by_name.get(&(domain, name)).copied()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCallbackName(
    domain: c_int,
    id: u32,
    name: *mut *const c_char,
) -> c_int {
    if name.is_null() {
        return INVALID_PARAMETER.0;
    }
    let found = tables().names.get(&(domain as u32, id));
    // SAFETY: the caller gave a place for a pointer.
    unsafe { name.write(found.map_or(std::ptr::null(), |name| name.as_ptr())) };
    if found.is_some() {
        0
    } else {
        INVALID_PARAMETER.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_ids_of_the_headers() {
        assert_eq!(id_of(DRIVER, c"cuMemAlloc_v2"), Some(243));
        assert_eq!(id_of(RUNTIME, c"cudaMalloc"), Some(20));
        assert_eq!(id_of(RUNTIME, c"cudaMallocAsync_ptsz"), Some(374));
        assert_eq!(id_of(DRIVER, c"cudaMalloc"), None);
        let mut name = std::ptr::null();
        // SAFETY: the place is valid.
        let code = unsafe { cuptiGetCallbackName(RUNTIME as c_int, 20, &raw mut name) };
        assert_eq!(code, 0);
        // SAFETY: the name lives as long as the table.
        assert_eq!(unsafe { CStr::from_ptr(name) }, c"cudaMalloc_v3020");
    }

    #[test]
    fn ids_are_within_bounds() {
        assert!(tables().names.keys().all(|(_, id)| (*id as usize) < IDS));
        assert!(tables().names.len() > 300);
    }
}

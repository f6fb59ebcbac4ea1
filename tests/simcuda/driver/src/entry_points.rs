//! `cuGetProcAddress`: functions by name and version.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

use simcuda_common::code::{INVALID_VALUE, NOT_FOUND, Outcome};
use simcuda_common::ffi::{Out, text};
use simcuda_common::hook::Entry;
use simcuda_common::log;

/// Suffixes of a name's versions, newest first.
const VERSIONS: [&str; 5] = ["_v4", "_v3", "_v2", "", "_v1"];

/// CUDA version from which on a versioned name is what the plain name means, where a
/// caller of an older version must still get the older signature. Names that are not
/// listed became so before CUDA 11.
const SINCE: &[(&str, c_int)] = &[
    ("cuCtxCreate_v3", 11040),
    ("cuCtxCreate_v4", 12050),
    ("cuCtxGetDevice_v2", 13000),
    ("cuCtxSynchronize_v2", 13000),
    ("cuDevicePrimaryCtxRelease_v2", 11000),
    ("cuDeviceGetUuid_v2", 11040),
    ("cuEventElapsedTime_v2", 12080),
    ("cuGetProcAddress_v2", 12000),
    ("cuGraphAddNode_v2", 12030),
    ("cuGraphNodeGetDependencies_v2", 12030),
    ("cuMemAdvise_v2", 12020),
    ("cuMemPrefetchAsync_v2", 12020),
    ("cuStreamGetCaptureInfo_v2", 11030),
    ("cuStreamGetCaptureInfo_v3", 12030),
    ("cuStreamGetCtx_v2", 12050),
    ("cuStreamUpdateCaptureDependencies_v2", 12030),
];

const PER_THREAD_DEFAULT_STREAM: u64 = 2;

const TABLES: &[&[Entry]] = &[
    crate::context::ENTRIES,
    crate::copy::ENTRIES,
    crate::device::ENTRIES,
    crate::driver::ENTRIES,
    crate::error::ENTRIES,
    crate::event::ENTRIES,
    crate::graph::ENTRIES,
    crate::graph_memory::ENTRIES,
    crate::host::ENTRIES,
    crate::ipc::ENTRIES,
    crate::launch::ENTRIES,
    crate::memory::ENTRIES,
    crate::module::ENTRIES,
    crate::peer::ENTRIES,
    crate::pointer::ENTRIES,
    crate::pool::ENTRIES,
    crate::set::ENTRIES,
    crate::shareable::ENTRIES,
    crate::stream::ENTRIES,
    crate::vmm::ENTRIES,
    ENTRIES,
];

fn by_exported_name(name: &str) -> Option<*const ()> {
    static INDEX: OnceLock<HashMap<&'static str, Entry>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        TABLES
            .iter()
            .flat_map(|table| table.iter())
            .map(|entry| (entry.name, *entry))
            .collect()
    });
    index.get(name).map(|entry| entry.address)
}

/// The newest version of `name` that a caller of CUDA `version` knows.
fn find(name: &str, version: c_int, flags: u64) -> Option<*const ()> {
    let streams: &[&str] = if flags & PER_THREAD_DEFAULT_STREAM != 0 {
        &["_ptsz", "_ptds", ""]
    } else {
        &[""]
    };
    VERSIONS.iter().find_map(|suffix| {
        let versioned = format!("{name}{suffix}");
        let since = SINCE
            .iter()
            .find(|(known, _)| *known == versioned)
            .map_or(0, |row| row.1);
        if version < since {
            return None;
        }
        streams
            .iter()
            .find_map(|stream| by_exported_name(&format!("{versioned}{stream}")))
    })
}

fn look_up(
    name: *const c_char,
    address: Out<*const c_void>,
    version: c_int,
    flags: u64,
    status: Out<c_int>,
) -> Outcome {
    const FOUND: c_int = 0;
    const SYMBOL_NOT_FOUND: c_int = 1;
    let name = text(name)?;
    if address.is_null() {
        return Err(INVALID_VALUE);
    }
    match find(&name, version, flags) {
        Some(found) => {
            status.set_if_wanted(FOUND);
            address.set(found.cast())
        }
        None => {
            log!("cuGetProcAddress: {name} (CUDA {version}) is not implemented");
            status.set_if_wanted(SYMBOL_NOT_FOUND);
            address.set(std::ptr::null())?;
            // With a place for the status, a missing symbol is no error of the call.
            if status.is_null() {
                Err(NOT_FOUND)
            } else {
                Ok(())
            }
        }
    }
}

crate::driver_api! {
    fn cuGetProcAddress(
        name: *const c_char, address: Out<*const c_void>, version: c_int, flags: u64,
    ) {
        look_up(name, address, version, flags, Out::new(std::ptr::null_mut()))
    }

    fn cuGetProcAddress_v2(
        name: *const c_char, address: Out<*const c_void>, version: c_int, flags: u64,
        status: Out<c_int>,
    ) {
        look_up(name, address, version, flags, status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_gets_the_newest_version_that_it_knows() {
        let v2 = by_exported_name("cuStreamGetCaptureInfo_v2");
        let v3 = by_exported_name("cuStreamGetCaptureInfo_v3");
        assert!(v2.is_some() && v2 != v3);
        assert_eq!(find("cuStreamGetCaptureInfo", 12010, 0), v2);
        assert_eq!(find("cuStreamGetCaptureInfo", 12030, 0), v3);
        assert_eq!(
            find("cuMemAlloc", 13000, 0),
            by_exported_name("cuMemAlloc_v2")
        );
        assert_eq!(find("cuNoSuchFunction", 13000, 0), None);
    }

    #[test]
    fn per_thread_stream_variants_are_preferred_on_request() {
        let found = find("cuMemAllocAsync", 13000, PER_THREAD_DEFAULT_STREAM);
        assert_eq!(found, by_exported_name("cuMemAllocAsync_ptsz"));
        assert_ne!(found, by_exported_name("cuMemAllocAsync"));
    }
}

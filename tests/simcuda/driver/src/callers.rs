//! Who asked for memory, for tests that need a truth of their own: with `SIMCUDA_CALLERS=1` each
//! allocation is noted with the library or program that asked, and `simcuda_write_ledger` writes all
//! live memory of the devices down.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock};

use simcuda_common::ffi::text;

use crate::driver::{Driver, driver};
use crate::ledger::Kind;
use crate::vmm::Physical;

/// Frames of a stack that are looked at.
const FRAMES: usize = 64;
/// What hands a call on.
const HANDS_ON: [&str; 2] = ["libcuda.so", "libcudart.so"];

/// By address or handle: bytes that were asked for, and by whom.
#[derive(Debug, Default)]
pub struct Callers(Mutex<HashMap<usize, (usize, Arc<str>)>>);

impl Callers {
    /// Notes who asks, on the asking thread.
    pub fn note(&self, key: usize, size: usize) {
        static WANTED: OnceLock<bool> = OnceLock::new();
        if *WANTED.get_or_init(|| std::env::var_os("SIMCUDA_CALLERS").is_some()) {
            let noted = (size, caller());
            self.0.lock().expect("no panics").insert(key, noted);
        }
    }

    fn of(&self, key: usize) -> (usize, Arc<str>) {
        let noted = self.0.lock().expect("no panics");
        noted.get(&key).cloned().unwrap_or((0, "".into()))
    }
}

/// The file name of the first library on the stack that is not CUDA's.
fn caller() -> Arc<str> {
    let mut frames = [std::ptr::null_mut::<c_void>(); FRAMES];
    // SAFETY: the array has room for so many addresses.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), FRAMES as c_int) };
    frames[..usize::try_from(count).unwrap_or(0)]
        .iter()
        .filter_map(|address| module(*address))
        .find(|name| !HANDS_ON.iter().any(|prefix| name.starts_with(prefix)))
        .unwrap_or_default()
        .into()
}

fn module(address: *mut c_void) -> Option<String> {
    // SAFETY: plain data, all zero is valid.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr takes any address and fills `info` if it returns non-zero.
    if unsafe { libc::dladdr(address, &raw mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a C string that lives as long as the library.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy();
    path.rsplit('/').next().map(str::to_owned)
}

/// A JSON object: what is charged to each device, and all that it is charged for.
fn ledger(driver: &Driver) -> String {
    let mut rows = String::new();
    let mut row = |device: usize, kind: &str, key: usize, charged: usize| {
        let (asked, caller) = driver.callers.of(key);
        let comma = if rows.is_empty() { "" } else { "," };
        let _ = write!(
            rows,
            "{comma}\n{{\"device\":{device},\"kind\":\"{kind}\",\"key\":{key},\"charged\":{charged},\
             \"asked\":{asked},\"caller\":{caller:?}}}"
        );
    };
    let mut physical: BTreeMap<usize, Arc<Physical>> = BTreeMap::new();
    for one in driver.physical.all() {
        physical.insert(one.handle(), one);
    }
    for allocation in driver.ledger.read().expect("no panics").all() {
        let kind = match &allocation.kind {
            Kind::Device | Kind::Exported(_) => "device",
            Kind::Managed => "managed",
            Kind::Pooled(_) => "pooled",
            Kind::Host { .. } => "host",
            // Charged to another process.
            Kind::Imported { .. } => continue,
            Kind::Registered { .. } => continue,
            Kind::Mapped { physical: one, .. } => {
                physical.insert(one.handle(), Arc::clone(one));
                continue;
            }
        };
        let (device, size) = (allocation.device, allocation.size);
        row(device, kind, allocation.address, size);
    }
    for one in physical.values().filter(|one| one.is_own()) {
        row(one.device(), "physical", one.handle(), one.size());
    }
    let pools: Vec<String> = (driver.pools.all().iter())
        .map(|pool| {
            let (device, used, reserved) = pool.figures();
            format!("{{\"device\":{device},\"used\":{used},\"reserved\":{reserved}}}")
        })
        .collect();
    let devices: Vec<String> = (driver.devices.iter())
        .map(|device| {
            let state = device.state.lock().expect("no panics");
            let context = match state.primary_context {
                Some(_) => driver.settings.context_memory,
                None => 0,
            };
            format!("{{\"used\":{},\"context\":{context}}}", device.used())
        })
        .collect();
    format!(
        "{{\"devices\":[{}],\"pools\":[{}],\"live\":[{rows}]}}\n",
        devices.join(","),
        pools.join(",")
    )
}

/// Writes all live memory to a file, as JSON; 0 if that worked. For tests, by ctypes.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_write_ledger(path: *const c_char) -> c_int {
    let (Ok(driver), Ok(path)) = (driver(), text(path)) else {
        return -1;
    };
    match std::fs::write(path, ledger(driver)) {
        Ok(()) => 0,
        Err(_) => -1,
    }
}

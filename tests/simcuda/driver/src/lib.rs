//! Simulated `libcuda.so.1`.
//!
//! Device memory is host memory, reserved lazily, and every allocation, mapping and
//! free is kept in a ledger and charged to a device of a given capacity. Copies and
//! memsets happen at once; kernels, and with them everything computed, do nothing.
#![allow(non_snake_case)]

mod arena;
mod callers;
mod context;
mod copy;
mod device;
mod driver;
mod entry_points;
mod error;
mod event;
mod graph;
mod graph_memory;
mod host;
mod ipc;
mod known;
mod launch;
mod ledger;
mod memory;
mod module;
mod peer;
mod pointer;
mod pool;
mod ranges;
mod registry;
mod set;
mod shareable;
mod shared;
mod stream;

mod vmm;

use std::ffi::c_int;

use simcuda_common::code::{Outcome, SUCCESS};
use simcuda_common::hook::{ApiHook, Port};
use simcuda_common::types;

/// Where the hook is installed; the runtime finds it through [`simcuda_hook_port`].
static PORT: Port = Port::new(context::correlation_slot, context::current_context);

/// Installs `hook`, called at enter and exit of every driver and runtime API function,
/// or removes it when null. Returns the hook before.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_set_api_hook(hook: Option<ApiHook>) -> Option<ApiHook> {
    PORT.set(hook)
}

/// For the simulated runtime: the port that its functions call.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_hook_port() -> *const Port {
    &raw const PORT
}

/// For the stub libraries: one of them was asked to compute something on the device.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_work_was_done() {
    if let Ok(driver) = driver::driver() {
        driver.known.work_was_done();
    }
}

/// The code that a function's outcome is to its C caller.
fn finish(outcome: Outcome) -> c_int {
    match outcome {
        Ok(()) => SUCCESS,
        Err(code) => code,
    }
}

/// Defines functions of the driver API; see [`simcuda_common::api_functions`].
macro_rules! driver_api {
    ($($functions:tt)*) => {
        simcuda_common::api_functions! {
            domain = simcuda_common::hook::Domain::Driver; port = crate::PORT; finish = crate::finish;
            $($functions)*
        }
    };
}
pub(crate) use driver_api;

//! What the simulated driver, runtime and management library share.
//!
//! - [`ffi`]: pointers that come from C, wrapped so that the API functions are safe code
//! - [`hook`]: the API enter/exit hook and the macro that defines hooked C functions
//! - [`settings`]: the simulated machine as the environment (`SIMCUDA_*`) describes it
//! - [`code`]: result codes of the driver (the runtime's have the same numbers)
//! - [`types`]: the C structs of the driver API
//! - [`usage`]: device memory used per process, shared through a file
//! - [`log`]: what `SIMCUDA_LOG` turns on

pub mod code;
pub mod ffi;
pub mod hook;
pub mod log;
pub mod settings;
pub mod types;
pub mod usage;

//! Simulated `libcudart.so.12` and (feature `cuda13`) `libcudart.so.13`.
//!
//! A thin layer: each function finds the calling thread's device and calls the driver,
//! which it reaches as the real runtime does, through `cuGetProcAddress`.
#![allow(non_snake_case)]

mod copy;
mod device;
mod driver;
mod error;
mod event;
mod graph;
mod ipc;
mod launch;
mod library;
mod memory;
mod pool;
mod properties;
mod state;
mod stream;
mod symbols;

/// `CUDART_VERSION` of the ABI that is built.
pub const RUNTIME_VERSION: i32 = if cfg!(feature = "cuda13") {
    13020
} else {
    12080
};

/// Defines functions of the runtime API; see [`simcuda_common::api_functions`].
macro_rules! runtime_api {
    ($($functions:tt)*) => {
        simcuda_common::api_functions! {
            domain = simcuda_common::hook::Domain::Runtime;
            port = crate::driver::port();
            finish = crate::error::finish;
            $($functions)*
        }
    };
}
pub(crate) use runtime_api;

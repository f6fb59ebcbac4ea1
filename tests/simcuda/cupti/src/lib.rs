//! Simulated `libcupti.so.12` and (feature `cuda13`) `libcupti.so.13`.
//!
//! Callbacks and activity records of the API calls that programs make, taken from the hook of the
//! simulated driver. What a real CUPTI does beyond that is in the README, with what is assumed.
#![allow(non_snake_case)]

mod activity;
mod buffer;
mod callback;
#[cfg(not(feature = "cuda13"))]
mod counters;
mod driver;
mod external;
mod ids;
mod memory;
mod record;
mod result;
mod source;
mod subscriber;
mod version;

pub use result::Code;

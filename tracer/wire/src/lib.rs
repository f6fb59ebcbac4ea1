//! The records between a producer (BPF programs, the injected library) and its reader.
//!
//! `wire.h` is the only definition; bindgen makes the Rust side of it at build time. This crate
//! adds [`Record`], the one place that turns bytes from a ring into typed records: total on any
//! input, since a ring's other end is not always trusted.

mod record;

#[allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    missing_docs,
    dead_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
mod raw {
    include!(concat!(env!("OUT_DIR"), "/wire.rs"));
}

pub use raw::*;
pub use record::{Code, Mixed, Record, Stack, StackCopy, Text, process};

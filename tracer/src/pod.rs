//! The FFI room of this crate: plain values that cross into BPF maps.
#![allow(unsafe_code)]

use vramscope_wire::vs_python;

/// A walk's configuration as a map value.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct PythonValue(pub vs_python);

// SAFETY: vs_python is `repr(C)`, has only integer fields, and no padding between or behind them:
// two 64-bit fields are followed by an even number of 32-bit ones, which the assertion below
// counts. So every byte of it is initialised and every bit pattern is valid.
unsafe impl aya::Pod for PythonValue {}

const _: () = assert!(size_of::<vs_python>() == 2 * 8 + 32 * 4);

//! The FFI room of this crate: plain values that cross into BPF maps.
#![allow(unsafe_code)]

use vramscope_wire::{vs_native, vs_python, vs_rules};

/// A walk's configuration as a map value.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct PythonValue(pub vs_python);

// SAFETY: vs_python is `repr(C)`, has only integer fields, and no padding between or behind them:
// two 64-bit fields are followed by an even number of 32-bit ones, which the assertion below
// counts. So every byte of it is initialised and every bit pattern is valid.
unsafe impl aya::Pod for PythonValue {}

const _: () = assert!(size_of::<vs_python>() == 2 * 8 + 34 * 4);

/// What unwinding a process's machine code needs, as a map value.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct NativeValue(pub vs_native);

// SAFETY: as above: four 64-bit fields, then two 32-bit ones.
unsafe impl aya::Pod for NativeValue {}

const _: () = assert!(size_of::<vs_native>() == 4 * 8 + 2 * 4);

/// A set of unwind rules as a map value.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct RulesValue(pub vs_rules);

// SAFETY: as above: two arrays of 64-bit fields.
unsafe impl aya::Pod for RulesValue {}

const _: () = assert!(size_of::<vs_rules>() == 8 * 8);

//! A view as text for people and for programs.
//!
//! Each report is one function from a view and its options to a string: no I/O, no clock. All of
//! them state the same facts, and none computes what the view does not say.

pub mod paths;
pub mod units;

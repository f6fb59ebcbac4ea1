//! From a function to its caller, without frame pointers.
//!
//! Compilers write for exceptions how each place in a function finds its caller (`.eh_frame`). A
//! [`Rule`] is that for one address, packed into a word so that a table of them can be walked where
//! nothing can be parsed: in the kernel, and in the middle of another program's allocation.
//! [`rule_of`] makes one. It takes foreign bytes: what is not understood ends the walk, as
//! [`Rule::END`], and is never guessed.

#![no_std]
#![forbid(unsafe_code)]

mod row;
mod rule;

pub use gimli;
pub use row::{Entry, rule_of};
pub use rule::{Cfa, Rule, mix};

//! Machine-code frames: from addresses in a process to functions of its libraries, and from a piece
//! of its stack to addresses.
//!
//! The kernel's walk (`bpf/c/native.h`) and the library in the process give a stack as a list of
//! addresses. [`code::CodeMap`] says what they are in, [`names`] calls them by their names,
//! [`merge`] puts them and Python's frames together. Where the kernel's walk met an address that it
//! has no rule for, it sends the stack's bytes: [`walk::resume`] goes on from there, by rules that
//! [`object::CodeFile`] reads, and [`table::RuleTable`] tells them to the kernel.
//!
//! That happens on the thread that empties the ring: a rule costs some 20 reads of a few bytes, once
//! an address, and a stack is sent only while it has an address without one. So the stack is defined
//! before the event that names it, and nothing has to wait.

pub mod code;
pub mod loader;
pub mod mapped;
pub mod merge;
pub mod names;
pub mod object;
pub mod separate;
pub mod symbols;
pub mod table;
pub mod tables;
pub mod walk;

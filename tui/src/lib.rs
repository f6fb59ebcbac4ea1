//! The live view of a session in a terminal.

#![deny(unsafe_code)]

mod keys;
mod table;
mod text;
mod theme;

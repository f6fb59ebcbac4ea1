//! The live view of a session in a terminal.

#![deny(unsafe_code)]

mod error;
mod feed;
mod input;
mod keys;
mod layout;
mod paint;
mod table;
mod terminal;
mod text;
mod theme;
mod tree;

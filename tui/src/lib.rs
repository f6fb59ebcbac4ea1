//! The live view of a session in a terminal.

#![deny(unsafe_code)]

mod app;
mod chart;
mod command;
mod error;
mod feed;
mod input;
mod keys;
mod layout;
mod page;
mod paint;
mod prompt;
mod table;
mod terminal;
mod text;
mod theme;
mod tree;
mod update;
mod views;

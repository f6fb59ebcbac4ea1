//! The live view of a session in a terminal.
//!
//! [`run`] borrows the terminal, shows the [`Feed`]'s views until the user leaves, and gives the
//! terminal back. What is known comes in as an immutable
//! [`View`](vramscope_collector::view::View); this crate sorts, folds and draws it, and computes
//! nothing of its own about memory.
//!
//! Inside it is Elm's split: an input becomes a message, the message and the state become the next
//! state (and perhaps something to do outside), and the state becomes a picture. Only [`run`]
//! knows a clock, a terminal, or a file.
//!
//! # What the caller must do
//!
//! - Call [`run`] only when standard output is a terminal.
//! - Keep standard error quiet meanwhile: what is printed lands in the picture.
//! - After [`run`] has returned, print what should stay in the scrollback, and detach.

#![deny(unsafe_code)]

mod app;
mod ask;
mod chart;
mod command;
mod error;
mod feed;
mod files;
mod input;
mod keys;
mod layout;
mod live;
mod page;
mod paint;
mod prompt;
mod run;
mod table;
mod terminal;
mod text;
mod theme;
mod time;
mod tree;
mod update;
mod views;

pub use app::Source;
pub use error::TuiError;
pub use feed::{About, Asking, Feed, Playback, Question};
pub use input::{Input, Inputs};
pub use keys::markdown as keys_markdown;
pub use live::LiveView;
pub use run::{Exit, Options, run, run_on};
pub use text::Charset;
pub use theme::{Depth, Palette, Theme};

//! What can go wrong.

use std::io;

/// The live view cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// The terminal cannot be taken.
    #[error(
        "cannot take over the terminal: {0}; without one, ask for the same facts with --headless"
    )]
    Terminal(#[source] io::Error),
    /// The terminal was there and is gone.
    #[error("the terminal is gone: {0}")]
    Draw(#[source] io::Error),
    /// Keys cannot be read.
    #[error("cannot read keys: {0}; without a keyboard, ask for the same facts with --headless")]
    Input(#[source] io::Error),
}

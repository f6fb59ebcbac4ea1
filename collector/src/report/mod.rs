//! A view as text for people ([`text`](mod@text), [`markdown`]) and for programs ([`json`]).
//!
//! Each report is one function from a view and its options to a string: no I/O, no clock. All of
//! them state the same facts, and none computes what the view does not say.

mod driver;
pub mod headline;
pub mod holders;
pub mod json;
pub mod layout;
pub mod markdown;
pub mod notes;
pub mod paths;
pub mod shares;
pub mod stack;
pub mod table;
pub mod text;
pub mod units;

#[cfg(test)]
mod tests;

use crate::view::Grouping;

/// What the reports have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How sites are put together.
    pub grouping: Grouping,
    /// The most sites to show for one device; `None` for all.
    pub top: Option<usize>,
}

impl Options {
    /// Every site: what a program wants.
    pub fn all(grouping: Grouping) -> Options {
        Options {
            grouping,
            top: None,
        }
    }
}

impl Default for Options {
    /// By line, the ten that matter most.
    fn default() -> Self {
        Options {
            grouping: Grouping::Line,
            top: Some(10),
        }
    }
}

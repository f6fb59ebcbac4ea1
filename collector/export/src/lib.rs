//! Allocations as other tools read them.
//!
//! A stream of events goes through [`Gather`], which makes a [`Selection`] of it: which
//! allocations, by whom, how many bytes. Each format is a function from that to bytes; none reads
//! a clock, opens a file or knows a command line.
//!
//! Foreign text (names, paths) is made printable and bounded once, in [`frames`]; what else a
//! format asks for (quoting, formulas) is that format's own business.

#![deny(unsafe_code)]

pub mod csv;
pub mod events;
pub mod firefox;
pub mod folded;
pub mod frames;
mod gather;
pub mod html;
pub mod parquet;
mod peak;
pub mod perfetto;
pub mod pprof;
mod select;
mod selection;
pub mod speedscope;
pub mod svg;
mod tail;
pub mod torch_snapshot;

pub use gather::{Gather, Gathered};
pub use peak::{Peak, PeakFinder, Peaks};
pub use select::select;
pub use selection::{
    BlockRow, Bound, Choice, Kind, Part, Row, SelectError, Selection, Weight, What, layer_name,
    place,
};
pub use tail::{MOST_EVENTS, Tail, TailEvent, TailKind};

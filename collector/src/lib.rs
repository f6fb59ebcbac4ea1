//! Events in, an immutable [`view::View`] out.
//!
//! A live eBPF session, an injected session and a replayed recording feed the same
//! [`vramscope_events::Record`]s and get the same answer. What shows a view (terminal, report,
//! export) computes nothing but text.
//!
//! ```
//! use vramscope_collector::{Collector, Config, view::Backend};
//! use vramscope_events::Time;
//!
//! let mut collector = Collector::new(Config::new(Backend::Recording, Time(0), 0));
//! collector.ingest(&[]);
//! assert!(collector.view(Time(1)).processes.is_empty());
//! ```

#![deny(unsafe_code)]

mod book;
mod books;
mod collector;
mod config;
mod device;
pub mod diff;
pub mod escape;
#[cfg(any(test, feature = "fixture"))]
#[doc(hidden)]
pub mod fixture;
pub mod flamegraph;
mod floor;
pub mod grouping;
pub mod intake;
mod ledger;
mod log;
mod process;
pub mod ranks;
pub mod recorder;
pub mod replay;
pub mod report;
mod retained;
mod shares;
mod site;
mod snapshot;
mod source;
mod stacks;
mod stats;
mod step_line;
mod steps;
mod usercode;
mod verdict;
pub mod view;

pub use books::{BookKey, HOST_DEVICE, SiteTotals};
pub use collector::{Collector, RestoreError, STATE_VERSION, Survivor};
pub use config::{Alarms, Config, StepOptions};
pub use stacks::NamedStack;
pub use step_line::StepLine;
pub use usercode::{UserCode, UserCodeError};

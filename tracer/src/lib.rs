//! A running process in, ordered events out.
//!
//! [`inspect`] looks at a process and plans; [`Session::attach`] places uprobes on it and starts a
//! reader that turns the kernel's ring into [`vramscope_events::Record`]s. The process is neither
//! stopped nor changed: the kernel runs the probes, and takes them off when the session ends, also
//! when it ends by SIGKILL. Nothing here knows of leaks.

#![deny(unsafe_code)]

mod board;
mod closing;
pub mod decode;
mod driver;
mod error;
pub mod inject;
pub mod kernel;
mod library;
mod loader;
mod multi;
mod native;
mod nvml;
mod placing;
mod plan;
pub mod planner;
mod pod;
mod prospect;
mod python;
mod reader;
mod session;
pub mod target;
mod tree;
mod unwind;

pub use error::{AttachError, Child};
pub use native::Native;
pub use plan::{Plan, Probe, StepOn};
pub use prospect::{Prospect, inspect};
pub use session::{Options, Session, now};

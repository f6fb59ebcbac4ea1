//! What may go wrong.

use std::{io, path::PathBuf, time::Duration};

use crate::library::LIBRARY;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing can be loaded into the process.
    #[error(transparent)]
    Ptrace(#[from] vramscope_ptrace::Error),
    /// Our library is not where it should be.
    #[error(
        "{LIBRARY} was not found in {}; it is built with `cargo build --release -p \
         vramscope-agent`, and lies beside the vramscope program",
        .looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NoLibrary {
        /// Where we looked.
        looked: Vec<PathBuf>,
    },
    /// The process or the agent in it refuses, and says why.
    #[error("process {pid}: {reason}")]
    Refused {
        /// The process.
        pid: u32,
        /// Why.
        reason: String,
    },
    /// No answer in time: the GIL is held.
    #[error(
        "process {pid}: no answer within {waited:?}: some thread holds the GIL without a break \
         (`py-spy dump --pid {pid}` shows which); the agent leaves as soon as it gets the GIL. \
         Ask again later"
    )]
    Stuck {
        /// The process.
        pid: u32,
        /// How long we waited.
        waited: Duration,
    },
    /// The agent is gone: the process has ended.
    #[error("process {pid} has ended before it answered")]
    Ended {
        /// The process.
        pid: u32,
    },
    /// Anything else that the system said.
    #[error("process {pid}: {what}: {source}")]
    System {
        /// The process.
        pid: u32,
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

/// Something that the system said, with what was tried.
pub(crate) fn system(pid: u32, what: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::System { pid, what, source }
}

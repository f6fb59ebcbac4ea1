//! What a tracer tells once, beside the stream of events: who is traced, and how.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Pid;

/// Where events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// Uprobes on the running process.
    Ebpf,
    /// The library inside the process.
    Injection,
    /// A file.
    Recording,
}

/// What is known of a process before any event: told by the tracer at attach.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Its id.
    pub pid: Pid,
    /// Its command line, arguments separated by spaces. Foreign text.
    pub command: String,
    /// Its Python, such as `3.12.1`.
    pub python: Option<String>,
    /// Its PyTorch, such as `2.8.0`.
    pub torch: Option<String>,
    /// Its rank in a distributed run (`RANK` in its environment).
    pub rank: Option<u32>,
    /// What it is among the processes of the session.
    #[serde(default)]
    pub role: Role,
    /// Its working directory, against which relative source paths are read.
    pub directory: Option<PathBuf>,
    /// What to put before its paths to read its files from here (`/proc/PID/root`), where it lives
    /// in a file system of its own.
    pub root: Option<PathBuf>,
}

/// What a process is among those of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A program by itself, or a rank of a distributed run.
    #[default]
    Program,
    /// It starts others and does not compute: `torchrun` and its like.
    Launcher,
    /// It loads data for another process: a worker of a PyTorch `DataLoader`.
    Loader,
    /// Another process that a program has started as a copy of itself, or by `multiprocessing`.
    Child,
}

/// One planned probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeView {
    /// What it is on, in words a user can look up.
    pub name: String,
    /// `attached`, or why it is not and what is missing because of it.
    pub state: ProbeState,
    /// Where it sits and what it costs, such as `push at +7, emulated`.
    pub cost_note: String,
}

/// Whether a probe is in place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeState {
    /// It is.
    Attached,
    /// The symbol or library is not there.
    Absent {
        /// What cannot be told without it.
        consequence: String,
    },
    /// The kernel refused.
    Failed {
        /// The cause and what cannot be told without it.
        reason: String,
    },
}

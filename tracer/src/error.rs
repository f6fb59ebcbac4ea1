//! Why a process cannot be traced: cause, current value, and what to do next.

use vramscope_python::{FindError, ReadError};

use crate::kernel::Check;

/// A process that a launcher started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its id.
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// Whether it has loaded PyTorch.
    pub torch: bool,
}

/// Attaching did not work. The process goes on unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// There is no such process, or its memory cannot be read.
    #[error(transparent)]
    Process(#[from] ReadError),
    /// Rights or the kernel are missing something.
    #[error(
        "cannot trace with eBPF here\n{}\n  without these rights: `vramscope run -- CMD` watches a \
         program that it starts, `vramscope attach PID --inject` a process of your own",
        list(.0)
    )]
    Precondition(Vec<Check>),
    /// The process runs no Python that can be walked.
    #[error(transparent)]
    Python(#[from] FindError),
    /// The process is a launcher; its children are meant.
    #[error(
        "process {pid} ({command}) is a launcher: {}\n  attach to the one you mean, for example: \
         vramscope attach {}",
        children_list(.children),
        .children[0].pid
    )]
    Launcher {
        /// Its id.
        pid: u32,
        /// Its command line.
        command: String,
        /// The processes that it started and that may be meant; those with PyTorch if there are
        /// any. Never empty.
        children: Vec<Child>,
    },
    /// PyTorch or the CUDA driver is not loaded (yet).
    #[error(
        "process {pid} ({command}) has loaded {}\n  if it is still starting, wait for it: \
         vramscope attach {pid} --wait",
        if *.torch { "PyTorch, but no CUDA driver (libcuda.so): it uses no GPU so far" }
        else { "neither PyTorch (libc10.so) nor the CUDA driver (libcuda.so)" }
    )]
    NothingToTrace {
        /// Its id.
        pid: u32,
        /// Its command line.
        command: String,
        /// Whether PyTorch is there.
        torch: bool,
    },
    /// The number is more likely one of a container.
    #[error("{source}\n  {}", inside_list(*.pid, .inside))]
    Inside {
        /// What is wrong with the process that has the number here.
        source: Box<AttachError>,
        /// The number.
        pid: u32,
        /// The processes that have it in a container, by their numbers here. Never empty.
        inside: Vec<Child>,
    },
    /// More processes than a session can hold.
    #[error(
        "process {pid} is one more than the {} that can be watched at once",
        vramscope_bpf::MAX_PROCESSES
    )]
    TooMany {
        /// Its id.
        pid: u32,
    },
    /// The kernel refused the BPF programs.
    #[error(
        "the kernel refused the BPF programs: {detail}\n  `vramscope doctor` checks what they need"
    )]
    Load {
        /// Its reason.
        detail: String,
    },
    /// The process cannot be made to load a library.
    #[error(transparent)]
    Ptrace(#[from] vramscope_ptrace::Error),
    /// The library for injection is nowhere.
    #[error(
        "the library for injection is not there; looked for {}\n  build it with `make build`, or \
         name it: {}=/path/to/{}",
        paths(.0),
        crate::inject::library::VARIABLE,
        crate::inject::library::NAME
    )]
    NoLibrary(Vec<std::path::PathBuf>),
    /// Something went wrong between us and the library in the process.
    #[error("injection did not work: {what}: {cause}\n  without it: {instead}")]
    Injection {
        /// What was tried.
        what: String,
        /// Why it did not work.
        cause: String,
        /// What can be done in its stead.
        instead: String,
    },
    /// The place that is to mark a step cannot be probed.
    #[error(
        "--step-on: {reason}\n  name a function as `nm -D LIBRARY` prints it, a line of Python as \
         FILE:LINE, or leave --step-on out: steps are then counted by backward()"
    )]
    StepOn {
        /// Why.
        reason: String,
    },
    /// The probe that everything stands on could not be placed.
    #[error("{probe} could not be probed: {reason}\n  `vramscope doctor {pid}` shows every probe")]
    Probe {
        /// The process.
        pid: u32,
        /// The probe.
        probe: String,
        /// Why.
        reason: String,
    },
}

fn list(checks: &[Check]) -> String {
    checks
        .iter()
        .map(|check| format!("- {check}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn paths(paths: &[std::path::PathBuf]) -> String {
    let paths = paths.iter().map(|path| path.display().to_string());
    paths.collect::<Vec<_>>().join(" and ")
}

fn inside_list(pid: u32, inside: &[Child]) -> String {
    let list: String = inside
        .iter()
        .map(|child| format!("\n    {}  {}", child.pid, child.command))
        .collect();
    format!(
        "{pid} is also the number that a process has in its container; its number here comes \
         first:{list}\n  attach to it by its number here: vramscope attach {}",
        inside[0].pid
    )
}

fn children_list(children: &[Child]) -> String {
    let what = match (children[0].torch, children.len()) {
        (true, 1) => "a process that it started has loaded PyTorch:",
        (true, _) => "processes that it started have loaded PyTorch:",
        (false, 1) => "a process that it started runs Python:",
        (false, _) => "processes that it started run Python:",
    };
    let list: String = children
        .iter()
        .map(|child| format!("\n    {}  {}", child.pid, child.command))
        .collect();
    format!("{what}{list}")
}

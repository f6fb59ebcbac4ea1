//! Why a process cannot be traced: cause, current value, and what to do next.

use vramscope_python::{FindError, ReadError};

use crate::kernel::Check;

/// Attaching did not work. The process goes on unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// There is no such process, or its memory cannot be read.
    #[error(transparent)]
    Process(#[from] ReadError),
    /// Rights or the kernel are missing something.
    #[error("cannot trace with eBPF here\n{}", list(.0))]
    Precondition(Vec<Check>),
    /// The process runs no Python that can be walked.
    #[error(transparent)]
    Python(#[from] FindError),
    /// The process is a launcher; its children are meant.
    #[error(
        "process {pid} ({command}) has not loaded PyTorch, but it started {} that {}: {}\n  \
         attach to one of them, for example: vramscope attach {}",
        if .children.len() == 1 { "a process" } else { "processes" },
        if .children.len() == 1 { "has" } else { "have" },
        children_list(.children),
        .children[0].0
    )]
    Launcher {
        /// Its id.
        pid: u32,
        /// Its command line.
        command: String,
        /// The children with PyTorch: id and command line. Never empty.
        children: Vec<(u32, String)>,
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
    /// The kernel refused the BPF programs.
    #[error(
        "the kernel refused the BPF programs: {detail}\n  `vramscope doctor` checks what they need"
    )]
    Load {
        /// Its reason.
        detail: String,
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

fn children_list(children: &[(u32, String)]) -> String {
    children
        .iter()
        .map(|(pid, command)| format!("\n    {pid}  {command}"))
        .collect()
}

//! What can go wrong when a process is looked at, and what to do about it.

use std::io;
use std::path::PathBuf;

use crate::Version;
use crate::process::Address;

/// The memory or the `/proc` files of a process could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The process has ended (or never was).
    #[error("process {pid} is gone: no such process; find the running one with `pgrep -af python`")]
    Gone {
        /// Its id.
        pid: u32,
    },
    /// The kernel refuses: not the same user, or ptrace is restricted.
    #[error(
        "not allowed to read process {pid}: it belongs to uid {owner}, we run as uid {ours}, \
         kernel.yama.ptrace_scope is {ptrace_scope}; run `sudo vramscope attach {pid}`\
         {}", container_hint(*.ours)
    )]
    Denied {
        /// Its id.
        pid: u32,
        /// The user that owns it.
        owner: String,
        /// Our effective user.
        ours: u32,
        /// `/proc/sys/kernel/yama/ptrace_scope`, or "not set".
        ptrace_scope: String,
    },
    /// Part of the range is not mapped.
    #[error("process {pid}: {got} of {wanted} bytes readable at {address}; the rest is not mapped")]
    Fault {
        /// Its id.
        pid: u32,
        /// Where the read began.
        address: Address,
        /// Bytes asked for.
        wanted: usize,
        /// Bytes that could be read.
        got: usize,
    },
    /// Anything else that the system said.
    #[error("process {pid}: cannot read {what}: {source}")]
    Io {
        /// Its id.
        pid: u32,
        /// What was being read.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}

fn container_hint(ours: u32) -> &'static str {
    if ours == 0 {
        " (already root: in a container, start it with `--cap-add SYS_PTRACE`)"
    } else {
        ""
    }
}

/// Why [`find`](crate::find()) gave no interpreter.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No mapped file is a CPython interpreter.
    #[error(
        "process {pid} is not Python: it runs {executable} and none of its {files} mapped files \
         exports _PyRuntime; list candidates with `pgrep -af python`"
    )]
    NotPython {
        /// Its id.
        pid: u32,
        /// The program it runs.
        executable: String,
        /// How many mapped files were looked at.
        files: usize,
    },
    /// An interpreter without the symbols that lead to its state.
    #[error(
        "process {pid} runs Python from {path}, which lacks the symbol {missing} (linked \
         statically and fully stripped); check with `nm -D {path} | grep _PyRuntime` and use an \
         interpreter that exports its API",
        path = path.display()
    )]
    NoSymbols {
        /// Its id.
        pid: u32,
        /// The interpreter's file as the process sees it.
        path: PathBuf,
        /// The first symbol that is missing.
        missing: &'static str,
    },
    /// An interpreter whose structures are not known.
    #[error(
        "process {pid} runs CPython {version} ({why}) from {path}; supported are CPython 3.8 to \
         3.14 with the GIL: see `ls /usr/bin/python3.*` for another interpreter",
        path = path.display()
    )]
    Unsupported {
        /// Its id.
        pid: u32,
        /// Its version, as far as it is known.
        version: String,
        /// What is not supported about it.
        why: &'static str,
        /// The interpreter's file as the process sees it.
        path: PathBuf,
    },
    /// The exact version could not be found.
    #[error(
        "process {pid}: {path} exports _PyRuntime, but its version is neither in Py_Version nor \
         in its data: it is only starting, or no CPython of 3.8 or later; try again with \
         `vramscope attach {pid}`, or ask it for its version with `/proc/{pid}/exe -VV`",
        path = path.display()
    )]
    UnknownVersion {
        /// Its id.
        pid: u32,
        /// The interpreter's file as the process sees it.
        path: PathBuf,
    },
    /// The process's own description of its layout makes no sense to us.
    #[error(
        "process {pid}: CPython {version} at {path} describes its own layout in a form not known \
         here ({detail}); upgrade vramscope, or use CPython 3.8 to 3.13",
        path = path.display()
    )]
    StrangeLayout {
        /// Its id.
        pid: u32,
        /// Its version.
        version: Version,
        /// The interpreter's file as the process sees it.
        path: PathBuf,
        /// What was expected and what was found.
        detail: String,
    },
    /// Python is loaded, but has not started (or has been finalized).
    #[error(
        "process {pid} has CPython {version} loaded from {path}, but no interpreter runs in it \
         yet; try again when it has started: `vramscope attach {pid}`",
        path = path.display()
    )]
    NotInitialised {
        /// Its id.
        pid: u32,
        /// Its version, as far as it is known.
        version: String,
        /// The interpreter's file as the process sees it.
        path: PathBuf,
    },
    /// A file of the process cannot be opened or is no ELF file we understand.
    #[error(
        "process {pid}: cannot read the interpreter's file {path}: {detail}; check with \
         `ls -l /proc/{pid}/root{path}`",
        path = path.display()
    )]
    File {
        /// Its id.
        pid: u32,
        /// The file as the process sees it.
        path: PathBuf,
        /// What the system or the ELF parser said.
        detail: String,
    },
    /// The process cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

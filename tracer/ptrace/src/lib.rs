//! Runs a function in a process that already runs, and so loads a library into it: x86-64 Linux with
//! glibc.
//!
//! One thread of the process is borrowed while it waits (`waits.rs` says which may be), runs the
//! function on its own stack below the red zone, and goes back to its wait, which it has not
//! noticed: registers, vector state, signal mask and the rest of a timeout are as they were. All
//! other threads run on.
//!
//! What the caller can rely on:
//!
//! - **We may be killed at any moment.** Until the registers of the thread are changed, in one
//!   system call, nothing has happened. From then on the stack holds a signal frame with the
//!   thread's state, and the function's return leads through `rt_sigreturn`: the thread goes back by
//!   itself (`frame.rs`). The one trace: a wait with a relative timeout begins anew.
//! - **A function that hangs** is left to itself at the deadline, and its thread returns in the same
//!   way whenever it ends.
//! - **Signals** stay in the kernel, blocked for that thread, and are delivered when it is back.
//!   `SIGSTOP` stops the process as always.
//! - **A function that crashes** is stopped before the signal is delivered, and the thread is put
//!   back. What the function has left half done stays so.
//!
//! ```no_run
//! use std::{path::Path, time::Duration};
//! use vramscope_ptrace::{Argument, Tracee};
//! # fn main() -> Result<(), vramscope_ptrace::Error> {
//! let tracee = Tracee::open(4121)?;
//! let loaded = tracee.load(Path::new("/tmp/library.so"), Duration::from_secs(5))?;
//! let start = tracee.symbol(&loaded.path, "start")?;
//! let answer = tracee.call(start, &[Argument::Bytes(b"name\0")], Duration::from_secs(1))?;
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("registers and signal frames are those of x86-64 Linux");

mod borrow;
mod error;
mod ffi;
mod frame;
mod halted;
mod image;
mod landing;
mod status;
mod tracee;
mod waits;

pub use error::{Error, Result};
pub use frame::Argument;
pub use tracee::{Loaded, Tracee};

/// Whether a child of this process has ended; its status stays to be waited for.
///
/// For whoever starts a program and has it traced as well: waitpid(2) in any thread would take the
/// stops of the traced program for its own news.
///
/// # Errors
/// It is no child, or was waited for already.
pub fn has_ended(child: u32) -> std::io::Result<bool> {
    ffi::has_ended(nix::unistd::Pid::from_raw(child.cast_signed()))
}

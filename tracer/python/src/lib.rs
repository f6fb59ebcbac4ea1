//! CPython seen from outside: finds the interpreter in a process, knows where
//! its structures keep what a stack walk needs, walks frames and turns code
//! objects into file, function and line.
//!
//! Nothing here stops, changes or calls into the other process: every fact
//! comes from `/proc/PID`, from the ELF file of the interpreter and from
//! `process_vm_readv`. A walk of a running thread is therefore a best effort;
//! it is exact when the thread is not moving (blocked, or stopped by a probe).
//!
//! The parts, in the order in which a tracer meets them:
//!
//! - [`Process`]: a process by its id; its mappings and memory.
//! - [`find`]: the interpreter in it, as a [`Python`]: version, addresses,
//!   [`Offsets`], and where code objects are freed ([`CodeDealloc`]).
//! - [`threads`] and [`calibrate_tsd`]: the thread states, and where in a
//!   thread's own block the pointer to its thread state lies.
//! - [`walk_thread`]: the frames of one thread, with the same rules as a walk
//!   in BPF must follow (see [`walk`]).
//! - [`read_code`], or [`CodeHeader`], [`StrHeader`] and [`LineTable`] for raw
//!   bytes that came another way: the [`CodeObject`] of a frame. These parsers
//!   accept any bytes and never panic.
//!
//! ```no_run
//! use vramscope_python::{Process, find, read_code, threads, walk_thread};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let process = Process::open(4121)?;
//! let python = find(&process)?;
//! for thread in threads(&process, &python)? {
//!     for frame in walk_thread(&process, &python, thread.state)?.frames {
//!         let code = read_code(&process, &python, frame.code)?;
//!         println!("{}:{:?} {}", code.file, code.line(frame.offset), code.qualname);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Supported: CPython 3.8 to 3.14 with the GIL, on x86-64 Linux. Which tables
//! have been run against a real interpreter is told by [`Python::tested`].
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod calibrate;
mod code;
mod debug_offsets;
mod elf;
mod error;
mod find;
mod lines;
mod maps;
mod offsets;
mod process;
mod python_version;
mod tables;
mod text;
mod threads;
pub mod walk;

pub use calibrate::{ThreadStateSlot, calibrate_tsd};
pub use code::{CodeError, CodeHeader, CodeObject, read_code};
pub use error::{FindError, ReadError};
pub use find::{CodeDealloc, OffsetsSource, Python, find};
pub use lines::{LineFormat, LineRange, LineTable};
pub use maps::{Mapping, Permissions};
pub use offsets::{InstructionKind, Offsets};
pub use process::{Address, Process};
pub use python_version::Version;
pub use text::{DecodeError, StrHeader, StrKind, decode_str, decode_str_object};
pub use threads::{Thread, threads};
pub use walk::{Frame, Stack, walk_thread};

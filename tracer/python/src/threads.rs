//! The threads that an interpreter knows.

use crate::error::ReadError;
use crate::find::Python;
use crate::process::{Address, Process};

/// A thread that has a Python thread state.
///
/// One thread can have several: one for each interpreter that it has entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Its `PyThreadState`.
    pub state: Address,
    /// The `PyInterpreterState` that it belongs to.
    pub interpreter: Address,
    /// `pthread_self()` in it; on x86-64 glibc and musl this is its FS base.
    pub pthread: u64,
    /// Its thread id (3.11+) in the pid namespace of the process, which need
    /// not be ours.
    pub native_id: Option<u32>,
}

const MOST_INTERPRETERS: usize = 1 << 10;
const MOST_THREADS: usize = 1 << 16;

/// The threads of all interpreters, newest first in each.
///
/// The list is read while the process runs: a thread that starts or ends
/// meanwhile may be missing or be there still.
///
/// # Errors
/// [`ReadError`] when the process is gone or the list cannot be read.
pub fn threads(process: &Process, python: &Python) -> Result<Vec<Thread>, ReadError> {
    let offsets = &python.offsets;
    let mut found = Vec::new();
    let mut interpreter =
        process.read_pointer(python.runtime.field(offsets.runtime_interpreters))?;
    let mut interpreters = 0;
    while !interpreter.is_null() && interpreters < MOST_INTERPRETERS {
        interpreters += 1;
        let mut state = process.read_pointer(interpreter.field(offsets.interpreter_threads))?;
        while !state.is_null() && found.len() < MOST_THREADS {
            let native_id = match offsets.thread_native_id {
                Some(offset) => u32::try_from(process.read_u64(state.field(offset))?).ok(),
                None => None,
            };
            found.push(Thread {
                state,
                interpreter,
                pthread: process.read_u64(state.field(offsets.thread_pthread))?,
                native_id,
            });
            state = process.read_pointer(state.field(offsets.thread_next))?;
        }
        interpreter = process.read_pointer(interpreter.field(offsets.interpreter_next))?;
    }
    Ok(found)
}

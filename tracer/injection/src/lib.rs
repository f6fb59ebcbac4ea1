//! The library inside a traced process.
//!
//! It is loaded by the CUDA driver (`CUDA_INJECTION64_PATH`) or, into a process that already runs,
//! by ptrace. A helper thread asks the vramscope at the other end of a Unix socket for a piece of
//! shared memory, hooks PyTorch's allocator and subscribes to CUPTI; from then on every thread that
//! allocates writes one record into a ring in that memory.
//!
//! # What the hot path may do
//! Everything under `record` runs in the middle of somebody else's program, under the allocator's
//! lock and often with the GIL. It takes no lock, allocates nothing, waits for nothing, calls
//! nothing of Python's, and cannot panic: a full ring is a loss that is counted. The test
//! `hot_path` follows the calls in the built library and fails when one leads elsewhere.
//!
//! # What happens when the other end is gone
//! The socket closes, also by `kill -9`; the helper thread then undoes every change and ends. What
//! stays is the library's code, which nothing refers to any more.

pub mod cupti;
mod driver_layer;
mod got;
mod helper;
mod live;
mod native;
mod neighbour;
mod objects;
mod record;
mod report;
mod session;
mod shared;
mod socket;
mod thread;
mod zeroed;

use std::{
    ffi::{CStr, c_char, c_int},
    panic::catch_unwind,
};

/// The variable that tells where vramscope listens.
const SOCKET: &str = "VRAMSCOPE_SOCKET";

/// Called by the CUDA driver when it is initialised. The answer 1 is what it expects, whatever
/// became of us: the program goes on.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    // Nothing may unwind into the driver.
    let _ = catch_unwind(|| {
        if let Some(path) = std::env::var_os(SOCKET) {
            helper::start(path.as_encoded_bytes(), true);
        }
    });
    1
}

/// Called by ptrace before this library is unloaded. 1: it is at rest, without a thread of its own
/// and with no thread of the program's inside.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_at_rest() -> c_int {
    c_int::from(!helper::is_running() && live::threads_inside() == 0)
}

/// Called by ptrace in a process that already runs. 0: the helper thread is on its way; else an
/// `errno`.
///
/// # Safety
/// `path` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_attach(path: *const c_char) -> c_int {
    if path.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    catch_unwind(|| helper::start(path.to_bytes(), false)).unwrap_or(libc::EIO)
}

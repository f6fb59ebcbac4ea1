//! Where the outside enters: one function, one thread.
#![allow(unsafe_code)]

use std::{
    ffi::c_void,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    ptr,
};

use crate::serve;

/// The two ends, on their way to the thread.
struct Ends {
    ours: UnixStream,
    theirs: OwnedFd,
}

/// Begins the agent's thread. Gives the descriptor of the other end of its connection, which the
/// caller takes from the process (`pidfd_getfd`), or a negative error number.
///
/// To be called on any thread of the process, without the GIL; the new thread blocks the signals
/// that the caller blocks.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_agent_start() -> i64 {
    // Nothing of ours is printed into the program's output.
    std::panic::set_hook(Box::new(|_| {}));
    let (ours, theirs) = match UnixStream::pair() {
        Ok(ends) => ends,
        Err(error) => return -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
    };
    let descriptor = i64::from(theirs.as_raw_fd());
    let ends = Box::into_raw(Box::new(Ends {
        ours,
        theirs: theirs.into(),
    }));
    let mut thread = 0;
    // SAFETY: `thread` is a valid place for the answer; NULL asks for usual attributes; `ends` is
    // given to the thread, which makes a box of it again.
    let failed =
        unsafe { libc::pthread_create(&raw mut thread, ptr::null(), entry(), ends.cast()) };
    if failed != 0 {
        // SAFETY: no thread was begun, so it is still ours.
        drop(unsafe { Box::from_raw(ends) });
        return -i64::from(failed);
    }
    // SAFETY: a thread that was just begun and that nobody joins.
    unsafe { libc::pthread_detach(thread) };
    descriptor
}

/// The thread's function. It is of the kind that may be unwound: an interpreter that ends does so to
/// threads that wait for the GIL.
fn entry() -> extern "C" fn(*mut c_void) -> *mut c_void {
    // SAFETY: the two kinds of function differ in what may pass through them, not in how they are
    // called.
    unsafe {
        std::mem::transmute::<
            extern "C-unwind" fn(*mut c_void) -> *mut c_void,
            extern "C" fn(*mut c_void) -> *mut c_void,
        >(run)
    }
}

extern "C-unwind" fn run(ends: *mut c_void) -> *mut c_void {
    // SAFETY: the name ends with a zero and has fifteen bytes, the most that a thread's may have.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"vramscope-agent".as_ptr()) };
    // SAFETY: `vramscope_agent_start` gave this box to this thread and to no other.
    let ends = unsafe { Box::from_raw(ends.cast::<Ends>()) };
    serve::serve(ends.ours, ends.theirs);
    ptr::null_mut()
}

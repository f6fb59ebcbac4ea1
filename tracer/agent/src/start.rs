//! Where the outside enters: one function, one thread.
#![allow(unsafe_code)]

use std::{
    ffi::c_void,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::serve;

/// The thread's stack. It is ours and not glibc's, which gives the stacks of threads that have ended
/// to new ones: what is left on it would look like a way back into a library that is to go.
const STACK: usize = 2 << 20;
/// Below it, so that an overflow ends in a fault and not in somebody's data.
const GUARD: usize = 64 << 10;

/// What `dlopen` gave for this library.
static HANDLE: AtomicU64 = AtomicU64::new(0);

/// What `dlopen` gave for this library, as [`vramscope_agent_start`] was told: for whoever finds it
/// loaded already.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_agent_handle() -> u64 {
    HANDLE.load(Ordering::Acquire)
}

/// The two ends, on their way to the thread.
struct Ends {
    ours: UnixStream,
    theirs: OwnedFd,
    stack: (u64, u64),
}

/// Begins the agent's thread. Gives the descriptor of the other end of its connection, which the
/// caller takes from the process (`pidfd_getfd`), or a negative error number. `handle` is what `dlopen`
/// gave.
///
/// To be called on any thread of the process, without the GIL; the new thread blocks the signals
/// that the caller blocks.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_agent_start(handle: u64) -> i64 {
    HANDLE.store(handle, Ordering::Release);
    // Nothing of ours is printed into the program's output.
    std::panic::set_hook(Box::new(|_| {}));
    let (ours, theirs) = match UnixStream::pair() {
        Ok(ends) => ends,
        Err(error) => return -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
    };
    let descriptor = i64::from(theirs.as_raw_fd());
    let stack = match map_stack() {
        Ok(stack) => stack,
        Err(error) => return -i64::from(error),
    };
    let ends = Box::into_raw(Box::new(Ends {
        ours,
        theirs: theirs.into(),
        stack: (stack as u64, (STACK + GUARD) as u64),
    }));
    let mut thread = 0;
    // SAFETY: `attributes` and `thread` are valid places for the answers; the stack was just mapped
    // and nobody else has it; `ends` is given to the thread, which makes a box of it again.
    let failed = unsafe {
        let mut attributes = std::mem::zeroed();
        let failed = libc::pthread_attr_init(&raw mut attributes);
        if failed == 0 {
            let above_guard = stack.cast::<u8>().add(GUARD).cast();
            libc::pthread_attr_setstack(&raw mut attributes, above_guard, STACK);
            let failed =
                libc::pthread_create(&raw mut thread, &raw const attributes, entry(), ends.cast());
            libc::pthread_attr_destroy(&raw mut attributes);
            failed
        } else {
            failed
        }
    };
    if failed != 0 {
        // SAFETY: no thread was begun, so box and stack are still ours.
        unsafe {
            drop(Box::from_raw(ends));
            libc::munmap(stack, STACK + GUARD);
        }
        return -i64::from(failed);
    }
    // SAFETY: a thread that was just begun and that nobody joins.
    unsafe { libc::pthread_detach(thread) };
    descriptor
}

/// A stack with its guard; an error number where there is no memory.
fn map_stack() -> Result<*mut c_void, i32> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, wherever the kernel likes it; the guard is its lower end.
    unsafe {
        let stack = libc::mmap(ptr::null_mut(), STACK + GUARD, access, flags, -1, 0);
        if stack == libc::MAP_FAILED || libc::mprotect(stack, GUARD, libc::PROT_NONE) != 0 {
            return Err(*libc::__errno_location());
        }
        Ok(stack)
    }
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
    serve::serve(ends.ours, ends.theirs, ends.stack);
    ptr::null_mut()
}

//! The calls that no safe wrapper offers, and nothing else: a thread's vector state, its signal
//! mask, and a wait that also tells of real-time signals.
#![allow(unsafe_code)]

use std::{arch::x86_64, ffi::c_void, io, mem};

use nix::unistd::Pid;

/// ptrace.h: the extended state of the processor, in the layout of `xsave`.
const NT_X86_XSTATE: usize = 0x202;
/// ptrace.h; libc does not name them.
const PTRACE_GETSIGMASK: libc::c_uint = 0x420a;
const PTRACE_SETSIGMASK: libc::c_uint = 0x420b;
/// More than any processor has today (with AMX: 11,008 bytes).
const MOST_XSTATE: usize = 64 * 1024;

/// What `waitpid` told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Nothing yet.
    Unchanged,
    /// The thread has ended.
    Ended,
    /// It stands still.
    Stopped(Stop),
}

/// Why a thread stands still (ptrace(2), "Stopped states").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// `PTRACE_INTERRUPT`, or `SIGCONT` after a group stop.
    Interrupt,
    /// The whole process is stopped, by this signal.
    Group(i32),
    /// It enters or leaves a system call.
    SystemCall,
    /// A signal is about to be delivered.
    Signal(i32),
}

/// Asks after a thread without waiting for it.
pub(crate) fn wait(thread: Pid) -> io::Result<Status> {
    let mut status = 0;
    // SAFETY: `status` is a valid place for the answer for the length of the call.
    let got = unsafe {
        libc::waitpid(
            thread.as_raw(),
            &raw mut status,
            libc::__WALL | libc::WNOHANG,
        )
    };
    match got {
        0 => Ok(Status::Unchanged),
        -1 => Err(io::Error::last_os_error()),
        _ if !libc::WIFSTOPPED(status) => Ok(Status::Ended),
        _ => {
            let signal = libc::WSTOPSIG(status);
            Ok(Status::Stopped(match status >> 16 {
                libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Interrupt,
                libc::PTRACE_EVENT_STOP => Stop::Group(signal),
                _ if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
                _ => Stop::Signal(signal),
            }))
        }
    }
}

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// Until it enters or leaves a system call.
    ToSystemCall,
    /// Without us.
    Detached,
    /// It stays stopped with its process, and tells when that ends.
    Listening,
}

/// Lets a stopped thread go on, with a signal or with 0 for none.
pub(crate) fn resume(thread: Pid, how: Resume, signal: i32) -> io::Result<()> {
    let request = match how {
        Resume::ToSystemCall => libc::PTRACE_SYSCALL,
        Resume::Detached => libc::PTRACE_DETACH,
        Resume::Listening => libc::PTRACE_LISTEN,
    };
    // SAFETY: these requests take a number and no pointer; they touch none of our memory.
    let done = unsafe { libc::ptrace(request, thread.as_raw(), 0_usize, signal as usize) };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The vector and floating-point state of a stopped thread, as `xsave` writes it.
pub(crate) fn vector_state(thread: Pid) -> io::Result<Vec<u8>> {
    let mut state = vec![0_u8; MOST_XSTATE];
    let length = register_set(libc::PTRACE_GETREGSET, thread, &mut state)?;
    state.truncate(length);
    Ok(state)
}

/// Puts back what [`vector_state`] told.
pub(crate) fn set_vector_state(thread: Pid, state: &mut [u8]) -> io::Result<()> {
    register_set(libc::PTRACE_SETREGSET, thread, state).map(drop)
}

fn register_set(request: libc::c_uint, thread: Pid, state: &mut [u8]) -> io::Result<usize> {
    let mut part = libc::iovec {
        iov_base: state.as_mut_ptr().cast::<c_void>(),
        iov_len: state.len(),
    };
    // SAFETY: `part` describes `state`, which is borrowed for the length of the call; the kernel
    // reads or writes no byte beyond its length.
    let done = unsafe { libc::ptrace(request, thread.as_raw(), NT_X86_XSTATE, &raw mut part) };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(part.iov_len)
}

/// The signals that a stopped thread blocks; those that it blocks for the length of a `ppoll` or
/// the like are not among them.
pub(crate) fn signal_mask(thread: Pid) -> io::Result<u64> {
    let mut mask = 0_u64;
    // SAFETY: the kernel writes the eight bytes that it is told of, and `mask` has eight.
    let done = unsafe {
        libc::ptrace(
            PTRACE_GETSIGMASK,
            thread.as_raw(),
            mem::size_of::<u64>(),
            &raw mut mask,
        )
    };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(mask)
}

/// Sets the signals that a stopped thread blocks.
pub(crate) fn set_signal_mask(thread: Pid, mask: u64) -> io::Result<()> {
    let mut mask = mask;
    // SAFETY: the kernel reads the eight bytes that it is told of, and `mask` has eight.
    let done = unsafe {
        libc::ptrace(
            PTRACE_SETSIGMASK,
            thread.as_raw(),
            mem::size_of::<u64>(),
            &raw mut mask,
        )
    };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Offset and size of a component of the extended state on this processor; None where it has none.
#[allow(unused_unsafe)] // The intrinsic is safe in later compilers.
pub(crate) fn xstate_component(index: u32) -> Option<(usize, usize)> {
    const EXTENDED_STATE: u32 = 0xd;
    // SAFETY: every x86-64 processor has `cpuid`; a leaf that it lacks gives zeros.
    let answer = unsafe { x86_64::__cpuid_count(EXTENDED_STATE, index) };
    (answer.eax > 0).then_some((answer.ebx as usize, answer.eax as usize))
}

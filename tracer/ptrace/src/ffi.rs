//! The calls that no safe wrapper offers, and nothing else: a thread's vector state, its signal
//! mask, and a wait that also tells of real-time signals.
#![allow(unsafe_code)]

use std::{arch::x86_64, ffi::c_void, io, mem};

use nix::unistd::Pid;

use crate::status;

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
///
/// The end of a child of this process is not taken: whoever waits for the child is to have it. In one
/// process everybody's waits see the same.
pub(crate) fn wait(thread: Pid) -> io::Result<Status> {
    // Stops alone: a thread that ends right now is not taken by this. One that has ended cannot stop
    // any more: that is an error here, and told below.
    if let Ok(Some(told)) = ask(thread, libc::WSTOPPED) {
        // SAFETY: what tells of a child has the fields of `SIGCHLD`.
        let status = unsafe { told.si_status() };
        let signal = status & 0xff;
        return Ok(Status::Stopped(match status >> 8 {
            libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Interrupt,
            libc::PTRACE_EVENT_STOP => Stop::Group(signal),
            _ if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
            _ => Stop::Signal(signal),
        }));
    }
    if !has_ended(thread)? {
        return Ok(Status::Unchanged);
    }
    if !status::is_our_child(thread.as_raw().cast_unsigned()) {
        // Its parent learns of the end once its tracer has.
        ask(thread, libc::WEXITED)?;
    }
    Ok(Status::Ended)
}

/// Whether a child or a traced thread has ended, which stays to be told.
pub(crate) fn has_ended(thread: Pid) -> io::Result<bool> {
    let told = ask(thread, libc::WEXITED | libc::WNOWAIT)?;
    // A stop of a traced thread is told whether it was asked for or not.
    let ends = [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED];
    Ok(told.is_some_and(|told| ends.contains(&told.si_code)))
}

/// waitid(2), without waiting.
fn ask(thread: Pid, what: libc::c_int) -> io::Result<Option<libc::siginfo_t>> {
    // SAFETY: a `siginfo_t` is numbers, for which 0 is a value.
    let mut told: libc::siginfo_t = unsafe { mem::zeroed() };
    let id = thread.as_raw().cast_unsigned();
    let how = what | libc::__WALL | libc::WNOHANG;
    // SAFETY: `told` is a valid place for the answer for the length of the call.
    let failed = unsafe { libc::waitid(libc::P_PID, id, &raw mut told, how) } == -1;
    if failed {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: filled in by the kernel, or still 0.
    let nobody = unsafe { told.si_pid() } == 0;
    Ok((!nobody).then_some(told))
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

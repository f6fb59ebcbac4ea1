//! Takes a descriptor out of another process: no crate wraps these two calls.
#![allow(unsafe_code)]

use std::{
    io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
};

/// A copy of another process's descriptor (`pidfd_getfd`, Linux 5.6).
pub(crate) fn take_descriptor(pid: u32, descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes two numbers and gives a new descriptor or -1.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if process < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    let process = unsafe { OwnedFd::from_raw_fd(process as i32) };
    // SAFETY: as above.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(copy as i32) })
}

//! The socket to vramscope: datagrams, one a message, in order.

use std::{
    io,
    mem::{MaybeUninit, offset_of, size_of},
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
};

/// A connection. Closed when dropped.
pub struct Socket(OwnedFd);

/// Values that are sent as the bytes they are.
///
/// # Safety
/// Implementors are `repr(C)` without padding, and every bit pattern is valid.
pub unsafe trait Message: Copy {}

macro_rules! messages {
    ($($message:ident),*) => {$(
        // SAFETY: wire.h spells its padding out; all fields are integers or arrays of them.
        unsafe impl Message for vramscope_wire::$message {}
    )*};
}
messages!(vs_plain, vs_hello, vs_setup, vs_hooked, vs_left);

impl Socket {
    /// Connects to a socket in the file system.
    pub fn connect(path: &[u8]) -> io::Result<Socket> {
        // SAFETY: plain arguments; the descriptor is new and ours.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Socket(OwnedFd::from_raw_fd(fd))
        };
        let mut address = libc::sockaddr_un {
            sun_family: libc::AF_UNIX as u16,
            sun_path: [0; 108],
        };
        if path.len() >= address.sun_path.len() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        for (to, from) in address.sun_path.iter_mut().zip(path) {
            *to = *from as libc::c_char;
        }
        let bytes = offset_of!(libc::sockaddr_un, sun_path) + path.len() + 1;
        // SAFETY: the address is as long as it says.
        let done = unsafe {
            libc::connect(
                socket.0.as_raw_fd(),
                (&raw const address).cast(),
                bytes as libc::socklen_t,
            )
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    }

    /// Its descriptor, to wait for.
    pub fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Sends a message.
    pub fn send<M: Message>(&self, message: &M) -> io::Result<()> {
        loop {
            // SAFETY: the message's bytes are all initialised (`Message`).
            let sent = unsafe {
                libc::send(
                    self.0.as_raw_fd(),
                    (message as *const M).cast(),
                    size_of::<M>(),
                    libc::MSG_NOSIGNAL,
                )
            };
            if sent >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Waits for a message of at most `M`'s size and gives it, with zeroes behind what came, the
    /// number of bytes that came (0: the other end is gone), and a descriptor if one came along.
    pub fn receive<M: Message>(&self) -> io::Result<(M, usize, Option<OwnedFd>)> {
        let mut message = MaybeUninit::<M>::zeroed();
        let mut part = libc::iovec {
            iov_base: message.as_mut_ptr().cast(),
            iov_len: size_of::<M>(),
        };
        // Room for one descriptor, aligned as the header needs it.
        let mut control = [0_u64; 4];
        loop {
            // SAFETY: the header points to room that outlives the call.
            let (received, fd) = unsafe {
                let mut header: libc::msghdr = MaybeUninit::zeroed().assume_init();
                header.msg_iov = &mut part;
                header.msg_iovlen = 1;
                header.msg_control = control.as_mut_ptr().cast();
                header.msg_controllen = size_of_val(&control);
                let received =
                    libc::recvmsg(self.0.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC);
                let mut fd = None;
                if received >= 0 {
                    let first = libc::CMSG_FIRSTHDR(&header);
                    if !first.is_null()
                        && (*first).cmsg_level == libc::SOL_SOCKET
                        && (*first).cmsg_type == libc::SCM_RIGHTS
                    {
                        let raw = libc::CMSG_DATA(first).cast::<i32>().read_unaligned();
                        fd = Some(OwnedFd::from_raw_fd(raw));
                    }
                }
                (received, fd)
            };
            if received >= 0 {
                // SAFETY: zeroes, then bytes that came; every bit pattern is valid (`Message`).
                return Ok((unsafe { message.assume_init() }, received as usize, fd));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

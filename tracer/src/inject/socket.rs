//! The socket that an injected library connects to.

use std::{
    fs::{DirBuilder, Permissions},
    io::{self, IoSlice, IoSliceMut},
    os::{
        fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
        unix::{
            ffi::OsStrExt as _,
            fs::{DirBuilderExt as _, PermissionsExt as _},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{
        AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, accept4,
        bind, getsockopt, listen, recvmsg, sendmsg, socket, sockopt::PeerCredentials,
    },
};

use super::shared::{Message, bytes_of, message};

/// Processes that may wait to be greeted.
const BACKLOG: i32 = 64;

/// A socket in a folder of its own; both go with it.
pub struct Listener {
    socket: OwnedFd,
    directory: PathBuf,
    path: PathBuf,
}

impl Listener {
    /// Listens in a new folder under `parent` that only its owner may enter. `owner`: whom the
    /// socket is for, where that is not ourselves.
    ///
    /// # Errors
    /// The folder cannot be written to, or its path is too long for a socket (107 bytes).
    pub fn new(parent: &Path, owner: Option<(u32, u32)>) -> io::Result<Listener> {
        let directory = fresh_directory(parent)?;
        let path = directory.join("socket");
        let listener = Listener {
            socket: socket(
                AddressFamily::Unix,
                SockType::SeqPacket,
                SockFlag::SOCK_CLOEXEC,
                None,
            )?,
            directory,
            path,
        };
        bind(listener.socket.as_raw_fd(), &UnixAddr::new(&listener.path)?)?;
        std::fs::set_permissions(&listener.path, Permissions::from_mode(0o600))?;
        if let Some((user, group)) = owner {
            for path in [&listener.directory, &listener.path] {
                std::os::unix::fs::chown(path, Some(user), Some(group))?;
            }
        }
        listen(&listener.socket, Backlog::new(BACKLOG)?)?;
        Ok(listener)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection; `None` when none came in time.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn accept(&self, patience: Duration) -> io::Result<Option<Connection>> {
        if !ready(self.socket.as_fd(), patience)? {
            return Ok(None);
        }
        let raw = accept4(self.socket.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?;
        Ok(Some(Connection::from_raw(raw)))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Somebody may have been there before us; nothing depends on it.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// A folder that did not exist before, for its owner only.
fn fresh_directory(parent: &Path) -> io::Result<PathBuf> {
    for number in 0..1000 {
        let path = parent.join(format!("vramscope-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

/// A connection to one injected library.
pub struct Connection {
    socket: OwnedFd,
}

impl Connection {
    fn from_raw(raw: RawFd) -> Connection {
        Connection { socket: own(raw) }
    }

    /// The process at the other end, as our pid namespace numbers it, and its user.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn peer(&self) -> io::Result<(u32, u32)> {
        let credentials = getsockopt(&self.socket, PeerCredentials)?;
        Ok((credentials.pid().cast_unsigned(), credentials.uid()))
    }

    /// Sends a message, with a descriptor if one is given.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn send<M: Message>(&self, message: &M, memory: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let descriptors: Vec<RawFd> = memory.iter().map(|memory| memory.as_raw_fd()).collect();
        let control = ControlMessage::ScmRights(&descriptors);
        let control = if descriptors.is_empty() {
            &[][..]
        } else {
            std::slice::from_ref(&control)
        };
        let parts = [IoSlice::new(bytes_of(message))];
        sendmsg::<()>(
            self.socket.as_raw_fd(),
            &parts,
            control,
            MsgFlags::MSG_NOSIGNAL,
            None,
        )?;
        Ok(())
    }

    /// The next message, if it is one of this kind and size; `None` when none came in time.
    ///
    /// # Errors
    /// The other end is gone, or it sent something else.
    pub fn receive<M: Message>(&self, patience: Duration) -> io::Result<Option<M>> {
        if !ready(self.socket.as_fd(), patience)? {
            return Ok(None);
        }
        let mut bytes = vec![0; size_of::<M>() + 1];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let received = recvmsg::<()>(
            self.socket.as_raw_fd(),
            &mut parts,
            None,
            MsgFlags::MSG_CMSG_CLOEXEC,
        )?
        .bytes;
        if received == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        message(&bytes[..received])
            .map(Some)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

#[allow(unsafe_code)]
fn own(raw: RawFd) -> OwnedFd {
    // SAFETY: fresh from accept4, owned by nobody else.
    unsafe { OwnedFd::from_raw_fd(raw) }
}

fn ready(socket: BorrowedFd<'_>, patience: Duration) -> io::Result<bool> {
    let mut wanted = [PollFd::new(socket, PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    match poll(&mut wanted, timeout) {
        Ok(count) => Ok(count > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The folder for sockets of processes of ours.
pub fn runtime_directory() -> PathBuf {
    std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_dir() && path.as_os_str().as_bytes().len() < 60)
        .unwrap_or_else(|| PathBuf::from("/tmp"))
}

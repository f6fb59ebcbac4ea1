//! One question at a time: who asks holds a name that the kernel gives to one only, and gives back
//! however its holder ends.

use std::{
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram},
    },
};

use crate::error::{Error, system};

/// The right to ask a process.
#[derive(Debug)]
pub(crate) struct Lock {
    _socket: UnixDatagram,
}

impl Lock {
    pub(crate) fn of(pid: u32) -> Result<Lock, Error> {
        let name = format!("vramscope-holders-{pid}");
        let bound = SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixDatagram::bind_addr(&address));
        match bound {
            Ok(socket) => Ok(Lock { _socket: socket }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(Error::Refused {
                pid,
                reason:
                    "another vramscope is asking it what holds its memory; wait for its answer, \
                         and ask again"
                        .into(),
            }),
            Err(error) => Err(system(pid, "making sure that nobody else asks")(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        // No process has this number.
        let pid = u32::MAX - std::process::id();
        let first = Lock::of(pid).unwrap();
        assert!(matches!(Lock::of(pid), Err(Error::Refused { .. })));
        drop(first);
        Lock::of(pid).unwrap();
    }
}

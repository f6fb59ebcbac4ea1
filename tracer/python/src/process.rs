//! A process by its id: its `/proc` files and its memory. Only reads.

use std::fmt;
use std::fs;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::error::ReadError;
use crate::maps::{self, Mapping};

/// An address in the other process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl Address {
    /// The null pointer.
    pub const NULL: Self = Self(0);

    /// Whether this is the null pointer.
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The address of a field; wraps, as a garbage pointer may sit anywhere.
    pub const fn field(self, offset: u32) -> Self {
        Self(self.0.wrapping_add(offset as u64))
    }
}

impl From<u64> for Address {
    fn from(address: u64) -> Self {
        Self(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A running process. Holds no resource; the process may end at any time, and
/// every read then says [`ReadError::Gone`].
#[derive(Clone, Debug)]
pub struct Process {
    pid: u32,
    proc_dir: PathBuf,
    start_time: u64,
}

impl Process {
    /// Looks up a process.
    ///
    /// # Errors
    /// [`ReadError::Gone`] when there is none of that id.
    pub fn open(pid: u32) -> Result<Self, ReadError> {
        let proc_dir = PathBuf::from(format!("/proc/{pid}"));
        let mut process = Self {
            pid,
            proc_dir,
            start_time: 0,
        };
        process.start_time = process.read_start_time()?;
        Ok(process)
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the id still names the process that was opened: false once it
    /// has ended, also when another one has been given its id since.
    pub fn is_running(&self) -> bool {
        self.read_start_time()
            .is_ok_and(|start_time| start_time == self.start_time)
    }

    /// A number that stands for the program that it runs: another one after an
    /// execve(2), as long as the kernel moves stacks about. `None` where it
    /// cannot be read.
    pub fn image(&self) -> Option<u64> {
        // Field 28 of `/proc/PID/stat`: where its stack begins.
        let fields = self.read_stat().ok()?;
        let start = fields.split_whitespace().nth(25)?.parse().ok()?;
        (start != 0).then_some(start)
    }

    /// Its mappings, in the order of their addresses.
    ///
    /// # Errors
    /// [`ReadError::Gone`], [`ReadError::Denied`] or [`ReadError::Io`].
    pub fn mappings(&self) -> Result<Vec<Mapping>, ReadError> {
        let mappings = maps::parse(&self.read_proc_file("maps")?);
        if mappings.is_empty() {
            // A zombie keeps its /proc entry with an empty maps file.
            self.read_start_time()?;
            let error = io::Error::new(
                io::ErrorKind::InvalidData,
                "nothing is mapped: it is a kernel thread, or only starting",
            );
            return Err(self.error("maps", error));
        }
        Ok(mappings)
    }

    /// The program that it runs, for messages.
    pub fn executable(&self) -> String {
        match fs::read_link(self.proc_path("exe")) {
            Ok(path) => path.display().to_string(),
            Err(_) => match fs::read_to_string(self.proc_path("comm")) {
                Ok(name) => name.trim_end().to_owned(),
                Err(_) => "an unknown program".to_owned(),
            },
        }
    }

    /// Whether this file, as the process sees it, is the program that it runs.
    pub(crate) fn runs(&self, path: &Path) -> bool {
        fs::read_link(self.proc_path("exe")).is_ok_and(|program| program == path)
    }

    /// Where a file that the process has mapped can be opened by us: through
    /// its root directory (it may live in another mount namespace), or, when
    /// the path leads elsewhere by now, through the mapping itself.
    pub fn openable(&self, mapping: &Mapping) -> Option<PathBuf> {
        let path = mapping.path.as_deref()?;
        let through_root = self.through_root(path);
        let found = fs::metadata(&through_root).ok();
        if !mapping.deleted
            && found
                .as_ref()
                .is_some_and(|file| file.ino() == mapping.inode)
        {
            return Some(through_root);
        }
        let by_mapping =
            self.proc_path(&format!("map_files/{:x}-{:x}", mapping.start, mapping.end));
        if fs::File::open(&by_mapping).is_ok() {
            return Some(by_mapping);
        }
        let executable = self.proc_path("exe");
        let is_executable = fs::metadata(&executable).is_ok_and(|file| file.ino() == mapping.inode);
        if is_executable {
            return Some(executable);
        }
        // Some layered file systems show another inode in maps than in stat.
        (!mapping.deleted && found.is_some()).then_some(through_root)
    }

    /// Reads exactly `buffer.len()` bytes.
    ///
    /// # Errors
    /// Any [`ReadError`]; [`ReadError::Fault`] when only a part is mapped.
    pub fn read(&self, address: Address, buffer: &mut [u8]) -> Result<(), ReadError> {
        let wanted = buffer.len();
        let got = self.read_some(address, buffer)?;
        if got < wanted {
            return Err(self.fault(address, wanted, got));
        }
        Ok(())
    }

    /// Reads as many bytes as are mapped without a gap; may be 0.
    ///
    /// # Errors
    /// Any [`ReadError`] but [`ReadError::Fault`].
    pub fn read_some(&self, address: Address, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let mut got = 0;
        while got < buffer.len() {
            let Some(base) = usize::try_from(address.0)
                .ok()
                .and_then(|base| base.checked_add(got))
            else {
                break;
            };
            let rest = &mut buffer[got..];
            let remote = [RemoteIoVec {
                base,
                len: rest.len(),
            }];
            let pid = Pid::from_raw(self.pid.cast_signed());
            match process_vm_readv(pid, &mut [IoSliceMut::new(rest)], &remote) {
                Ok(0) | Err(Errno::EFAULT | Errno::EINVAL) => break,
                Ok(count) => got += count,
                Err(errno) => return Err(self.error("memory", errno.into())),
            }
        }
        Ok(got)
    }

    /// Reads `length` bytes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_vec(&self, address: Address, length: usize) -> Result<Vec<u8>, ReadError> {
        let mut buffer = vec![0; length];
        self.read(address, &mut buffer)?;
        Ok(buffer)
    }

    /// Reads a little-endian 32-bit number.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_u32(&self, address: Address) -> Result<u32, ReadError> {
        let mut buffer = [0; 4];
        self.read(address, &mut buffer)?;
        Ok(u32::from_le_bytes(buffer))
    }

    /// Reads a little-endian 64-bit number.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_u64(&self, address: Address) -> Result<u64, ReadError> {
        let mut buffer = [0; 8];
        self.read(address, &mut buffer)?;
        Ok(u64::from_le_bytes(buffer))
    }

    /// Reads a pointer.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_pointer(&self, address: Address) -> Result<Address, ReadError> {
        self.read_u64(address).map(Address)
    }

    fn through_root(&self, path: &Path) -> PathBuf {
        let relative = path.strip_prefix("/").unwrap_or(path);
        self.proc_path("root").join(relative)
    }

    fn proc_path(&self, name: &str) -> PathBuf {
        self.proc_dir.join(name)
    }

    fn read_proc_file(&self, name: &str) -> Result<Vec<u8>, ReadError> {
        fs::read(self.proc_path(name)).map_err(|error| self.error(name, error))
    }

    /// In clock ticks since boot: field 22 of `/proc/PID/stat` (proc(5)). The
    /// fields are counted from after the name, which may hold spaces and
    /// brackets; the first is the state, field 3.
    fn read_start_time(&self) -> Result<u64, ReadError> {
        let fields = self.read_stat()?;
        let mut fields = fields.split_whitespace();
        if let Some("Z" | "X") = fields.next() {
            // Ended, and only kept for its parent to ask about.
            return Err(ReadError::Gone { pid: self.pid });
        }
        fields
            .nth(18)
            .and_then(|field| field.parse().ok())
            .ok_or_else(|| {
                let error = io::Error::new(io::ErrorKind::InvalidData, "no start time in it");
                self.error("stat", error)
            })
    }

    /// The fields of `/proc/PID/stat` behind the name.
    fn read_stat(&self) -> Result<String, ReadError> {
        let stat = self.read_proc_file("stat")?;
        let name_end = stat.iter().rposition(|byte| *byte == b')');
        let after_name = name_end.map_or(0, |end| end + 1);
        Ok(String::from_utf8_lossy(&stat[after_name..]).into_owned())
    }

    fn fault(&self, address: Address, wanted: usize, got: usize) -> ReadError {
        ReadError::Fault {
            pid: self.pid,
            address,
            wanted,
            got,
        }
    }

    fn error(&self, what: &str, source: io::Error) -> ReadError {
        let pid = self.pid;
        match source.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ESRCH | Errno::ENOENT) => ReadError::Gone { pid },
            Some(Errno::EPERM | Errno::EACCES) => ReadError::Denied {
                pid,
                owner: match fs::metadata(&self.proc_dir) {
                    Ok(metadata) => metadata.uid().to_string(),
                    Err(_) => "unknown".to_owned(),
                },
                ours: nix::unistd::geteuid().as_raw(),
                ptrace_scope: match fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope") {
                    Ok(scope) => scope.trim().to_owned(),
                    Err(_) => "not set".to_owned(),
                },
            },
            _ => ReadError::Io {
                pid,
                what: what.to_owned(),
                source,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_and_a_gap() {
        let process = Process::open(std::process::id()).unwrap();
        let words = [7u64, 8, 9];
        let address = Address(words.as_ptr().addr() as u64);
        assert_eq!(process.read_u64(address.field(8)).unwrap(), 8);
        let error = process.read_u64(Address(8)).unwrap_err();
        assert!(
            matches!(
                error,
                ReadError::Fault {
                    wanted: 8,
                    got: 0,
                    ..
                }
            ),
            "{error}"
        );
        let error = process.read_u64(Address(u64::MAX - 3)).unwrap_err();
        assert!(matches!(error, ReadError::Fault { .. }), "{error}");
    }

    #[test]
    fn a_partial_read_says_how_much() {
        let process = Process::open(std::process::id()).unwrap();
        let mappings = process.mappings().unwrap();
        let last = mappings
            .windows(2)
            .find(|pair| pair[0].permissions.read && pair[0].end < pair[1].start)
            .map(|pair| &pair[0])
            .unwrap();
        let mut buffer = [0; 64];
        let got = process
            .read_some(Address(last.end - 16), &mut buffer)
            .unwrap();
        assert_eq!(got, 16);
    }

    #[test]
    fn it_is_running_and_mapped() {
        let process = Process::open(std::process::id()).unwrap();
        assert!(process.is_running());
        let mappings = process.mappings().unwrap();
        let code = mappings
            .iter()
            .find(|mapping| mapping.permissions.execute && mapping.path.is_some())
            .unwrap();
        assert!(process.openable(code).is_some());
    }
}

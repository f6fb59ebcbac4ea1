//! Device memory used per process, in a file that all processes of a user share.
//!
//! The real driver and NVML see every process of the machine. Here each process that
//! initialises the driver owns a slot of a small table and keeps its use up to date
//! with plain atomic stores; NVML, in any process, reads the table. A slot of a
//! process that is gone is taken over by the next one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::settings::MAX_DEVICES;

const SLOTS: usize = 128;

/// One process. All zero when free.
#[repr(C)]
#[derive(Debug)]
struct Slot {
    pid: AtomicU32,
    reserved: u32,
    /// Start time of the process in clock ticks since boot: tells a reused pid.
    started: AtomicU64,
    used: [AtomicU64; MAX_DEVICES],
}

#[repr(C)]
#[derive(Debug)]
struct Table {
    slots: [Slot; SLOTS],
}

/// The table, mapped.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    table: &'static Table,
}

/// The slot of the calling process.
#[derive(Debug, Clone, Copy)]
pub struct OwnUsage {
    usage: Usage,
    slot: usize,
}

/// What one process uses of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessUsage {
    pub pid: u32,
    pub bytes: u64,
}

impl Usage {
    /// Opens or creates the table of `group` for the calling user.
    ///
    /// It lies in `SIMCUDA_SHARE_DIR`, by default `/dev/shm`, and is accessible to its
    /// owner only.
    pub fn open(group: Option<&str>) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(table_path(group))?;
        // Growing it twice to the same size is harmless, and new bytes are zero: free slots.
        file.set_len(size_of::<Table>() as u64)?;
        Self::map(&file)
    }

    fn map(file: &File) -> io::Result<Self> {
        // SAFETY: a new shared mapping of a file that is as long as the mapping.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Table>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping is as large and as aligned as `Table`, is never unmapped,
        // and consists of atomics, so other processes may write to it at any time.
        let table = unsafe { &*address.cast::<Table>() };
        Ok(Self { table })
    }

    /// Takes a slot for the calling process; `None` when the table is full.
    pub fn register(self) -> Option<OwnUsage> {
        let pid = std::process::id();
        for (index, slot) in self.table.slots.iter().enumerate() {
            let holder = slot.pid.load(Ordering::Acquire);
            let alive = holder != 0 && slot.is_alive(holder);
            if alive
                || slot
                    .pid
                    .compare_exchange(holder, pid, Ordering::AcqRel, Ordering::Relaxed)
                    .is_err()
            {
                continue;
            }
            for used in &slot.used {
                used.store(0, Ordering::Relaxed);
            }
            slot.started
                .store(start_time(pid).unwrap_or(0), Ordering::Release);
            return Some(OwnUsage {
                usage: self,
                slot: index,
            });
        }
        None
    }

    /// The processes that use `device`, with their bytes.
    pub fn processes(self, device: usize) -> Vec<ProcessUsage> {
        let mut processes = Vec::new();
        for slot in &self.table.slots {
            let pid = slot.pid.load(Ordering::Acquire);
            let bytes = slot.used[device].load(Ordering::Relaxed);
            if pid != 0 && bytes != 0 && slot.is_alive(pid) {
                processes.push(ProcessUsage { pid, bytes });
            }
        }
        processes
    }
}

impl OwnUsage {
    /// Publishes what this process uses of `device`.
    pub fn publish(self, device: usize, bytes: u64) {
        self.usage.table.slots[self.slot].used[device].store(bytes, Ordering::Relaxed);
    }

    /// What all other processes use of `device`.
    pub fn others(self, device: usize) -> u64 {
        let own = std::process::id();
        let processes = self.usage.processes(device).into_iter();
        processes
            .filter(|process| process.pid != own)
            .map(|process| process.bytes)
            .sum()
    }
}

impl Slot {
    fn is_alive(&self, pid: u32) -> bool {
        let started = self.started.load(Ordering::Acquire);
        // A slot whose start time is not stored yet is being taken just now.
        start_time(pid).is_some_and(|time| started == 0 || time == started)
    }
}

fn table_path(group: Option<&str>) -> PathBuf {
    let folder = std::env::var_os("SIMCUDA_SHARE_DIR").unwrap_or_else(|| "/dev/shm".into());
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = group.unwrap_or("any").chars().map(safe).collect();
    PathBuf::from(folder).join(format!("simcuda-usage-{user}-{name}"))
}

/// Field 22 of `/proc/<pid>/stat`; `None` if there is no such process, or only what is
/// left of it until its parent asks.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, field 2, is in brackets and may hold anything.
    let after_name = &stat[stat.rfind(')')? + 2..];
    let mut fields = after_name.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of its own for a test; its file is gone as soon as it is mapped.
    fn table(name: &str) -> Usage {
        let group = format!("{name}{}", std::process::id());
        let usage = Usage::open(Some(&group)).expect("a table");
        std::fs::remove_file(table_path(Some(&group))).expect("the file of the table");
        usage
    }

    #[test]
    fn a_process_sees_what_it_published() {
        let usage = table("test");
        let own = usage.register().expect("a free slot");
        own.publish(1, 4096);
        let pid = std::process::id();
        assert_eq!(usage.processes(1), [ProcessUsage { pid, bytes: 4096 }]);
        assert_eq!(usage.processes(0), []);
        assert_eq!(own.others(1), 0);
    }

    #[test]
    fn the_slot_of_a_dead_process_is_taken_over() {
        let usage = table("dead");
        for slot in &usage.table.slots {
            // No process has this pid: it is above the kernel's limit.
            slot.pid.store(u32::MAX / 2, Ordering::Relaxed);
            slot.started.store(1, Ordering::Relaxed);
            slot.used[0].store(1, Ordering::Relaxed);
        }
        assert_eq!(usage.processes(0), []);
        let own = usage.register().expect("a slot of a dead process");
        assert_eq!(own.slot, 0);
    }
}

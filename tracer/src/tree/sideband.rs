//! What the kernel tells of processes while it happens: that they fork, execute, map code and end.
//!
//! One ring a processor, of all processes that we may see: an event of a process would have to be
//! opened for each of its threads on each processor, and still miss threads that come meanwhile.
//! No samples are taken; the kernel writes a record where a process forks, and no program runs.

use std::{fs, io, ops::Range};

use perf_event_open::{
    config::{Cpu, ExtraRecord, Mmap, Opts, Proc, RecordIdFormat},
    count::Counter,
    event::sw::Software,
    sample::{Sampler, record::Record},
};

/// The pages of a ring, as a power of two: 256 KiB, some thousand records, within what the kernel
/// lets users lock without asking.
const RING_PAGES: u8 = 6;

/// Something that a process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A process started another one.
    Forked {
        /// Who.
        parent: u32,
        /// Whom.
        child: u32,
        /// When, in nanoseconds of the kernel's own clock.
        time: u64,
    },
    /// It runs another program from here on.
    Executed {
        /// Who.
        pid: u32,
    },
    /// It can run code of a file, or code that it made, from here on.
    Mapped {
        /// Who.
        pid: u32,
        /// The file's name, without its folders; in brackets or behind `//` where there is none.
        file: Vec<u8>,
        /// Where.
        addresses: Range<u64>,
    },
    /// Its first thread has ended: most often with all others.
    Ended {
        /// Who.
        pid: u32,
        /// When, likewise.
        time: u64,
    },
    /// The kernel had no room for some of these.
    Lost {
        /// How many.
        count: u64,
    },
}

/// The rings.
pub struct Sideband {
    /// A ring is read through its sampler; its counter has it filled.
    rings: Vec<(Sampler, Counter)>,
}

impl Sideband {
    /// Has the kernel tell from here on.
    ///
    /// # Errors
    /// It does not let us: `CAP_PERFMON` is missing, or perf_event_open(2) is forbidden.
    pub fn open() -> io::Result<Sideband> {
        let processors = fs::read_to_string("/sys/devices/system/cpu/online")?;
        let rings = numbers(processors.trim())
            .map(|processor| {
                let target = (Proc::ALL, Cpu(processor));
                let counter = Counter::new(Software::Dummy, target, options())?;
                let sampler = counter.sampler(RING_PAGES)?;
                counter.enable()?;
                Ok((sampler, counter))
            })
            .collect::<io::Result<Vec<_>>>()?;
        Ok(Sideband { rings })
    }

    /// What happened since the last call, in order; of what happened right now, perhaps the later
    /// part alone.
    pub fn take(&self) -> Vec<Happening> {
        let mut all: Vec<(u64, Happening)> = Vec::new();
        for (sampler, _) in &self.rings {
            let records = sampler.iter().into_iter().flatten();
            all.extend(records.filter_map(|(_, record)| happening(record)));
        }
        all.sort_by_key(|(time, _)| *time);
        all.into_iter().map(|(_, happening)| happening).collect()
    }
}

fn options() -> Opts {
    Opts {
        extra_record: ExtraRecord {
            task: true,
            comm: true,
            mmap: Mmap {
                code: true,
                ..Mmap::default()
            },
            ..ExtraRecord::default()
        },
        record_id_all: true,
        record_id_format: RecordIdFormat {
            time: true,
            ..RecordIdFormat::default()
        },
        ..Opts::default()
    }
}

/// What a record says, and when that was.
fn happening(record: Record) -> Option<(u64, Happening)> {
    match record {
        Record::Fork(fork) => {
            // Threads are told of as well.
            (fork.task.pid != fork.parent_task.pid).then_some((
                fork.time,
                Happening::Forked {
                    parent: fork.parent_task.pid,
                    child: fork.task.pid,
                    time: fork.time,
                },
            ))
        }
        Record::Exit(exit) => {
            let (pid, thread, time) = (exit.task.pid, exit.task.tid, exit.time);
            (pid == thread).then_some((time, Happening::Ended { pid, time }))
        }
        Record::Comm(name) => {
            let time = name.record_id.and_then(|id| id.time).unwrap_or(0);
            let pid = name.task.pid;
            name.by_execve
                .then_some((time, Happening::Executed { pid }))
        }
        Record::Mmap(map) => {
            let time = map.record_id.and_then(|id| id.time).unwrap_or(0);
            let pid = map.task.pid;
            let path = map.file.into_bytes();
            let file = path.rsplit(|byte| *byte == b'/').next()?.to_vec();
            let addresses = map.addr..map.addr.saturating_add(map.len);
            Some((
                time,
                Happening::Mapped {
                    pid,
                    file,
                    addresses,
                },
            ))
        }
        Record::LostRecords(lost) => {
            let time = lost.record_id.and_then(|id| id.time).unwrap_or(0);
            let count = lost.lost_records;
            Some((time, Happening::Lost { count }))
        }
        _ => None,
    }
}

/// The numbers of a list such as `0-3,6`.
fn numbers(list: &str) -> impl Iterator<Item = u32> {
    let ranges = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten()
}

#[cfg(test)]
mod tests {
    use std::{
        process::Command,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn lists() {
        assert_eq!(numbers("0-3,6").collect::<Vec<_>>(), [0, 1, 2, 3, 6]);
        assert_eq!(numbers("7").collect::<Vec<_>>(), [7]);
        assert_eq!(numbers("").count(), 0);
    }

    fn opened() -> Option<Sideband> {
        match Sideband::open() {
            Ok(sideband) => Some(sideband),
            Err(error) => {
                vramscope_test_support::skip("tree::sideband", &error.to_string());
                None
            }
        }
    }

    #[test]
    fn a_process_is_born_executes_and_ends() {
        let Some(sideband) = opened() else {
            return;
        };
        let mut child = Command::new("/bin/true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let mut seen = Vec::new();
        let until = Instant::now() + Duration::from_secs(10);
        let is_its_end = |happening: &Happening| match happening {
            Happening::Ended { pid: of, .. } => *of == pid,
            _ => false,
        };
        while !seen.iter().any(is_its_end) {
            assert!(Instant::now() < until, "{seen:?}");
            seen.extend(sideband.take());
        }
        let forked = seen.iter().position(|happening| {
            matches!(happening, Happening::Forked { parent, child, .. }
                if *parent == std::process::id() && *child == pid)
        });
        let executed = seen.iter().position(|h| *h == Happening::Executed { pid });
        let mapped = seen.iter().position(|happening| {
            matches!(happening, Happening::Mapped { pid: of, file, .. }
                if *of == pid && file.starts_with(b"libc.so"))
        });
        let order = [forked.unwrap(), executed.unwrap(), mapped.unwrap()];
        assert!(order.is_sorted(), "{order:?} in {seen:?}");
    }
}

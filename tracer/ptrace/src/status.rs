//! What `/proc` tells of a process and of its threads before anything is stopped.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    time::{Duration, Instant},
};

use nix::unistd::geteuid;

use crate::error::{Error, Result};

/// The lines of `/proc/PID/task/TID/status` that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub state: char,
    pub tracer: u32,
    pub process: u32,
    pub parent: u32,
    pub shadow_stack: bool,
    /// Whether it has memory of its own: one that is about to end has none any more.
    pub memory: bool,
    /// Signals that wait for the thread or for its process.
    pub pending: u64,
    /// Signals that the thread blocks.
    pub blocked: u64,
}

impl Status {
    pub(crate) fn read(pid: u32, thread: u32) -> Option<Status> {
        fs::read_to_string(format!("/proc/{pid}/task/{thread}/status"))
            .ok()
            .map(|text| Status::parse(&text))
    }

    fn parse(text: &str) -> Status {
        let mut status = Status::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            match name {
                "State" => status.state = value.chars().next().unwrap_or_default(),
                "TracerPid" => status.tracer = value.parse().unwrap_or_default(),
                "Tgid" => status.process = value.parse().unwrap_or_default(),
                "PPid" => status.parent = value.parse().unwrap_or_default(),
                "SigPnd" | "ShdPnd" => {
                    status.pending |= u64::from_str_radix(value, 16).unwrap_or_default();
                }
                "SigBlk" => status.blocked = u64::from_str_radix(value, 16).unwrap_or_default(),
                "VmSize" => status.memory = true,
                "x86_Thread_features" => status.shadow_stack = value.contains("shstk"),
                _ => {}
            }
        }
        status
    }
}

/// Whether this is the first thread of a process that this one started: its end is the process's. A
/// further thread ends without a word to the parent.
pub(crate) fn is_our_child(thread: u32) -> bool {
    Status::read(thread, thread)
        .is_some_and(|status| status.process == thread && status.parent == std::process::id())
}

/// The ids of its threads, lowest first.
pub(crate) fn threads(pid: u32) -> Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))
        .map_err(|_| vramscope_python::ReadError::Gone { pid })?;
    let mut threads: Vec<u32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    threads.sort_unstable();
    Ok(threads)
}

/// Whether the mapping that begins there is the first thread's stack, which grows by itself.
pub(crate) fn is_main_stack(pid: u32, start: u64) -> bool {
    fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| {
        maps.lines().any(|line| {
            line.ends_with("[stack]")
                && line
                    .split('-')
                    .next()
                    .and_then(|word| u64::from_str_radix(word, 16).ok())
                    == Some(start)
        })
    })
}

/// How long a process may take from its last memory to its last thread.
const ENDING: Duration = Duration::from_millis(200);

/// Whether all threads of a process have ended, whoever has still to be told. One that has no memory
/// any more is waited for, for a moment.
pub(crate) fn has_ended(pid: u32) -> bool {
    let start = Instant::now();
    loop {
        let Some(status) = Status::read(pid, pid) else {
            return true;
        };
        // The first thread may have ended alone: then others live on.
        let dead = "ZX".contains(status.state);
        if dead && threads(pid).map_or(true, |threads| threads.len() <= 1) {
            return true;
        }
        if status.memory || start.elapsed() > ENDING {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// How long the kernel may take to notice that a thread has ended, on a machine with much to do.
const NOTICING: Duration = Duration::from_secs(5);

/// Refuses what cannot work, by name.
pub(crate) fn check(pid: u32) -> Result<()> {
    if pid == std::process::id() {
        return Err(Error::Ourselves { pid });
    }
    let gone = vramscope_python::ReadError::Gone { pid };
    let mut status = Status::read(pid, pid).ok_or(gone)?;
    // A thread of ours that has just ended is the tracer until the kernel has noticed.
    let until = Instant::now() + NOTICING;
    while status.tracer != 0 && is_ours(status.tracer) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
        status = Status::read(pid, pid).ok_or(vramscope_python::ReadError::Gone { pid })?;
    }
    if status.tracer != 0 {
        return Err(traced(pid, status.tracer));
    }
    match status.state {
        // The first thread may have ended alone: then others live on.
        'Z' | 'X' if threads(pid)?.len() <= 1 => Err(Error::Zombie { pid }),
        'T' => Err(Error::Stopped { pid }),
        _ if status.shadow_stack => Err(Error::Unsupported {
            pid,
            what: "a shadow stack (x86 CET), which forbids calls from outside".into(),
        }),
        _ => Ok(()),
    }
}

fn is_ours(thread: u32) -> bool {
    fs::exists(format!("/proc/self/task/{thread}")).unwrap_or(false)
}

pub(crate) fn traced(pid: u32, tracer: u32) -> Error {
    let name = fs::read_to_string(format!("/proc/{tracer}/comm"));
    Error::Traced {
        pid,
        tracer,
        name: name.map_or_else(|_| "of unknown name".into(), |name| name.trim_end().into()),
    }
}

/// Why the kernel said EPERM, as well as can be told.
pub(crate) fn denied(pid: u32) -> Error {
    if let Some(status) = Status::read(pid, pid).filter(|status| status.tracer != 0) {
        return traced(pid, status.tracer);
    }
    let owner = fs::metadata(format!("/proc/{pid}"))
        .map_or_else(|_| "unknown".into(), |metadata| metadata.uid().to_string());
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
        .map_or_else(|_| "not set".into(), |value| value.trim().to_owned());
    let ours = geteuid().as_raw();
    let remedy = remedy(&owner, ours, &yama);
    Error::Denied {
        pid,
        owner,
        ours,
        yama,
        remedy,
    }
}

fn remedy(owner: &str, ours: u32, yama: &str) -> String {
    match yama {
        "3" => "no process may trace another until the next boot: set kernel.yama.ptrace_scope \
                below 3 in /etc/sysctl.d and reboot"
            .into(),
        _ if ours == 0 => "root without the right: in a container, start it with `--cap-add \
                           SYS_PTRACE`, or run vramscope on the host"
            .into(),
        "1" if owner == ours.to_string() => {
            "run it with sudo, or allow it for your own processes: \
                                             `sudo sysctl kernel.yama.ptrace_scope=0`"
                .into()
        }
        _ => "run it with sudo".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_status() {
        let status = Status::parse(
            "Name:\ta:b\nState:\tS (sleeping)\nTgid:\t40\nPPid:\t39\nTracerPid:\t77\n\
             SigPnd:\t0000000000000001\nShdPnd:\t0000000000000200\nSigBlk:\tfffffffe7ffbfeff\nVmSize:\t  9 kB\nx86_Thread_features:\tshstk \n",
        );
        assert_eq!(
            status,
            Status {
                state: 'S',
                tracer: 77,
                process: 40,
                parent: 39,
                shadow_stack: true,
                memory: true,
                pending: 0x201,
                blocked: 0xffff_fffe_7ffb_feff,
            }
        );
        assert!(!Status::parse("x86_Thread_features:\t\n").shadow_stack);
    }

    #[test]
    fn remedies_fit_the_cause() {
        assert!(remedy("1000", 1000, "1").contains("ptrace_scope=0"));
        assert!(remedy("0", 1000, "1").ends_with("with sudo"));
        assert!(remedy("1000", 0, "not set").contains("SYS_PTRACE"));
        assert!(remedy("1000", 0, "3").contains("reboot"));
    }

    #[test]
    fn ourselves_and_nobody() {
        let error = check(std::process::id()).unwrap_err();
        assert!(matches!(error, Error::Ourselves { .. }), "{error}");
        let error = check(u32::MAX - 7).unwrap_err();
        assert!(error.to_string().contains("gone"), "{error}");
    }
}

//! One thread, stopped; the others run on.

use std::{
    io,
    thread::{sleep, yield_now},
    time::{Duration, Instant},
};

use nix::{errno::Errno, libc::user_regs_struct, sys::ptrace, unistd::Pid};
use vramscope_python::ReadError;

use crate::{
    error::{Error, Result},
    ffi::{self, Resume, Status, Stop},
    status, waits,
};

/// How long a thread may take to stop before it is left alone: one that sleeps on a disk cannot.
const STOP_PATIENCE: Duration = Duration::from_millis(100);
/// While this long, `waitpid` is asked again and again: most answers come within it.
const BUSY_WAIT: Duration = Duration::from_micros(300);
const PAUSE: Duration = Duration::from_micros(50);

/// A stopped thread.
///
/// Only the thread of ours that stopped it may use it, and when that one ends, for whatever reason,
/// the kernel lets it go: so every use runs on a thread of its own (see [`on_a_thread`]).
pub(crate) struct Halted {
    pub pid: u32,
    pub thread: Pid,
    pub registers: user_regs_struct,
}

/// Why a thread could not be stopped.
pub(crate) enum Refusal {
    /// Try another.
    Thread(String),
    /// No thread of this process can be.
    Process(Error),
}

/// Runs `work` on a thread that ends with it. What was stopped goes on at the latest then: the
/// kernel detaches whatever a thread traces when that thread ends.
pub(crate) fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Asks after a thread until it stops or ends. There is no wait with a time limit for a traced
/// thread but to ask again.
pub(crate) fn wait(thread: Pid, patience: Duration) -> io::Result<Status> {
    let start = Instant::now();
    loop {
        let status = ffi::wait(thread)?;
        let waited = start.elapsed();
        if status != Status::Unchanged || waited >= patience {
            return Ok(status);
        }
        if waited < BUSY_WAIT {
            yield_now();
        } else {
            sleep(PAUSE);
        }
    }
}

impl Halted {
    /// Stops a thread at its next chance.
    pub(crate) fn stop(pid: u32, thread: u32) -> Result<Halted, Refusal> {
        let id = Pid::from_raw(thread.cast_signed());
        let gone = || Refusal::Thread(format!("thread {thread} has ended"));
        match ptrace::seize(id, ptrace::Options::PTRACE_O_TRACESYSGOOD) {
            Ok(()) => {}
            Err(Errno::ESRCH) => return Err(gone()),
            Err(_) => {
                // EPERM as well for a thread that has ended and is not waited for yet.
                let ended = status::Status::read(pid, thread)
                    .is_none_or(|status| matches!(status.state, 'Z' | 'X'));
                return Err(if ended {
                    gone()
                } else {
                    Refusal::Process(status::denied(pid))
                });
            }
        }
        let mut halted = Halted {
            pid,
            thread: id,
            // All bytes of it are numbers; it is filled at the stop.
            registers: match halt(pid, id)? {
                Some(registers) => registers,
                None => return Err(gone()),
            },
        };
        halted.normalise();
        Ok(halted)
    }

    /// A 32-bit thread's numbers are cut off; nothing else needs mending.
    fn normalise(&mut self) {
        if self.registers.orig_rax == u64::from(u32::MAX) {
            self.registers.orig_rax = u64::MAX;
        }
    }

    /// Lets the thread go on as if it had not been stopped: the kernel restarts the wait by itself,
    /// and we what it does not.
    pub(crate) fn let_go(self) -> Result<()> {
        if waits::was_ended_by_us(&self.registers) && !self.has_signal(None) {
            let number = self.registers.orig_rax;
            self.set_registers(waits::before_the_call(&self.registers, number))?;
        }
        self.resume(Resume::Detached, 0)
    }

    /// Whether a signal waits for the thread that it does not block, or would not with this mask.
    pub(crate) fn has_signal(&self, mask: Option<u64>) -> bool {
        status::Status::read(self.pid, self.thread.as_raw().cast_unsigned())
            .is_some_and(|status| status.pending & !mask.unwrap_or(status.blocked) != 0)
    }

    pub(crate) fn set_registers(&self, registers: user_regs_struct) -> Result<()> {
        ptrace::setregs(self.thread, registers)
            .map_err(|errno| self.error("setting registers", errno.into()))
    }

    pub(crate) fn current_registers(&self) -> Result<user_regs_struct> {
        ptrace::getregs(self.thread).map_err(|errno| self.error("reading registers", errno.into()))
    }

    pub(crate) fn resume(&self, how: Resume, signal: i32) -> Result<()> {
        ffi::resume(self.thread, how, signal).map_err(|source| self.error("resuming", source))
    }

    pub(crate) fn error(&self, what: &'static str, source: io::Error) -> Error {
        match source.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ESRCH | Errno::ECHILD) => self.gone(),
            _ => Error::System {
                pid: self.pid,
                what,
                source,
            },
        }
    }

    pub(crate) fn gone(&self) -> Error {
        ReadError::Gone { pid: self.pid }.into()
    }
}

/// Stops a thread that we trace already and gives its registers; None when it has ended.
pub(crate) fn halt(pid: u32, thread: Pid) -> Result<Option<user_regs_struct>, Refusal> {
    let fail = |what, source: io::Error| match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ESRCH | Errno::ECHILD) => Refusal::Thread(format!("thread {thread} has ended")),
        _ => Refusal::Process(Error::System { pid, what, source }),
    };
    loop {
        ptrace::interrupt(thread).map_err(|errno| fail("interrupting", errno.into()))?;
        match wait(thread, STOP_PATIENCE).map_err(|source| fail("waitpid", source))? {
            Status::Stopped(Stop::Interrupt | Stop::SystemCall) => {
                return ptrace::getregs(thread)
                    .map(Some)
                    .map_err(|errno| fail("reading registers", errno.into()));
            }
            // A stop of any kind takes the interruption away: deliver the signal, and ask again.
            Status::Stopped(Stop::Signal(signal)) => {
                ffi::resume(thread, Resume::ToSystemCall, signal)
                    .map_err(|source| fail("resuming", source))?;
            }
            Status::Stopped(Stop::Group(_)) => {
                ffi::resume(thread, Resume::Detached, 0)
                    .map_err(|source| fail("resuming", source))?;
                return Err(Refusal::Process(Error::Stopped { pid }));
            }
            Status::Ended => return Ok(None),
            Status::Unchanged => {
                return Err(Refusal::Thread(format!(
                    "thread {thread} could not be stopped: it waits for a disk or the like"
                )));
            }
        }
    }
}

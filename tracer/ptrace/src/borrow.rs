//! A waiting thread is borrowed: it runs functions for us, and goes back to its wait.

use std::time::{Duration, Instant};

use nix::{
    libc::{self, user_regs_struct},
    sys::{
        ptrace,
        signal::Signal,
        uio::{RemoteIoVec, process_vm_writev},
    },
    unistd::Pid,
};
use vramscope_python::{Address, Mapping, Permissions, Process};

use crate::{
    error::{Error, Result},
    ffi::{self, Resume, Status, Stop},
    frame::{Argument, Call, State},
    halted::{self, Halted, Refusal},
    landing::Landing,
    status, waits,
    waits::Restart,
};

/// What must be mapped below the stack pointer. `dlopen` needs some ten KiB; the main thread's stack
/// grows by itself.
const ROOM: u64 = 64 * 1024;
const ROOM_THAT_GROWS: u64 = 24 * 1024;
/// Signals that an instruction of the function itself may cause: never blocked, since the kernel
/// ends a process that blocks them.
const OWN_SIGNALS: [i32; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
];
/// How deep calls of functions in a new library go, at most, as far as they are wiped.
const WIPED: u64 = 32 * 1024;
/// How long one look at the running function lasts before the deadline is considered.
const LOOK: Duration = Duration::from_millis(10);
/// Between two rounds over all threads.
const ROUND: Duration = Duration::from_millis(1);

/// Where the borrowed thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In its own wait, as it was stopped.
    Wait,
    /// At the door of the system call that would put it back.
    Door,
    /// Anywhere in a function that crashed.
    Crash,
}

/// A borrowed thread; [`Borrowed::give_back`] ends it.
pub(crate) struct Borrowed<'a> {
    process: &'a Process,
    landing: Landing,
    halted: Halted,
    state: State,
    place: Place,
}

impl<'a> Borrowed<'a> {
    /// Finds a thread that waits, among all of the process, until the deadline.
    pub(crate) fn any(
        process: &'a Process,
        landing: Landing,
        start: Instant,
        deadline: Duration,
    ) -> Result<Borrowed<'a>> {
        let pid = process.pid();
        let mut last = "none looked like waiting".to_owned();
        loop {
            status::check(pid)?;
            let threads = status::threads(pid)?;
            for &thread in &threads {
                if !waits::looks_waiting(pid, thread) {
                    continue;
                }
                match Borrowed::take(process, landing, thread)? {
                    Ok(borrowed) => return Ok(borrowed),
                    Err(reason) => last = reason,
                }
            }
            let waited = start.elapsed();
            if waited >= deadline {
                return Err(Error::NoThread {
                    pid,
                    threads: threads.len(),
                    waited,
                    last,
                });
            }
            std::thread::sleep(ROUND);
        }
    }

    fn take(
        process: &'a Process,
        landing: Landing,
        thread: u32,
    ) -> Result<Result<Borrowed<'a>, String>> {
        let halted = match Halted::stop(process.pid(), thread) {
            Ok(halted) => halted,
            Err(Refusal::Thread(reason)) => return Ok(Err(reason)),
            Err(Refusal::Process(error)) => return Err(error),
        };
        // Read after the stop: where the thread's stack ends is only certain now.
        let mappings = process.mappings()?;
        let fits = waits::judge(process, &mappings, thread, &halted.registers).and_then(|wait| {
            room(&mappings, process.pid(), thread, &halted.registers).map(|()| wait)
        });
        let wait = match fits {
            Ok(wait) => wait,
            Err(reason) => {
                halted.let_go()?;
                return Ok(Err(reason));
            }
        };
        let vector = ffi::vector_state(halted.thread)
            .map_err(|source| halted.error("reading the vector state", source))?;
        let mask = ffi::signal_mask(halted.thread)
            .map_err(|source| halted.error("reading the signal mask", source))?;
        Ok(Ok(Borrowed {
            process,
            landing,
            state: State {
                registers: halted.registers,
                vector,
                mask,
                restart: wait.restart,
            },
            halted,
            place: Place::Wait,
        }))
    }

    /// The thread's id.
    pub(crate) fn thread(&self) -> u32 {
        self.halted.thread.as_raw().cast_unsigned()
    }

    /// Runs a function to its end and gives what it returned in `rax`.
    ///
    /// Should we be killed at any moment: before the registers are set the thread is where it was;
    /// from then on it runs the function and goes back by the frame on its stack.
    pub(crate) fn call(
        &mut self,
        function: u64,
        arguments: &[Argument<'_>],
        start: Instant,
        deadline: Duration,
    ) -> Result<u64> {
        let call = self.state.call(&self.landing, function, arguments)?;
        self.write(call.base, &call.bytes)?;
        self.halted.set_registers(call.registers)?;
        // Signals wait in the kernel until the thread is back, all that belongs to them included.
        ffi::set_signal_mask(self.halted.thread, blocked())
            .map_err(|source| self.halted.error("blocking signals", source))?;
        self.place = Place::Crash;
        self.run(function, &call, start, deadline)?;
        self.wipe_below(call.base);
        let result = self.process.read_u64(Address(call.result))?;
        // It may be an address; see `wipe_below`.
        self.write(call.result, &[0; 8])?;
        Ok(result)
    }

    fn run(
        &mut self,
        function: u64,
        call: &Call,
        start: Instant,
        deadline: Duration,
    ) -> Result<()> {
        let halted = &self.halted;
        halted.resume(Resume::ToSystemCall, 0)?;
        loop {
            let status = halted::wait(halted.thread, LOOK)
                .map_err(|source| halted.error("waitpid", source))?;
            match status {
                Status::Stopped(Stop::SystemCall) => {
                    if is_at_door(&halted.current_registers()?, call) {
                        self.place = Place::Door;
                        return Ok(());
                    }
                    halted.resume(Resume::ToSystemCall, 0)?;
                }
                Status::Stopped(Stop::Signal(signal)) => {
                    if let Some(error) = self.crash(function, signal)? {
                        return Err(error);
                    }
                    halted.resume(Resume::ToSystemCall, signal)?;
                }
                Status::Stopped(Stop::Interrupt) => halted.resume(Resume::ToSystemCall, 0)?,
                Status::Stopped(Stop::Group(_)) => halted.resume(Resume::Listening, 0)?,
                Status::Ended => return Err(halted.gone()),
                Status::Unchanged => {}
            }
            let waited = start.elapsed();
            if waited >= deadline {
                // Our end detaches the thread wherever it is, and the frame brings it back.
                return Err(Error::Hangs {
                    pid: halted.pid,
                    thread: self.thread(),
                    address: function,
                    waited,
                });
            }
        }
    }

    /// What a signal that could not be blocked means; None where somebody has sent it.
    fn crash(&self, function: u64, signal: i32) -> Result<Option<Error>> {
        let halted = &self.halted;
        let sent = ptrace::getsiginfo(halted.thread)
            .map_err(|errno| halted.error("reading a signal", errno.into()))?
            .si_code
            <= 0;
        if sent || !OWN_SIGNALS.contains(&signal) {
            return Ok(None);
        }
        Ok(Some(Error::Crashed {
            pid: halted.pid,
            address: function,
            signal: Signal::try_from(signal).map_or("a signal", Signal::as_str),
            instruction: halted.current_registers()?.rip,
        }))
    }

    /// Puts the thread back into its wait and lets it go.
    pub(crate) fn give_back(mut self) -> Result<()> {
        let halted = &self.halted;
        if self.place == Place::Wait {
            return self.halted.let_go();
        }
        let mut registers = self.state.registers;
        match (self.state.restart, self.place) {
            // A signal that has come in the meantime is told by the EINTR that the call has.
            (Restart::Repeat(number), _) if !halted.has_signal(Some(self.state.mask)) => {
                registers = waits::before_the_call(&registers, number);
            }
            // It is about to enter a system call: let it be the one that it waited in.
            (Restart::Again(number), Place::Door) => registers.orig_rax = number,
            (Restart::Rest(_), Place::Door) => {
                registers.orig_rax = libc::SYS_restart_syscall.cast_unsigned();
            }
            (Restart::Ended | Restart::Repeat(_), _) => registers.orig_rax = u64::MAX,
            // The kernel restarts it, as at any stop.
            (Restart::Again(_) | Restart::Rest(_), _) => {}
        }
        ffi::set_vector_state(halted.thread, &mut self.state.vector)
            .map_err(|source| halted.error("restoring the vector state", source))?;
        // Before the registers: until those are set the way back restores the mask as well.
        ffi::set_signal_mask(halted.thread, self.state.mask)
            .map_err(|source| halted.error("restoring the signal mask", source))?;
        halted.set_registers(registers)?;
        halted.resume(Resume::Detached, 0)
    }

    /// Overwrites what the function has left below its own beginning, so that no remains of it look
    /// like a thread that will return there. Above lies the way back, which stays.
    fn wipe_below(&self, base: u64) {
        const PIECE: u64 = 4096;
        for piece in 1..=WIPED / PIECE {
            // As far as the stack is mapped.
            if self
                .write(base - piece * PIECE, &[0; PIECE as usize])
                .is_err()
            {
                return;
            }
        }
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let pid = Pid::from_raw(self.process.pid().cast_signed());
        let local = [std::io::IoSlice::new(bytes)];
        let remote = [RemoteIoVec {
            base: at as usize,
            len: bytes.len(),
        }];
        match process_vm_writev(pid, &local, &remote) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(self.halted.error(
                "writing below the stack",
                std::io::ErrorKind::WriteZero.into(),
            )),
            Err(errno) => Err(self.halted.error("writing below the stack", errno.into())),
        }
    }
}

fn is_at_door(registers: &user_regs_struct, call: &Call) -> bool {
    registers.orig_rax.cast_signed() == libc::SYS_rt_sigreturn
        && registers.rax.cast_signed() == -i64::from(libc::ENOSYS)
        && registers.rsp == call.stack_at_return
}

/// All signals but those that the function itself may cause.
fn blocked() -> u64 {
    OWN_SIGNALS
        .iter()
        .fold(u64::MAX, |mask, signal| mask & !(1 << (signal - 1)))
}

/// Whether the thread runs on its own stack, with room below: on an alternate stack or on a
/// coroutine's there may be none, and nothing tells where it ends.
///
/// The first thread has the stack that the kernel names. glibc keeps the control block of any other,
/// which `fs` points to, at the upper end of its stack, with a guard below it; the first thread of a
/// process that was forked from such a thread has that stack as well.
fn room(
    mappings: &[Mapping],
    pid: u32,
    thread: u32,
    registers: &user_regs_struct,
) -> Result<(), String> {
    let at = mappings
        .iter()
        .position(|mapping| (mapping.start..mapping.end).contains(&registers.rsp))
        .ok_or_else(|| format!("thread {thread} has no stack"))?;
    let mapping = &mappings[at];
    let enough = if status::is_main_stack(pid, mapping.start) {
        ROOM_THAT_GROWS
    } else {
        let own = (registers.rsp..mapping.end).contains(&registers.fs_base);
        let guarded = at
            .checked_sub(1)
            .and_then(|below| mappings.get(below))
            .is_some_and(|below| below.end == mapping.start && below.permissions == NONE);
        // From glibc 2.42 on a guard is no mapping of its own.
        if !own || (thread == pid && !guarded) {
            return Err(format!(
                "thread {thread} runs on another stack than its own"
            ));
        }
        ROOM
    };
    let below = registers.rsp - mapping.start;
    if below < enough {
        return Err(format!(
            "thread {thread} has only {below} bytes of stack left"
        ));
    }
    Ok(())
}

/// What a guard allows.
const NONE: Permissions = Permissions {
    read: false,
    write: false,
    execute: false,
};

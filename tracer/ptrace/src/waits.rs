//! Which threads may be borrowed: those that only wait.
//!
//! A thread that is stopped at any other point may hold the allocator's lock or have a data
//! structure half changed, and the function that it is made to run would hang on the one or walk
//! into the other. So a thread is taken only where all of this holds:
//!
//! - It is inside one of the system calls that do nothing but wait, and the kernel confirms it
//!   after the stop.
//! - A futex is waited for with `FUTEX_WAIT_BITSET`. That is what glibc's condition variables,
//!   semaphores, read-write locks and `pthread_join` use (`sysdeps/nptl/futex-internal.h`), and
//!   with them the GIL. Its low-level locks, those of the allocator, of the dynamic loader and of
//!   every mutex, wait with plain `FUTEX_WAIT` (`lowlevellock.h`), as priority-inheriting ones do
//!   with `FUTEX_LOCK_PI`: neither is taken.
//! - A file is read only where it is a pipe, a socket, a terminal or an event counter: the loader
//!   reads libraries with the same call, and holds its lock meanwhile.
//! - The instruction pointer and the top of the stack lead into no dynamic loader and no allocator
//!   library: those of other makers (tcmalloc's spin lock sleeps) have their own ways to wait.

use std::{fs, os::unix::fs::FileTypeExt as _};

use nix::libc::{self, user_regs_struct};
use vramscope_python::{Address, Mapping, Process};

/// How the system call that a thread was stopped in goes on afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    /// It had ended already: its result stands in `rax`.
    Ended,
    /// By the same call with the same arguments.
    Again(u64),
    /// By the same call as well, which the kernel has ended with `EINTR` for nothing but our stop.
    Repeat(u64),
    /// By `restart_syscall`, which knows how much of the time is left; the number is that of the
    /// call that began the wait.
    Rest(u64),
}

/// include/linux/errno.h: what the kernel keeps in `rax` until the thread goes back.
const ERESTARTSYS: i64 = 512;
const ERESTARTNOINTR: i64 = 513;
const ERESTARTNOHAND: i64 = 514;
const ERESTART_RESTARTBLOCK: i64 = 516;

/// `mov $NUMBER, %eax; syscall`, as every wrapper of libc ends.
const LOAD_NUMBER: u8 = 0xb8;
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// How far up the stack we look for the loader and for allocators. Their own frames below a wait
/// are a few hundred bytes; older ones further up belong to callers of callers, or are remains.
const TOP_OF_STACK: usize = 1024;

/// What of a thread's stop allows to borrow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub restart: Restart,
}

/// Judges a thread that was stopped, from its registers; the reason where it may not be borrowed.
pub(crate) fn judge(
    process: &Process,
    mappings: &[Mapping],
    thread: u32,
    registers: &user_regs_struct,
) -> Result<Wait, String> {
    if registers.orig_rax.cast_signed() < 0 {
        return Err(format!("thread {thread} was computing"));
    }
    if registers.cs != 0x33 {
        return Err(format!("thread {thread} runs 32-bit code"));
    }
    let number = number(process, registers)
        .ok_or_else(|| format!("thread {thread} was in a wait of unknown kind"))?;
    if !is_wait(process, thread, number, registers) {
        return Err(format!(
            "thread {thread} was in system call {number}, no plain wait"
        ));
    }
    leads_elsewhere(process, mappings, thread, registers)?;
    let restart = match -registers.rax.cast_signed() {
        ERESTARTSYS | ERESTARTNOINTR | ERESTARTNOHAND => Restart::Again(number),
        ERESTART_RESTARTBLOCK => Restart::Rest(number),
        _ if was_ended_by_us(registers) => Restart::Repeat(number),
        _ => Restart::Ended,
    };
    Ok(Wait { restart })
}

/// Whether the thread was stopped in a call that returns `EINTR` even where no signal has a handler
/// (signal(7)), and that may be repeated. One that waits with a signal mask of its own may not: its
/// caller relies on the `EINTR` of a signal that comes in between.
pub(crate) fn was_ended_by_us(registers: &user_regs_struct) -> bool {
    let own_mask = registers.r8 != 0;
    registers.rax.cast_signed() == -i64::from(libc::EINTR)
        && match registers.orig_rax.cast_signed() {
            libc::SYS_epoll_wait => true,
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => !own_mask,
            _ => false,
        }
}

/// The registers of a thread that is about to enter that call again.
pub(crate) fn before_the_call(registers: &user_regs_struct, number: u64) -> user_regs_struct {
    let mut again = *registers;
    again.rip = again.rip.wrapping_sub(SYSCALL.len() as u64);
    again.rax = number;
    // Nothing for the kernel to restart.
    again.orig_rax = u64::MAX;
    again
}

/// The number of the system call; of one that was restarted before, the number of the first.
fn number(process: &Process, registers: &user_regs_struct) -> Option<u64> {
    if registers.orig_rax.cast_signed() != libc::SYS_restart_syscall {
        return Some(registers.orig_rax);
    }
    let code = process
        .read_vec(Address(registers.rip.wrapping_sub(7)), 7)
        .ok()?;
    let number = u32::from_le_bytes(code[1..5].try_into().ok()?);
    (code[0] == LOAD_NUMBER && code[5..] == SYSCALL).then_some(u64::from(number))
}

fn is_wait(process: &Process, thread: u32, number: u64, registers: &user_regs_struct) -> bool {
    match number.cast_signed() {
        libc::SYS_poll
        | libc::SYS_ppoll
        | libc::SYS_select
        | libc::SYS_pselect6
        | libc::SYS_epoll_wait
        | libc::SYS_epoll_pwait
        | libc::SYS_epoll_pwait2
        | libc::SYS_nanosleep
        | libc::SYS_clock_nanosleep
        | libc::SYS_pause
        | libc::SYS_rt_sigsuspend
        | libc::SYS_rt_sigtimedwait
        | libc::SYS_wait4
        | libc::SYS_waitid
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg => true,
        libc::SYS_read => waits_for_others(process.pid(), thread, registers.rdi),
        libc::SYS_futex => {
            let flags = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;
            registers.rsi as i32 & !flags == libc::FUTEX_WAIT_BITSET
        }
        _ => false,
    }
}

/// Whether a read of this descriptor waits for somebody, and is no read of a file.
fn waits_for_others(pid: u32, thread: u32, descriptor: u64) -> bool {
    let path = format!("/proc/{pid}/task/{thread}/fd/{descriptor}");
    let by_type = fs::metadata(&path).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_fifo() || kind.is_socket()
    });
    by_type
        || fs::read_link(path).is_ok_and(|target| {
            let target = target.to_string_lossy();
            ["anon_inode:", "/dev/pts/", "/dev/tty"]
                .iter()
                .any(|kind| target.starts_with(kind))
        })
}

fn leads_elsewhere(
    process: &Process,
    mappings: &[Mapping],
    thread: u32,
    registers: &user_regs_struct,
) -> Result<(), String> {
    let mut top = vec![0; TOP_OF_STACK];
    let got = process
        .read_some(Address(registers.rsp), &mut top)
        .unwrap_or_default();
    let words = top[..got]
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    for address in words.chain([registers.rip]) {
        let name = mappings
            .iter()
            .find(|mapping| (mapping.start..mapping.end).contains(&address))
            .filter(|mapping| mapping.permissions.execute)
            .and_then(Mapping::file_name);
        if let Some(name) = name.filter(|name| must_not_be_inside(name)) {
            return Err(format!("thread {thread} waits on behalf of {name}"));
        }
    }
    Ok(())
}

fn must_not_be_inside(library: &str) -> bool {
    library.starts_with("ld-")
        || library.starts_with("ld.so")
        || ["malloc", "hoard", "snmalloc", "rpmalloc"]
            .iter()
            .any(|part| library.contains(part))
}

/// What `/proc` says before anything is stopped: whether a look at the thread is worth a stop. It
/// may be wrong, as the thread runs on meanwhile. True where nothing can be read.
pub(crate) fn looks_waiting(pid: u32, thread: u32) -> bool {
    let Ok(line) = fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")) else {
        return true;
    };
    let mut words = line.split_whitespace();
    let Some(Ok(number)) = words.next().map(str::parse::<i64>) else {
        return false;
    };
    let operation = words
        .nth(1)
        .and_then(|word| i64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    match number {
        libc::SYS_futex => {
            let flags = i64::from(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
            operation
                .is_none_or(|operation| operation & !flags == i64::from(libc::FUTEX_WAIT_BITSET))
        }
        _ => number >= 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocators_and_loaders_are_known() {
        for name in [
            "ld-linux-x86-64.so.2",
            "ld-2.31.so",
            "libtcmalloc_minimal.so.4",
            "libjemalloc.so.2",
        ] {
            assert!(must_not_be_inside(name), "{name}");
        }
        for name in ["libc.so.6", "libld-notes.so", "libpython3.12.so.1.0"] {
            assert!(!must_not_be_inside(name), "{name}");
        }
    }

    #[test]
    fn a_waiting_thread_looks_so() {
        let pid = std::process::id();
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = tell.send(nix::unistd::gettid().as_raw().cast_unsigned());
            let _ = ended.recv();
        });
        let id = told.recv().unwrap();
        // It gets there: nothing else is left for it to do. Rust's channels park on a plain futex
        // wait with a bit set, as glibc's condition variables do.
        while !looks_waiting(pid, id) {
            std::thread::yield_now();
        }
        drop(end);
        thread.join().unwrap();
        assert!(looks_waiting(pid, u32::MAX), "nothing known: worth a look");
    }
}

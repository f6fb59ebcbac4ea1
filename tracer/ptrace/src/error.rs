//! What can go wrong, and what to do about it.

use std::{io, path::PathBuf, time::Duration};

use vramscope_python::ReadError;

/// A function could not be run in the other process. Unless the text says otherwise the process is
/// as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Its `/proc` files or its memory cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It has ended, and its parent has not asked after it yet.
    #[error("process {pid} has ended (a zombie); find the running one with `pgrep -af python`")]
    Zombie {
        /// Its id.
        pid: u32,
    },
    /// The kernel lets us not trace it.
    #[error(
        "not allowed to trace process {pid} of uid {owner}: we run as uid {ours}, \
         kernel.yama.ptrace_scope is {yama}; {remedy}"
    )]
    Denied {
        /// Its id.
        pid: u32,
        /// Its user.
        owner: String,
        /// Our effective user.
        ours: u32,
        /// `/proc/sys/kernel/yama/ptrace_scope`, or "not set".
        yama: String,
        /// What to do.
        remedy: String,
    },
    /// A process has one tracer at most.
    #[error(
        "process {pid} is traced already, by process {tracer} ({name}); end that first: \
         `kill {tracer}`, or `detach` in gdb"
    )]
    Traced {
        /// Its id.
        pid: u32,
        /// Who traces it.
        tracer: u32,
        /// That one's name.
        name: String,
    },
    /// `SIGSTOP` or a terminal has stopped the whole process.
    #[error("process {pid} is stopped; let it go on first: `kill -CONT {pid}`")]
    Stopped {
        /// Its id.
        pid: u32,
    },
    /// We are the process.
    #[error("process {pid} is this program itself: it cannot stop itself; name another process")]
    Ourselves {
        /// Its id.
        pid: u32,
    },
    /// No glibc.
    #[error(
        "process {pid} runs on {what}; loading a library into it is only supported on x86-64 with \
         glibc. Watching without loading works: `vramscope attach {pid}`"
    )]
    Unsupported {
        /// Its id.
        pid: u32,
        /// What it runs on.
        what: String,
    },
    /// A symbol is not there.
    #[error(
        "process {pid}: {library} exports no function {symbol}; is it a build of its own? `nm -D {library}` shows what it exports"
    )]
    NoSymbol {
        /// Its id.
        pid: u32,
        /// Where it was looked for.
        library: String,
        /// What was looked for.
        symbol: String,
    },
    /// A library is not loaded, or its file is gone or damaged.
    #[error(
        "process {pid}: {library}: {reason}; `grep {library} /proc/{pid}/maps` shows what it has loaded"
    )]
    Library {
        /// Its id.
        pid: u32,
        /// The library.
        library: String,
        /// What is wrong.
        reason: String,
    },
    /// No thread was found in a wait that may be borrowed.
    #[error(
        "process {pid}: none of its {threads} threads came to rest in a wait that can be borrowed \
         within {waited:?} (the last one seen: {last}); try again, with a longer deadline if it \
         computes without pause"
    )]
    NoThread {
        /// Its id.
        pid: u32,
        /// How many it has.
        threads: usize,
        /// How long we looked.
        waited: Duration,
        /// Why the last one was let go.
        last: String,
    },
    /// The function did not return in time. It runs on, and its thread returns by itself to what it
    /// did before once the function ends.
    #[error(
        "process {pid}: the function at {address:#x} did not return within {waited:?}; thread \
         {thread} goes on by itself when it does: see `cat /proc/{pid}/task/{thread}/stack`"
    )]
    Hangs {
        /// Its id.
        pid: u32,
        /// The borrowed thread.
        thread: u32,
        /// The function.
        address: u64,
        /// How long we waited.
        waited: Duration,
    },
    /// The function crashed; the thread was put back to where it was.
    #[error(
        "process {pid}: the function at {address:#x} got {signal} at {instruction:#x}{}; the \
         thread was put back and goes on, what the function left half done stays so",
        if *.signal == "SIGSYS" { " (a seccomp filter of the process forbids a system call)" } else { "" }
    )]
    Crashed {
        /// Its id.
        pid: u32,
        /// The function.
        address: u64,
        /// The signal's name.
        signal: &'static str,
        /// Where.
        instruction: u64,
    },
    /// The dynamic loader of the process refused.
    #[error("process {pid}: dlopen of {path} failed: {reason}")]
    Loader {
        /// Its id.
        pid: u32,
        /// The library.
        path: PathBuf,
        /// `dlerror`'s text.
        reason: String,
    },
    /// `dlclose` refused.
    #[error("process {pid}: dlclose of handle {handle:#x} answered {answer}")]
    Unload {
        /// Its id.
        pid: u32,
        /// The handle.
        handle: u64,
        /// What it answered.
        answer: i32,
    },
    /// Anything else that the system said.
    #[error("process {pid}: {what}: {source}")]
    System {
        /// Its id.
        pid: u32,
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// Too many arguments.
    #[error("{count} arguments: at most 6 fit in registers")]
    Arguments {
        /// How many there were.
        count: usize,
    },
    /// The bytes that were to be passed do not fit.
    #[error("{bytes} bytes of arguments: at most {most} are placed on a borrowed stack")]
    TooLong {
        /// How many there were.
        bytes: usize,
        /// How many may be.
        most: usize,
    },
}

/// What this crate answers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

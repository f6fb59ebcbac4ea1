//! Asks a running Python process what keeps blocks of its GPU memory alive.
//!
//! This runs code in the process: [`Asker::attach`] loads a small library into it and
//! [`Asker::leave`] takes it out again. The library passes through memory (`memfd_create`), so that
//! the process needs no file of ours: it may live in a container with other files or none that can
//! be written.
#![deny(unsafe_code)]

mod ffi;
pub mod words;

use std::{
    fs, io,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use vramscope_agent::report::Reply;
pub use vramscope_agent::report::{Answer, Cost, Holder, Kind, Request};
use vramscope_ptrace::{Argument, Loaded, Tracee};

/// The library's file name.
const LIBRARY: &str = "libvramscope_agent.so";
/// For what needs no GIL.
const DEADLINE: Duration = Duration::from_secs(10);
/// `MFD_CLOEXEC`.
const CLOSE_ON_EXEC: u64 = 1;
/// The thread's name in the process.
const THREAD: &str = "vramscope-agent";
/// How long the library may take to become unused.
const UNLOAD_PATIENCE: Duration = Duration::from_secs(2);
/// How often we look whether the thread has ended: nothing tells it.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing can be loaded into the process.
    #[error(transparent)]
    Ptrace(#[from] vramscope_ptrace::Error),
    /// Our library is not where it should be.
    #[error(
        "{LIBRARY} was not found in {}; it is built with `cargo build --release -p \
         vramscope-agent`, and lies beside the vramscope program",
        .looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NoLibrary {
        /// Where we looked.
        looked: Vec<PathBuf>,
    },
    /// The process or the agent in it refuses, and says why.
    #[error("process {pid}: {reason}")]
    Refused {
        /// The process.
        pid: u32,
        /// Why.
        reason: String,
    },
    /// No answer in time: the GIL is held.
    #[error(
        "process {pid}: no answer within {waited:?}: some thread holds the GIL without a break \
         (`py-spy dump --pid {pid}` shows which); the agent leaves as soon as it gets the GIL. \
         Ask again later"
    )]
    Stuck {
        /// The process.
        pid: u32,
        /// How long we waited.
        waited: Duration,
    },
    /// The agent is gone: the process has ended.
    #[error("process {pid} has ended during the search")]
    Ended {
        /// The process.
        pid: u32,
    },
    /// Anything else that the system said.
    #[error("process {pid}: {what}: {source}")]
    System {
        /// The process.
        pid: u32,
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

/// A connection to the agent in a process.
#[derive(Debug)]
pub struct Asker {
    tracee: Tracee,
    loaded: Loaded,
    connection: Option<BufReader<UnixStream>>,
    python: String,
}

impl Asker {
    /// Loads the agent into a process.
    ///
    /// # Errors
    /// See [`Error`]: no rights, another tracer, no glibc, no Python, a free-threaded one.
    pub fn attach(pid: u32) -> Result<Asker, Error> {
        let library = library()?;
        let tracee = Tracee::open(pid)?;
        let loaded = load(&tracee, &library)?;
        match start(&tracee, &loaded) {
            Ok((connection, python)) => Ok(Asker {
                tracee,
                loaded,
                connection: Some(connection),
                python,
            }),
            Err(error) => {
                unload(&tracee, &loaded);
                Err(error)
            }
        }
    }

    /// The version of the Python in it.
    pub fn python(&self) -> &str {
        &self.python
    }

    /// Asks one question.
    ///
    /// # Errors
    /// [`Error::Stuck`] when no answer comes within the budget, its rests and some seconds.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, Error> {
        let pid = self.tracee.pid();
        let Some(connection) = &mut self.connection else {
            return Err(Error::Ended { pid });
        };
        let system = |what| move |source| Error::System { pid, what, source };
        let mut line = serde_json::to_vec(request)
            .map_err(|error| system("writing the question")(error.into()))?;
        line.push(b'\n');
        connection
            .get_mut()
            .write_all(&line)
            .map_err(system("asking"))?;
        // Rests are as long as slices; the graphs are walked in between.
        let patience = Duration::from_millis(request.budget_ms) * 4 + DEADLINE;
        match read(connection, patience, pid)? {
            Reply::Answer(answer) => Ok(*answer),
            Reply::Refused(reason) => Err(Error::Refused { pid, reason }),
            Reply::Hello { .. } => Err(Error::Refused {
                pid,
                reason: "the agent greets twice: another version of it?".into(),
            }),
        }
    }

    /// Lets the agent go and takes the library out of the process; whether that could be done. Where
    /// not, the agent is busy or waits for the GIL, and ends by itself; its library stays loaded.
    pub fn leave(mut self) -> bool {
        self.connection = None;
        unload(&self.tracee, &self.loaded)
    }
}

/// Where our library lies: beside the program.
fn library() -> Result<PathBuf, Error> {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new(""));
    let looked: Vec<PathBuf> = ["deps", "", "../deps", "../lib", "../lib/vramscope"]
        .iter()
        .map(|inside| folder.join(inside).join(LIBRARY))
        .collect();
    looked
        .iter()
        .find(|path| path.exists())
        .cloned()
        .ok_or(Error::NoLibrary { looked })
}

fn load(tracee: &Tracee, library: &Path) -> Result<Loaded, Error> {
    let pid = tracee.pid();
    let create = tracee.function("memfd_create")?;
    let close = tracee.function("close")?;
    let arguments = [
        Argument::Bytes(b"vramscope-agent\0"),
        Argument::Word(CLOSE_ON_EXEC),
    ];
    let descriptor = tracee.call(create, &arguments, DEADLINE)? as i32;
    if descriptor < 0 {
        return Err(Error::Refused {
            pid,
            reason: "memfd_create failed there: has it run out of descriptors? `ls \
                     /proc/PID/fd | wc -l`"
                .replace("PID", &pid.to_string()),
        });
    }
    let loaded = fs::read(library)
        .and_then(|bytes| fs::write(format!("/proc/{pid}/fd/{descriptor}"), bytes))
        .map_err(|source| Error::System {
            pid,
            what: "passing the library",
            source,
        })
        .and_then(|()| {
            let path = PathBuf::from(format!("/proc/self/fd/{descriptor}"));
            Ok(tracee.load(&path, DEADLINE)?)
        });
    // The mapping stays.
    tracee.call(
        close,
        &[Argument::Word(descriptor.cast_unsigned().into())],
        DEADLINE,
    )?;
    loaded
}

fn start(tracee: &Tracee, loaded: &Loaded) -> Result<(BufReader<UnixStream>, String), Error> {
    let pid = tracee.pid();
    let system = |what| move |source| Error::System { pid, what, source };
    let dlsym = tracee.function("dlsym")?;
    let arguments = [
        Argument::Word(loaded.handle),
        Argument::Bytes(b"vramscope_agent_start\0"),
    ];
    let start = tracee.call(dlsym, &arguments, DEADLINE)?;
    let descriptor = tracee.call(start, &[], DEADLINE)?.cast_signed();
    let descriptor = i32::try_from(descriptor)
        .ok()
        .filter(|descriptor| *descriptor >= 0)
        .ok_or_else(|| {
            let error = io::Error::from_raw_os_error((-descriptor) as i32);
            system("starting the agent's thread")(error)
        })?;
    let ours = ffi::take_descriptor(pid, descriptor).map_err(system("taking the connection"))?;
    let mut connection = BufReader::new(UnixStream::from(ours));
    connection
        .get_mut()
        .write_all(b"\n")
        .map_err(system("greeting the agent"))?;
    match read(&mut connection, DEADLINE, pid)? {
        Reply::Hello { python, .. } => Ok((connection, python)),
        Reply::Refused(reason) => Err(Error::Refused { pid, reason }),
        Reply::Answer(_) => Err(Error::Refused {
            pid,
            reason: "the agent answers what nobody has asked: another version of it?".into(),
        }),
    }
}

fn read(
    connection: &mut BufReader<UnixStream>,
    patience: Duration,
    pid: u32,
) -> Result<Reply, Error> {
    let start = Instant::now();
    let mut line = Vec::new();
    let set = connection.get_ref().set_read_timeout(Some(patience));
    let got = set.and_then(|()| connection.read_until(b'\n', &mut line));
    match got {
        Ok(0) => Err(Error::Ended { pid }),
        Ok(_) => serde_json::from_slice(&line).map_err(|error| Error::System {
            pid,
            what: "reading the answer",
            source: error.into(),
        }),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            ) =>
        {
            Err(Error::Stuck {
                pid,
                waited: start.elapsed(),
            })
        }
        Err(source) => Err(Error::System {
            pid,
            what: "reading the answer",
            source,
        }),
    }
}

/// Waits for the agent's thread to end and takes the library out.
fn unload(tracee: &Tracee, loaded: &Loaded) -> bool {
    let start = Instant::now();
    // What an earlier call has left on a stack may look like a way back for a while.
    while has_thread(tracee.pid()) || !tracee.nobody_inside(&loaded.range).unwrap_or(false) {
        if start.elapsed() > UNLOAD_PATIENCE {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    tracee.unload(loaded.handle, DEADLINE).is_ok()
}

fn has_thread(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().any(|thread| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim_end() == THREAD)
    })
}

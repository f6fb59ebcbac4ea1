//! Asks a running Python process what keeps blocks of its GPU memory alive.
//!
//! This runs code in the process: [`Asker::attach`] loads a small library into it and
//! [`Asker::leave`] takes it out again. The library passes through memory (`memfd_create`), so that
//! the process needs no file of ours: it may live in a container with other files or none that can
//! be written.
#![deny(unsafe_code)]

mod error;
mod ffi;
mod library;
mod lock;
pub mod words;

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

pub use error::Error;
use error::system;
use library::Library;
use lock::Lock;
use vramscope_agent::report::Reply;
pub use vramscope_agent::report::{Answer, Cost, Holder, Kind, Request};
use vramscope_ptrace::{Argument, Tracee};

/// For what needs no GIL.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// A connection to the agent in a process.
#[derive(Debug)]
pub struct Asker {
    tracee: Tracee,
    library: Library,
    connection: Option<BufReader<UnixStream>>,
    hello: Hello,
    /// Until we have left: two would take the library away from each other.
    _lock: Lock,
}

/// What the agent says of itself.
#[derive(Clone, Debug, Default)]
struct Hello {
    /// Its thread, as the process numbers it.
    thread: u32,
    python: String,
    stack: (u64, u64),
}

impl Asker {
    /// Loads the agent into a process, or takes the one that an earlier question had to leave there.
    ///
    /// # Errors
    /// See [`Error`]: no rights, another tracer, no glibc, no Python, a free-threaded one, another
    /// vramscope that is asking.
    pub fn attach(pid: u32) -> Result<Asker, Error> {
        let lock = Lock::of(pid)?;
        let file = library::find()?;
        let tracee = Tracee::open(pid)?;
        // Whatever could not be done with a process that has ended, that is why.
        let ended = |error| match tracee.has_ended() {
            true => Error::Ended { pid },
            false => error,
        };
        let library = Library::into(&tracee, &file).map_err(ended)?;
        match start(&tracee, &library) {
            Ok((connection, hello)) => Ok(Asker {
                tracee,
                library,
                connection: Some(connection),
                hello,
                _lock: lock,
            }),
            Err(error) => {
                library.unload(&tracee, 0);
                Err(ended(error))
            }
        }
    }

    /// The version of the Python in it.
    pub fn python(&self) -> &str {
        &self.hello.python
    }

    /// Libraries of other builds of vramscope that had to stay there, idle. They were left alone.
    pub fn strangers(&self) -> usize {
        self.library.strangers
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
        let mut line = serde_json::to_vec(request)
            .map_err(|error| system(pid, "writing the question")(error.into()))?;
        line.push(b'\n');
        connection
            .get_mut()
            .write_all(&line)
            .map_err(system(pid, "asking"))?;
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
    /// not, the agent is busy or waits for the GIL, and ends by itself; its library stays loaded, and
    /// the next question uses it.
    pub fn leave(mut self) -> bool {
        self.connection = None;
        let gone = self.library.unload(&self.tracee, self.hello.thread);
        if gone {
            self.give_back_the_stack();
        }
        gone
    }

    /// The thread has ended, and nobody else knows its stack. Where it cannot be given back the
    /// process has two megabytes of addresses less.
    fn give_back_the_stack(&self) {
        let (address, length) = self.hello.stack;
        if length == 0 {
            return;
        }
        let arguments = [Argument::Word(address), Argument::Word(length)];
        let unmap = self.tracee.function("munmap");
        let _ = unmap.and_then(|unmap| self.tracee.call(unmap, &arguments, DEADLINE));
    }
}

fn start(tracee: &Tracee, library: &Library) -> Result<(BufReader<UnixStream>, Hello), Error> {
    let pid = tracee.pid();
    let start = library.function(tracee, "vramscope_agent_start")?;
    let handle = Argument::Word(library.loaded.handle);
    let descriptor = tracee.call(start, &[handle], DEADLINE)?.cast_signed();
    let descriptor = i32::try_from(descriptor)
        .ok()
        .filter(|descriptor| *descriptor >= 0)
        .ok_or_else(|| {
            let error = io::Error::from_raw_os_error((-descriptor) as i32);
            system(pid, "starting the agent's thread")(error)
        })?;
    let ours =
        ffi::take_descriptor(pid, descriptor).map_err(system(pid, "taking the connection"))?;
    let mut connection = BufReader::new(UnixStream::from(ours));
    connection
        .get_mut()
        .write_all(b"\n")
        .map_err(system(pid, "greeting the agent"))?;
    match read(&mut connection, DEADLINE, pid)? {
        Reply::Hello {
            thread,
            python,
            stack,
        } => Ok((
            connection,
            Hello {
                thread,
                python,
                stack,
            },
        )),
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

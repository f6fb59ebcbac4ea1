//! `vramscope` itself, as a user runs it.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use crate::injection_library;

/// The binary under test.
#[derive(Clone, Debug)]
pub struct Tool {
    binary: PathBuf,
    environment: Vec<(String, String)>,
    /// What starts it, if not we ourselves.
    front: Option<PathBuf>,
}

/// What a finished run left.
#[derive(Debug)]
pub struct Run {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it said beside.
    pub stderr: String,
}

impl Run {
    /// The report, where JSON was asked for.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// A session under way.
pub struct Attached {
    child: Child,
    stdout: ChildStdout,
    stderr: BufReader<ChildStderr>,
    said: String,
}

impl Tool {
    /// The binary at `path` (a test's `CARGO_BIN_EXE_vramscope`).
    pub fn new(path: impl AsRef<Path>) -> Tool {
        Tool {
            binary: path.as_ref().to_owned(),
            environment: Vec::new(),
            front: None,
        }
    }

    /// Has it started by another program, which is given the binary and its arguments.
    pub fn behind(mut self, front: impl AsRef<Path>) -> Tool {
        self.front = Some(front.as_ref().to_owned());
        self
    }

    /// Sets an environment variable of it.
    pub fn env(mut self, name: &str, value: &str) -> Tool {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// A command of it, for tests that need more than this.
    pub fn command(&self) -> Command {
        let mut command = match &self.front {
            Some(front) => {
                let mut command = Command::new(front);
                command.arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        };
        command.env("VRAMSCOPE_INJECTION", injection_library());
        command.envs(self.environment.iter().cloned());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Run {
        let output = self
            .command()
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("vramscope starts");
        Run {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Attaches headless, JSON on stdout, and returns once the probes are in place.
    pub fn attach(&self, pid: u32, arguments: &[&str]) -> Attached {
        let mut child = self
            .command()
            .args(["attach", &pid.to_string(), "--headless", "--format", "json"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("vramscope starts");
        let mut attached = Attached {
            stdout: child.stdout.take().expect("piped"),
            stderr: BufReader::new(child.stderr.take().expect("piped")),
            child,
            said: String::new(),
        };
        attached.until("attached to");
        attached
    }
}

impl Attached {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads what it says until a line begins with `prefix`.
    pub fn until(&mut self, prefix: &str) {
        loop {
            let start = self.said.len();
            let bytes = self
                .stderr
                .read_line(&mut self.said)
                .expect("readable stderr");
            assert!(bytes > 0, "vramscope ended: {}", self.said);
            if self.said[start..].starts_with(prefix) {
                return;
            }
        }
    }

    /// Ctrl-C, as a user would; the report of what was seen.
    pub fn interrupt(mut self) -> Run {
        self.signal(Signal::SIGINT);
        self.wait()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed());
        kill(pid, signal).expect("vramscope lives");
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Run {
        let mut stdout = String::new();
        self.stdout
            .read_to_string(&mut stdout)
            .expect("UTF-8 on stdout");
        self.stderr
            .read_to_string(&mut self.said)
            .expect("UTF-8 on stderr");
        Run {
            status: self.child.wait().expect("our child"),
            stdout,
            stderr: std::mem::take(&mut self.said),
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

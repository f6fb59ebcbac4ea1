//! Programs and libraries that the tests build with the C compiler, and processes of them.
#![allow(dead_code)]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use vramscope_ptrace::{Loaded, Tracee};

pub const DEADLINE: Duration = Duration::from_secs(30);

/// How often the long tests repeat: `VRAMSCOPE_REPEAT`, or a few times.
pub fn repetitions(few: usize) -> usize {
    std::env::var("VRAMSCOPE_REPEAT")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(few)
}

pub fn skip(test: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIP: {test}: {reason}");
}

pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// Compiles a program of ours, with the options that it needs.
pub fn compile(directory: &Path, source: &str, output: &str, options: &[&str]) -> PathBuf {
    let to = directory.join(output);
    let status = Command::new("cc")
        .args(["-O2", "-Wall"])
        .args(options)
        .arg(program(source))
        .arg("-o")
        .arg(&to)
        .args(["-pthread", "-ldl"])
        .status()
        .expect("cc is installed");
    assert!(status.success(), "{source} does not compile");
    to
}

pub fn library(directory: &Path, output: &str) -> PathBuf {
    compile(directory, "library.c", output, &["-shared", "-fPIC"])
}

/// A thread that could not be stopped in time, or what an old call has left on a stack, counts as
/// somebody inside: it is asked again, as whoever unloads a library does.
pub fn until_nobody_is_inside(tracee: &Tracee, loaded: &Loaded) {
    let until = Instant::now() + DEADLINE;
    while !tracee.nobody_inside(&loaded.range).unwrap() {
        assert!(Instant::now() < until, "somebody stays inside");
    }
}

/// A running program that says "ready" first.
pub struct Target {
    pub child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Target {
    pub fn start(command: &mut Command) -> Target {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut target = Target {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().expect("piped")),
            child,
        };
        assert_eq!(target.line(), "ready");
        target
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line.trim().to_owned()
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("open"), "{line}").expect("it listens");
    }

    /// Ends its input and gives the rest of what it prints.
    pub fn finish(&mut self) -> (ExitStatus, String) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("our child"), rest)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

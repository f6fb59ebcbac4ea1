//! Real interpreters for the tests: finding them, starting them, and the truth
//! that they tell about themselves.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use vramscope_python::Version;

/// The minor versions that the tests want to see.
pub const WANTED: std::ops::RangeInclusive<u8> = 8..=14;

/// A CPython on this machine.
#[derive(Clone, Debug)]
pub struct Interpreter {
    pub program: PathBuf,
    pub version: Version,
    /// Folder of `Python.h`, which need not exist.
    pub include: PathBuf,
}

/// Prints past the test harness, which hides what passing tests print.
pub fn note(text: &str) {
    let line = format!("{text}\n");
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("stderr can be written to");
}

/// Every CPython 3.8 and later in PATH, `/usr/bin`, pyenv's folder and where
/// `scripts/newer-python` puts it, each once. Prints a skip for each version that is not there.
pub fn interpreters(test: &str) -> Vec<Interpreter> {
    let found = all_interpreters();
    let supported: Vec<Interpreter> = found
        .into_iter()
        .filter(|python| WANTED.contains(&python.version.minor) && !python.version.free_threaded)
        .collect();
    let mut skipped = 0;
    for minor in WANTED {
        if !supported.iter().any(|python| python.version.minor == minor) {
            note(&format!(
                "SKIP: {test}: no CPython 3.{minor} on this machine"
            ));
            skipped += 1;
        }
    }
    note(&format!(
        "{test}: {} interpreters, {skipped} versions skipped",
        supported.len()
    ));
    supported
}

/// Every CPython 3 on this machine, in the order of their versions.
pub fn all_interpreters() -> Vec<Interpreter> {
    let mut folders: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    folders.push("/usr/bin".into());
    folders.push("/usr/local/bin".into());
    let pyenv = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    for version in pyenv
        .iter()
        .flat_map(|root| fs::read_dir(root.join("versions")))
    {
        folders.extend(version.flatten().map(|entry| entry.path().join("bin")));
    }
    folders.extend(newer_pythons());
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for folder in folders {
        for minor in 6..=15 {
            let program = folder.join(format!("python3.{minor}"));
            if !program.exists() {
                continue;
            }
            if let Some(python) = ask(&program)
                && seen.insert(python.program.clone())
            {
                found.push(python);
            }
        }
    }
    found.sort_by_key(|python| python.version);
    found
}

/// Where `scripts/newer-python` puts them.
fn newer_pythons() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    Some(cache?.join("vramscope/pythons/bin"))
}

/// What an interpreter says of itself; None for what does not run.
fn ask(program: &Path) -> Option<Interpreter> {
    const QUESTION: &str = "import os, sys, sysconfig\n\
        print(os.path.realpath(sys.executable))\n\
        print(*sys.version_info[:3], int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))\n\
        print(sysconfig.get_path('include'))";
    let output = Command::new(program)
        .args(["-S", "-c", QUESTION])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut lines = text.lines();
    let program = PathBuf::from(lines.next()?);
    let numbers: Vec<u8> = lines
        .next()?
        .split(' ')
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()?;
    let [major, minor, micro, free_threaded] = numbers.try_into().ok()?;
    let mut version = Version::new(major, minor, micro);
    version.free_threaded = free_threaded != 0;
    Some(Interpreter {
        program,
        version,
        include: PathBuf::from(lines.next()?),
    })
}

/// A copy of an interpreter is "busy" while a process that another test's thread has just forked
/// still has it open for writing, until that one runs its own program.
fn spawn(command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..100 {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            result => return result,
        }
    }
    command.spawn()
}

/// A program that tells something in one line and then waits for its standard
/// input to close. Ended when dropped.
pub struct Target {
    pub child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Target {
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn(command).unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self {
            child,
            stdin,
            stdout,
        }
    }

    /// A `cat`, perhaps under another name. It has answered once, since a
    /// process is there before its program is.
    pub fn cat(program: &Path) -> Self {
        let mut target = Self::start(&mut Command::new(program));
        let stdin = target.stdin.as_mut().expect("stdin is piped");
        stdin.write_all(b"started\n").expect("it reads its input");
        assert_eq!(target.line(), "started\n");
        target
    }

    /// A script of the folder `python` beside this one.
    pub fn script(python: &Interpreter, script: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/python")
            .join(script);
        Self::start(
            Command::new(&python.program)
                .arg(script)
                .env("PYTHONDONTWRITEBYTECODE", "1"),
        )
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it prints. Fails the test when it ends instead.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout
            .read_line(&mut line)
            .expect("its output is text");
        if line.is_empty() {
            let status = self.child.wait().expect("it can be waited for");
            panic!("the target ended without a word: {status}");
        }
        line
    }

    /// Closes its standard input and waits for its end.
    pub fn finish(mut self) {
        drop(self.stdin.take());
        let status = self.child.wait().expect("it can be waited for");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Either may fail because it has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

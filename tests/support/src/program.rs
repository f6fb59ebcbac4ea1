//! A program, most often Python on the simulated device, driven through its standard input and output.

use std::{
    collections::VecDeque,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::root;

/// The PyTorch versions that every test of the whole runs on.
pub const TORCHES: [&str; 2] = ["2.15.0", "2.8.0"];
/// Nothing a test waits for takes this long; a program that hangs fails its test instead of the
/// whole run.
const PATIENCE: Duration = Duration::from_secs(240);

/// How a program is started.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The PyTorch version.
    pub torch: String,
    /// Options for the simulated device, such as `--devices 2`.
    pub device: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
}

impl Setup {
    /// One device of 80 GB.
    pub fn new(torch: &str) -> Setup {
        Setup {
            torch: torch.into(),
            device: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// Adds an option for the simulated device.
    pub fn device(mut self, option: &str, value: &str) -> Setup {
        self.device.extend([option.into(), value.into()]);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Setup {
        self.environment.push((name.into(), value.into()));
        self
    }
}

/// A running program. Killed when dropped.
pub struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    seen: VecDeque<String>,
}

impl Program {
    /// Starts a script.
    pub fn start(setup: &Setup, script: &Path, arguments: &[&str]) -> Program {
        let simulator = Command::new(root().join("tests/simcuda/run"));
        Program::spawn(simulator, setup, script, arguments)
    }

    /// Starts a script behind another command, which is given the one to run as its last arguments:
    /// [`Program::pid`] is then the front's.
    pub fn start_behind(
        mut front: Command,
        setup: &Setup,
        script: &Path,
        arguments: &[&str],
    ) -> Program {
        front.arg(root().join("tests/simcuda/run"));
        Program::spawn(front, setup, script, arguments)
    }

    fn spawn(mut command: Command, setup: &Setup, script: &Path, arguments: &[&str]) -> Program {
        command
            .args(["--torch", &setup.torch])
            .args(&setup.device)
            .arg("--")
            .arg(script)
            .args(arguments)
            .envs(setup.environment.iter().cloned());
        Program::of(command)
    }

    /// Starts any command.
    pub fn of(mut command: Command) -> Program {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = (command.spawn()).unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = child.stdout.take().expect("piped");
        let (sender, output) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Program {
            input: child.stdin.take(),
            child,
            output,
            seen: VecDeque::new(),
        }
    }

    /// Its process id; the simulator's front replaces itself by Python.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that begins with `prefix`, without it; lines before it are kept in
    /// [`Program::seen`].
    pub fn expect(&mut self, prefix: &str) -> String {
        loop {
            match self.output.recv_timeout(PATIENCE) {
                Ok(line) => {
                    if let Some(rest) = line.strip_prefix(prefix) {
                        return rest.trim().to_owned();
                    }
                    self.seen.push_back(line);
                }
                Err(error) => panic!(
                    "no line `{prefix}…` came ({error}); before: {:?}; exit: {:?}",
                    self.seen,
                    self.child.try_wait()
                ),
            }
        }
    }

    /// Waits until the program has printed `prefix` anew, whatever it had printed before: takes
    /// all that is there, then two lines, since one may have been under way.
    pub fn expect_anew(&mut self, prefix: &str) {
        self.seen.extend(self.output.try_iter());
        self.expect(prefix);
        self.expect(prefix);
    }

    /// Lines that were read and not expected.
    pub fn seen(&self) -> &VecDeque<String> {
        &self.seen
    }

    /// Sends a line.
    pub fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("not closed");
        writeln!(input, "{line}").expect("the program listens");
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed());
        kill(pid, signal).expect("the program lives");
    }

    /// Whether it still runs.
    pub fn alive(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_none()
    }

    /// Closes its input and waits for its end; the rest of its output is in [`Program::seen`].
    pub fn finish(&mut self) -> ExitStatus {
        drop(self.input.take());
        let status = self.child.wait().expect("our child");
        self.seen.extend(self.output.iter());
        status
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

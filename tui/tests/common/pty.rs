//! The demo on a real pseudo terminal, whose picture is read back by a terminal emulator.
#![allow(dead_code, reason = "not every test uses every helper")]

use std::{
    io::{Read, Write},
    num::NonZero,
    path::PathBuf,
    process::Command,
    sync::{
        OnceLock,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtyPair, PtySize, native_pty_system};

/// Longer than any loaded machine needs; only a failure waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The demo, built if need be.
pub fn demo() -> PathBuf {
    static DEMO: OnceLock<PathBuf> = OnceLock::new();
    DEMO.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "vramscope-tui",
                "--example",
                "demo",
            ])
            .status()
            .expect("cargo runs");
        assert!(built.success(), "the demo does not build");
        let test = std::env::current_exe().expect("a test has a path");
        let target = test.ancestors().nth(3).expect("target/PROFILE/deps/TEST");
        target.join("debug/examples/demo")
    })
    .clone()
}

pub struct Session {
    pub child: Box<dyn Child + Send + Sync>,
    pair: PtyPair,
    keyboard: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    /// Everything that came, as it came.
    pub raw: Vec<u8>,
    /// The terminal's settings before the demo started.
    before: String,
}

impl Session {
    /// Starts the demo with `arguments` and the locale of the given name.
    pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Session {
        let mut command = CommandBuilder::new(demo());
        command.args(arguments);
        Session::start_command(command, environment)
    }

    pub fn start_command(mut command: CommandBuilder, environment: &[(&str, &str)]) -> Session {
        let size = PtySize {
            rows: 30,
            cols: 100,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system()
            .openpty(size)
            .expect("a pseudo terminal");
        for name in ["LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR", "COLORFGBG"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        for (name, value) in environment {
            command.env(name, value);
        }
        let before = settings(&*pair.master);
        let child = pair.slave.spawn_command(command).expect("the demo starts");
        let mut reader = pair.master.try_clone_reader().expect("readable");
        let keyboard = pair.master.take_writer().expect("writable");
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Session {
            child,
            pair,
            keyboard,
            output,
            parser: parser(size.cols, size.rows, &[]),
            raw: Vec::new(),
            before,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().expect("it runs")
    }

    /// Types.
    pub fn keys(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("the demo reads");
        self.keyboard.flush().expect("the demo reads");
    }

    pub fn resize(&mut self, cols: u16, rows: u16) {
        let size = PtySize {
            rows,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        };
        self.parser = parser(cols, rows, &self.raw);
        // What comes from here on is looked at, not what was there.
        self.parser.process(b"\x1b[2J");
        self.pair
            .master
            .resize(size)
            .expect("a terminal has a size");
    }

    pub fn picture(&self) -> String {
        self.parser.screen().contents()
    }

    /// Waits until the picture is as wanted.
    pub fn wait(&mut self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(self.parser.screen()) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => {
                    self.parser.process(&bytes);
                    self.raw.extend(bytes);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no {what} on the screen:\n{}", self.picture());
                }
            }
        }
    }

    /// Waits for a text.
    pub fn wait_for(&mut self, text: &str) {
        self.wait(text, |screen| screen.contents().contains(text));
    }

    /// Sends a signal, by number.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.pid().to_string()])
            .status()
            .expect("kill runs");
        assert!(sent.success());
    }

    /// Waits until the process is in a state as `/proc` tells it: `T` for stopped.
    pub fn wait_for_state(&mut self, state: char) {
        let path = format!("/proc/{}/stat", self.pid());
        let deadline = Instant::now() + PATIENCE;
        loop {
            let stat = std::fs::read_to_string(&path).expect("it lives");
            let after_name = stat.rsplit(')').next().unwrap_or_default();
            if after_name.trim_start().starts_with(state) {
                return;
            }
            assert!(Instant::now() < deadline, "never in state {state}: {stat}");
            std::thread::yield_now();
        }
    }

    /// Waits for the end and asserts that the terminal is as it was.
    pub fn assert_restored(&mut self, code: Option<u32>) {
        let status = self.child.wait().expect("it ends");
        if let Some(code) = code {
            assert_eq!(status.exit_code(), code, "{status:?}\n{}", self.picture());
        }
        self.wait("primary screen", |screen| {
            !screen.alternate_screen() && !screen.hide_cursor()
        });
        assert_eq!(settings(&*self.pair.master), self.before);
    }
}

/// A terminal emulator that has seen `raw`.
fn parser(columns: u16, lines: u16, raw: &[u8]) -> vt100::Parser {
    let size = |number| NonZero::new(number).expect("a size");
    let mut parser = vt100::Parser::new(size(lines), size(columns), 0);
    parser.process(raw);
    parser
}

/// Modes and control characters of the terminal.
pub fn settings(master: &dyn MasterPty) -> String {
    format!(
        "{:?}",
        master.get_termios().expect("a terminal has settings")
    )
}

/// Everything that a terminal would obey, as pieces; the text between them is left out.
pub fn orders(mut bytes: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    while let Some((&byte, rest)) = bytes.split_first() {
        let length = match (byte, rest) {
            (0x1b, [b'[', tail @ ..]) => {
                let end = tail.iter().position(|byte| (0x40..=0x7e).contains(byte));
                end.map_or(bytes.len(), |end| end + 3)
            }
            (0x1b, _) => 2.min(bytes.len()),
            (0xc2, [0x80..=0x9f, ..]) => 2,
            (0..=0x1f | 0x7f, _) => 1,
            _ => {
                bytes = rest;
                continue;
            }
        };
        out.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
        bytes = &bytes[length..];
    }
    out
}

//! The live view of the real binary on a real training, in a real terminal (tmux): through every
//! view, out again, and the terminal as before.
//!
//! `VRAMSCOPE_SCREENS=DIR` keeps what was seen, a file a view.

use std::{
    process::{Command, Output},
    time::{Duration, Instant},
};

use vramscope_test_support::{Program, Setup, TORCHES, Tool, missing, root, skip};

const PATIENCE: Duration = Duration::from_secs(60);

/// A tmux server of our own with one window; killed when dropped.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn start(name: &str, columns: u16, lines: u16) -> Option<Terminal> {
        let terminal = Terminal {
            socket: format!("vramscope-test-{}-{name}", std::process::id()),
        };
        let size = [columns.to_string(), lines.to_string()];
        let started = Command::new("tmux")
            .args([
                "-L",
                &terminal.socket,
                "-f",
                "/dev/null",
                "new-session",
                "-d",
            ])
            .args(["-x", &size[0], "-y", &size[1], "env", "PS1=$ ", "sh"])
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .output();
        started
            .is_ok_and(|output| output.status.success())
            .then_some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        Command::new("tmux")
            .args(["-L", &self.socket])
            .args(arguments)
            .output()
            .unwrap()
    }

    /// Types text as it is.
    fn keys(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses a key by its name.
    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout).into_owned()
    }

    fn wait_for(&self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(Instant::now() < until, "no `{text}` on\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs a command in the shell and returns its one line of output.
    fn ask(&self, command: &str, mark: &str) -> String {
        self.keys(&format!("echo {mark}=$({command})="));
        self.press("Enter");
        // The typed line has `$(`, the answer has not.
        let until = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen().replace('\n', "");
            let answer = screen
                .rsplit(&format!("{mark}="))
                .next()
                .and_then(|rest| rest.split_once('='))
                .map(|(answer, _)| answer.to_owned())
                .filter(|answer| !answer.contains("$("));
            if let Some(answer) = answer {
                return answer;
            }
            assert!(Instant::now() < until, "no answer on\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn keep(name: &str, screen: &str) {
    if let Some(directory) = std::env::var_os("VRAMSCOPE_SCREENS") {
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(std::path::Path::new(&directory).join(name), screen).unwrap();
    }
}

#[test]
fn every_view_of_a_real_training() {
    let binary = env!("CARGO_BIN_EXE_vramscope");
    let test = "every_view_of_a_real_training";
    if let Some(reason) = missing(&Tool::new(binary)) {
        return skip(test, &reason);
    }
    let Some(terminal) = Terminal::start("training", 120, 40) else {
        return skip(test, "no tmux");
    };
    let mut program = Program::start(
        &Setup::new(TORCHES[0]).device("--mem", "8G"),
        &root().join("tests/programs/demo/train.py"),
        &[],
    );
    program.expect("step 0 ");
    let directory = tempfile::tempdir().unwrap();
    terminal.keys(&format!("cd {}", directory.path().display()));
    terminal.press("Enter");
    let before = terminal.ask("stty -g", "before");
    terminal.keys(&format!("{binary} attach {} --capacity 8G", program.pid()));
    terminal.press("Enter");
    terminal.wait_for("validation_loss");
    let verdict = terminal.wait_for("LEAK");
    keep("sites.txt", &verdict);
    assert!(verdict.contains("train.py:"), "{verdict}");
    for (key, text, name) in [
        ("2", "CALLERS FIRST", "tree.txt"),
        ("3", "live tensors", "memory.txt"),
        ("4", "memory, ", "timeline.txt"),
        ("5", "STATE", "processes.txt"),
        ("6", "Probes", "log.txt"),
        ("?", "forget the mark", "help.txt"),
    ] {
        terminal.keys(key);
        keep(name, &terminal.wait_for(text));
    }
    terminal.press("Escape");
    terminal.keys("1");
    terminal.wait_for("SOURCE");
    terminal.press("Enter");
    keep("site.txt", &terminal.wait_for("born in"));
    terminal.keys("h");
    terminal.wait_for("h or y asks");
    terminal.keys("h");
    terminal.wait_for("survivors, asked ");
    keep("holders.txt", &terminal.screen());
    terminal.press("Escape");
    terminal.keys("f");
    terminal.wait_for("flamegraph written to");
    terminal.keys("w");
    terminal.wait_for("report written to");
    terminal.keys("q");
    let end = terminal.wait_for("Session:");
    keep("after.txt", &end);
    let after = terminal.ask("stty -g", "after");
    assert_eq!(before, after, "the terminal is not as it was");
    assert!(program.alive());
    let written = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(written, 2, "a flamegraph and a report");
}

#[test]
fn a_recording_is_played() {
    let binary = env!("CARGO_BIN_EXE_vramscope");
    let test = "a_recording_is_played";
    if let Some(reason) = missing(&Tool::new(binary)) {
        return skip(test, &reason);
    }
    let Some(terminal) = Terminal::start("recording", 120, 40) else {
        return skip(test, "no tmux");
    };
    let mut program = Program::start(
        &Setup::new(TORCHES[0]).device("--mem", "8G"),
        &root().join("tests/programs/demo/train.py"),
        &[],
    );
    program.expect("step 0 ");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.vrs");
    let file = file.to_str().unwrap();
    let options = ["--capacity", "8G", "--duration", "4", "-o", file];
    let run = Tool::new(binary).attach(program.pid(), &options).wait();
    assert!(run.status.success(), "{run:?}");
    drop(program);
    terminal.keys(&format!("{binary} live {file}"));
    terminal.press("Enter");
    let screen = terminal.wait_for(" s of ");
    // A busy machine ends it later.
    let (_, length) = screen.split_once(" s of ").unwrap();
    let length: u32 = length.split(' ').next().unwrap().parse().unwrap();
    assert!(length >= 4, "{screen}");
    let end = format!("at {length} s of {length} s");
    terminal.wait_for(&end);
    terminal.wait_for("validation_loss");
    // Back to the beginning, where nothing is known yet, and played from there.
    terminal.keys("{{{{{{{{{{{{");
    keep("recording.txt", &terminal.wait_for("at 0 s of "));
    terminal.keys("<");
    terminal.wait_for("paused; space plays at 0.5x");
    terminal.keys(" ");
    terminal.wait_for("playing 0.5x, at ");
    terminal.keys(">>>>");
    terminal.wait_for(&end);
    terminal.wait_for("validation_loss");
    terminal.keys("q");
    // The shell's screen is back, with what was typed there.
    terminal.wait_for("vramscope live ");
}

//! What a user can get wrong: each error says cause, current value and the next command, on stderr,
//! with exit code 3, and leaves the process alone.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use vramscope_test_support::{Run, Tool, skip};

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

/// A process that has printed its first line and waits for its input to end. Killed when dropped.
struct Waiting(Child);

impl Waiting {
    fn start(program: &str, arguments: &[&str]) -> Waiting {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(!line.is_empty());
        Waiting(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PYTHON: &str = "import sys\nprint('ready', flush=True)\nsys.stdin.read()";

/// The run failed as it should: nothing on stdout, and on stderr all of `words`.
fn refused(run: &Run, words: &[&str]) {
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    assert!(run.stdout.is_empty(), "{run:?}");
    for word in words {
        assert!(
            run.stderr.contains(word),
            "`{word}` is not in {}",
            run.stderr
        );
    }
}

fn attach(pid: &str) -> Run {
    tool().run(&["attach", pid, "--headless", "--duration", "1"])
}

/// Why the checks that come after the rights cannot be tested here.
fn no_rights(test: &str) -> bool {
    let doctor = tool().run(&["doctor"]);
    if !doctor.status.success() {
        skip(test, doctor.stdout.trim());
    }
    !doctor.status.success()
}

#[test]
fn a_pid_that_is_gone() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id().to_string();
    child.wait().unwrap();
    refused(&attach(&pid), &[&pid, "gone", "pgrep -af python"]);
}

#[test]
fn not_a_python_process() {
    if no_rights("not_a_python_process") {
        return;
    }
    let cat = Waiting::start("sh", &["-c", "echo ready; exec cat"]);
    refused(
        &attach(&cat.pid()),
        &[&cat.pid(), "not Python", "pgrep -af python"],
    );
}

#[test]
fn python_without_torch() {
    if no_rights("python_without_torch") {
        return;
    }
    let python = Waiting::start("python3", &["-c", PYTHON]);
    let pid = python.pid();
    refused(
        &attach(&pid),
        &[&pid, "libc10.so", &format!("attach {pid} --wait")],
    );
}

#[test]
fn a_launcher_names_the_process_that_is_meant() {
    if no_rights("a_launcher") {
        return;
    }
    let script = format!("python3 -c \"{PYTHON}\"; true");
    let shell = Waiting::start("sh", &["-c", &script]);
    let children =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.pid())).unwrap();
    let child = children.trim();
    let pid = shell.pid();
    let alone = tool().run(&["attach", &pid, "--no-tree", "--headless", "--duration", "1"]);
    let other = format!("vramscope attach {child}");
    refused(&alone, &["launcher", child, &other]);
    // What it starts is meant, and watched.
    let tree = attach(&pid);
    assert!(tree.status.success(), "{tree:?}");
    let said = "is a launcher: the processes that it starts are watched";
    assert!(tree.stderr.contains(said), "{tree:?}");
    drop(Command::new("kill").arg(child).status());
}

#[test]
fn no_permission() {
    let me = std::process::id().to_string();
    // An ordinary user must be able to run the binary: it may lie in a home that is closed to others.
    let directory = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let copy = directory.path().join("vramscope");
    std::fs::copy(env!("CARGO_BIN_EXE_vramscope"), &copy).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&copy)
        .args(["attach", &me, "--headless"])
        .output();
    let Ok(output) = output else {
        return skip("no_permission", "no setpriv");
    };
    if String::from_utf8_lossy(&output.stderr).contains("setpriv:") {
        return skip("no_permission", "not root: cannot become another user");
    }
    let run = Run {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    refused(
        &run,
        &[
            "uid 65534",
            "CAP_BPF",
            "CAP_PERFMON",
            "CAP_SYS_PTRACE",
            "unprivileged_bpf_disabled",
            "sudo",
        ],
    );
}

#[test]
fn wrong_usage() {
    for arguments in [
        &["attach"][..],
        &["attach", "0"],
        &["attach", "x"],
        &["attach", "1", "--duration", "3d"],
        &["attach", "1", "--buffer", "99T"],
        &["nonsense"],
    ] {
        let run = tool().run(arguments);
        assert_eq!(run.status.code(), Some(2), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains("--help"), "{run:?}");
    }
}

#[test]
fn a_file_that_is_there_is_not_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("old.svg");
    std::fs::write(&file, "precious").unwrap();
    let run = tool().run(&["flamegraph", "1", "-o", file.to_str().unwrap()]);
    assert!(!run.status.success());
    assert!(run.stderr.contains("--force"), "{run:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn doctor_checks_a_process_and_says_what_is_missing() {
    if no_rights("doctor_checks_a_process") {
        return;
    }
    let python = Waiting::start("python3", &["-c", PYTHON]);
    let run = tool().run(&["doctor", &python.pid()]);
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    for word in ["BTF", "uprobes", "Python", "missing", "--wait"] {
        assert!(
            run.stdout.contains(word),
            "`{word}` is not in {}",
            run.stdout
        );
    }
}

#[test]
fn completions_and_manual_are_made() {
    let man = tool().run(&["man"]);
    assert!(man.stdout.contains(".TH vramscope"), "{man:?}");
    for shell in ["bash", "zsh", "fish"] {
        let run = tool().run(&["completions", shell]);
        assert!(
            run.status.success() && run.stdout.contains("flamegraph"),
            "{run:?}"
        );
    }
}

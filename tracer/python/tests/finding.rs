//! What `find` makes of processes that are not a plain `python3.X script.py`.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Interpreter, Target, all_interpreters, interpreters, note};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use vramscope_python::{
    FindError, Process, Python, ReadError, find, read_code, threads, walk_thread,
};

const WAIT: &str = "print('started', flush=True) or __import__('sys').stdin.read()";

/// Starts a program and waits for its first line.
fn started(command: &mut Command) -> Target {
    let mut target = Target::start(command);
    target.line();
    target
}

fn waiting_python(program: &Path) -> Target {
    started(Command::new(program).args(["-c", WAIT]))
}

fn find_in(target: &Target) -> Result<Python, FindError> {
    find(&Process::open(target.pid()).unwrap())
}

/// The names of the main thread's functions, innermost first.
fn names(target: &Target, python: &Python) -> Vec<String> {
    let process = Process::open(target.pid()).unwrap();
    let threads = threads(&process, python).unwrap();
    let stack = walk_thread(&process, python, threads[0].state).unwrap();
    let name = |code| read_code(&process, python, code).unwrap().qualname;
    stack.frames.iter().map(|frame| name(frame.code)).collect()
}

#[test]
fn another_program_is_named() {
    let target = Target::cat(Path::new("/bin/cat"));
    let error = find_in(&target).unwrap_err();
    assert!(matches!(error, FindError::NotPython { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("/cat") && text.contains(&target.pid().to_string()),
        "{text}"
    );
}

/// A name is no proof, but it makes the lack of symbols worth telling.
#[test]
fn python_without_symbols_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("python3.9");
    fs::copy("/bin/cat", &program).unwrap();
    let target = Target::cat(&program);
    let error = find_in(&target).unwrap_err();
    assert!(matches!(error, FindError::NoSymbols { .. }), "{error}");
    assert!(error.to_string().contains("nm -D"), "{error}");
}

#[test]
fn an_ended_process_is_gone() {
    let mut target = Target::cat(Path::new("/bin/cat"));
    let process = Process::open(target.pid()).unwrap();
    assert!(process.is_running());
    target.child.kill().unwrap();
    // Wait for its end but leave it a zombie, which keeps its id.
    let id = Id::Pid(Pid::from_raw(target.pid().cast_signed()));
    waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
    assert!(!process.is_running());
    let error = find(&process).unwrap_err();
    assert!(
        matches!(error, FindError::Read(ReadError::Gone { .. })),
        "{error}"
    );
    target.child.wait().unwrap();
    assert!(!process.is_running());
    let error = find(&process).unwrap_err();
    assert!(
        matches!(error, FindError::Read(ReadError::Gone { .. })),
        "{error}"
    );
    let error = Process::open(target.pid()).unwrap_err();
    assert!(error.to_string().contains("is gone"), "{error}");
}

#[test]
fn old_versions_are_refused_by_number() {
    let mut seen = 0;
    for python in all_interpreters()
        .iter()
        .filter(|python| python.version.minor < 8)
    {
        let target = waiting_python(&python.program);
        let error = find_in(&target).unwrap_err();
        assert!(matches!(error, FindError::Unsupported { .. }), "{error}");
        let number = format!("CPython 3.{}", python.version.minor);
        assert!(error.to_string().contains(&number), "{error}");
        seen += 1;
    }
    if seen == 0 {
        note("SKIP: old_versions_are_refused_by_number: no CPython before 3.8");
    }
}

#[test]
fn free_threaded_builds_are_refused() {
    let mut seen = 0;
    for python in all_interpreters()
        .iter()
        .filter(|python| python.version.free_threaded)
    {
        let error = find_in(&waiting_python(&python.program)).unwrap_err();
        assert!(error.to_string().contains("free-threaded"), "{error}");
        seen += 1;
    }
    if seen == 0 {
        note("SKIP: free_threaded_builds_are_refused: no such CPython");
    }
}

#[test]
fn debug_builds_are_refused() {
    let programs = (8..=14).flat_map(|minor| {
        ["-dbg", "d"].map(|suffix| PathBuf::from(format!("/usr/bin/python3.{minor}{suffix}")))
    });
    let programs = programs.filter(|program| program.exists());
    let mut seen = 0;
    for program in programs {
        let error = find_in(&waiting_python(&program)).unwrap_err();
        assert!(error.to_string().contains("debug build"), "{error}");
        seen += 1;
    }
    if seen == 0 {
        note("SKIP: debug_builds_are_refused: no such CPython in /usr/bin");
    }
}

/// A copy of an interpreter's file in another place, and what finds its library.
fn copied(python: &Interpreter, folder: &Path, name: &str) -> Command {
    let copy = folder.join(name);
    fs::copy(&python.program, &copy).unwrap();
    let root = python.program.parent().unwrap().parent().unwrap();
    let mut command = Command::new(copy);
    command.env("PYTHONHOME", root).args(["-S", "-c", WAIT]);
    command
}

/// A file that is replaced or removed while it runs, as package upgrades do.
#[test]
fn a_deleted_interpreter_is_still_found() {
    for python in interpreters("deleted") {
        let folder = tempfile::tempdir().unwrap();
        let target = started(&mut copied(&python, folder.path(), "my python 3"));
        drop(folder);
        let found = match find_in(&target) {
            Ok(found) => found,
            Err(FindError::File { .. }) if !is_root() => {
                note("SKIP: deleted: /proc/PID/map_files needs root");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(found.version, python.version);
        assert!(fs::File::open(&found.code_dealloc.object).is_ok());
        assert_eq!(names(&target, &found), ["<module>"]);
    }
}

/// The interpreter's file exists only in the process's own mount namespace.
#[test]
fn another_mount_namespace_is_looked_into() {
    if !is_root() {
        note("SKIP: namespaces: only root can make a mount namespace");
        return;
    }
    for python in interpreters("namespaces") {
        let folder = tempfile::tempdir().unwrap();
        let root = python.program.parent().unwrap().parent().unwrap();
        let script = format!(
            "mount -t tmpfs none '{0}' && cp '{1}' '{0}/worker' && exec '{0}/worker' -S -c \"$1\"",
            folder.path().display(),
            python.program.display(),
        );
        let target = started(
            Command::new("unshare")
                .args(["--mount", "sh", "-c", &script, "sh", WAIT])
                .env("PYTHONHOME", root),
        );
        let found = find_in(&target).unwrap();
        assert_eq!(found.version, python.version);
        assert!(!folder.path().join("worker").exists());
        assert!(fs::File::open(&found.object).is_ok());
        assert_eq!(names(&target, &found), ["<module>"]);
    }
}

#[test]
fn embedded_interpreters_are_found_once_started() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/embed.c");
    let compiled = Command::new("cc")
        .arg("-o")
        .arg(&program)
        .arg(source)
        .arg("-ldl")
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        note("SKIP: embedded: no C compiler");
        return;
    }
    let mut seen = 0;
    for python in interpreters("embedded") {
        let root = python.program.parent().unwrap().parent().unwrap();
        let Some(library) = shared_library(&python, root) else {
            note(&format!("embedded: {}: has no library", python.version));
            continue;
        };
        seen += 1;
        let target = started(Command::new(&program).arg(&library));
        let error = find_in(&target).unwrap_err();
        assert!(matches!(error, FindError::NotInitialised { .. }), "{error}");

        let code = format!("def served():\n    {WAIT}\nserved()");
        let target = started(
            Command::new(&program)
                .arg(&library)
                .arg(code)
                .env("PYTHONHOME", root),
        );
        let found = find_in(&target).unwrap();
        assert_eq!(found.version, python.version);
        assert_eq!(names(&target, &found), ["served", "<module>"]);
    }
    if seen == 0 {
        note("SKIP: embedded: no CPython with a shared library");
    }
}

fn shared_library(python: &Interpreter, root: &Path) -> Option<PathBuf> {
    let name = format!("libpython3.{}.so", python.version.minor);
    let library = root.join("lib").join(name);
    library.exists().then_some(library)
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

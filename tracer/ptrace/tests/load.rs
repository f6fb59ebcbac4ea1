//! Libraries come and go in busy programs that notice every change of theirs.

mod support;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use support::{
    DEADLINE, Target, compile, library, program, repetitions, skip, until_nobody_is_inside,
};
use vramscope_ptrace::{Argument, Tracee};

/// Pythons that the machine may have; the first that there is.
fn python() -> Option<PathBuf> {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let mut candidates: Vec<PathBuf> = std::fs::read_dir(home.join(".pyenv/versions"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin/python3.12")))
        .collect();
    candidates.extend(["python3.12", "python3"].map(PathBuf::from));
    candidates.into_iter().find(|python| {
        Command::new(python)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    })
}

fn busy(directory: &Path) -> Command {
    let other = library(directory, "other.so");
    let mut command = Command::new(compile(
        directory,
        "busy.c",
        "busy",
        // The program keeps values of its own in the red zone.
        &["-mno-red-zone"],
    ));
    command.arg(other);
    command
}

fn load_and_unload(pid: u32, library: &Path, times: usize) {
    let tracee = Tracee::open(pid).unwrap();
    for time in 0..times {
        let loaded = tracee.load(library, DEADLINE).unwrap();
        assert_eq!(loaded.path, library);
        let function = tracee.symbol(library, "answer").unwrap();
        assert!(loaded.range.contains(&function));
        let words: Vec<_> = (1..7)
            .map(|word| Argument::Word(word * time as u64))
            .collect();
        let answer = tracee.call(function, &words, DEADLINE).unwrap();
        assert_eq!(answer, 654_321 * time as u64);
        let length = tracee.symbol(library, "length").unwrap();
        let text = "x".repeat(time % 4000) + "\0";
        let answer = tracee
            .call(length, &[Argument::Bytes(text.as_bytes())], DEADLINE)
            .unwrap();
        assert_eq!(answer, time as u64 % 4000);
        until_nobody_is_inside(&tracee, &loaded);
        tracee.unload(loaded.handle, DEADLINE).unwrap();
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        assert!(
            !maps.contains(library.to_str().unwrap()),
            "it was not unloaded"
        );
    }
}

#[test]
fn a_busy_c_program_notices_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path(), "mine.so");
    let mut target = Target::start(&mut busy(directory.path()));
    load_and_unload(target.pid(), &library, repetitions(50));
    let (status, said) = target.finish();
    println!("{said}");
    assert!(status.success() && said.starts_with("errors 0 "), "{said}");
}

#[test]
fn a_busy_python_computes_the_same() {
    let Some(python) = python() else {
        return skip("a_busy_python", "no Python 3");
    };
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path(), "mine.so");
    let mut command = Command::new(python);
    command.arg(program("busy.py"));
    let (_, undisturbed) = Target::start(&mut command).finish();
    let mut target = Target::start(&mut command);
    load_and_unload(target.pid(), &library, repetitions(50));
    let (status, said) = target.finish();
    assert!(status.success());
    assert!(said.ends_with("errors 0\n"), "{said}");
    assert_eq!(said, undisturbed);
}

/// The loader as a process of its own, killed again and again at moments that differ.
fn kill_the_loader(target: u32, library: &Path, times: usize) {
    let mut moment = 0x9e37_79b9_u64;
    let mut loads = 0;
    for _ in 0..times {
        let mut loader = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "loads_without_end", "--ignored", "--nocapture"])
            .env("VRAMSCOPE_TEST_TARGET", target.to_string())
            .env("VRAMSCOPE_TEST_LIBRARY", library)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Once it is at work, so that the kill finds it there.
        let mut output = std::io::BufReader::new(loader.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("loaded") {
            line.clear();
            let bytes = std::io::BufRead::read_line(&mut output, &mut line).unwrap();
            assert!(bytes > 0, "the loader gave up");
        }
        loads += 1;
        moment = moment
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        std::thread::sleep(Duration::from_micros(moment >> 32 & 0x1fff));
        loader.kill().unwrap();
        loader.wait().unwrap();
    }
    assert_eq!(loads, times);
}

/// No test: what [`kill_the_loader`] runs.
#[test]
#[ignore = "run by the tests that kill it"]
fn loads_without_end() {
    let (Ok(target), Ok(library)) = (
        std::env::var("VRAMSCOPE_TEST_TARGET"),
        std::env::var("VRAMSCOPE_TEST_LIBRARY"),
    ) else {
        return;
    };
    let tracee = Tracee::open(target.parse().unwrap()).unwrap();
    loop {
        let loaded = tracee.load(Path::new(&library), DEADLINE).unwrap();
        println!("loaded");
        tracee.unload(loaded.handle, DEADLINE).unwrap();
    }
}

#[test]
fn our_death_in_the_middle_harms_no_c_program() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path(), "mine.so");
    let mut target = Target::start(&mut busy(directory.path()));
    kill_the_loader(target.pid(), &library, repetitions(30).min(200));
    // And it can be done again.
    load_and_unload_whatever_is_left(target.pid(), &library);
    let (status, said) = target.finish();
    println!("{said}");
    assert!(status.success() && said.starts_with("errors 0 "), "{said}");
}

fn load_and_unload_whatever_is_left(pid: u32, library: &Path) {
    let tracee = Tracee::open(pid).unwrap();
    let loaded = tracee.load(library, DEADLINE).unwrap();
    tracee.unload(loaded.handle, DEADLINE).unwrap();
}

#[test]
fn our_death_in_the_middle_harms_no_python() {
    let Some(python) = python() else {
        return skip("our_death_in_python", "no Python 3");
    };
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path(), "mine.so");
    let mut command = Command::new(python);
    command.arg(program("busy.py"));
    let (_, undisturbed) = Target::start(&mut command).finish();
    let mut target = Target::start(&mut command);
    kill_the_loader(target.pid(), &library, repetitions(20).min(200));
    let (status, said) = target.finish();
    assert!(status.success());
    assert_eq!(said, undisturbed);
}

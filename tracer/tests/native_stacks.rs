//! Stacks of machine code and Python, as both tracers see them, against chains of functions that are
//! known: every function of every event in its place.
//!
//! The functions have frames of every kind, and are built with frame pointers and without; one
//! library is deleted while it is in use. `VRAMSCOPE_ALL=1` runs every CPython that is installed.

mod native_support;

use std::{collections::HashMap, path::Path, process::Command, thread::JoinHandle};

use vramscope_test_support::{Program, injection_library};
use vramscope_tracer::{Native, Options, Session};

use native_support::{CUT, LIBRARIES, Seen, Stack, build, interpreter, why_not};

const EVENTS: usize = 5_100;
const THREADS: usize = 3;
/// One for each way in which Python tells where the interpreter was called.
const VERSIONS: [&str; 3] = ["3.10", "3.11", "3.12"];
const MORE_VERSIONS: [&str; 3] = ["3.8", "3.9", "3.13"];
#[test]
fn machine_code_stacks_are_exact() {
    if let Some(reason) = why_not() {
        println!("SKIP: machine_code_stacks_are_exact: {reason}");
        return;
    }
    let all = std::env::var_os("VRAMSCOPE_ALL").is_some();
    let more = MORE_VERSIONS.iter().filter(|_| all);
    let mut compared = 0;
    for version in VERSIONS.iter().chain(more) {
        match interpreter(version) {
            None => println!("SKIP: machine_code_stacks_are_exact: no CPython {version} found"),
            Some(interpreter) => {
                compare(&interpreter);
                compared += 1;
            }
        }
    }
    if compared == 0 {
        println!("SKIP: machine_code_stacks_are_exact: no CPython at all was found");
    }
}

/// Two libraries of one layout take turns: every address of the one is an address of the other.
#[test]
fn unloaded_code_is_forgotten() {
    if let Some(reason) = why_not() {
        println!("SKIP: unloaded_code_is_forgotten: {reason}");
        return;
    }
    let Some(interpreter) = interpreter("3.12").or_else(|| interpreter("3.11")) else {
        println!("SKIP: unloaded_code_is_forgotten: no CPython 3.11 or 3.12 found");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    build(directory.path());
    let truth_file = directory.path().join("truth.json");
    let mut command = Command::new(interpreter);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native_stacks/unloading.py"))
        .arg(directory.path())
        .arg("20000")
        .arg(&truth_file)
        .args(["nofp", "deleted"]);
    let mut program = Program::of(command);
    program.expect("ready");
    let options = Options {
        watch_devices: false,
        tree: false,
        ..Options::default()
    };
    let mut session = Session::attach(program.pid(), &options).unwrap();
    let listener = listen(&session);
    program.say("go");
    let done = program.expect("");
    session.detach();
    let seen = listener.join().unwrap();
    drop(session);
    program.say("end");
    assert!(program.finish().success());
    let truth: HashMap<u64, Stack> =
        serde_json::from_slice(&std::fs::read(&truth_file).unwrap()).unwrap();
    let (mut right, mut none, mut wrong) = (0, 0, 0);
    for (number, expected) in &truth {
        match seen.chain(*number) {
            Some(got) if got == *expected => right += 1,
            // Nobody looked before it was gone.
            Some(got) if got.is_empty() || got == [CUT] => none += 1,
            Some(got) if is_cut(&got, expected) => right += 1,
            got => {
                wrong += 1;
                println!("event {number}:\n  got      {got:?}\n  expected {expected:?}");
            }
        }
    }
    println!(
        "{done}: {right} right, {none} of code that was gone, {} lost",
        seen.lost
    );
    assert_eq!(wrong, 0);
    assert!(right > 0);
    assert_eq!(none > 0, seen.lost > 0, "what is missing is counted");
}

fn compare(interpreter: &Path) {
    let directory = tempfile::tempdir().unwrap();
    build(directory.path());
    let truth_file = directory.path().join("truth.json");
    let mut command = Command::new(interpreter);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native_stacks/workload.py"))
        .arg(directory.path())
        .args([EVENTS.to_string(), THREADS.to_string()])
        .arg(&truth_file)
        .args(LIBRARIES.map(|(prefix, _)| prefix));
    let mut program = Program::of(command);
    program.expect("ready");

    // All at once: a run for each would take three times the time.
    let options = |native| Options {
        // Thousands of stacks come before the first of their rules is known.
        ring_bytes: 128 << 20,
        watch_devices: false,
        tree: false,
        library: Some(injection_library()),
        native,
        ..Options::default()
    };
    let sessions = [
        (
            "injection, always",
            Session::inject(program.pid(), &options(Native::Always)).unwrap(),
        ),
        (
            "ebpf, new",
            Session::attach(program.pid(), &options(Native::New)).unwrap(),
        ),
        (
            "ebpf, always",
            Session::attach(program.pid(), &options(Native::Always)).unwrap(),
        ),
    ];
    let listeners = sessions.each_ref().map(|(_, session)| listen(session));
    program.say("go");
    let done = program.expect("");
    let mut sessions = sessions;
    for (_, session) in &mut sessions {
        session.detach();
    }
    let seen = listeners.map(|listener| listener.join().unwrap());
    let names = sessions.each_ref().map(|(name, _)| *name);
    drop(sessions);
    program.say("end");
    assert!(program.finish().success());

    let truth: HashMap<u64, Stack> =
        serde_json::from_slice(&std::fs::read(&truth_file).unwrap()).unwrap();
    for (name, seen) in names.iter().zip(&seen) {
        let heading = format!("{} by {name}: {done}", interpreter.display());
        judge(&heading, seen, &truth, name.ends_with("always"));
    }
    let [_, new, always] = &seen;
    let different = truth
        .keys()
        .filter(|number| new.whole(**number) != always.whole(**number))
        .count();
    println!("`new` gives another stack than `always` in {different} events");
}

/// `exact`: also beyond the interpreter, where the stack of another event that is equal up to there
/// and as deep may be shown otherwise.
fn judge(heading: &str, seen: &Seen, truth: &HashMap<u64, Stack>, exact: bool) {
    let (mut wrong, mut cut, mut beyond) = (0, 0, 0);
    for (number, expected) in truth {
        let got = seen.chain(*number);
        if got.as_ref() == Some(expected) {
            continue;
        }
        let got_or_none = got.clone().unwrap_or_default();
        let python = (expected.iter().position(|name| name == "inner")).unwrap_or(expected.len());
        if is_cut(&got_or_none, expected) {
            // It says that it is not all.
            cut += 1;
        } else if !exact && python < expected.len() && got_or_none.starts_with(&expected[..=python])
        {
            beyond += 1;
        } else {
            wrong += 1;
            if wrong <= 3 {
                println!(
                    "event {number}:\n  got      {got:?}\n  expected {expected:?}\n  whole {:?}",
                    seen.whole(*number)
                );
            }
        }
    }
    println!(
        "{heading}, {} events seen, {wrong} wrong, {cut} cut, {beyond} another one's beyond the \
         interpreter, {} lost, {} different stacks",
        seen.events.len(),
        seen.lost,
        seen.stacks.len(),
    );
    assert_eq!((wrong, seen.lost), (0, 0), "{heading}");
    assert!(truth.len() >= 5_000);
    assert!(20 * (cut + beyond) < truth.len(), "{heading}");
}

/// Whether a stack says that it is not all, and what it has is right: all functions up to there, and
/// Python's beyond.
fn is_cut(got: &[String], expected: &[String]) -> bool {
    let Some(cut) = got.iter().position(|name| name == CUT) else {
        return false;
    };
    let (known, python) = (&got[..cut], &got[cut + 1..]);
    let beyond = expected.get(cut..).unwrap_or_default().iter();
    expected.starts_with(known)
        && beyond
            .filter(|name| ["inner", "outer"].contains(&name.as_str()))
            .eq(python)
}

fn listen(session: &Session) -> JoinHandle<Seen> {
    let records = session.records().clone();
    std::thread::spawn(move || {
        let mut seen = Seen::default();
        for record in records.into_iter().flatten() {
            seen.take(record);
        }
        seen
    })
}

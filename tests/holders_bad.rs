//! Who cannot be asked what holds its memory, and what happens then.

use std::fs;

use vramscope_holders::{Answer, Asker, Error, Request};
use vramscope_test_support::{Program, Setup, TORCHES, Tool, missing, root, skip};

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

fn start(script: &str, arguments: &[&str]) -> Program {
    let script = root().join("tests/programs/holders").join(script);
    let mut program = Program::start(&Setup::new(TORCHES[0]), &script, arguments);
    program.expect("ready");
    program
}

fn ask(pid: u32, budget_ms: u64) -> (Result<Answer, Error>, bool) {
    let mut asker = match Asker::attach(pid) {
        Ok(asker) => asker,
        Err(error) => return (Err(error), true),
    };
    let answer = asker.ask(&Request {
        addresses: vec![0x1000],
        sizes: vec![512],
        budget_ms,
        slice_ms: 10,
        memory: 160 << 20,
    });
    let gone = asker.leave();
    (answer, gone)
}

fn is_loaded(pid: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    maps.contains("memfd:vramscope-agent")
}

/// The question ends with a reason; the library stays until the thread has had its turn, and the next
/// question uses it and takes it away.
#[test]
fn a_process_that_keeps_the_gil_is_left_alone() {
    let name = "a_process_that_keeps_the_gil_is_left_alone";
    if let Some(reason) = missing(&tool()) {
        return skip(name, &reason);
    }
    let mut program = start("stuck.py", &[]);
    let pid = program.pid();
    let (answer, gone) = ask(pid, 100);
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Stuck { .. }), "{error}");
    assert!(
        error.to_string().contains("holds the GIL without a break"),
        "{error}"
    );
    assert!(!gone && is_loaded(pid), "its thread waits for the GIL");
    program.say("");
    program.expect("free");
    program.expect("ready");
    let (answer, gone) = ask(pid, 10_000);
    assert!(answer.is_ok(), "{answer:?}");
    assert!(
        gone && !is_loaded(pid),
        "the library that stayed is taken away"
    );
    program.say("");
    program.expect("end");
    assert!(program.finish().success());
}

#[test]
fn an_interpreter_that_ends_is_not_asked() {
    let name = "an_interpreter_that_ends_is_not_asked";
    if let Some(reason) = missing(&tool()) {
        return skip(name, &reason);
    }
    let mut program = start("ending.py", &[]);
    let pid = program.pid().to_string();
    let run = tool().run(&["holders", &pid, "--address", "0x1000"]);
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    assert!(run.stderr.contains("the interpreter is ending"), "{run:?}");
    assert!(!is_loaded(program.pid()));
    program.say("");
    program.expect("end");
    assert!(program.finish().success());
}

#[test]
fn only_one_asks_at_a_time() {
    let name = "only_one_asks_at_a_time";
    if let Some(reason) = missing(&tool()) {
        return skip(name, &reason);
    }
    // Of two interpreters only one is searched, and that is told.
    let mut program = start("stuck.py", &["two"]);
    let pid = program.pid();
    let mut first = Asker::attach(pid).unwrap();
    let run = tool().run(&["holders", &pid.to_string(), "--address", "0x1000"]);
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    assert!(
        run.stderr.contains("another vramscope is asking it"),
        "{run:?}"
    );
    let answer = first.ask(&Request {
        addresses: vec![0x1000],
        sizes: vec![512],
        budget_ms: 10_000,
        slice_ms: 10,
        memory: 160 << 20,
    });
    assert!(first.leave() && !is_loaded(pid));
    let notes = answer.unwrap().notes;
    let told = "2 interpreters: only the main one was searched";
    assert!(notes.iter().any(|note| note == told), "{notes:?}");
    program.say("");
    program.expect("end");
    assert!(program.finish().success());
}

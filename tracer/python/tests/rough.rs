//! Processes that do not hold still, and memory that is not what it should be.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Target, interpreters, note};
use vramscope_python::{
    Address, Process, ReadError, Thread, calibrate_tsd, find, read_code, threads, walk_thread,
};

/// Walking a running thread may end early, but it neither fails nor disturbs.
#[test]
fn a_busy_process_can_be_walked() {
    for python in interpreters("busy") {
        let mut target = Target::script(&python, "busy.py");
        target.line();
        let process = Process::open(target.pid()).unwrap();
        let found = find(&process).unwrap();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for _ in 0..500 {
            for thread in threads(&process, &found).unwrap() {
                let stack = match walk_thread(&process, &found, thread.state) {
                    Ok(stack) => stack,
                    Err(ReadError::Fault { .. }) => continue,
                    Err(error) => panic!("{error}"),
                };
                let ending = if stack.is_complete { "complete" } else { "cut" };
                *counts.entry(ending).or_default() += 1;
                for frame in &stack.frames {
                    let known = match read_code(&process, &found, frame.code) {
                        Ok(code) => code.line(frame.offset).is_some(),
                        Err(_) => false,
                    };
                    let kind = if known { "with a line" } else { "without" };
                    *counts.entry(kind).or_default() += 1;
                }
            }
        }
        assert!(process.is_running());
        assert!(
            counts["complete"] > 0 && counts["with a line"] > 0,
            "{counts:?}"
        );
        note(&format!("busy: {}: {counts:?}", found.version));
        target.finish();
    }
}

/// Any address may be taken for a code object or a thread state.
#[test]
fn wrong_addresses_do_no_harm() {
    const STRIDE: u64 = 40_008;
    for python in interpreters("wrong addresses") {
        let mut target = Target::script(&python, "stacks.py");
        target.line();
        let process = Process::open(target.pid()).unwrap();
        let mut found = find(&process).unwrap();
        let mappings = process.mappings().unwrap();
        let addresses = mappings
            .iter()
            .flat_map(|mapping| {
                (mapping.start..mapping.end)
                    .step_by(STRIDE as usize)
                    .take(400)
            })
            .chain([0, 1, u64::MAX - 7, 1 << 47, u64::MAX / 2])
            .map(Address);
        let (mut tried, mut refused) = (0, 0);
        for address in addresses {
            tried += 1;
            refused += usize::from(read_code(&process, &found, address).is_err());
            // Any answer will do, as long as there is one.
            let _ = walk_thread(&process, &found, address);
            if tried % 50 == 0 {
                let runtime = std::mem::replace(&mut found.runtime, address);
                let _ = threads(&process, &found);
                let _ = calibrate_tsd(&process, &found);
                found.runtime = runtime;
            }
        }
        assert!(tried > 1000 && refused > tried / 2, "{refused} of {tried}");
        note(&format!(
            "wrong addresses: {}: {refused} of {tried} refused",
            found.version
        ));
        target.finish();
    }
}

#[test]
fn other_interpreters_of_a_process_are_seen() {
    for python in interpreters("subinterpreters") {
        let mut target = Target::script(&python, "subinterpreter.py");
        target.line();
        let process = Process::open(target.pid()).unwrap();
        let found = find(&process).unwrap();
        let threads = threads(&process, &found).unwrap();
        let interpreters: BTreeSet<_> = threads.iter().map(|t| t.interpreter).collect();
        assert_eq!(interpreters.len(), 2, "{}: {threads:?}", found.version);
        let is_inside = |thread: &&Thread| {
            let stack = walk_thread(&process, &found, thread.state).unwrap();
            stack.frames.first().is_some_and(|frame| {
                read_code(&process, &found, frame.code).unwrap().qualname == "within"
            })
        };
        let inside: Vec<&Thread> = threads.iter().filter(is_inside).collect();
        assert_eq!(inside.len(), 1);
        let slot = calibrate_tsd(&process, &found).unwrap();
        let slot = slot.unwrap_or_else(|| panic!("{}: no slot", found.version));
        let inside = inside[0];
        let kept = process
            .read_pointer(Address(inside.pthread).field(slot.offset))
            .unwrap();
        note(&format!(
            "subinterpreters: {}: a thread inside one keeps the thread state of {}",
            found.version,
            if kept == inside.state {
                "that one"
            } else {
                "the one it came from"
            },
        ));
        target.finish();
    }
}

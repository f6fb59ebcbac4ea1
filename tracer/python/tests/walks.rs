//! The stacks of real interpreters, compared frame by frame with what each
//! says of itself.

mod common;

use common::{Interpreter, Target, interpreters, note};
use serde::Deserialize;
use vramscope_python::{
    Process, Python, Stack, calibrate_tsd, find, read_code, threads, walk_thread,
};

/// A thread's stack as its interpreter tells it.
#[derive(Debug, Deserialize)]
struct Truth {
    pthread: u64,
    native_id: u32,
    /// (file, line, name), innermost first.
    frames: Vec<(String, Option<u32>, String)>,
}

#[test]
fn walks_equal_tracebacks() {
    for python in interpreters("walks") {
        let mut target = Target::script(&python, "stacks.py");
        let truth: Vec<Truth> = serde_json::from_str(&target.line()).unwrap();
        let process = Process::open(target.pid()).unwrap();
        let found = find(&process).unwrap();
        compare_facts(&python, &found);
        let frames = compare_stacks(&process, &found, &truth);
        let slot = calibrate_tsd(&process, &found).unwrap();
        let slot = slot.expect("each thread has its state in its block");
        assert_eq!(slot.threads, truth.len());
        for thread in threads(&process, &found).unwrap() {
            let at = vramscope_python::Address(thread.pthread).field(slot.offset);
            assert_eq!(process.read_pointer(at).unwrap(), thread.state);
        }
        note(&format!(
            "{} {}: {frames} frames of {} threads equal; thread state at FS base + {:#x}",
            found.version,
            found.path.display(),
            truth.len(),
            slot.offset,
        ));
        target.finish();
    }
}

fn compare_facts(python: &Interpreter, found: &Python) {
    assert_eq!(found.version, python.version);
    assert!(found.tested);
    let file = std::fs::read(&found.object).unwrap();
    assert!(file.len() as u64 > found.code_dealloc.file_offset);
    if found.version.minor <= 13 {
        let key = found
            .tss_key
            .expect("a running interpreter has made its key");
        assert!(key < 32, "{key}");
    }
}

fn compare_stacks(process: &Process, found: &Python, truth: &[Truth]) -> usize {
    let threads = threads(process, found).unwrap();
    assert_eq!(threads.len(), truth.len());
    let mut frames = 0;
    for thread in threads {
        let truth = truth
            .iter()
            .find(|truth| truth.pthread == thread.pthread)
            .unwrap_or_else(|| panic!("{}: no such thread: {thread:?}", found.version));
        match thread.native_id {
            Some(id) => assert_eq!(id, truth.native_id),
            None => assert!(!found.version.has_interpreter_frames()),
        }
        let stack = walk_thread(process, found, thread.state).unwrap();
        assert!(stack.is_complete);
        assert_eq!(
            decode(process, found, &stack),
            truth.frames,
            "{}",
            found.version
        );
        frames += stack.frames.len();
    }
    frames
}

fn decode(process: &Process, found: &Python, stack: &Stack) -> Vec<(String, Option<u32>, String)> {
    stack
        .frames
        .iter()
        .map(|frame| {
            let code = read_code(process, found, frame.code).unwrap();
            let line = code.line(frame.offset);
            (code.file, line, code.qualname)
        })
        .collect()
}

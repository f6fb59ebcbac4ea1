//! Code that changes under us without the dynamic loader's word: a library that is mapped twice, a
//! file or memory mapped over a library's code. What lies there by then is named, or nothing; what
//! nobody touched stays right, and the program goes on.

mod native_support;

use std::{collections::HashMap, path::Path, process::Command, thread, time::Duration};

use crossbeam_channel::unbounded;
use vramscope_events::Event;
use vramscope_test_support::{Program, injection_library, skip};
use vramscope_tracer::{Native, Options, Session};

use native_support::{Seen, Stack, build, interpreter, why_not};

/// How long an event may take that comes at once.
const PATIENCE: Duration = Duration::from_secs(60);
/// The changes, and the function that is innermost once each is known.
const CHANGES: [(&str, &str); 4] = [
    ("twice", "nofp_3"),
    ("file", "deleted_3"),
    ("memory", "?"),
    ("back", "plain_3"),
];

#[test]
fn code_over_code_gets_no_wrong_name() {
    if let Some(reason) = why_not() {
        return skip("code_over_code_gets_no_wrong_name", &reason);
    }
    let Some(interpreter) = interpreter("3.12").or_else(|| interpreter("3.11")) else {
        return skip(
            "code_over_code_gets_no_wrong_name",
            "no CPython 3.11 or 3.12 found",
        );
    };
    for (name, native) in [("new", Native::New), ("always", Native::Always)] {
        watch(name, &interpreter, |pid, options| {
            let options = Options { native, ..options };
            Session::attach(pid, &options).unwrap()
        });
    }
}

/// The kernel does not tell what is mapped: it is looked for.
#[test]
fn an_injected_session_gets_no_wrong_name_either() {
    let Some(interpreter) = interpreter("3.12").or_else(|| interpreter("3.11")) else {
        return skip(
            "an_injected_session_gets_no_wrong_name_either",
            "no CPython 3.11 or 3.12 found",
        );
    };
    watch("injection", &interpreter, |pid, options| {
        Session::inject(pid, &options).unwrap()
    });
}

fn watch(name: &str, interpreter: &Path, attach: impl Fn(u32, Options) -> Session) {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let truth_file = folder.path().join("truth.json");
    let mut command = Command::new(interpreter);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native_stacks/replacing.py"))
        .arg(folder.path())
        .arg(&truth_file);
    let mut program = Program::of(command);
    program.expect("ready");
    let mut session = attach(
        program.pid(),
        Options {
            watch_devices: false,
            tree: false,
            library: Some(injection_library()),
            ..Options::default()
        },
    );
    let records = session.records().clone();
    // Says each function that is innermost when it is another one than before.
    let (innermost, innermosts) = unbounded();
    let (number, numbers) = unbounded();
    let listener = thread::spawn(move || {
        let mut seen = Seen::default();
        let (mut last, mut told) = (0, String::new());
        for record in records.into_iter().flatten() {
            if let Event::Alloc(alloc) = &record.event {
                last = alloc.address.0;
                let _ = number.send(last);
            }
            seen.take(record);
            let now = chain(&seen, last).and_then(|chain| chain.first().cloned());
            if let Some(now) = now
                && now != told
            {
                told.clone_from(&now);
                let _ = innermost.send(now);
            }
        }
        seen
    });
    program.say("go");
    for (change, expected) in CHANGES {
        assert_eq!(program.expect("changed "), change);
        let mut before = Vec::new();
        loop {
            match innermosts.recv_timeout(PATIENCE) {
                Ok(now) if now == expected => break,
                Ok(now) => before.push(now),
                Err(_) => panic!("{name}: {change} is never seen, but {:?}", before.last()),
            }
        }
        println!(
            "{name}: {change}: {} other names before it was known",
            before.len()
        );
        program.say("go");
        // What is decoded after the next change cannot be told any more.
        let end: u64 = program.expect("last ").parse().unwrap();
        while numbers.recv_timeout(PATIENCE).unwrap() != end {}
        program.say("go");
    }
    assert_eq!(program.expect("done "), "1600");
    session.detach();
    let seen = listener.join().unwrap();
    drop(session);
    program.say("end");
    assert!(program.finish().success());

    let truth: HashMap<u64, Stack> =
        serde_json::from_slice(&std::fs::read(&truth_file).unwrap()).unwrap();
    let mut unnamed = 0;
    for (number, expected) in &truth {
        let got = chain(&seen, *number);
        // Beyond code of no file nothing need be known.
        let end = expected.iter().position(|function| function == "?");
        let known = end.map_or(&expected[..], |end| &expected[..=end]);
        unnamed += usize::from(end.is_some());
        // The library in the process knows what the loader knows, which is nothing of a second copy.
        let is_end = name == "injection"
            && (got.as_ref()).is_some_and(|got| !got.is_empty() && expected.starts_with(got));
        assert!(
            got.as_deref() == Some(known) || got.as_ref() == Some(expected) || is_end,
            "{name}: event {number}: {:?}, not {expected:?}",
            seen.whole(*number)
        );
    }
    assert_eq!(truth.len(), 1600);
    assert!(unnamed > 50, "{unnamed}");
    println!("{name}: all right, {} lost", seen.lost);
}

/// The functions before Python's, without those that lead from one to the next; `?` for code of no
/// file.
fn chain(seen: &Seen, number: u64) -> Option<Stack> {
    let frames = seen.frames(number)?;
    let own = frames.take_while(|frame| &*frame.function != "one");
    let own = own.filter_map(|frame| match &*frame.file {
        "[unknown]" => Some("?".to_owned()),
        file if file.contains("libchain_") => Some(frame.function.to_string()),
        _ => None,
    });
    Some(own.collect())
}

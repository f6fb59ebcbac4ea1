//! More processes than a session has places for: those beyond are refused and counted, the others
//! are seen as ever, and all of them go on.
//!
//! What counts is a process that has loaded PyTorch's allocator; a stand-in for it is loaded here.

use std::{
    collections::HashMap,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use vramscope_events::Event;
use vramscope_test_support::{Program, skip};
use vramscope_tracer::{Options, Session, kernel};

/// `vramscope_bpf::MAX_PROCESSES`, of which the first program takes one.
const PLACES: usize = 256;
const COPIES: usize = PLACES + 14;

#[test]
fn processes_beyond_the_last_place_are_refused_and_counted() {
    let missing = |check: &kernel::Check| check.standing == kernel::Standing::Missing;
    if let Some(check) = kernel::checks().into_iter().find(missing) {
        return skip("processes_beyond_the_last_place", &check.to_string());
    }
    let folder = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(folder.path().join("libc10.so"))
        .arg(sources.join("python_stacks/libc10.c"))
        .status();
    assert!(built.expect("a C compiler").success());
    let mut command = Command::new("python3");
    command
        .arg(sources.join("many_processes/copies.py"))
        .arg(folder.path())
        .arg(COPIES.to_string());
    let mut program = Program::of(command);
    program.expect("ready");
    let options = Options {
        watch_devices: false,
        tree: true,
        ..Options::default()
    };
    let mut session = Session::attach(program.pid(), &options).unwrap();
    let records = session.records().clone();
    let (started, all_started) = crossbeam_channel::unbounded();
    let (told, all_told) = crossbeam_channel::unbounded();
    let listener = thread::spawn(move || {
        let (mut begun, mut ended, mut lost) = (0, 0, 0);
        let mut reported = HashMap::new();
        for record in records.into_iter().flatten() {
            match record.event {
                Event::ProcessStarted { .. } => {
                    begun += 1;
                    let _ = started.send(begun);
                }
                Event::ProcessExited => ended += 1,
                Event::Alloc(alloc) => {
                    reported.insert(record.process.0, alloc.address.0);
                    let _ = told.send(reported.len());
                }
                Event::Lost { count, .. } => lost += count,
                _ => {}
            }
        }
        (begun, ended, lost, reported)
    });
    program.say("copy");
    program.expect("copied");
    while all_started.recv_timeout(Duration::from_secs(120)).unwrap() < PLACES {}
    let until = Instant::now() + Duration::from_secs(120);
    let refused = |session: &mut Session| {
        session.take_news();
        let notes = session.notes.iter();
        notes
            .filter(|note| note.contains("one more than the 256 that can be watched at once"))
            .cloned()
            .collect::<Vec<_>>()
    };
    while refused(&mut session).is_empty() {
        assert!(Instant::now() < until, "{:?}", session.notes);
        thread::sleep(Duration::from_millis(20));
    }
    program.say("report");
    program.expect("reported");
    // Their code is read when their first stack comes: they are to be there then.
    while all_told.recv_timeout(Duration::from_secs(120)).unwrap() < PLACES - 1 {}
    program.say("end");
    program.expect("done");
    assert!(program.finish().success());
    while !session.is_over() {
        assert!(
            Instant::now() < until,
            "it does not see that all have ended"
        );
        thread::sleep(Duration::from_millis(20));
    }
    // However many there were, it is one note.
    let notes = refused(&mut session);
    session.detach();
    let (begun, ended, lost, reported) = listener.join().unwrap();
    println!("{begun} begun, {} reported; {notes:?}", reported.len());
    let [note] = &notes[..] else {
        panic!("{notes:?}");
    };
    let (_, looks) = note.split_once("were looked at ").unwrap();
    let looks: usize = looks.split(' ').next().unwrap().parse().unwrap();
    assert!(looks >= COPIES + 1 - PLACES, "{note}");
    assert_eq!((begun, ended, lost), (PLACES, PLACES, 0));
    // Each copy told its own number, under which it was seen.
    assert_eq!(reported.len(), PLACES - 1);
    assert!(reported.iter().all(|(pid, told)| u64::from(*pid) == *told));
}

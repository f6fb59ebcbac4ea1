//! Python stacks, as the BPF walk sees them, against what Python itself says: every frame of every
//! event, for each CPython that is installed.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread::JoinHandle,
};

use vramscope_events::{Event, Frame, FrameId, FrameKind, StackId};
use vramscope_test_support::{Program, injection_library, newer_pythons};
use vramscope_tracer::{Options, Session, kernel};

const EVENTS: usize = 20_000;
const THREADS: usize = 5;
const VERSIONS: [&str; 7] = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"];

/// (file, line, function), innermost first.
type Stack = Vec<(String, u32, String)>;

#[test]
fn python_stacks_are_exact() {
    if let Some(reason) = why_not() {
        println!("SKIP: python_stacks_are_exact: {reason}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let library = build_library(directory.path());
    let mut skipped = 0;
    for version in VERSIONS {
        let interpreters = interpreters(version);
        if interpreters.is_empty() {
            println!("SKIP: python_stacks_are_exact: no CPython {version} found");
            skipped += 1;
        }
        for interpreter in interpreters {
            compare(&interpreter, &library, directory.path());
        }
    }
    println!(
        "{} versions compared, {skipped} skipped",
        VERSIONS.len() - skipped
    );
    assert!(skipped < VERSIONS.len(), "no CPython at all was found");
}

fn why_not() -> Option<String> {
    kernel::checks()
        .into_iter()
        .find(|check| check.standing == kernel::Standing::Missing)
        .map(|check| check.to_string())
}

fn build_library(directory: &Path) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python_stacks");
    let build = |name: &str, source: &str, against: &[&Path]| {
        let library = directory.join(name);
        let status = Command::new("cc")
            .args([
                "-O1",
                "-g",
                "-shared",
                "-fPIC",
                "-pthread",
                "-Wl,-rpath,$ORIGIN",
                "-o",
            ])
            .args([&library, &sources.join(source)])
            .args(against)
            .status()
            .expect("a C compiler");
        assert!(status.success());
        library
    };
    let called = build("libc10.so", "libc10.c", &[]);
    build("libcaller.so", "caller.c", &[&called])
}

/// Interpreters of a version: what pyenv has, what the set-up brought, and what the system has.
fn interpreters(version: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(home) = std::env::var_os("HOME") {
        let versions = Path::new(&home).join(".pyenv/versions");
        for entry in std::fs::read_dir(versions).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&format!("{version}.")) {
                found.push(entry.path().join(format!("bin/python{version}")));
            }
        }
    }
    found.push(newer_pythons().join(format!("python{version}")));
    found.push(PathBuf::from(format!("/usr/bin/python{version}")));
    found.push(PathBuf::from(format!("/usr/local/bin/python{version}")));
    found.retain(|path| path.exists());
    found
}

fn compare(interpreter: &Path, library: &Path, directory: &Path) {
    let truth_file = directory.join("truth.json");
    let mut command = Command::new(interpreter);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python_stacks/workload.py"))
        .arg(library)
        .args([EVENTS.to_string(), THREADS.to_string()])
        .arg(&truth_file);
    let mut program = Program::of(command);
    program.expect("ready");

    // Both tracers at once: a run for each would take twice the time.
    let options = Options {
        watch_devices: false,
        library: Some(injection_library()),
        ..Options::default()
    };
    let mut injected = Session::inject(program.pid(), &options).unwrap();
    let mut probed = Session::attach(program.pid(), &options).unwrap();
    for note in injected.notes.iter().chain(&probed.notes) {
        println!("note: {note}");
    }
    program.say("go");
    let listeners = [listen(&injected), listen(&probed)];
    let done = program.expect("");
    injected.detach();
    probed.detach();
    let [by_library, by_kernel] = listeners.map(|listener| listener.join().unwrap());
    program.say("end");
    assert!(program.finish().success());

    let truth: HashMap<u64, Stack> =
        serde_json::from_slice(&std::fs::read(&truth_file).unwrap()).unwrap();
    for (tracer, seen) in [("injection", by_library), ("ebpf", by_kernel)] {
        let heading = format!("{} by {tracer}: {done}", interpreter.display());
        judge(&heading, &seen, &truth);
    }
}

fn listen(session: &Session) -> JoinHandle<Seen> {
    let records = session.records().clone();
    std::thread::spawn(move || {
        let mut seen = Seen::default();
        for record in records.into_iter().flatten() {
            seen.take(record.event);
        }
        seen
    })
}

fn judge(heading: &str, seen: &Seen, truth: &HashMap<u64, Stack>) {
    let mut wrong = 0;
    for (number, expected) in truth {
        let got = seen.stacks.get(number);
        if got != Some(expected) {
            wrong += 1;
            if wrong <= 3 {
                println!("event {number}:\n  got {got:?}\n  expected {expected:?}");
            }
        }
    }
    println!(
        "{heading}, {} events seen, {wrong} wrong, {} lost, {} different stacks",
        seen.stacks.len(),
        seen.lost,
        seen.definitions.len(),
    );
    assert_eq!((wrong, seen.lost), (0, 0));
    assert_eq!(seen.stacks.len(), truth.len());
    assert!(truth.len() >= EVENTS);
}

#[derive(Default)]
struct Seen {
    frames: HashMap<FrameId, Arc<Frame>>,
    definitions: HashMap<StackId, Arc<[FrameId]>>,
    stacks: HashMap<u64, Stack>,
    lost: u64,
}

impl Seen {
    fn take(&mut self, event: Event) {
        match event {
            Event::Frame { id, frame } => {
                self.frames.insert(id, frame);
            }
            Event::Stack { id, frames } => {
                self.definitions.insert(id, frames);
            }
            Event::Alloc(alloc) => {
                let stack = self
                    .definitions
                    .get(&alloc.stack)
                    .map(|frames| frames.iter().filter_map(|id| self.frame(*id)).collect())
                    .unwrap_or_default();
                self.stacks.insert(alloc.address.0, stack);
            }
            Event::Lost { count, .. } => self.lost += count,
            _ => {}
        }
    }

    /// A frame of Python's; machine code may have no name yet.
    fn frame(&self, id: FrameId) -> Option<(String, u32, String)> {
        let frame = self.frames.get(&id)?;
        (frame.kind == FrameKind::Python).then(|| {
            (
                frame.file.to_string(),
                frame.line,
                frame.function.to_string(),
            )
        })
    }
}

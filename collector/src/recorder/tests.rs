//! The policy: what is kept, what is given up, and that the session never waits.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, sync::mpsc};

use vramscope_events::{
    Address, Alloc, Backend, DeviceId, Event, Free, Layer, OutOfMemory, Pid, StackId, StepMark,
    StepMarkKind, Tid, Totals,
};

use super::{work::Why, *};
use crate::{Config, replay::Replay};
use vramscope_recording::{End, Recording, Writer};

const MS: u64 = 1_000_000;

fn config() -> Config {
    let mut config = Config::new(Backend::Ebpf, Time(0), 1_700_000_000);
    config.read_sources = false;
    config
}

/// A program that keeps a block of every step.
struct Program {
    collector: Collector,
    time: u64,
    step: u64,
    /// What the sizes of its passing blocks come from (xorshift64; Marsaglia, 2003); 0: all are
    /// equal, and take next to nothing of a file.
    random: u64,
}

impl Program {
    fn new() -> Program {
        Program {
            collector: Collector::new(config()),
            time: 0,
            step: 0,
            random: 0,
        }
    }

    fn info(&self) -> SessionInfo {
        self.collector.session_info("test")
    }

    /// One step of a second with `events` passing blocks, taken in.
    fn step(&mut self, events: u64) -> Vec<Record> {
        self.step += 1;
        let step = self.step;
        let kept = step * 4096;
        let mut out = Vec::new();
        let pause = 1_000_000 / (events + 2) * 1000;
        let mut emit = |event| {
            self.time += pause;
            out.push(Record {
                time: Time(self.time),
                process: Pid(7),
                thread: Tid(7),
                event,
            });
        };
        let totals = |allocated| {
            Some(Totals {
                allocated,
                reserved: 1 << 30,
            })
        };
        let alloc = |address, size, stack, allocated| {
            Event::Alloc(Alloc {
                layer: Layer::Tensor,
                device: DeviceId(0),
                address: Address(address),
                size,
                stack: StackId(stack),
                totals: totals(allocated),
            })
        };
        emit(Event::StepMark(StepMark {
            kind: StepMarkKind::Backward,
            stack: StackId(9),
        }));
        for passing in 0..events / 2 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let (address, size) = (1 << 40 | passing << 20, 512 + self.random % 1024 * 512);
            emit(alloc(address, size, 3, kept - 4096 + size));
            emit(Event::Free(Free {
                layer: Layer::Tensor,
                device: Some(DeviceId(0)),
                address: Address(address),
                size: Some(size),
                totals: totals(kept - 4096),
            }));
        }
        emit(alloc(step << 20, 4096, 5, kept));
        self.collector.ingest(&out);
        out
    }

    fn out_of_memory(&mut self) -> Vec<Record> {
        let record = Record {
            time: Time(self.time),
            process: Pid(7),
            thread: Tid(7),
            event: Event::OutOfMemory(OutOfMemory {
                device: DeviceId(0),
                requested: 1 << 40,
                totals: Totals::default(),
                stack: StackId(5),
            }),
        };
        self.collector.ingest(std::slice::from_ref(&record));
        vec![record]
    }

    fn view(&mut self) -> String {
        format!("{:#?}", self.collector.view(Time(self.time)))
    }
}

fn options(path: &Path) -> Options {
    Options {
        path: path.to_owned(),
        force: false,
        flight: false,
        keep_last: None,
        max_bytes: None,
    }
}

fn replayed(path: &Path) -> (String, Replay) {
    let mut replay = Replay::open(path).unwrap();
    replay.seek_end(&mut |_, _| {}).unwrap();
    (format!("{:#?}", replay.view()), replay)
}

#[test]
fn a_session_is_written_whole_and_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.vrs");
    let mut program = Program::new();
    program.random = 0x9e37_79b9_7f4a_7c15;
    let mut recorder = Recorder::start(&options(&path), &program.info()).unwrap();
    for step in 1..=100 {
        let records = program.step(1000);
        recorder.take(records, &program.collector);
        // Whether a checkpoint is cheap is decided by what was written up to then: the disk is to
        // keep up with the steps, which are no seconds here.
        while step % 10 == 0 && recorder.waiting() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let until = Time(program.time);
    let summary = recorder.finish(&program.collector, until, "asked to");
    assert_eq!((summary.left_out, summary.trouble.clone()), (0, None));
    assert_eq!(summary.events, 100 * 1002);
    assert_eq!(fs::metadata(&path).unwrap().len(), summary.bytes);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let (view, replay) = replayed(&path);
    assert_eq!(view, program.view());
    // 100 s: checkpoints every 30, which are cheap beside what is written meanwhile.
    assert_eq!(replay.recording().checkpoints().len(), 3);
    assert_eq!(replay.notes(), &[] as &[String]);
}

#[test]
fn a_file_that_is_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.vrs");
    fs::write(&path, "precious").unwrap();
    let program = Program::new();
    let error = Recorder::start(&options(&path), &program.info())
        .err()
        .unwrap();
    assert!(error.to_string().contains("--force"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    let force = Options {
        force: true,
        ..options(&path)
    };
    let recorder = Recorder::start(&force, &program.info()).unwrap();
    recorder.finish(&program.collector, Time(0), "");
    assert!(Recording::open(&path).is_ok());
    let device = Options {
        path: "/dev/null".into(),
        ..force
    };
    let error = Recorder::start(&device, &program.info()).err().unwrap();
    assert!(error.to_string().contains("no plain file"), "{error}");
}

#[test]
fn rotation_keeps_what_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.vrs");
    let mut program = Program::new();
    let keep = Options {
        keep_last: Some(Duration::from_secs(120)),
        ..options(&path)
    };
    let mut recorder = Recorder::start(&keep, &program.info()).unwrap();
    for _ in 0..1200 {
        let records = program.step(200);
        recorder.take(records, &program.collector);
    }
    let until = Time(program.time);
    let summary = recorder.finish(&program.collector, until, "");
    assert_eq!(summary.trouble, None);
    let (view, replay) = replayed(&path);
    assert_eq!(view, program.view());
    let (first, last) = replay.span();
    let kept = (last.0 - first.0) / MS / 1000;
    assert!((120..1000).contains(&kept), "{kept} s are kept");
    assert_eq!(replay.notes(), &[] as &[String]);
    // Nothing is left beside it.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_flight_recorder_writes_when_memory_runs_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crash.vrs");
    let mut program = Program::new();
    let flight = Options {
        flight: true,
        keep_last: Some(Duration::from_secs(90)),
        ..options(&path)
    };
    let mut recorder = Recorder::start(&flight, &program.info()).unwrap();
    for _ in 0..400 {
        let records = program.step(50);
        recorder.take(records, &program.collector);
    }
    assert!(!path.exists(), "nothing has happened yet");
    let records = program.out_of_memory();
    recorder.take(records, &program.collector);
    let at_that_moment = program.view();
    let records = program.step(50);
    recorder.take(records, &program.collector);
    let until = Time(program.time);
    let summary = recorder.finish(&program.collector, until, "asked to");
    assert_eq!(summary.trouble, None);
    let (view, replay) = replayed(&path);
    assert_eq!(view, at_that_moment);
    let (first, last) = replay.span();
    let kept = (last.0 - first.0) / MS / 1000;
    // Checkpoints of so little are at most 120 s apart.
    assert!((90..220).contains(&kept), "{kept} s are kept");
    assert_eq!(replay.recording().end().unwrap().reason, "out of memory");
}

/// An output that is told how much room it has and waits to be let go.
struct Narrow {
    inner: FileOutput,
    room: u64,
    gate: Option<mpsc::Receiver<()>>,
}

impl Output for Narrow {
    fn begin(&mut self, head: &[u8]) -> io::Result<()> {
        self.inner.begin(head)
    }
    fn append(&mut self, chunks: &[u8], last: Time) -> io::Result<()> {
        if let Some(gate) = self.gate.take() {
            gate.recv().expect("the test lets it go");
        }
        self.room = self
            .room
            .checked_sub(chunks.len() as u64)
            .ok_or(io::ErrorKind::StorageFull)?;
        self.inner.append(chunks, last)
    }
    fn checkpoint(&mut self, chunk: &[u8], sequence: u64, time: Time) -> io::Result<()> {
        self.inner.checkpoint(chunk, sequence, time)
    }
    fn keep(&mut self, why: Why, writer: &Writer, until: Time) -> io::Result<()> {
        self.inner.keep(why, writer, until)
    }
    fn idle(&mut self) -> bool {
        self.inner.idle()
    }
    fn end(&mut self, writer: &Writer, end: End) -> io::Result<u64> {
        self.inner.end(writer, end)
    }
    fn give_up(&mut self) -> u64 {
        self.inner.give_up()
    }
}

#[test]
fn a_full_disk_ends_the_recording_not_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.vrs");
    let mut program = Program::new();
    let output = Narrow {
        inner: FileOutput::new(&options(&path)).unwrap(),
        room: 20_000,
        gate: None,
    };
    let mut recorder = Recorder::start_on(Box::new(output), path.clone(), &program.info()).unwrap();
    let mut trouble = None;
    while trouble.is_none() {
        let records = program.step(5_000);
        recorder.take(records, &program.collector);
        trouble = recorder.trouble();
    }
    let trouble = trouble.unwrap();
    assert!(trouble.contains("the disk is full"), "{trouble}");
    assert_eq!(recorder.trouble(), None, "said once");
    // The session goes on.
    let records = program.step(10);
    recorder.take(records, &program.collector);
    let until = Time(program.time);
    let summary = recorder.finish(&program.collector, until, "");
    assert_eq!(summary.trouble, Some(trouble));
    assert!(summary.bytes > 0);
    // What is there is right, and says that it was not closed.
    let mut replay = Replay::open(&path).unwrap();
    replay.seek_end(&mut |_, _| {}).unwrap();
    assert!(
        replay.notes()[0].contains("without an end"),
        "{:?}",
        replay.notes()
    );
    assert!(!replay.is_corrupt());
}

#[test]
fn a_slow_disk_costs_events_that_are_counted_and_the_end_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.vrs");
    let mut program = Program::new();
    let (open, gate) = mpsc::channel();
    let output = Narrow {
        inner: FileOutput::new(&options(&path)).unwrap(),
        room: u64::MAX,
        gate: Some(gate),
    };
    let mut recorder = Recorder::start_on(Box::new(output), path.clone(), &program.info()).unwrap();
    // More than may wait.
    for _ in 0..60 {
        let records = program.step(20_000);
        recorder.take(records, &program.collector);
    }
    assert!(recorder.missing > 0, "the session did not wait");
    open.send(()).unwrap();
    let until = Time(program.time);
    let summary = recorder.finish(&program.collector, until, "");
    assert!(summary.left_out > 100_000, "{}", summary.left_out);
    let (view, replay) = replayed(&path);
    assert_eq!(view, program.view());
    // From the start on it is told what is missing.
    let mut pieces = replay.recording().pieces();
    assert!(pieces.by_ref().all(|piece| piece.is_ok()));
    let told = pieces.damage()[0].to_string();
    assert!(
        told.contains(&format!("{} events", summary.left_out)),
        "{told}"
    );
}

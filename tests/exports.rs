//! Exports and flamegraphs of a recording, as a user asks for them.

use std::{fs, path::Path, sync::Arc};

use tempfile::TempDir;
use vramscope_events::{
    Address, Alloc, Backend, DeviceId, Event, Frame, FrameId, FrameKind, Free, Layer, Pid,
    ProcessInfo, Record, StackId, StepMark, StepMarkKind, Tid, Time, Totals,
};
use vramscope_recording::{FORMAT, SessionInfo, Settings, Writer};
use vramscope_test_support::{Run, Tool};

const SECOND: u64 = 1_000_000_000;
/// Bytes that each step keeps, and steps; a step takes a second.
const KEPT: u64 = 1536;
const STEPS: u64 = 20;
const WEIGHTS: u64 = 1 << 20;

/// A folder with `run.vram`: twenty steps, each of which keeps a block.
fn recorded() -> TempDir {
    let mut records = Vec::new();
    let mut totals = Totals::default();
    let mut emit = |time: u64, event| {
        records.push(Record {
            time: Time(100 * SECOND + time),
            process: Pid(4121),
            thread: Tid(4121),
            event,
        });
    };
    for (id, function, line) in [(1, "main", 31), (2, "step", 27), (3, "build", 9)] {
        let frame = Frame {
            kind: FrameKind::Python,
            file: "/home/mira/train.py".into(),
            function: function.into(),
            line,
        };
        emit(
            0,
            Event::Frame {
                id: FrameId(id),
                frame: Arc::new(frame),
            },
        );
    }
    for (id, leaf) in [(1, 2), (2, 3)] {
        let frames = [FrameId(leaf), FrameId(1)].into();
        emit(
            0,
            Event::Stack {
                id: StackId(id),
                frames,
            },
        );
    }
    let alloc = |address, size, stack, totals: &mut Totals| {
        totals.allocated += size;
        totals.reserved = totals.reserved.max(totals.allocated);
        Event::Alloc(Alloc {
            layer: Layer::Tensor,
            device: DeviceId(0),
            address: Address(address),
            size,
            stack: StackId(stack),
            totals: Some(*totals),
        })
    };
    emit(1, alloc(0x7f00_0000_0000, WEIGHTS, 2, &mut totals));
    for step in 0..STEPS {
        let time = step * SECOND + SECOND / 2;
        let passing = 0x7f00_4000_0000;
        emit(time, alloc(passing, 1 << 19, 1, &mut totals));
        emit(
            time + 1,
            alloc(0x7f00_1000_0000 + step * 2048, KEPT, 1, &mut totals),
        );
        let mark = StepMark {
            kind: StepMarkKind::Backward,
            stack: StackId(1),
        };
        emit(time + 2, Event::StepMark(mark));
        totals.allocated -= 1 << 19;
        let free = Free {
            layer: Layer::Tensor,
            device: Some(DeviceId(0)),
            address: Address(passing),
            size: Some(1 << 19),
            totals: Some(totals),
        };
        emit(time + 3, Event::Free(free));
    }
    let mut writer = Writer::default();
    let mut file = writer.session(&SessionInfo {
        format: FORMAT,
        program: "test".into(),
        started: Time(100 * SECOND),
        started_unix: 0,
        backend: Backend::Ebpf,
        processes: vec![ProcessInfo {
            pid: Pid(4121),
            command: "python train.py".into(),
            directory: Some("/home/mira".into()),
            ..ProcessInfo::default()
        }],
        probes: Vec::new(),
        settings: Settings::default(),
    });
    for batch in records.chunks(17) {
        file.extend(writer.records(batch));
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.vram"), file).unwrap();
    folder
}

fn vramscope(folder: &Path, arguments: &[&str]) -> Run {
    let tool = Tool::new(env!("CARGO_BIN_EXE_vramscope"));
    let output = tool
        .command()
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    Run {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What a selection adds up to, as folded stacks.
fn sum(folder: &Path, selection: &[&str]) -> u64 {
    let mut arguments = vec!["export", "run.vram", "--to", "folded", "-o", "-"];
    arguments.extend(selection);
    let run = vramscope(folder, &arguments);
    assert!(run.status.success(), "{run:?}");
    let weights = run
        .stdout
        .lines()
        .map(|line| line.rsplit_once(' ').expect("a weight").1);
    weights.map(|weight| weight.parse::<u64>().unwrap()).sum()
}

#[test]
fn selections() {
    let folder = recorded();
    let folder = folder.path();
    assert_eq!(sum(folder, &[]), WEIGHTS + STEPS * KEPT);
    assert_eq!(sum(folder, &["--blocks"]), 1 + STEPS);
    assert_eq!(sum(folder, &["--at", "10s"]), WEIGHTS + 10 * KEPT);
    assert_eq!(sum(folder, &["--window", "5s..8s"]), 3 * KEPT);
    assert_eq!(sum(folder, &["--window", "..5s"]), WEIGHTS + 5 * KEPT);
    assert_eq!(sum(folder, &["--window", "step:3..step:7"]), 4 * KEPT);
    assert_eq!(sum(folder, &["--peak"]), WEIGHTS + STEPS * KEPT + (1 << 19));
    assert_eq!(
        sum(folder, &["--allocated"]),
        WEIGHTS + STEPS * (KEPT + (1 << 19))
    );
    assert_eq!(sum(folder, &["--by", "growth"]), KEPT);
    assert_eq!(
        sum(folder, &["--device", "0", "--layer", "tensor"]),
        WEIGHTS + STEPS * KEPT
    );
}

#[test]
fn every_format_is_written_and_says_where_to_open_it() {
    let folder = recorded();
    let folder = folder.path();
    for (format, file, place) in [
        ("speedscope", "run.speedscope.json", "speedscope.app"),
        ("pprof", "run.pb.gz", "go tool pprof -http=: run.pb.gz"),
        ("firefox", "run.firefox.json", "profiler.firefox.com"),
        ("perfetto", "run.pftrace", "ui.perfetto.dev"),
        ("torch-snapshot", "run.pickle", "pytorch.org/memory_viz"),
        ("folded", "run.folded", "speedscope.app"),
        ("csv", "run.csv", "spreadsheet"),
        ("parquet", "run.parquet", "duckdb"),
    ] {
        let ask = ["export", "run.vram", "--to", format];
        let run = vramscope(folder, &ask);
        assert!(run.status.success(), "{run:?}");
        assert!(run.stderr.contains(place), "{run:?}");
        let path = folder.join(file);
        assert!(path.exists(), "{file}");
        // Not a second time, unless it is asked for.
        let again = vramscope(folder, &ask);
        assert_eq!(again.status.code(), Some(1), "{again:?}");
        assert!(again.stderr.contains("--force"), "{again:?}");
        let forced = vramscope(folder, &[&ask[..], &["--force"]].concat());
        assert!(forced.status.success(), "{forced:?}");
    }
    let left: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
    assert_eq!(left.len(), 9, "no unfinished files: {left:?}");
    let tables = fs::read_dir(folder.join("run.parquet")).unwrap();
    assert_eq!(tables.count(), 3);
}

#[test]
fn flamegraphs() {
    let folder = recorded();
    let folder = folder.path();
    let draw = |arguments: &[&str]| {
        let run = vramscope(
            folder,
            &[&["flamegraph", "run.vram", "-o", "-"], arguments].concat(),
        );
        assert!(run.status.success(), "{run:?}");
        run.stdout
    };
    let total = |picture: &str| {
        let (_, rest) = picture.split_once("total_samples=\"").expect("frames");
        rest.split_once('"').unwrap().0.parse::<u64>().unwrap()
    };
    assert_eq!(total(&draw(&[])), WEIGHTS + STEPS * KEPT);
    assert_eq!(total(&draw(&["--blocks"])), 1 + STEPS);
    assert_eq!(total(&draw(&["--weight", "growth"])), KEPT);
    assert_eq!(total(&draw(&["--window", "5s..8s"])), 3 * KEPT);
    let folded = draw(&["--folded", "--diff", "10s"]);
    assert!(
        folded.contains(&format!(
            "step (train.py:27) {} {}\n",
            10 * KEPT,
            STEPS * KEPT
        )),
        "{folded}"
    );
    let difference = draw(&["--diff", "10s"]);
    assert!(
        difference.contains("Change of survivors: +15.4 KB"),
        "{difference}"
    );
    fs::copy(folder.join("run.vram"), folder.join("other.vram")).unwrap();
    assert!(draw(&["--diff", "other.vram"]).contains("+0 B"));
    let page = draw(&["--html"]);
    assert!(page.starts_with("<!doctype html>") && page.contains("python train.py"));
}

#[test]
fn what_a_user_can_get_wrong() {
    let folder = recorded();
    let folder = folder.path();
    fs::write(folder.join("notes.txt"), "no recording").unwrap();
    for (arguments, code, words) in [
        (
            &["export", "notes.txt", "--to", "csv"][..],
            1,
            "no recording",
        ),
        (&["export", "gone.vram", "--to", "csv"], 1, "gone.vram"),
        (&["export", "run.vram", "--to", "xml"], 2, "possible values"),
        (
            &["export", "run.vram", "--to", "parquet", "-o", "-"],
            1,
            "-o DIR",
        ),
        (
            &["export", "run.vram", "--to", "firefox", "--allocated"],
            1,
            "no place for",
        ),
        (
            &["export", "run.vram", "--to", "csv", "--device", "7"],
            1,
            "pid 4121 GPU 0",
        ),
        (
            &["export", "run.vram", "--to", "csv", "--at", "1s", "--peak"],
            2,
            "cannot be used with",
        ),
        (
            &["export", "run.vram", "--to", "csv", "--window", "3"],
            2,
            "A..B",
        ),
        (
            &["flamegraph", "run.vram", "--by", "growth", "--peak"],
            1,
            "--by growth",
        ),
        (
            &["flamegraph", "run.vram", "--diff", "gone"],
            1,
            "neither a recording nor a time",
        ),
        (
            &["flamegraph", "1", "--peak"],
            1,
            "vramscope attach 1 -o run.vram",
        ),
    ] {
        let run = vramscope(folder, arguments);
        assert_eq!(run.status.code(), Some(code), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(words), "{arguments:?}: {run:?}");
        assert!(run.stdout.is_empty());
    }
    let left: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
    assert_eq!(left.len(), 2, "nothing was written: {left:?}");
}

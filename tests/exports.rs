//! Exports and flamegraphs of a recording, as a user asks for them.

use std::{fs, path::Path, sync::Arc};

use nix::sys::signal::Signal;
use tempfile::TempDir;
use vramscope_events::{
    Address, Alloc, Backend, DeviceId, Event, Frame, FrameId, FrameKind, Free, Layer, Pid,
    ProcessInfo, Record, StackId, StepMark, StepMarkKind, Tid, Time, Totals,
};
use vramscope_recording::{FORMAT, SessionInfo, Settings, Writer};
use vramscope_test_support::{Program, Run, Setup, TORCHES, Tool, missing, root, skip};

const SECOND: u64 = 1_000_000_000;
/// Bytes that each step keeps, and steps; a step takes a second.
const KEPT: u64 = 1536;
const STEPS: u64 = 20;
const WEIGHTS: u64 = 1 << 20;

/// A folder with `run.vrs`: twenty steps, each of which keeps a block.
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
    fs::write(folder.path().join("run.vrs"), file).unwrap();
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
    let mut arguments = vec!["export", "run.vrs", "--to", "folded", "-o", "-"];
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
        let ask = ["export", "run.vrs", "--to", format];
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
            &[&["flamegraph", "run.vrs", "-o", "-"], arguments].concat(),
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
    fs::copy(folder.join("run.vrs"), folder.join("other.vrs")).unwrap();
    assert!(draw(&["--diff", "other.vrs"]).contains("+0 B"));
    let page = draw(&["--html"]);
    assert!(page.starts_with("<!doctype html>") && page.contains("python train.py"));
}

#[test]
fn a_moment_named_with_the_file() {
    let folder = recorded();
    let folder = folder.path();
    let bytes = |place| {
        let run = vramscope(folder, &["export", place, "--to", "folded", "-o", "-"]);
        assert!(run.status.success(), "{run:?}");
        let weights = run
            .stdout
            .lines()
            .map(|line| line.rsplit_once(' ').expect("a weight").1);
        weights
            .map(|weight| weight.parse::<u64>().unwrap())
            .sum::<u64>()
    };
    assert_eq!(bytes("run.vrs@10s"), WEIGHTS + 10 * KEPT);
    // A step begins with its call of backward(), when its block is there.
    assert!(bytes("run.vrs@step:8") < bytes("run.vrs@step:9"));
}

/// Waits until there is something in the file.
fn until_it_grows(path: &Path, beyond: u64) {
    while fs::metadata(path).map_or(0, |metadata| metadata.len()) <= beyond {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_real_training_adds_up_in_every_format() {
    let test = "a_real_training_adds_up_in_every_format";
    let tool = Tool::new(env!("CARGO_BIN_EXE_vramscope"));
    if let Some(reason) = missing(&tool) {
        return skip(test, &reason);
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = folder.join("run.vrs");
    let setup = Setup::new(TORCHES[1])
        .env("STEPS", "100000")
        .env("SLEEP", "0.002");
    let script = root().join("tests/programs/train/transformer.py");
    let mut program = Program::start(&setup, &script, &[]);
    while !tool
        .run(&["doctor", &program.pid().to_string()])
        .status
        .success()
    {}
    let attached = tool.attach(program.pid(), &["-o", file.to_str().unwrap()]);
    until_it_grows(&file, 60_000);
    let live = attached.interrupt();
    assert!(live.status.success(), "{live:?}");
    program.signal(Signal::SIGKILL);
    program.finish();
    let device = &live.json()["devices"][0];
    let (bytes, blocks) = (
        device["live_bytes"].as_u64(),
        device["live_blocks"].as_u64(),
    );
    let (bytes, blocks) = (bytes.unwrap(), blocks.unwrap());
    assert!(bytes > 0 && blocks > 0);
    assert_eq!(sum(folder, &[]), bytes);
    assert_eq!(sum(folder, &["--blocks"]), blocks);
    let export = |format| {
        let run = vramscope(folder, &["export", "run.vrs", "--to", format, "-o", "-"]);
        assert!(run.status.success(), "{run:?}");
        run.stdout
    };
    let speedscope: serde_json::Value = serde_json::from_str(&export("speedscope")).unwrap();
    assert_eq!(speedscope["profiles"][0]["endValue"], bytes);
    let firefox: serde_json::Value = serde_json::from_str(&export("firefox")).unwrap();
    let weights = firefox["threads"][0]["nativeAllocations"]["weight"]
        .as_array()
        .unwrap();
    let retained: i64 = weights.iter().map(|weight| weight.as_i64().unwrap()).sum();
    assert_eq!(retained as u64, bytes);
    // Python's own readers of tables and pickles.
    for (format, name, read) in [
        (
            "csv",
            "run.csv",
            "print(sum(int(r['bytes']) for r in csv.DictReader(open(p,newline=''))))",
        ),
        (
            "torch-snapshot",
            "run.pickle",
            "print(sum(b['size'] for s in pickle.load(open(p,'rb'))['segments'] for b in s['blocks'] \
             if b['state']=='active_allocated'))",
        ),
    ] {
        let run = vramscope(folder, &["export", "run.vrs", "--to", format]);
        assert!(run.status.success(), "{run:?}");
        let program = format!("import csv,pickle\np={name:?}\n{read}");
        let output = std::process::Command::new("python3")
            .args(["-c", &program])
            .current_dir(folder)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed.trim(), bytes.to_string(), "{format}: {output:?}");
    }
    let page = vramscope(folder, &["flamegraph", "run.vrs", "--html", "-o", "-"]).stdout;
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let data: serde_json::Value =
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let rows = data["parts"][0]["rows"].as_array().unwrap();
    assert_eq!(
        rows.iter().map(|row| row[2].as_u64().unwrap()).sum::<u64>(),
        bytes
    );
}

#[test]
fn what_a_user_can_get_wrong() {
    let folder = recorded();
    let folder = folder.path();
    fs::write(folder.join("notes.txt"), "no recording").unwrap();
    for (arguments, code, words) in [
        (
            &["export", "notes.txt", "--to", "csv"][..],
            4,
            "no recording",
        ),
        (&["export", "gone.vrs", "--to", "csv"], 1, "gone.vrs"),
        (&["export", "run.vrs", "--to", "xml"], 2, "possible values"),
        (
            &["export", "run.vrs", "--to", "parquet", "-o", "-"],
            1,
            "-o DIR",
        ),
        (
            &["export", "run.vrs", "--to", "firefox", "--allocated"],
            1,
            "no place for",
        ),
        (
            &["export", "run.vrs", "--to", "csv", "--device", "7"],
            1,
            "pid 4121 GPU 0",
        ),
        (
            &["export", "run.vrs", "--to", "csv", "--at", "1s", "--peak"],
            2,
            "cannot be used with",
        ),
        (
            &["export", "run.vrs", "--to", "csv", "--window", "3"],
            2,
            "A..B",
        ),
        (
            &["flamegraph", "run.vrs", "--by", "growth", "--peak"],
            1,
            "--by growth",
        ),
        (
            &["flamegraph", "run.vrs", "--diff", "gone"],
            1,
            "neither a recording nor a time",
        ),
        (
            &["flamegraph", "1", "--peak"],
            1,
            "vramscope attach 1 -o run.vrs",
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

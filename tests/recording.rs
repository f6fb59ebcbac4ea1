//! Recordings of real trainings by the real binary: the same report as live, whatever ends them.
//! (`verdicts.rs` compares every leak case likewise.)

use std::{fs, path::Path, process::Command, time::Duration};

use nix::{
    sys::signal::Signal,
    time::{ClockId, clock_gettime},
};
use vramscope_events::Time;
use vramscope_recording::Recording;
use vramscope_test_support::{Program, Run, Setup, TORCHES, Tool, missing, root, skip};

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

fn training(name: &str, torch: &str, steps: &str) -> Program {
    let setup = Setup::new(torch).env("STEPS", steps).env("SLEEP", "0.002");
    let script = root().join(format!("tests/programs/{name}.py"));
    Program::start(&setup, &script, &[])
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Waits until there is something in the file.
fn until_it_grows(path: &Path, beyond: u64) {
    while fs::metadata(path).map_or(0, |metadata| metadata.len()) <= beyond {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn monotonic() -> Time {
    let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap());
    Time(now.as_nanos() as u64)
}

fn ends_with(run: &Run, code: i32, words: &[&str]) {
    assert_eq!(run.status.code(), Some(code), "{run:?}");
    for word in words {
        assert!(run.stderr.contains(word), "`{word}` is not in {run:?}");
    }
}

#[test]
fn a_recording_tells_what_the_session_told() {
    let test = "a_recording_tells_what_the_session_told";
    if let Some(reason) = missing(&tool()) {
        return skip(test, &reason);
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, torch) in [("train/transformer", TORCHES[0]), ("train/gan", TORCHES[1])] {
        let file = folder.path().join("run.vrs");
        let program = training(name, torch, "1000000");
        while !tool()
            .run(&["doctor", &program.pid().to_string()])
            .status
            .success()
        {}
        let options = ["--capacity", "80G", "--survivors", "-o", text(&file)];
        let attached = tool().attach(program.pid(), &options);
        until_it_grows(&file, 100_000);
        // The one is ended by its user, the other by its program's end.
        let live = if name.ends_with("gan") {
            program.signal(Signal::SIGKILL);
            let mut attached = attached;
            attached.wait()
        } else {
            attached.interrupt()
        };
        drop(program);
        ends_with(&live, 0, &["recorded: ", "vramscope live "]);
        let replayed = tool().run(&["report", text(&file), "--json", "--survivors"]);
        ends_with(&replayed, 0, &[]);
        assert_eq!(replayed.stdout, live.stdout, "{name} on {torch}");
        // Two moments of it, and a picture of one.
        let earlier = format!("{}@step:5", text(&file));
        let compared = tool().run(&["diff", &earlier, text(&file), "--json"]);
        ends_with(&compared, 0, &[]);
        assert_eq!(compared.json()["devices"][0]["sides"][0]["steps"], 5);
        let picture = tool().run(&["flamegraph", text(&file), "--folded", "-o", "-"]);
        ends_with(&picture, 0, &[]);
        let folded: u64 = picture
            .stdout
            .lines()
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum();
        assert_eq!(live.json()["devices"][0]["live_bytes"], folded, "{name}");
        let events = Recording::open(&file).unwrap().end().unwrap().events;
        let bytes = fs::metadata(&file).unwrap().len();
        println!(
            "{name}: {:.2} bytes an event of {events}",
            bytes as f64 / events as f64
        );
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_killed_recorder_leaves_all_but_the_last_moment() {
    let test = "a_killed_recorder_leaves_all_but_the_last_moment";
    if let Some(reason) = missing(&tool()) {
        return skip(test, &reason);
    }
    let turns = std::env::var("VRAMSCOPE_KILLS").ok();
    let turns: usize = turns.and_then(|turns| turns.parse().ok()).unwrap_or(2);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.vrs");
    let mut program = training("train/transformer", TORCHES[1], "1000000");
    while !tool()
        .run(&["doctor", &program.pid().to_string()])
        .status
        .success()
    {}
    let mut longest = 0.0f64;
    for turn in 0..turns {
        let mut attached = tool().attach(program.pid(), &["-o", text(&file), "--force"]);
        until_it_grows(&file, 30_000 + 10_000 * (turn as u64 % 7));
        attached.signal(Signal::SIGKILL);
        let killed = monotonic();
        attached.wait();
        let recording = Recording::open(&file).unwrap();
        let last = recording.span().1;
        let lost = killed.seconds_since(last) * 1e3;
        longest = longest.max(lost);
        let report = tool().run(&["report", text(&file), "--json"]);
        ends_with(&report, 0, &["note: ", "recorder was killed"]);
        // What is there is right: PyTorch's own totals agree at every event.
        let check = &report.json()["devices"][0]["ledger"];
        assert_eq!(
            (&check["corrected"], &check["double_allocs"]),
            (&0.into(), &0.into())
        );
        assert!(check["agreed"].as_u64().unwrap() > 1_000, "{check}");
    }
    println!("killed {turns} times: at most the last {longest:.0} ms are missing");
    assert!(program.alive());
}

/// A file system of 64 KiB; gone when dropped.
struct SmallDisk<'a>(&'a Path);

impl SmallDisk<'_> {
    fn mount(at: &Path) -> Option<SmallDisk<'_>> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(at)
            .output();
        let mounted = mounted.is_ok_and(|mounted| mounted.status.success());
        mounted.then_some(SmallDisk(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        // A test that failed must not leave it behind.
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_session() {
    let test = "a_full_disk_ends_the_recording_and_not_the_session";
    if let Some(reason) = missing(&tool()) {
        return skip(test, &reason);
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path()) else {
        return skip(test, "no small file system can be mounted");
    };
    let file = folder.path().join("run.vrs");
    let mut program = training("train/transformer", TORCHES[1], "1000000");
    while !tool()
        .run(&["doctor", &program.pid().to_string()])
        .status
        .success()
    {}
    let mut attached = tool().attach(program.pid(), &["-o", text(&file)]);
    attached.until("warning: recording ended: the disk is full");
    assert!(program.alive());
    let live = attached.interrupt();
    let replayed = tool().run(&["report", text(&file), "--json"]);
    ends_with(&live, 0, &["the session goes on"]);
    let log = live.json()["log"].to_string();
    assert!(log.contains("recording ended"), "{log}");
    ends_with(&replayed, 0, &["without an end"]);
    let events = |run: &Run| {
        run.json()["devices"][0]["ledger"]["agreed"]
            .as_u64()
            .unwrap()
    };
    assert!(events(&live) > events(&replayed));
}

#[test]
fn a_flight_recorder_keeps_what_led_to_the_crash() {
    let test = "a_flight_recorder_keeps_what_led_to_the_crash";
    if let Some(reason) = missing(&tool()) {
        return skip(test, &reason);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crash.vrs");
    let setup = Setup::new(TORCHES[1])
        .device("--mem", "1G")
        .env("LEAKCASE_STEPS", "60");
    let paced = root().join("tests/programs/paced.py");
    let script = root().join("tests/programs/special/out_of_memory.py");
    let arguments = ["5", "50", text(&script)];
    let mut program = Program::start(&setup, &paced, &arguments);
    program.expect("ready");
    let mut attached = tool().attach(program.pid(), &["--flight-recorder", text(&file)]);
    program.say("go");
    program.expect("watched");
    program.say("end");
    program.finish();
    let live = attached.wait();
    ends_with(&live, 0, &["recorded: "]);
    let report = tool().run(&["report", text(&file), "--json"]);
    ends_with(&report, 0, &[]);
    let log = report.json()["log"].to_string();
    assert!(log.contains("out of memory on GPU 0"), "{log}");
}

#[test]
fn what_cannot_be_read_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("notes.txt"), "not a recording at all").unwrap();
    let run = tool().run(&["report", text(&path("notes.txt"))]);
    ends_with(
        &run,
        4,
        &["is no recording", "vramscope attach PID -o FILE"],
    );
    fs::write(path("cut.vrs"), b"\x89VRAM\r\n\x1avrsC\x01\x80").unwrap();
    let run = tool().run(&["diff", text(&path("cut.vrs")), text(&path("cut.vrs"))]);
    ends_with(&run, 4, &["damaged at byte 8"]);
    let run = tool().run(&["report", text(&path("gone.vrs"))]);
    ends_with(&run, 1, &["cannot be read", "No such file"]);
    let run = tool().run(&["report", "0"]);
    ends_with(&run, 2, &["no process number"]);
    let run = tool().run(&["attach", "run.vrs"]);
    ends_with(&run, 2, &["vramscope live run.vrs"]);
    let run = tool().run(&["live", text(&path("notes.txt"))]);
    ends_with(&run, 1, &["needs a terminal", "vramscope report"]);
    // Said before anything is attached.
    let taken = path("notes.txt");
    let run = tool().run(&["attach", "1", "-o", text(&taken)]);
    ends_with(&run, 1, &["is there already", "--force"]);
    let run = tool().run(&["attach", "1", "--keep-last", "2h"]);
    ends_with(&run, 1, &["-o FILE"]);
    assert_eq!(fs::read(&taken).unwrap(), b"not a recording at all");
}

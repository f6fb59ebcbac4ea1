//! `--holders` on a program that ends by itself: it was asked while it ran.

use std::time::{Duration, Instant};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use vramscope_test_support::{Program, Setup, TORCHES, Tool, missing, root, skip};

/// The steps before and after the attach; enough for a verdict.
const STEPS: [&str; 2] = ["5", "250"];

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

/// Waits until a recording that is being made tells of something.
fn until(recording: &str, told: impl Fn(&Value) -> bool) {
    let patience = Instant::now() + Duration::from_secs(120);
    loop {
        let run = tool().run(&["report", recording, "--json"]);
        let report: Value = serde_json::from_str(&run.stdout).unwrap_or_default();
        if told(&report) {
            return;
        }
        assert!(Instant::now() < patience, "never told: {run:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn is_probed(report: &Value) -> bool {
    let probes = report["probes"].as_array().into_iter().flatten();
    probes.into_iter().any(|probe| {
        probe["name"] == "c10::reportMemoryUsageToProfiler" && probe["state"] == "attached"
    })
}

fn is_answered(report: &Value) -> bool {
    report["devices"][0]["verdict"]["retained_by"].is_string()
}

fn holder_is_named(report: &Value, what: &str) {
    let verdict = &report["devices"][0]["verdict"];
    assert_eq!(verdict["class"], "leak", "{what}: {verdict}");
    let holder = verdict["retained_by"].as_str().unwrap_or_default();
    assert!(holder.contains("`__main__.smoothed`"), "{what}: {verdict}");
}

#[test]
fn a_program_that_ends_was_asked_before() {
    if let Some(reason) = missing(&tool()) {
        return skip("a_program_that_ends_was_asked_before", &reason);
    }
    for (torch, backend) in [(TORCHES[0], "inject"), (TORCHES[1], "ebpf")] {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (told, recording) = (file("report.json"), file("run.vrs"));
        let mut front = tool().command();
        front.args(["run", "--backend", backend, "--holders", "--json"]);
        front.args(["--report-to", &told, "-o", &recording, "--"]);
        let case = root().join("tests/cases/01_running_loss_keeps_graph.py");
        let mut program = Program::start_behind(
            front,
            &Setup::new(torch).env("LEAKCASE_STEPS", "1000"),
            &root().join("tests/programs/paced.py"),
            &[STEPS[0], STEPS[1], case.to_str().unwrap()],
        );
        program.expect("ready");
        until(&recording, is_probed);
        program.say("go");
        program.expect("watched");
        until(&recording, is_answered);
        program.say("end");
        assert!(program.finish().success());
        let report: Value = serde_json::from_slice(&std::fs::read(told).unwrap()).unwrap();
        holder_is_named(&report, backend);
    }
}

#[test]
fn a_process_that_is_killed_was_asked_before() {
    if let Some(reason) = missing(&tool()) {
        return skip("a_process_that_is_killed_was_asked_before", &reason);
    }
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("run.vrs");
    let recording = recording.to_str().unwrap();
    let case = root().join("tests/cases/01_running_loss_keeps_graph.py");
    let mut program = Program::start(
        &Setup::new(TORCHES[0]).env("LEAKCASE_STEPS", "1000"),
        &root().join("tests/programs/paced.py"),
        &[STEPS[0], STEPS[1], case.to_str().unwrap()],
    );
    program.expect("ready");
    let mut attached = tool().attach(program.pid(), &["--holders", "-o", recording]);
    program.say("go");
    program.expect("watched");
    until(recording, is_answered);
    program.signal(Signal::SIGKILL);
    let run = attached.wait();
    assert!(run.status.success(), "{run:?}");
    assert!(run.stderr.contains("this runs code in it"), "{run:?}");
    let told = "not asked again what holds the survivors: the process has ended";
    assert!(run.stderr.contains(told), "{run:?}");
    holder_is_named(&run.json(), "attach");
}

/// At whatever moment of a question: it is over at once, and its exit code is passed on.
#[test]
fn a_program_may_die_while_it_is_asked() {
    if let Some(reason) = missing(&tool()) {
        return skip("a_program_may_die_while_it_is_asked", &reason);
    }
    let case = root().join("tests/cases/01_running_loss_keeps_graph.py");
    for milliseconds in [0, 10, 40, 90, 160, 250] {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let said = file("stderr");
        let mut front = std::process::Command::new("sh");
        front.args(["-c", "said=$1; shift; exec \"$@\" 2>\"$said\"", "sh", &said]);
        front.arg(env!("CARGO_BIN_EXE_vramscope"));
        front.args(["run", "--backend", "ebpf", "--holders", "--json", "--"]);
        let mut program = Program::start_behind(
            front,
            &Setup::new(TORCHES[0]).env("LEAKCASE_STEPS", "1000"),
            &root().join("tests/programs/paced.py"),
            &["5", "900", case.to_str().unwrap()],
        );
        program.expect("ready");
        program.say("go");
        let patience = Instant::now() + Duration::from_secs(120);
        let read = || std::fs::read_to_string(&said).unwrap_or_default();
        let asked = loop {
            let said = read();
            if let Some((_, rest)) = said.split_once("asking process ")
                && let Some((pid, _)) = rest.split_once(' ')
            {
                break pid.parse::<i32>().unwrap();
            }
            assert!(Instant::now() < patience, "nobody was asked: {said}");
        };
        std::thread::sleep(Duration::from_millis(milliseconds));
        kill(Pid::from_raw(asked), Signal::SIGKILL).unwrap();
        let status = program.finish();
        let said = read();
        assert_eq!(status.code(), Some(128 + 9), "{said}");
        assert!(!said.contains("has no answer yet"), "{said}");
        let warning = said
            .lines()
            .find(|line| line.starts_with("warning: not asked"));
        let why = ["has ended", "is gone"];
        println!("after {milliseconds} ms: {warning:?}");
        assert!(
            warning.is_none_or(|warning| why.iter().any(|why| warning.contains(why))),
            "{said}"
        );
    }
}

//! What holds the survivors, asked by whoever watches: with both tracers, under `run`, in the report
//! and in the recording.

use std::{fs, path::Path};

use serde_json::Value;
use vramscope_test_support::{Program, Setup, TORCHES, Tool, missing, root, skip};

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

const CASE: &str = "01_running_loss_keeps_graph";
const HOLDER: &str = "the autograd graph behind `__main__.smoothed`";

/// The arguments of `paced.py` for the case.
fn paced() -> (std::path::PathBuf, [String; 3]) {
    paced_with(&format!("tests/cases/{CASE}.py"))
}

fn paced_with(script: &str) -> (std::path::PathBuf, [String; 3]) {
    let case = root().join(script).to_str().unwrap().to_owned();
    let script = root().join("tests/programs/paced.py");
    (script, ["5".into(), "140".into(), case])
}

fn start(setup: &Setup) -> Program {
    let (script, arguments) = paced();
    let mut program = Program::start(setup, &script, &arguments.each_ref().map(String::as_str));
    program.expect("ready");
    program
}

fn setup(torch: &str) -> Setup {
    Setup::new(torch).env("LEAKCASE_STEPS", "1000")
}

/// The site that was asked about.
fn asked(report: &Value) -> &Value {
    let sites = report["devices"][0]["sites"].as_array().unwrap();
    let asked = sites.iter().find(|site| !site["retained_by"].is_null());
    asked.unwrap_or_else(|| panic!("no site was asked about: {report}"))
}

fn check(report: &Value) {
    let verdict = &report["devices"][0]["verdict"];
    assert_eq!(verdict["class"], "leak", "{verdict}");
    assert_eq!(verdict["retained_by"], HOLDER, "{verdict}");
    let summary = verdict["summary"].as_str().unwrap();
    assert!(
        summary.ends_with(&format!("; held by {HOLDER}")),
        "{summary}"
    );
    let site = asked(report);
    let retained = &site["retained_by"];
    let first = &retained["holders"][0];
    assert_eq!(first["kind"], "graph", "{retained}");
    assert_eq!(retained["partial"], Value::Null, "{retained}");
    assert_eq!(retained["asked"], retained["survivors"]);
    let blocks = first["blocks"].as_u64().unwrap();
    assert!(blocks * 10 >= retained["asked"].as_u64().unwrap() * 9);
    assert!(blocks <= site["live_blocks"].as_u64().unwrap());
    assert!(retained["cost"].as_str().unwrap().starts_with("the GIL "));
}

#[test]
fn reports_and_recordings_say_who_holds() {
    if let Some(reason) = missing(&tool()) {
        return skip("reports_and_recordings_say_who_holds", &reason);
    }
    for (torch, inject) in TORCHES.into_iter().zip([false, true]) {
        let mut program = start(&setup(torch));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.vrs");
        let file = file.to_str().unwrap();
        let mut options = vec!["--holders", "-o", file];
        options.extend(inject.then_some("--inject"));
        let attached = tool().attach(program.pid(), &options);
        program.say("go");
        program.expect("watched");
        let run = attached.interrupt();
        assert!(run.status.success(), "{run:?}");
        assert!(run.stderr.contains("this runs code in it"), "{run:?}");
        let live = run.json();
        check(&live);
        assert!(!library_is_loaded(program.pid()), "it is taken out again");
        // The recording tells the same, and cannot be asked itself.
        let replayed = tool().run(&["report", file, "--json"]).json();
        assert_eq!(asked(&replayed)["retained_by"], asked(&live)["retained_by"]);
        assert_eq!(
            replayed["devices"][0]["verdict"],
            live["devices"][0]["verdict"]
        );
        let text = tool().run(&["report", file]).stdout.replace("\n ", "");
        assert!(text.contains("survivors, asked "), "{text}");
        let refused = tool().run(&["report", file, "--holders"]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(refused.stderr.contains("is a recording"), "{refused:?}");
        program.say("end");
        program.finish();
    }
}

/// A deque that fills looks like a leak until somebody asks who holds what is in it, and so does a
/// cache.
#[test]
fn a_bounded_container_is_no_leak() {
    if let Some(reason) = missing(&tool()) {
        return skip("a_bounded_container_is_no_leak", &reason);
    }
    let (script, arguments) = paced_with("tests/programs/holders/bounded.py");
    let arguments = arguments.each_ref().map(String::as_str);
    let verdict = |holder: &str, options: &[&str]| {
        let setup = setup(TORCHES[1]).env("HOLDER", holder);
        let mut program = Program::start(&setup, &script, &arguments);
        program.expect("ready");
        let attached = tool().attach(program.pid(), options);
        program.say("go");
        program.expect("watched");
        let run = attached.interrupt();
        assert!(run.status.success(), "{run:?}");
        program.say("end");
        program.finish();
        run.json()["devices"][0]["verdict"].clone()
    };
    assert_eq!(verdict("deque", &[])["class"], "leak");
    for (holder, path) in [
        ("deque", "`__main__.replay`"),
        (
            "lru_cache",
            "`__main__.batch_of, kept by functools.lru_cache`",
        ),
    ] {
        let asked = verdict(holder, &["--holders"]);
        assert_eq!(asked["class"], "warm_up", "{asked}");
        let words = format!("no leak: a bounded container fills, 145 of at most 400: {path}");
        assert_eq!(asked["summary"], words);
    }
}

fn library_is_loaded(pid: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    maps.contains("memfd:vramscope-agent")
}

/// The only child of a process that has one thread which starts any.
fn child_of(pid: u32) -> Option<u32> {
    let tasks = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task")).ok()?;
    let children = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).ok();
    let all: Vec<String> = tasks.flatten().filter_map(children).collect();
    all.concat().split_whitespace().next()?.parse().ok()
}

/// The library of `run` is in the process already; the one that asks comes beside it.
#[test]
fn a_process_under_run_can_be_asked() {
    let name = "a_process_under_run_can_be_asked";
    if let Some(reason) = missing(&tool()) {
        return skip(name, &reason);
    }
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.json");
    let mut front = tool().command();
    front
        .args(["run", "--json", "--backend", "inject", "--report-to"])
        .arg(&report)
        .arg("--");
    let (script, arguments) = paced();
    let arguments = arguments.each_ref().map(String::as_str);
    let mut program = Program::start_behind(front, &setup(TORCHES[0]), &script, &arguments);
    program.expect("ready");
    let Some(pid) = child_of(program.pid()) else {
        return skip(name, "/proc does not tell of children");
    };
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    assert!(maps.contains("libvramscope_injection"), "{maps}");
    let attached = tool().attach(pid, &["--holders"]);
    program.say("go");
    program.expect("watched");
    let run = attached.interrupt();
    assert!(run.status.success(), "{run:?}");
    check(&run.json());
    assert!(!library_is_loaded(pid), "it is taken out again");
    program.say("end");
    program.finish();
    let report: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    assert_eq!(report["devices"][0]["verdict"]["class"], "leak");
}

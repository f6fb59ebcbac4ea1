//! The library in the process: it comes and goes, and the program does not notice.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use nix::sys::signal::Signal;
use serde_json::Value;
use vramscope_test_support::{
    Program, Setup, TORCHES, Tool, injection_library, missing, root, skip,
};
use vramscope_tracer::{Options, Session};

/// What the library's file is called.
const LIBRARY: &str = "libvramscope_injection.so";

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

fn script(name: &str) -> PathBuf {
    root().join(format!("tests/programs/injection/{name}.py"))
}

fn repetitions(default: u32) -> u32 {
    std::env::var("VRAMSCOPE_REPEAT").map_or(default, |number| number.parse().unwrap())
}

fn maps(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap()
}

fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .count()
}

/// Files that the process has open, by what they are.
fn open_files(pid: u32) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .collect();
    files.sort();
    files
}

/// The median of the times of a step, in us, that the program prints while it is asked for them.
fn step_time(program: &mut Program) -> f64 {
    let mut times: Vec<f64> = (0..10)
        .map(|_| {
            let line = program.expect("step ");
            line.split(' ').nth(1).unwrap().parse().unwrap()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn all_is_well(program: &mut Program) {
    program.say("end");
    let last = program.expect("end ");
    assert_eq!(last, "threads 12 idle 0 wrong 0 errors []");
    assert!(program.finish().success());
}

#[test]
fn many_sessions_leave_a_busy_program_as_it_was() {
    if let Some(reason) = missing(&tool()) {
        return skip("many_sessions", &reason);
    }
    for torch in TORCHES {
        let mut program = Program::start(&Setup::new(torch), &script("busy"), &[]);
        let pid = program.expect("ready ").parse().unwrap();
        let before = step_time(&mut program);
        let files = open_files(pid);
        let sessions = repetitions(10);
        for session in 0..sessions {
            let attached = tool().attach(pid, &["--inject", "--capacity", "80G"]);
            assert!(maps(pid).contains(LIBRARY));
            program.expect_anew("step ");
            let run = attached.interrupt();
            assert!(run.status.success(), "session {session}: {run:?}");
            let report = run.json();
            assert_eq!(report["lost"]["events"], 0, "session {session}");
            assert_eq!(report["devices"][0]["ledger"]["corrected"], 0);
            assert_eq!(report["backend"], "injection");
            // Short-lived threads come and go; the library, its memory and its socket do not stay.
            let left = maps(pid);
            assert!(!left.contains(LIBRARY), "session {session}: {run:?}");
            assert!(!left.contains("memfd:vramscope"));
            assert_eq!(open_files(pid), files, "session {session}");
            assert!(threads(pid) <= 40, "{}", threads(pid));
        }
        let after = step_time(&mut program);
        println!(
            "{sessions} sessions on torch {torch}: a step {before:.0} us before, {after:.0} us \
             after, ratio {:.2}",
            after / before
        );
        all_is_well(&mut program);
    }
}

/// As many as are wanted in little time: in and out, whatever the program does at that moment.
#[test]
fn in_and_out_many_times() {
    if let Some(reason) = missing(&tool()) {
        return skip("in_and_out_many_times", &reason);
    }
    let options = Options {
        watch_devices: false,
        ring_bytes: 1 << 20,
        library: Some(injection_library()),
        ..Options::default()
    };
    let mut program = Program::start(&Setup::new(TORCHES[0]), &script("busy"), &[]);
    let pid = program.expect("ready ").parse().unwrap();
    let before = step_time(&mut program);
    let times = repetitions(30);
    let mut events = 0;
    for time in 0..times {
        let mut session = Session::inject(pid, &options).unwrap_or_else(|e| panic!("{time}: {e}"));
        let records = session.records().clone();
        events += records.recv().map_or(0, |batch| batch.len());
        let rest =
            std::thread::spawn(move || records.iter().map(|batch| batch.len()).sum::<usize>());
        session.detach();
        let notes = session.notes.clone();
        drop(session);
        events += rest.join().unwrap();
        assert!(program.alive(), "{time}");
        assert!(!maps(pid).contains(LIBRARY), "{time}: {notes:?}");
    }
    program.expect_anew("step ");
    let after = step_time(&mut program);
    println!(
        "{times} times in and out, {events} events: a step {before:.0} us before, {after:.0} us \
         after, ratio {:.2}",
        after / before
    );
    all_is_well(&mut program);
}

#[test]
fn our_sigkill_under_load_leaves_the_program_running() {
    if let Some(reason) = missing(&tool()) {
        return skip("our_sigkill_under_load", &reason);
    }
    let mut program = Program::start(&Setup::new(TORCHES[0]), &script("busy"), &[]);
    let pid = program.expect("ready ").parse().unwrap();
    let kills = repetitions(5);
    for kill in 0..kills {
        let mut attached = tool().attach(pid, &["--inject", "--capacity", "80G"]);
        if kill % 2 == 0 {
            program.expect_anew("step ");
        }
        attached.signal(Signal::SIGKILL);
        assert!(!attached.wait().status.success());
        program.expect_anew("step ");
        // The library sees that nobody is there, and undoes what it did: the next session finds a
        // process like any other.
        until(|| !maps(pid).contains("memfd:vramscope"));
    }
    let attached = tool().attach(pid, &["--inject", "--capacity", "80G"]);
    program.expect_anew("step ");
    let report = attached.interrupt().json();
    assert_eq!(report["devices"][0]["ledger"]["corrected"], 0);
    all_is_well(&mut program);
}

/// Waits for something that another process does in its own time.
fn until(done: impl Fn() -> bool) {
    for _ in 0..3000 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it did not happen within 30 s");
}

#[test]
fn one_session_at_a_time() {
    if let Some(reason) = missing(&tool()) {
        return skip("one_session_at_a_time", &reason);
    }
    let mut program = Program::start(&Setup::new(TORCHES[0]), &script("busy"), &[]);
    let pid: u32 = program.expect("ready ").parse().unwrap();
    let attached = tool().attach(pid, &["--inject", "--capacity", "80G"]);
    let second = tool().run(&["attach", &pid.to_string(), "--inject", "--headless"]);
    assert_eq!(second.status.code(), Some(3));
    assert!(
        second
            .stderr
            .contains("another vramscope watches this process already"),
        "{}",
        second.stderr
    );
    program.expect_anew("step ");
    let report = attached.interrupt().json();
    assert_eq!(report["devices"][0]["ledger"]["corrected"], 0);
    assert!(
        !maps(pid).contains(LIBRARY),
        "the second one has left nothing"
    );
    all_is_well(&mut program);
}

#[test]
fn output_and_exit_code_are_the_programs() {
    let run = |command: &[&str]| {
        tool()
            .command()
            .args(["run", "--"])
            .args(command)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let output = run(&["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("err\n"), "{said}");
    assert!(said.contains("never initialised CUDA"), "{said}");
    assert_eq!(run(&["sh", "-c", "kill -9 $$"]).status.code(), Some(137));
    assert_eq!(run(&["/nowhere/to/be/found"]).status.code(), Some(127));
    assert_eq!(run(&["/etc/passwd"]).status.code(), Some(126));
    assert_eq!(run(&[]).status.code(), Some(2));
    let taken = tool()
        .command()
        .args(["run", "--", "true"])
        .env("CUDA_INJECTION64_PATH", "/opt/other.so")
        .output()
        .unwrap();
    assert_eq!(taken.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&taken.stderr).contains("/opt/other.so"));
}

/// The first device of a process of a report.
fn device(process: &Value) -> &Value {
    &process["devices"][0]
}

#[test]
fn children_are_watched_and_forks_go_on() {
    if let Some(reason) = missing(&tool()) {
        return skip("children_are_watched", &reason);
    }
    for torch in TORCHES {
        let directory = tempfile::tempdir().unwrap();
        let report = directory.path().join("report.json");
        let mut front = tool().command();
        front
            .args(["run", "--json", "--report-to"])
            .arg(&report)
            .arg("--");
        let mut program = Program::start_behind(front, &Setup::new(torch), &script("family"), &[]);
        assert_eq!(program.finish().code(), Some(7));
        let said: Vec<_> = program.seen().iter().map(String::as_str).collect();
        assert_eq!(
            said,
            [
                "forked 5",
                "spawned 4",
                "executed",
                "exit 0",
                "allocated 12288"
            ]
        );
        let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        let processes = report["processes"].as_array().unwrap();
        assert_eq!(processes.len(), 3, "parent, spawn, exec: {processes:#?}");
        let mut peaks: Vec<_> = processes
            .iter()
            .map(|process| device(process)["peak_allocated"].as_u64().unwrap())
            .collect();
        peaks.sort_unstable();
        assert_eq!(peaks, [10_240, 12_288, 16_384]);
        assert_eq!(report["lost"]["events"], 0);
    }
}

#[test]
fn a_subscription_that_others_hold_is_told_and_tensors_are_seen() {
    if let Some(reason) = missing(&tool()) {
        return skip("a_subscription_that_others_hold", &reason);
    }
    for (torch, name) in [(TORCHES[0], true), (TORCHES[1], false)] {
        let mut program = Program::start(&Setup::new(torch), &script("held"), &[]);
        let pid = program.expect("ready ").parse().unwrap();
        let attached = tool().attach(pid, &["--inject", "--capacity", "80G"]);
        program.say("go");
        let allocated: u64 = program.expect("quiet ").parse().unwrap();
        let run = attached.interrupt();
        let report = run.json();
        assert_eq!(report["devices"][0]["live_bytes"], allocated);
        let probes = report["probes"].as_array().unwrap();
        let cupti = probes
            .iter()
            .find(|probe| probe["name"] == "CUPTI callbacks");
        let told = cupti.unwrap()["consequence"].as_str().unwrap();
        let expected = if name {
            "another tool"
        } else {
            "does not tell its name"
        };
        assert!(told.contains(expected), "torch {torch}: {told}");
        program.say("end");
        assert!(program.finish().success());
    }
}

#[test]
fn pytorchs_profiler_works_beside_us_and_the_user_is_told() {
    if let Some(reason) = missing(&tool()) {
        return skip("pytorchs_profiler", &reason);
    }
    // The simulated CUPTI records no kernels: what the profiler says without us is the measure.
    for torch in TORCHES {
        let profiled = root().join("tests/gpu/profiled.py");
        let mut alone = Program::start(&Setup::new(torch), &profiled, &[]);
        alone.expect("ready ");
        alone.say("profile");
        let expected = alone.expect("result ");
        let mut program = Program::start(&Setup::new(torch), &profiled, &[]);
        let pid = program.expect("ready ").parse().unwrap();
        let attached = tool().attach(pid, &["--inject", "--capacity", "80G"]);
        for _ in 0..2 {
            program.say("profile");
            assert_eq!(program.expect("result "), expected, "torch {torch}");
        }
        let run = attached.interrupt();
        assert!(run.status.success());
        let report = run.json();
        assert_eq!(report["lost"]["events"], 0);
        let probes = report["probes"].as_array().unwrap();
        let cupti = probes
            .iter()
            .find(|probe| probe["name"] == "CUPTI callbacks")
            .unwrap();
        // 2.8's profiler keeps the subscription, 2.15's asks for none.
        let told = cupti["consequence"].as_str().unwrap_or("");
        if torch == TORCHES[1] {
            assert!(told.contains("torch.profiler"), "{cupti}");
            assert!(run.stderr.contains("took CUPTI over"), "{}", run.stderr);
        } else {
            assert_eq!(cupti["state"], "attached", "{cupti}");
        }
        program.say("profile");
        assert_eq!(
            program.expect("result "),
            expected,
            "after us, torch {torch}"
        );
    }
}

#[test]
fn an_unprivileged_user_can_run() {
    if let Some(reason) = missing(&tool()) {
        return skip("an_unprivileged_user_can_run", &reason);
    }
    if !nix::unistd::geteuid().is_root() {
        return skip(
            "an_unprivileged_user_can_run",
            "we are not root: the other tests show it",
        );
    }
    // Root's own user, but without any of its rights: other users have no way to the files of this
    // checkout and of the simulator.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let mut front = Command::new("setpriv");
    front
        .env("VRAMSCOPE_INJECTION", injection_library())
        .args([
            "--bounding-set=-all",
            "--inh-caps=-all",
            "--no-new-privs",
            "--",
        ])
        .arg(env!("CARGO_BIN_EXE_vramscope"))
        .args(["run", "--json", "--report-to"])
        .arg(&file)
        .arg("--");
    let setup = Setup::new(TORCHES[0])
        .env("STEPS", "60")
        .env("SLEEP", "0.001");
    let script = root().join("tests/programs/train/mlp.py");
    let mut program = Program::start_behind(front, &setup, &script, &[]);
    assert!(program.finish().success());
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(report["lost"]["events"], 0);
    assert_eq!(report["steps"]["count"], 60);
    assert!(device(&report)["peak_allocated"].as_u64().unwrap() > 0);
}

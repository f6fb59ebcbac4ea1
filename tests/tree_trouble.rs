//! Trees of processes where something goes wrong: a rank is killed, the kernel tells nothing of
//! processes, or not all.

use std::collections::HashMap;

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use vramscope_test_support::{
    Program, Setup, TORCHES, Tool, missing,
    report::{number, pairs, tensors, with_devices},
    root, skip,
};

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

fn script(name: &str) -> std::path::PathBuf {
    root().join(format!("tests/programs/tree/{name}.py"))
}

/// What a process said of itself, in the report to the byte.
fn is_exact(process: &Value, words: &HashMap<String, u64>) {
    let device = tensors(process);
    assert_eq!(number(device, "allocated"), words["allocated"], "{device}");
    assert_eq!(number(device, "reserved"), words["reserved"], "{device}");
}

#[test]
fn a_killed_rank_has_ended_and_the_others_stay_exact() {
    let tool = tool();
    if let Some(reason) = missing(&tool) {
        return skip("a_killed_rank", &reason);
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::new(TORCHES[0])
        .device("--devices", "4")
        .env("OMP_NUM_THREADS", "1");
    let (script, path) = (script("lone"), folder.path().to_str().unwrap());
    let script = script.to_str().unwrap();
    let launch = [
        "torch.distributed.run",
        "--nproc-per-node",
        "4",
        script,
        path,
    ];
    let mut program = Program::start(&setup, "-m".as_ref(), &launch);
    let ranks: HashMap<u64, u64> = (0..4)
        .map(|_| pairs(&format!("rank {}", program.expect("rank "))))
        .map(|words| (words["rank"], words["pid"]))
        .collect();
    let mut whole = tool.attach(program.pid(), &[]);
    let part = tool.attach(program.pid(), &[]);
    program.expect_anew("step");
    let victim = ranks[&2];
    kill(Pid::from_raw(victim as i32), Signal::SIGKILL).unwrap();
    // torchrun has seen it.
    for _ in 0..3 {
        program.expect("asked ");
    }
    for _ in 0..6 {
        program.expect_anew("step");
    }
    // While the others go on.
    let report = part.interrupt().json();
    assert_eq!(report["lost"]["events"], 0, "{report}");
    let processes = with_devices(&report);
    for pid in ranks.values() {
        assert_eq!(processes[pid]["exited"], *pid == victim, "{pid}: {report}");
    }

    std::fs::write(folder.path().join("end"), "").unwrap();
    let left: Vec<_> = (0..3)
        .map(|_| pairs(&format!("rank {}", program.expect("left "))))
        .collect();
    assert!(!program.finish().success(), "torchrun tells of the failure");
    let run = whole.wait();
    assert!(run.status.success(), "{run:?}");
    let ended = "ended; this is its last state";
    assert!(run.stderr.contains(ended), "{run:?}");
    let report = run.json();
    assert_eq!(report["lost"]["events"], 0, "{report}");
    let processes = with_devices(&report);
    assert_eq!(processes.len(), 4, "{:?}", processes.keys());
    for words in &left {
        let process = processes[&words["pid"]];
        assert_eq!(process["exited"], true);
        assert_eq!(number(&tensors(process)["ledger"], "corrected"), 0);
        is_exact(process, words);
    }
    // What it had when it was killed; its steps stopped there.
    let killed = processes[&victim];
    assert_eq!(killed["exited"], true);
    assert!(number(tensors(killed), "allocated") > 0);
}

/// Whether a session that records sees by now what a process allocates: that it knows of the
/// process says nothing of its probes.
fn sees(recording: &str, pid: u64) -> bool {
    let run = tool().run(&["report", recording, "--json"]);
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_default();
    report["processes"].is_array() && with_devices(&report).contains_key(&pid)
}

/// Waits for something that others do in their own time.
fn until(done: impl Fn() -> bool) {
    for _ in 0..600 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("it did not happen within a minute");
}

/// A copy that came while the kernel told nothing: what it has before it is seen is known from
/// PyTorch's totals, what comes after by itself.
fn copy_is_exact(words: &str, report: &Value) {
    let words = pairs(&format!("copy {words}"));
    let process = with_devices(report)[&words["copy"]];
    assert_eq!(process["role"], "child", "{process}");
    is_exact(process, &words);
}

#[test]
fn without_the_kernels_word_processes_are_looked_for() {
    if let Some(reason) = missing(&tool()) {
        return skip("without_the_kernels_word", &reason);
    }
    // As where a container's seccomp profile forbids the call.
    let front = script("without_perf");
    let tool = tool().behind(front);
    let mut program = Program::start(&Setup::new(TORCHES[0]), &script("later"), &[]);
    program.expect("ready");
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("run.vrs");
    let recording = recording.to_str().unwrap();
    let mut attached = tool.attach(program.pid(), &["-o", recording]);
    program.say("copy");
    let copy: u64 = program.expect("begun ").parse().unwrap();
    until(|| sees(recording, copy));
    program.say(&format!("more {copy}"));
    let words = program.expect("copy ");
    program.say("end");
    program.expect("all done");
    assert!(program.finish().success());
    let run = attached.wait();
    assert!(run.status.success(), "{run:?}");
    let told = "the kernel does not tell of new processes and libraries (perf_event_open";
    assert!(run.stderr.contains(told), "{run:?}");
    assert!(run.stderr.contains("once a second"), "{run:?}");
    copy_is_exact(&words, &run.json());
}

#[test]
fn notices_that_the_kernel_had_no_room_for_are_counted_and_made_good() {
    let tool = tool();
    if let Some(reason) = missing(&tool) {
        return skip("notices_that_the_kernel_had_no_room_for", &reason);
    }
    let mut program = Program::start(&Setup::new(TORCHES[0]), &script("later"), &[]);
    program.expect("ready");
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("run.vrs");
    let recording = recording.to_str().unwrap();
    let mut attached = tool.attach(program.pid(), &["-o", recording]);
    // Nobody takes the notices, and the rings run over before the copy comes.
    attached.signal(Signal::SIGSTOP);
    let processors = std::thread::available_parallelism().unwrap().get();
    program.say(&format!("many {}", 1500 * processors));
    program.expect("many done");
    program.say("copy");
    let copy: u64 = program.expect("begun ").parse().unwrap();
    attached.signal(Signal::SIGCONT);
    until(|| sees(recording, copy));
    program.say(&format!("more {copy}"));
    let words = program.expect("copy ");
    program.say("end");
    program.expect("all done");
    assert!(program.finish().success());
    let run = attached.wait();
    assert!(run.status.success(), "{run:?}");
    let lost = run.stderr.lines().find_map(|line| {
        let (_, rest) = line.split_once("the kernel had no room for ")?;
        rest.split_once(" notices about processes")?
            .0
            .parse::<u64>()
            .ok()
    });
    println!("{lost:?} notices had no room");
    assert!(lost.is_some_and(|lost| lost > 0), "{run:?}");
    copy_is_exact(&words, &run.json());
}

//! The traced program comes first: whatever happens to us or to it, it goes on unchanged, and what
//! we missed is counted.

use std::{
    collections::BTreeMap,
    fs::File,
    os::unix::fs::FileExt as _,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use serde_json::Value;
use vramscope_test_support::{
    Program, Setup, TORCHES, Tool, missing,
    report::{number, pairs},
    root, simulated_nvml, skip,
};

const PATIENCE: Duration = Duration::from_secs(30);

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

fn start(name: &str, arguments: &[&str]) -> Program {
    let script = root().join(format!("tests/programs/special/{name}.py"));
    Program::start(&Setup::new(TORCHES[1]), &script, arguments)
}

/// What the counting program prints when nobody watches.
fn undisturbed(steps: &str) -> Vec<String> {
    let mut program = start("counting", &[steps]);
    program.expect("ready");
    program.say("go");
    assert!(program.finish().success());
    program.seen().iter().cloned().collect()
}

/// The code of the libraries that carry probes, where it differs from their files.
fn changed_code(pid: u32) -> BTreeMap<String, usize> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut changed = BTreeMap::new();
    for line in maps.lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (range, permissions, offset) = (fields[0], fields[1], fields[2]);
        let Some(path) = fields.get(5) else { continue };
        let name = path.rsplit('/').next().unwrap();
        let probed = ["libc10.so", "libcuda.so", "python", "libpython"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        if !permissions.contains('x') || !probed {
            continue;
        }
        let (start, end) = range.split_once('-').unwrap();
        let start = u64::from_str_radix(start, 16).unwrap();
        let size = (u64::from_str_radix(end, 16).unwrap() - start) as usize;
        let mut loaded = vec![0; size];
        let mut original = vec![0; size];
        memory.read_exact_at(&mut loaded, start).unwrap();
        let offset = u64::from_str_radix(offset, 16).unwrap();
        let got = File::open(path)
            .unwrap()
            .read_at(&mut original, offset)
            .unwrap();
        let different = (0..got).filter(|at| loaded[*at] != original[*at]).count();
        if different > 0 {
            changed.insert(name.to_owned(), different);
        }
    }
    changed
}

/// The kernel takes probes off in its own time after their owner's death.
fn code_is_as_before(pid: u32) {
    let until = Instant::now() + PATIENCE;
    loop {
        let changed = changed_code(pid);
        if changed.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "probes were left: {changed:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn our_sigkill_leaves_the_program_as_it_was() {
    if let Some(reason) = missing(&tool()) {
        return skip("our_sigkill", &reason);
    }
    let expected = undisturbed("2000");
    let mut program = start("counting", &["2000"]);
    program.expect("ready");
    for kill_at in ["step 300 ", "step 900 "] {
        let mut attached = tool().attach(program.pid(), &[]);
        assert!(
            !changed_code(program.pid()).is_empty(),
            "no probe is in place"
        );
        program.expect(kill_at);
        attached.signal(Signal::SIGKILL);
        assert!(!attached.wait().status.success());
        assert!(program.alive());
        code_is_as_before(program.pid());
    }
    program.say("go");
    assert!(program.finish().success());
    let printed: Vec<_> = program.seen().iter().cloned().collect();
    let expected: Vec<_> = expected
        .into_iter()
        .filter(|line| !line.starts_with("step 300 ") && !line.starts_with("step 900 "))
        .collect();
    assert_eq!(printed, expected);
}

#[test]
fn twenty_sessions_one_after_the_other() {
    if let Some(reason) = missing(&tool()) {
        return skip("twenty_sessions", &reason);
    }
    let mut program = start("counting", &["1000000"]);
    program.expect("ready");
    for session in 0..20 {
        let attached = tool().attach(program.pid(), &[]);
        program.expect_anew("step");
        let run = attached.interrupt();
        assert!(run.status.success(), "session {session}: {run:?}");
        let report = run.json();
        assert_eq!(report["lost"]["events"], 0);
        assert_eq!(report["devices"][0]["ledger"]["corrected"], 0);
    }
    assert!(program.alive());
    code_is_as_before(program.pid());
}

#[test]
fn a_killed_program_ends_the_session_with_its_last_state() {
    if let Some(reason) = missing(&tool()) {
        return skip("a_killed_program", &reason);
    }
    let mut program = start("counting", &["1000000"]);
    program.expect("ready");
    let mut attached = tool().attach(program.pid(), &[]);
    program.expect_anew("step");
    program.signal(Signal::SIGKILL);
    let run = attached.wait();
    assert!(run.status.success(), "{run:?}");
    assert!(
        run.stderr.contains("ended; this is its last state"),
        "{run:?}"
    );
    let report = run.json();
    assert_eq!(report["process"]["exited"], true);
    assert!(report["devices"][0]["live_blocks"].as_u64().unwrap() > 0);
}

/// Every event was seen or counted as lost.
fn overload(arguments: &[&str]) -> u64 {
    let mut program = start("overload", &["2", "3"]);
    program.expect("ready");
    let attached = tool().attach(program.pid(), arguments);
    program.say("go");
    let line = program.expect("events");
    let events: u64 = line.split(' ').next().unwrap().parse().unwrap();
    let run = attached.interrupt();
    program.say("end");
    assert!(program.finish().success());
    let report = run.json();
    let device = &report["devices"][0];
    let ledger = |name: &str| device["ledger"][name].as_u64().unwrap();
    // The first event is what the ledger begins with: there is nothing yet to agree with.
    let seen = 1 + ledger("agreed") + ledger("corrected");
    let lost: u64 = report["lost"]["by_cause"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|cause| cause["cause"] == "ring_full")
        .map(|cause| cause["events"].as_u64().unwrap())
        .sum();
    println!("overload {arguments:?}: {line}: {seen} seen, {lost} lost");
    assert_eq!(seen + lost, events, "{}", report["lost"]);
    // The total is PyTorch's own, whatever was missed. A block whose free was lost stays in the
    // ledger: what is live is then an upper bound.
    let field = |name: &str| device[name].as_u64().unwrap();
    let known = field("live_bytes") + field("baseline");
    if lost == 0 {
        assert_eq!(known, field("allocated"));
    } else {
        assert!(known >= field("allocated"), "{device}");
    }
    lost
}

#[test]
fn a_flood_loses_nothing_that_is_not_counted() {
    if let Some(reason) = missing(&tool()) {
        return skip("a_flood", &reason);
    }
    overload(&[]);
    let lost = overload(&["--buffer", "16K"]);
    assert!(lost > 0, "a buffer of 256 events must overflow");
}

#[test]
fn cuda_malloc_async_shows_the_driver_layer() {
    if let Some(reason) = missing(&tool()) {
        return skip("cuda_malloc_async", &reason);
    }
    let setup = Setup::new(TORCHES[1]).env("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync");
    let directory = tempfile::tempdir().unwrap();
    let truth = directory.path().join("truth.json");
    let script = root().join("tests/programs/special/malloc_async.py");
    let quiet = root().join("tests/programs/quiet.py");
    let mut program = Program::start(
        &setup,
        &quiet,
        &[
            truth.to_str().unwrap(),
            "--mid-run",
            script.to_str().unwrap(),
        ],
    );
    program.expect("ready");
    let attached = tool().attach(program.pid(), &[]);
    program.say("go");
    program.expect("quiet");
    let run = attached.interrupt();
    program.say("end");
    program.finish();
    assert!(run.stderr.contains("cudaMallocAsync"), "{run:?}");
    let report = run.json();
    let device = &report["devices"][0];
    assert_eq!(device["tensor_layer"], false);
    let first = &device["sites"][0];
    assert_eq!(
        first["source"],
        "kept.append(torch.empty(1 << 20, dtype=torch.uint8, device=\"cuda\"))"
    );
    assert!(first["live_bytes"].as_u64().unwrap() >= 10 << 20, "{first}");
}

#[test]
fn a_driver_from_an_unexpected_file_is_probed_and_only_that_one() {
    let tool = tool();
    if let Some(reason) = missing(&tool) {
        return skip("a_driver_from_an_unexpected_file", &reason);
    }
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let expected = simulated_nvml(TORCHES[1]).with_file_name("libcuda.so.1");
    let (another, recording) = (file("libcuda.so.1"), file("session.vrs"));
    std::fs::copy(expected, &another).unwrap();
    let script = root().join("tests/programs/another_driver.py");
    let mut program = Program::start(&Setup::new(TORCHES[1]), &script, &[&another]);
    program.expect("ready");
    let attached = tool.attach(program.pid(), &["-o", &recording]);
    program.say("go");
    program.expect("begun");
    let patience = Instant::now() + PATIENCE;
    loop {
        let run = tool.run(&["report", &recording, "--format", "json"]);
        // A recording that has just begun may have nothing to tell yet.
        let report: Value = serde_json::from_str(&run.stdout).unwrap_or_default();
        if report["devices"][0]["driver"]["live_bytes"].as_u64() > Some(0) {
            break;
        }
        assert!(Instant::now() < patience, "{run:?}");
    }
    program.say("stop");
    let words = pairs(&program.expect("figures "));
    let run = attached.interrupt();
    program.say("end");
    assert!(program.finish().success());
    let report = run.json();
    assert_eq!(report["lost"]["events"], 0, "{report}");
    let device = &report["devices"][0];
    assert_eq!(number(device, "allocated"), words["allocated"], "{device}");
    assert_eq!(number(device, "reserved"), words["reserved"], "{device}");
    // Probed twice it would be taken twice, at one address.
    let taken = number(&device["driver"], "live_bytes");
    assert_eq!(taken, words["reserved"], "{device}");
    assert_eq!(number(&device["ledger"], "double_allocs"), 0, "{device}");
    assert_eq!(number(&device["ledger"], "unknown_frees"), 0, "{device}");
}

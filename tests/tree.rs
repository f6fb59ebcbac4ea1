//! Trees of processes: ranks, workers, forks.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use serde_json::Value;
use vramscope_test_support::{
    Program, Setup, TORCHES, Tool, has_its_turn, missing,
    report::{number, pairs, tensors, with_devices},
    root, simulated_nvml, skip,
};

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

#[test]
fn a_leaking_rank_is_named_and_all_ranks_survive_us() {
    let tool = tool();
    if let Some(reason) = missing(&tool) {
        skip("a_leaking_rank_is_named", &reason);
        return;
    }
    for (number, torch) in TORCHES.into_iter().enumerate() {
        if has_its_turn(number) {
            ranks(&tool, torch);
        }
    }
}

fn ranks(tool: &Tool, torch: &str) {
    let setup = Setup::new(torch)
        .device("--devices", "4")
        .env("OMP_NUM_THREADS", "1");
    let script = root().join("tests/programs/tree/ranks.py");
    let script = script.to_str().unwrap();
    let launch = [
        "torch.distributed.run",
        "--nproc-per-node",
        "4",
        script,
        "2",
    ];
    let mut program = Program::start(&setup, "-m".as_ref(), &launch);
    program.expect("ready");
    let pid = program.pid().to_string();

    // Alone, the launcher has nothing to show.
    let alone = tool.run(&["attach", &pid, "--no-tree", "--headless", "--duration", "1"]);
    if alone.status.success() {
        // It has loaded PyTorch's libraries, as its ranks have.
        assert!(alone.stdout.contains("no allocation"), "{alone:?}");
    } else {
        assert_eq!(alone.status.code(), Some(3), "{alone:?}");
    }

    // Killed, we leave everything as it was.
    let mut killed = tool.attach(program.pid(), &[]);
    program.expect_anew("step");
    killed.signal(Signal::SIGKILL);
    killed.wait();
    program.expect_anew("step");

    let mut attached = tool.attach(program.pid(), &[]);
    for _ in 0..8 {
        program.expect_anew("step");
    }
    program.say("");
    let run = attached.wait();
    assert!(program.finish().success());
    assert!(run.status.success(), "{run:?}");
    assert!(
        run.stderr.contains("ended; this is its last state"),
        "{run:?}"
    );

    let report = run.json();
    assert_eq!(report["lost"]["events"], 0, "{report}");
    let together = &report["together"];
    let summary = together["summary"].as_str().unwrap();
    assert!(summary.starts_with("4 ranks: rank 2 "), "{summary}");
    assert!(summary.contains("the other 3 are"), "{summary}");
    let skewed = together["skewed"].as_array().unwrap();
    let text = skewed[0]["text"].as_str().unwrap();
    assert!(text.starts_with("rank 2 holds "), "{text}");
    let code = std::fs::read_to_string(script).unwrap();
    let line = code.lines().position(|line| line.contains("kept.append"));
    let place = format!("ranks.py:{}", line.unwrap() + 1);
    assert!(text.contains(&place), "{text}");

    // To the byte what each rank said of itself.
    let processes = with_devices(&report);
    let mut said = 0;
    for line in program
        .seen()
        .iter()
        .filter(|line| line.starts_with("rank "))
    {
        let words = pairs(line);
        let process = processes[&words["pid"]];
        assert_eq!(number(process, "rank"), words["rank"]);
        assert_eq!(process["exited"], true);
        assert_eq!(process["role"], "program");
        let device = tensors(process);
        assert_eq!(number(device, "device"), words["rank"]);
        assert_eq!(number(device, "allocated"), words["allocated"], "{line}");
        assert_eq!(number(device, "reserved"), words["reserved"], "{line}");
        assert_eq!(number(&device["ledger"], "corrected"), 0, "{device}");
        said += 1;
    }
    assert_eq!(said, 4, "{:?}", program.seen());
    assert_eq!(processes.len(), 4, "{:?}", processes.keys());
    let launcher = &report["processes"][0];
    assert_eq!(launcher["role"], "launcher", "{launcher}");
}

#[test]
fn a_loader_worker_on_the_gpu_is_named() {
    let tool = tool();
    if let Some(reason) = missing(&tool) {
        skip("a_loader_worker_on_the_gpu_is_named", &reason);
        return;
    }
    let ways = [
        (TORCHES[0], "fork"),
        (TORCHES[1], "fork"),
        (TORCHES[0], "spawn"),
        (TORCHES[1], "spawn"),
    ];
    for (torch, way) in ways
        .into_iter()
        .enumerate()
        .filter(|(number, _)| number % 3 == 0 || has_its_turn(*number + 1))
        .map(|(_, way)| way)
    {
        let script = root().join("tests/programs/tree/loader.py");
        let mut program = Program::start(&Setup::new(torch), &script, &[way]);
        program.expect("ready");
        let attached = tool.attach(program.pid(), &[]);
        for _ in 0..2 {
            program.expect_anew("batch");
        }
        let run = attached.interrupt();
        let report = run.json();
        assert_eq!(report["lost"]["events"], 0, "{report}");
        let workers = report["together"]["workers"].as_array();
        let workers = workers.unwrap_or_else(|| panic!("{torch} {way}: {report}"));
        assert_eq!(workers.len(), 2, "{torch} {way}: {workers:?}");
        for worker in workers {
            let text = worker["text"].as_str().unwrap();
            assert!(
                text.starts_with("DataLoader worker"),
                "{torch} {way}: {text}"
            );
            assert!(text.contains("loader.py:25"), "{torch} {way}: {text}");
            assert!(worker["advice"].as_str().unwrap().contains("pin_memory"));
            assert_ne!(number(worker, "pid"), u64::from(program.pid()));
        }
        program.say("");
        assert!(program.finish().success());
    }
}

#[test]
fn copies_that_come_and_go_are_counted_to_the_byte() {
    let tool = tool();
    if let Some(reason) = missing(&tool) {
        skip("copies_that_come_and_go_are_counted_to_the_byte", &reason);
        return;
    }
    let copies: usize = match std::env::var("VRAMSCOPE_REPEAT") {
        Ok(times) => times.parse().expect("a number"),
        Err(_) => 12,
    };
    let script = root().join("tests/programs/tree/forks.py");
    let setup = Setup::new(TORCHES[0]).env("OMP_NUM_THREADS", "1");
    let mut program = Program::start(&setup, &script, &["4"]);
    for _ in 0..6 {
        program.expect("begun");
    }
    // In the midst of it.
    let mut attached = tool.attach(program.pid(), &[]);
    let since = vramscope_tracer::now().0;
    for _ in 0..copies {
        program.expect_anew("begun");
    }
    program.say("");
    program.expect("all done");
    assert!(program.finish().success());
    let run = attached.wait();
    let report = run.json();
    assert_eq!(report["lost"]["events"], 0, "{report}");
    let seen = with_devices(&report);
    let (mut checked, mut unseen) = (0, 0);
    let lines = program.seen().iter();
    let begun: HashMap<u64, u64> = lines
        .filter_map(|line| line.strip_prefix("begun "))
        .map(|rest| pairs(&format!("pid {rest}")))
        .map(|words| (words["pid"], words["at"]))
        .collect();
    let lines = program.seen().iter();
    for line in lines.filter(|line| line.starts_with("copy ")) {
        let words = pairs(line);
        let pid = words["copy"];
        let Some(process) = seen.get(&pid) else {
            // It may have been over before we came.
            unseen += usize::from(begun.get(&pid).is_some_and(|begun| *begun > since));
            continue;
        };
        let device = tensors(process);
        assert_eq!(
            number(device, "allocated"),
            words["allocated"],
            "{line}: {device}"
        );
        assert_eq!(
            number(device, "reserved"),
            words["reserved"],
            "{line}: {device}"
        );
        assert_eq!(process["role"], "child", "{process}");
        checked += 1;
    }
    // On a busy machine one may be over before it has its probes. Then that is told.
    let told = run.stderr.lines().find_map(|line| {
        let (_, rest) = line.split_once("before their probes were in place, ")?;
        rest.split(' ').next()?.parse::<usize>().ok()
    });
    assert!(unseen <= told.unwrap_or(0), "{unseen} unseen: {run:?}");
    assert!(checked >= copies / 2, "{checked} copies of {copies}");
}

/// What a context takes on the simulated device here; no other figure is like it.
const CONTEXT: u64 = 301 << 20;

#[test]
fn memory_that_is_handed_over_counts_once() {
    let tool = tool();
    if let Some(reason) = missing(&tool) {
        skip("memory_that_is_handed_over_counts_once", &reason);
        return;
    }
    // PyTorch, whether a library does it, and whether segments grow: those are handed over piece by
    // piece, by file descriptors.
    let ways = [
        (TORCHES[0], false, false),
        (TORCHES[1], false, false),
        (TORCHES[1], true, false),
        (TORCHES[0], true, false),
        (TORCHES[0], true, true),
        (TORCHES[1], true, true),
        (TORCHES[1], false, true),
        (TORCHES[0], false, true),
    ];
    for (number, (torch, inject, expandable)) in ways.into_iter().enumerate() {
        if has_its_turn(number) {
            let what = format!("torch {torch}, inject {inject}, expandable {expandable}");
            handed_over(&tool, &what, torch, inject, expandable);
        }
    }
}

fn handed_over(tool: &Tool, what: &str, torch: &str, inject: bool, expandable: bool) {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (told, recording) = (file("report.json"), file("session.vrs"));
    // A table of processes of its own: nobody else writes to it, whatever runs on this machine.
    let table = directory.path().to_str().unwrap();
    let nvml = simulated_nvml(torch);
    let tool = tool
        .clone()
        .env("VRAMSCOPE_NVML", nvml.to_str().unwrap())
        .env("SIMCUDA_SHARE_DIR", table);
    let mut setup = Setup::new(torch)
        .env("SIMCUDA_SHARE_DIR", table)
        .env("SIMCUDA_CONTEXT_MEM", &CONTEXT.to_string())
        .env("PYTHONWARNINGS", "ignore");
    if expandable {
        setup = setup
            .env("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
            .env("TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC", "1");
    }
    let script = root().join("tests/programs/tree/handed_over.py");
    let (program, report) = if inject {
        let mut front = tool.command();
        front.args(["run", "--json", "--report-to", &told, "-o", &recording]);
        front.arg("--");
        let mut program = Program::start_behind(front, &setup, &script, &[]);
        program.say("go");
        program.expect("quiet");
        // The program must not end before NVML was asked about both processes as they are now.
        until_told(&tool, &recording, &program);
        program.say("end");
        assert!(program.finish().success(), "{what}");
        let report = std::fs::read(&told).expect("a report");
        (program, serde_json::from_slice(&report).expect("JSON"))
    } else {
        let mut program = Program::start(&setup, &script, &[]);
        program.expect("ready");
        let attached = tool.attach(program.pid(), &["-o", &recording]);
        program.say("go");
        program.expect("quiet");
        let run = attached.interrupt();
        assert!(run.status.success(), "{what}: {run:?}");
        program.say("end");
        assert!(program.finish().success(), "{what}");
        (program, run.json())
    };
    let replayed = tool.run(&["report", &recording, "--format", "json"]);
    for report in [report, replayed.json()] {
        counted_once(what, &report, &program);
    }
}

/// What the processes said of themselves when they were quiet.
fn said(program: &Program) -> Vec<HashMap<String, u64>> {
    let lines = program.seen().iter();
    lines
        .filter(|line| line.starts_with("process "))
        .map(|line| pairs(line))
        .collect()
}

/// Waits until a recording that is being made has NVML's figures since all processes are quiet.
fn until_told(tool: &Tool, recording: &str, program: &Program) {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let run = tool.run(&["report", recording, "--format", "json"]);
        let report: Option<Value> = serde_json::from_str(&run.stdout).ok();
        let told = report.as_ref().is_some_and(|report| {
            let processes = report["processes"].as_array();
            said(program).iter().all(|words| {
                processes.into_iter().flatten().any(|one| {
                    one["pid"] == words["process"] && one["devices"][0]["used"] == words["used"]
                })
            })
        });
        if told {
            return;
        }
        assert!(Instant::now() < patience, "{run:?}");
    }
}

/// Each process has what it took itself: what it got from the other is the other's.
fn counted_once(what: &str, report: &Value, program: &Program) {
    assert_eq!(report["lost"]["events"], 0, "{what}: {report}");
    let seen = with_devices(report);
    assert_eq!(seen.len(), 2, "{what}: {:?}", seen.keys());
    let said = said(program);
    assert_eq!(said.len(), 2, "{what}: {:?}", program.seen());
    for words in said {
        let what = format!("{what}, consumer {}", words["consumer"]);
        let device = tensors(seen[&words["process"]]);
        let (allocated, reserved) = (words["allocated"], words["reserved"]);
        // As on a real device.
        assert_eq!(words["used"], CONTEXT + reserved, "{what}");
        assert_eq!(number(device, "allocated"), allocated, "{what}: {device}");
        assert_eq!(number(device, "reserved"), reserved, "{what}: {device}");
        assert_eq!(number(device, "live_bytes"), allocated, "{what}: {device}");
        assert_eq!(number(&device["ledger"], "corrected"), 0, "{what}");
        assert_eq!(number(&device["ledger"], "unknown_frees"), 0, "{what}");
        // PyTorch loads the driver with the first tensor, after the attach: all of it was seen.
        let taken = number(&device["driver"], "live_bytes");
        assert_eq!(taken, reserved, "{what}: {device}");
        assert_eq!(number(device, "used"), words["used"], "{what}: {device}");
        assert_eq!(number(device, "excess"), 0, "{what}: {device}");
        let mut shares: HashMap<&str, u64> = HashMap::new();
        for bucket in device["buckets"].as_array().unwrap() {
            let name = match bucket["kind"].as_str().unwrap() {
                // A process that was just started may have had a segment before its probes.
                "reusable" | "fragmented" | "cached" => "cached",
                kind => kind,
            };
            *shares.entry(name).or_default() += number(bucket, "bytes");
        }
        let mut expected = HashMap::from([("live", allocated), ("rest", CONTEXT)]);
        if reserved > allocated {
            expected.insert("cached", reserved - allocated);
        }
        assert_eq!(shares, expected, "{what}: {device}");
    }
}

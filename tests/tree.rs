//! Trees of processes: ranks, workers, forks.

use std::collections::HashMap;

use nix::sys::signal::Signal;
use serde_json::Value;
use vramscope_test_support::{Program, Setup, TORCHES, Tool, has_its_turn, missing, root, skip};

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {value}"))
}

/// Words of a line, each second one a value: `rank 2 pid 17`.
fn pairs(line: &str) -> HashMap<String, u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words
        .chunks_exact(2)
        .map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap()))
        .collect()
}

/// The processes of a report that have a device, by their numbers.
fn with_devices(report: &Value) -> HashMap<u64, &Value> {
    let processes = report["processes"].as_array().expect("several processes");
    let with = processes
        .iter()
        .filter(|one| !one["devices"].as_array().unwrap().is_empty());
    with.map(|one| (number(one, "pid"), one)).collect()
}

/// The device of a process on which PyTorch has blocks.
fn tensors(process: &Value) -> &Value {
    let devices = process["devices"].as_array().unwrap();
    devices
        .iter()
        .find(|device| device["tensor_layer"] == true)
        .unwrap_or_else(|| panic!("no tensors in {process}"))
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

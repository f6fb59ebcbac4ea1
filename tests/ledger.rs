//! The ledger against PyTorch's own books: live bytes and blocks, to the byte, for training
//! programs and leak cases, attached in mid-run and from the first allocation.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use vramscope_test_support::{Program, Setup, TORCHES, Tool, has_its_turn, missing, root, skip};

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

/// Our own programs and the leak cases; `VRAMSCOPE_TEST_SCRIPTS` names a part of them.
fn scripts() -> Vec<PathBuf> {
    let mut scripts: Vec<_> = ["tests/programs/train", "tests/cases"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
        .filter(|path| path.file_stem().is_none_or(|name| name != "common"))
        .collect();
    scripts.sort();
    assert!(scripts.len() >= 24, "12 programs and 12 cases: {scripts:?}");
    if let Ok(part) = std::env::var("VRAMSCOPE_TEST_SCRIPTS") {
        scripts.retain(|path| path.to_string_lossy().contains(&part));
    }
    scripts
}

fn setup(torch: &str) -> Setup {
    Setup::new(torch)
        .env("LEAKCASE_STEPS", "120")
        .env("LEAKCASE_SLEEP", "0.002")
        .env("STEPS", "100")
        .env("SLEEP", "0.002")
}

/// A block of the ledger: address and size.
type Block = (u64, u64);

/// What PyTorch says of one device.
struct Truth {
    allocated: u64,
    reserved: u64,
    blocks: BTreeMap<u64, (u64, Vec<Frame>)>,
}

/// File, line and name as PyTorch's own recorder has them.
type Frame = (String, u64, String);

impl Truth {
    fn read(value: &Value) -> Truth {
        let blocks = value["survivors"].as_array().unwrap().iter().map(|block| {
            let frames = block["frames"].as_array().unwrap().iter().map(|frame| {
                (
                    frame[0].as_str().unwrap().to_owned(),
                    frame[1].as_u64().unwrap(),
                    frame[2].as_str().unwrap().to_owned(),
                )
            });
            (
                block["address"].as_u64().unwrap(),
                (block["size"].as_u64().unwrap(), frames.collect()),
            )
        });
        Truth {
            allocated: value["allocated"].as_u64().unwrap(),
            reserved: value["reserved"].as_u64().unwrap(),
            blocks: blocks.collect(),
        }
    }
}

fn survivors(device: &Value) -> HashSet<Block> {
    device["survivors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| {
            (
                block["address"].as_u64().unwrap(),
                block["size"].as_u64().unwrap(),
            )
        })
        .collect()
}

/// The reports of one run, by backend, and PyTorch's own word by device.
struct Traced {
    reports: [(&'static str, Value); 2],
    truth: BTreeMap<u64, Truth>,
}

/// Runs a script under both tracers at once. From its start: under `vramscope run`, with probes
/// placed before its first allocation; else both attach while it runs.
fn trace(script: &Path, setup: &Setup, from_start: bool) -> Traced {
    let directory = tempfile::tempdir().unwrap();
    let truth_file = directory.path().join("truth.json");
    let truth_path = truth_file.to_str().unwrap();
    let script_path = script.to_str().unwrap();
    let when = if from_start {
        "--from-start"
    } else {
        "--mid-run"
    };
    let arguments = [truth_path, when, script_path];
    let quiet = root().join("tests/programs/quiet.py");
    let options = ["--survivors", "--group", "stack"];
    let launched_file = directory.path().join("launched.json");
    let mut program = if from_start {
        let mut front = tool().command();
        front
            .args(["run", "--format", "json", "--report-to"])
            .arg(&launched_file)
            .args(options)
            .arg("--")
            .stderr(Stdio::null());
        Program::start_behind(front, setup, &quiet, &arguments)
    } else {
        Program::start(setup, &quiet, &arguments)
    };
    let pid = program.expect("ready").parse().expect("its process id");
    let injected =
        (!from_start).then(|| tool().attach(pid, &[&["--inject"], &options[..]].concat()));
    let probed = tool().attach(pid, &options);
    program.say("go");
    program.expect("quiet");
    let probed = probed.interrupt();
    assert!(probed.status.success(), "{probed:?}");
    let injected = match injected {
        Some(injected) => {
            let run = injected.interrupt();
            assert!(run.status.success(), "{run:?}");
            program.say("end");
            assert!(program.finish().success(), "{script_path} failed");
            run.json()
        }
        None => {
            program.say("die");
            assert_eq!(program.finish().code(), Some(128 + 9), "{script_path}");
            serde_json::from_slice(&std::fs::read(&launched_file).unwrap()).unwrap()
        }
    };
    let truth: BTreeMap<String, Value> =
        serde_json::from_slice(&std::fs::read(&truth_file).unwrap()).unwrap();
    let truth = truth
        .iter()
        .map(|(device, value)| (device.parse().unwrap(), Truth::read(value)))
        .collect();
    Traced {
        reports: [("ebpf", probed.json()), ("injection", injected)],
        truth,
    }
}

/// What is wrong with a report; nothing when it is right to the byte.
fn compare(report: &Value, truth: &BTreeMap<u64, Truth>, from_start: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: String, got: u64, expected: u64| {
        if got != expected {
            wrong.push(format!("{what}: {got}, PyTorch says {expected}"));
        }
    };
    check("lost".into(), report["lost"]["events"].as_u64().unwrap(), 0);
    for (number, truth) in truth {
        let Some(device) = report["devices"]
            .as_array()
            .unwrap()
            .iter()
            .find(|device| device["device"] == *number)
        else {
            check(format!("device {number} unseen"), 0, truth.allocated);
            continue;
        };
        let baseline = device["baseline"].as_u64().unwrap();
        let ours = survivors(device);
        let live: u64 = ours.iter().map(|(_, size)| size).sum();
        let theirs: HashSet<Block> = truth
            .blocks
            .iter()
            .map(|(address, (size, _))| (*address, *size))
            .collect();
        let field = |name: &str| device[name].as_u64().unwrap();
        check("allocated".into(), field("allocated"), truth.allocated);
        check("reserved".into(), field("reserved"), truth.reserved);
        check("live + baseline".into(), live + baseline, truth.allocated);
        check(
            "survivors that PyTorch does not have".into(),
            ours.difference(&theirs).count() as u64,
            0,
        );
        let before: Vec<_> = theirs.difference(&ours).collect();
        check(
            "bytes of blocks from before the attach".into(),
            before.iter().map(|(_, size)| size).sum(),
            baseline,
        );
        if from_start {
            check("blocks missed".into(), before.len() as u64, 0);
        }
        let sites = device["sites"].as_array().unwrap();
        let sum =
            |name: &str| -> u64 { sites.iter().map(|site| site[name].as_u64().unwrap()).sum() };
        check("bytes of all sites".into(), sum("live_bytes"), live);
        check(
            "blocks of all sites".into(),
            sum("live_blocks"),
            ours.len() as u64,
        );
        check(
            "corrections".into(),
            device["ledger"]["corrected"].as_u64().unwrap(),
            0,
        );
    }
    wrong
}

/// Compares the stacks of surviving blocks; how many were compared.
fn compare_stacks(report: &Value, truth: &BTreeMap<u64, Truth>, wrong: &mut Vec<String>) -> usize {
    let mut compared = 0;
    for device in report["devices"].as_array().unwrap() {
        let truth = &truth[&device["device"].as_u64().unwrap()];
        for block in device["survivors"].as_array().unwrap() {
            let address = block["address"].as_u64().unwrap();
            let Some((_, expected)) = truth.blocks.get(&address) else {
                continue;
            };
            // What autograd threads allocate has no Python frames of its own.
            if expected.is_empty() {
                continue;
            }
            let site = block["site"].as_u64().unwrap() as usize;
            let got: Vec<Frame> = device["sites"][site]["stack"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|frame| frame["kind"] == "python")
                .map(|frame| {
                    let qualified = frame["function"].as_str().unwrap();
                    // PyTorch's recorder has co_name, we co_qualname.
                    let name = qualified.rsplit('.').next().unwrap();
                    (
                        frame["file"].as_str().unwrap().to_owned(),
                        frame["line"].as_u64().unwrap(),
                        name.to_owned(),
                    )
                })
                .collect();
            compared += 1;
            if got != *expected && wrong.len() < 5 {
                wrong.push(format!(
                    "block {address:#x}: {got:?}, PyTorch says {expected:?}"
                ));
            }
        }
    }
    compared
}

/// Programs that use memory in an uncommon way, with what they need.
fn special(torch: &str) -> Vec<(&'static str, Setup)> {
    let setup = || Setup::new(torch);
    let options = "PYTORCH_CUDA_ALLOC_CONF";
    vec![
        (
            "expandable",
            setup().env(options, "expandable_segments:True"),
        ),
        ("two_devices", setup().device("--devices", "2")),
        ("graphs", setup()),
        ("out_of_memory", setup().device("--mem", "1G")),
    ]
}

fn special_programs(test: &str, torch: &str) {
    if let Some(reason) = missing(&tool()) {
        skip(test, &reason);
        return;
    }
    let mut failures = Vec::new();
    for (name, setup) in special(torch) {
        let script = root().join(format!("tests/programs/special/{name}.py"));
        for from_start in [false, true] {
            let traced = trace(&script, &setup, from_start);
            for (backend, report) in &traced.reports {
                let mut wrong = compare(report, &traced.truth, from_start);
                let devices = report["devices"].as_array().unwrap();
                let about = |needle: &str| report["log"].to_string().contains(needle);
                match name {
                    "two_devices" if devices.len() != 2 => wrong.push("not two devices".into()),
                    "out_of_memory" if !about("out of memory") => {
                        wrong.push(format!("no failure in the log: {}", report["log"]));
                    }
                    _ => {}
                }
                if !wrong.is_empty() {
                    let wrong = wrong.join("; ");
                    failures.push(format!("{name}, {from_start}, {backend}: {wrong}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn all_scripts(test: &str, torch: &str, from_start: bool) {
    if let Some(reason) = missing(&tool()) {
        skip(test, &reason);
        return;
    }
    let mut failures = Vec::new();
    let mut stacks = 0;
    let torch_number = usize::from(torch != TORCHES[0]);
    let scripts: Vec<_> = scripts()
        .into_iter()
        .enumerate()
        .filter(|(number, _)| has_its_turn(number + torch_number + usize::from(from_start)))
        .map(|(_, script)| script)
        .collect();
    for script in &scripts {
        let traced = trace(script, &setup(torch), from_start);
        for (backend, report) in &traced.reports {
            let mut wrong = compare(report, &traced.truth, from_start);
            if from_start {
                stacks += compare_stacks(report, &traced.truth, &mut wrong);
            }
            if !wrong.is_empty() {
                let wrong = wrong.join("; ");
                failures.push(format!("{}, {backend}: {wrong}", script.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!(
        "{} scripts on torch {torch}, {stacks} stacks compared",
        scripts.len()
    );
    assert!(!from_start || stacks > 1000);
}

#[test]
fn mid_run_ledger_is_exact_on_the_newest_torch() {
    all_scripts("mid_run_ledger", TORCHES[0], false);
}

#[test]
fn mid_run_ledger_is_exact_on_an_older_torch() {
    all_scripts("mid_run_ledger", TORCHES[1], false);
}

#[test]
fn from_the_start_survivors_are_pytorchs_on_the_newest_torch() {
    all_scripts("survivors_from_the_start", TORCHES[0], true);
}

#[test]
fn from_the_start_survivors_are_pytorchs_on_an_older_torch() {
    all_scripts("survivors_from_the_start", TORCHES[1], true);
}

#[test]
fn uncommon_allocations_are_exact_on_the_newest_torch() {
    special_programs("uncommon_allocations", TORCHES[0]);
}

#[test]
fn uncommon_allocations_are_exact_on_an_older_torch() {
    special_programs("uncommon_allocations", TORCHES[1]);
}

//! Verdicts on running programs, attached at different steps and watched for 150: the leak cases,
//! and programs of our own that leak or only look like it.
//!
//! The collector's own tests judge recorded streams of the same programs at many more moments.

use std::path::{Path, PathBuf};

use serde_json::Value;
use vramscope_test_support::{Program, Setup, TORCHES, Tool, has_its_turn, missing, root, skip};

const WATCHED: u64 = 150;
/// Steps at which to attach, by turns: from the first to the fiftieth.
const ATTACH_AT: [u64; 5] = [3, 11, 23, 37, 49];

/// What a right verdict on a program is.
struct Expected {
    script: PathBuf,
    leak: Option<Leak>,
}

struct Leak {
    /// Source lines any of which may be named first contain one of these.
    lines: Vec<String>,
    bytes_per_step: f64,
    rhythm: &'static str,
}

/// Our own leaking programs: name, line, bytes a step, rhythm. Those named `fine_` do not leak.
const OWN: [(&str, &[&str], f64, &str); 5] = [
    (
        "leak_accumulation_keeps_logits",
        &["logits = model(x)"],
        8192.0,
        "per_step",
    ),
    (
        "leak_gan_keeps_fakes",
        &["gallery.append(generator(noise))"],
        26_624.0,
        "per_step",
    ),
    (
        "leak_server_keeps_answers",
        &["y = model(x).softmax(-1)"],
        731.4,
        "per_step",
    ),
    (
        "leak_snapshots_every_ten",
        &["snapshots.append(copy.deepcopy(model))"],
        26_368.0,
        "per_period",
    ),
    (
        "leak_errors_keep_frames",
        &["x = torch.randn(64, 64, device=DEV)", "def train(bad)"],
        10_500.0,
        "per_step",
    ),
];

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

fn python_files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
        .collect();
    files.sort();
    files
}

fn cases() -> Vec<Expected> {
    let files = python_files("tests/cases");
    assert!(files.len() >= 12);
    files.into_iter().map(case).collect()
}

fn case(script: PathBuf) -> Expected {
    let about: Value =
        serde_json::from_slice(&std::fs::read(script.with_extension("json")).unwrap()).unwrap();
    let leak = about["leak"].as_bool().unwrap().then(|| Leak {
        lines: std::iter::once(&about["site_file_line_contains"])
            .chain(about["other_sites"].as_array().unwrap())
            .map(|line| line.as_str().unwrap().to_owned())
            .collect(),
        bytes_per_step: about["approx_bytes_per_step"].as_f64().unwrap(),
        rhythm: match about["growth"].as_str().unwrap() {
            "per_step" => "per_step",
            _ => "per_period",
        },
    });
    Expected { script, leak }
}

fn own() -> Vec<Expected> {
    let files = python_files("collector/tests/programs");
    assert!(files.len() >= 10);
    files
        .into_iter()
        .map(|script| {
            let name = script.file_stem().unwrap().to_str().unwrap().to_owned();
            let leak = OWN.iter().find(|own| own.0 == name).map(|own| Leak {
                lines: own.1.iter().map(|line| (*line).to_owned()).collect(),
                bytes_per_step: own.2,
                rhythm: own.3,
            });
            assert_eq!(leak.is_some(), name.starts_with("leak_"), "{name}");
            Expected { script, leak }
        })
        .collect()
}

fn judge(script: &Path, torch: &str, at: u64) -> Value {
    let setup = Setup::new(torch).env("LEAKCASE_STEPS", "400");
    let paced = root().join("tests/programs/paced.py");
    let arguments = [at.to_string(), WATCHED.to_string()];
    let mut program = Program::start(
        &setup,
        &paced,
        &[&arguments[0], &arguments[1], script.to_str().unwrap()],
    );
    program.expect("ready");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.vrs");
    let file = file.to_str().unwrap();
    let attached = tool().attach(program.pid(), &["--capacity", "80G", "-o", file]);
    program.say("go");
    program.expect("watched");
    let run = attached.interrupt();
    program.say("end");
    program.finish();
    // Every case: the recording tells what the session told.
    let replayed = tool().run(&["report", file, "--json"]);
    assert_eq!(replayed.stdout, run.stdout, "{}", script.display());
    run.json()
}

/// What is wrong with a report, in words; `None` when all is right.
fn wrong(expected: &Expected, report: &Value) -> Option<String> {
    let device = &report["devices"][0];
    let verdict = &device["verdict"];
    let class = verdict["class"].as_str()?;
    let about = |what: String| {
        Some(format!(
            "{what}: {} {}",
            verdict["summary"], verdict["evidence"]
        ))
    };
    let Some(leak) = &expected.leak else {
        return match class {
            "leak" | "outside_framework" => about(format!("false alarm, {class}")),
            _ => None,
        };
    };
    if class != "leak" {
        return about(format!("missed, {class}"));
    }
    let first = device["sites"][0]["source"].as_str().unwrap_or_default();
    if !leak.lines.iter().any(|line| first.contains(line)) {
        return about(format!("`{first}` named first"));
    }
    let growth = verdict["growth_bytes_per_step"].as_f64()?;
    // How many batches fail in 150 steps is chance.
    let allowed = if expected.script.to_string_lossy().contains("errors") {
        0.2
    } else {
        0.1
    };
    if (growth / leak.bytes_per_step - 1.0).abs() > allowed {
        return about(format!("growth {growth}, not {}", leak.bytes_per_step));
    }
    if verdict["rhythm"] != leak.rhythm {
        return about(format!("rhythm {}", verdict["rhythm"]));
    }
    if verdict["oom_in_steps"]
        .as_f64()
        .is_none_or(|steps| steps <= 0.0)
    {
        return about("no time to OOM".into());
    }
    None
}

fn all(test: &str, torch: &str, programs: Vec<Expected>) {
    if let Some(reason) = missing(&tool()) {
        return skip(test, &reason);
    }
    let part = std::env::var("VRAMSCOPE_TEST_SCRIPTS").unwrap_or_default();
    // Three times each where that is asked for (an hour's work); once in the daily run.
    let turns = std::env::var("VRAMSCOPE_VERDICT_TURNS")
        .ok()
        .and_then(|turns| turns.parse().ok())
        .unwrap_or(1);
    let mut failures = Vec::new();
    let mut judged = 0;
    for (index, expected) in programs.iter().enumerate() {
        let turn = has_its_turn(index + usize::from(torch != TORCHES[0]));
        if !turn || !expected.script.to_string_lossy().contains(&part) {
            continue;
        }
        for turn in 0..turns {
            let at = ATTACH_AT[(index + turn) % ATTACH_AT.len()];
            let report = judge(&expected.script, torch, at);
            judged += 1;
            let verdict = &report["devices"][0]["verdict"];
            println!(
                "{} at {at}: {} {} {}",
                expected.script.file_stem().unwrap().display(),
                verdict["class"],
                verdict["growth_bytes_per_step"],
                verdict["kind"],
            );
            if let Some(what) = wrong(expected, &report) {
                failures.push(format!("{} at {at}: {what}", expected.script.display()));
            }
        }
    }
    println!(
        "{judged} verdicts on torch {torch}, {} wrong",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn cases_are_judged_right_on_the_newest_torch() {
    all("cases_are_judged_right", TORCHES[0], cases());
}

#[test]
fn cases_are_judged_right_on_an_older_torch() {
    all("cases_are_judged_right", TORCHES[1], cases());
}

#[test]
fn own_programs_are_judged_right_on_the_newest_torch() {
    all("own_programs_are_judged_right", TORCHES[0], own());
}

#[test]
fn own_programs_are_judged_right_on_an_older_torch() {
    all("own_programs_are_judged_right", TORCHES[1], own());
}

//! What keeps blocks alive is named: in the leak cases, and for one block held in each of many ways.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use vramscope_test_support::{Program, Setup, TORCHES, Tool, missing, root, skip};

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

/// A case: its program, and what its holder's words contain.
const CASES: [(&str, &[&str]); 8] = [
    (
        "01_running_loss_keeps_graph",
        &["autograd graph behind `__main__.smoothed`", "MulBackward0"],
    ),
    (
        "02_scalar_losses_on_device",
        &["`__main__.window.values[*]`", "a list of "],
    ),
    ("03_eval_without_no_grad", &["`__main__.report[*]"]),
    ("05_metric_never_reset", &["`__main__.metric."]),
    (
        "08_create_graph_leaf_cycle",
        &[
            "native: a cycle in C++, tensor -> .grad -> ",
            "AccumulateGrad -> the same tensor",
        ],
    ),
    (
        "10_lru_cache_keeps_models",
        &["`__main__.trainable_parameters, kept by functools.lru_cache"],
    ),
    (
        "12_view_pins_whole_tensor",
        &[
            "`__main__.features[*]`",
            "a view of 16384 bytes keeps a block of 262144",
        ],
    ),
    (
        "14_hook_registered_every_step",
        &["`__main__.model[0]._forward_hooks[*], closure variable `reference``"],
    ),
];

/// A session of `vramscope holders` that ends when it is interrupted.
struct Holders {
    child: Child,
}

impl Holders {
    fn watch(pid: u32, arguments: &[&str]) -> Holders {
        let mut child = tool()
            .command()
            .args([
                "holders",
                &pid.to_string(),
                "--duration",
                "1h",
                "--format",
                "json",
                // The machine that tests may be slow.
                "--budget",
                "60s",
            ])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("attached to") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "vramscope ended");
        }
        child.stderr = Some(said.into_inner());
        Holders { child }
    }

    fn ask(mut self) -> Value {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, Signal::SIGINT).unwrap();
        let (mut out, mut said) = (String::new(), String::new());
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(self.child.wait().unwrap().success(), "{out}{said}");
        serde_json::from_str(&out).unwrap()
    }
}

fn case(torch: &str, name: &str, expected: &[&str]) {
    let setup = Setup::new(torch).env("LEAKCASE_STEPS", "1000");
    let script = root().join(format!("tests/cases/{name}.py"));
    let mut program = Program::start(
        &setup,
        &root().join("tests/programs/paced.py"),
        &["5", "70", script.to_str().unwrap()],
    );
    program.expect("ready");
    let holders = Holders::watch(program.pid(), &[]);
    program.say("go");
    program.expect("watched");
    let answer = holders.ask();
    assert_eq!(answer["partial"], Value::Null, "{name}: {answer}");
    assert_eq!(answer["library_unloaded"], true, "{name}: {answer}");
    let first = &answer["holders"][0];
    let words = first["words"].as_str().unwrap();
    println!("{torch} {name}: {} x {words}", first["blocks"]);
    for part in expected {
        assert!(words.contains(part), "{name}: {part} is not in {words}");
    }
    // It explains nearly all of the site.
    let total: u64 = answer["holders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["blocks"].as_u64().unwrap())
        .sum();
    let largest = first["blocks"].as_u64().unwrap();
    if name != "03_eval_without_no_grad" {
        assert!(largest * 10 >= total * 9, "{name}: {answer}");
    }
    program.say("end");
    program.finish();
}

/// A PyTorch to test instead of those that every run does.
fn another_torch() -> Option<String> {
    std::env::var("VRAMSCOPE_HOLDERS_TORCH").ok()
}

#[test]
fn the_holder_of_every_case_is_named() {
    if let Some(reason) = missing(&tool()) {
        return skip("the_holder_of_every_case", &reason);
    }
    let all = std::env::var_os("VRAMSCOPE_HOLDERS_ALL").is_some();
    for (at, (name, expected)) in CASES.iter().enumerate() {
        if let Some(torch) = another_torch() {
            case(&torch, name, expected);
            continue;
        }
        for torch in TORCHES {
            // Half of the cases with each PyTorch, unless all are asked for.
            if all || TORCHES[at % 2] == torch {
                case(torch, name, expected);
            }
        }
    }
}

/// Kinds of holding, and what the words for it contain.
const KINDS: [(&str, &str, &str); 24] = [
    ("variable", "tensor", "`__main__.variable`"),
    (
        "dict-of-list",
        "tensor",
        "`__main__.history['logits'][*]` (a list of 1)",
    ),
    (
        "deque",
        "tensor",
        "`__main__.replay[*]` (a deque of 1, at most 120)",
    ),
    ("view", "tensor", "`__main__.view`"),
    (
        "closure",
        "tensor",
        "`__main__.read_inside, closure variable `inside``",
    ),
    (
        "default-argument",
        "tensor",
        "`__main__.with_default, default of argument `buffer``",
    ),
    ("class-attribute", "tensor", "`__main__.Registry.shared`"),
    ("attribute", "tensor", "`__main__.registry.own`"),
    ("slot", "tensor", "`__main__.slotted.kept`"),
    ("dataclass", "tensor", "`__main__.sample.data`"),
    (
        "lru_cache",
        "tensor",
        "`__main__.cached, kept by functools.lru_cache` (an lru_cache of 1, at most 128)",
    ),
    ("thread-local", "tensor", "`__main__.local.scratch`"),
    (
        "generator",
        "tensor",
        "`__main__.generator, local `inside` of generator counting() (kinds.py)`",
    ),
    (
        "coroutine",
        "tensor",
        "`__main__.coroutine, local `inside` of coroutine waiting() (kinds.py)`",
    ),
    (
        "traceback",
        "tensor",
        "`__main__.last_error.__traceback__, local `inside` of failing() (kinds.py:",
    ),
    (
        "hook",
        "tensor",
        "`__main__.model[0]._forward_hooks[*], closure variable `reference``",
    ),
    ("gradient", "gradient", "`__main__.weight.grad`"),
    (
        "graph",
        "graph",
        "behind `__main__.outcome` (MeanBackward0 -> PowBackward0 -> AddmmBackward0",
    ),
    (
        "custom-function",
        "graph",
        "behind `__main__.custom` (SumBackward0 -> ",
    ),
    ("cycle", "garbage", "cycle through Node.tensor"),
    ("native-cycle", "native", "native"),
    ("frame", "tensor", "local `mine` of running() (kinds.py:"),
    ("frame", "tensor", "local `mine` of running() (kinds.py:"),
    ("frame", "tensor", "local `mine` of running() (kinds.py:"),
];

/// Asks about every block of `kinds.py`; what is wrong. Blocks of a Python that cannot tell garbage
/// are left out.
fn kinds(setup: &Setup, tells_garbage: bool, qualified: bool) -> Vec<String> {
    let script = root().join("tests/programs/holders/kinds.py");
    let mut program = Program::start(setup, &script, &[]);
    program.expect("ready");
    let blocks: Vec<(String, String)> = (program.seen().iter())
        .filter_map(|line| line.strip_prefix("block ")?.split_once(' '))
        .map(|(name, address)| (name.to_owned(), address.to_owned()))
        .collect();
    assert!(blocks.len() >= KINDS.len());
    let pid = program.pid().to_string();
    let mut arguments = vec!["holders", &pid, "--format", "json", "--budget", "60s"];
    for (_, address) in &blocks {
        arguments.extend(["--address", address]);
    }
    let run = tool().run(&arguments);
    assert!(run.status.success(), "{run:?}");
    let answer = run.json();
    println!("{}", answer["cost"]);
    let mut wrong = Vec::new();
    let no_holders = Vec::new();
    let holders = answer["holders"].as_array().unwrap_or(&no_holders);
    for (name, kind, part) in KINDS {
        if !tells_garbage && ["garbage", "native"].contains(&kind) {
            continue;
        }
        let address = &blocks.iter().find(|(known, _)| known == name).unwrap().1;
        let found = holders.iter().find(|holder| {
            holder["addresses"]
                .as_array()
                .unwrap()
                .iter()
                .any(|one| one.as_str() == Some(address))
        });
        let words = found.map_or("", |holder| holder["words"].as_str().unwrap());
        // Older Pythons keep a frame object, which knows its line, and no qualified names.
        let old = part
            .replace("of generator ", "of ")
            .replace("of coroutine ", "of ");
        let part = match qualified {
            true => part,
            false => old.split(" (kinds.py").next().unwrap(),
        };
        let good = found.is_some_and(|holder| holder["kind"] == kind) && words.contains(part);
        if !good {
            wrong.push(format!("{name}: {kind} {part}, but {found:?}"));
        }
    }
    program.say("end");
    assert_eq!(program.expect("references"), "same");
    assert_eq!(program.expect("memory"), "same");
    println!("objects {}", program.expect("objects"));
    program.expect("end");
    assert!(program.finish().success());
    wrong
}

#[test]
fn every_way_of_holding_has_its_words() {
    if let Some(reason) = missing(&tool()) {
        return skip("every_way_of_holding", &reason);
    }
    let torches = match another_torch() {
        Some(torch) => vec![torch],
        None => TORCHES.map(str::to_owned).to_vec(),
    };
    for torch in torches {
        let wrong = kinds(&Setup::new(&torch), true, true);
        assert!(wrong.is_empty(), "torch {torch}:\n{}", wrong.join("\n"));
    }
}

/// With other Pythons, where the simulator has been set up for them.
#[test]
fn every_way_of_holding_in_other_pythons() {
    let name = "every_way_of_holding_in_other_pythons";
    if let Some(reason) = missing(&tool()) {
        return skip(name, &reason);
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(
        || Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".cache"),
        Into::into,
    );
    let others = [
        ("3.10", "2.8.0"),
        ("3.11", "2.8.0"),
        ("3.13", "2.8.0"),
        ("3.14", "2.15.0"),
    ];
    for (python, torch) in others {
        let environment = cache.join(format!("vramscope/simcuda/torch-{torch}-py{python}"));
        if !environment.exists() {
            skip(
                name,
                &format!(
                    "`tests/simcuda/run --torch {torch} --python {python} --setup` was not run"
                ),
            );
            continue;
        }
        let setup = Setup::new(torch).device("--python", python);
        let tells_garbage = ["3.13", "3.14"].contains(&python);
        let wrong = kinds(&setup, tells_garbage, python != "3.10");
        assert!(wrong.is_empty(), "Python {python}:\n{}", wrong.join("\n"));
    }
}

#[test]
fn who_cannot_be_asked_is_told_why() {
    let sleeper = std::process::Command::new("sleep").arg("1000").spawn();
    let Ok(mut sleeper) = sleeper else {
        return skip("who_cannot_be_asked", "no `sleep`");
    };
    let maps = format!("/proc/{}/maps", sleeper.id());
    while !std::fs::read_to_string(&maps)
        .unwrap()
        .contains("libc.so.6")
    {
        std::thread::yield_now();
    }
    let pid = sleeper.id().to_string();
    let run = tool().run(&["holders", &pid, "--address", "0x1000"]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    if run.stderr.contains("not allowed") {
        return skip("who_cannot_be_asked", run.stderr.trim());
    }
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    assert!(run.stderr.contains("no CPython is loaded"), "{run:?}");
    let run = tool().run(&["holders", &pid, "--address", "0x1000"]);
    assert!(run.stderr.contains("gone"), "{run:?}");
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    let run = tool().run(&["holders", &pid, "--line", "train.py"]);
    assert_eq!(run.status.code(), Some(2), "{run:?}");
}

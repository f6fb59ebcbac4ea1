//! Machine code in the stacks of the real PyTorch: the operator is named, in the forward and in the
//! backward, by both tracers.

use serde_json::Value;
use vramscope_test_support::{Program, Setup, TORCHES, Tool, missing, root, skip};

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

/// A frame of a stack: kind, function, file.
type Frame = (String, String, String);

/// Stacks of the report's sites, innermost frame first, with the blocks that were made there.
fn stacks(report: &Value) -> Vec<(u64, Vec<Frame>)> {
    let mut found = Vec::new();
    let mut look_at = vec![report];
    while let Some(value) = look_at.pop() {
        match value {
            Value::Array(values) => look_at.extend(values),
            Value::Object(fields) => match fields.get("stack") {
                Some(Value::Array(stack)) => {
                    let text = |frame: &Value, name: &str| frame[name].as_str().unwrap().to_owned();
                    let frames = stack
                        .iter()
                        .map(|frame| {
                            let [kind, function, file] =
                                ["kind", "function", "file"].map(|name| text(frame, name));
                            (kind, function, file)
                        })
                        .collect();
                    found.push((fields["total_blocks"].as_u64().unwrap_or(0), frames));
                }
                _ => look_at.extend(fields.values()),
            },
            _ => {}
        }
    }
    found
}

/// Whether the functions come in this order from the innermost frame outwards.
fn passes(stack: &[Frame], functions: &[&str]) -> bool {
    let mut wanted = functions.iter().peekable();
    for (_, function, _) in stack {
        if wanted
            .peek()
            .is_some_and(|wanted| function.contains(**wanted))
        {
            wanted.next();
        }
    }
    wanted.peek().is_none()
}

#[test]
fn operators_are_named() {
    if let Some(reason) = missing(&tool()) {
        return skip("operators_are_named", &reason);
    }
    let script = root().join("tests/programs/special/operators.py");
    for torch in TORCHES {
        for options in [
            &["--native", "new"][..],
            &["--native", "always"],
            &["--inject", "--no-cupti"],
        ] {
            let mut program = Program::start(&Setup::new(torch), &script, &[]);
            program.expect("ready");
            let attached = tool().attach(program.pid(), &[options, &["--group", "stack"]].concat());
            program.say("go");
            program.expect("done");
            let report = attached.interrupt().json();
            program.say("end");
            assert!(program.finish().success());
            judge(&format!("PyTorch {torch}, {options:?}"), &report);
        }
    }
}

fn judge(what: &str, report: &Value) {
    assert_eq!(report["lost"]["events"], 0, "{what}: {}", report["lost"]);
    let stacks = stacks(report);
    let blocks: u64 = stacks.iter().map(|(blocks, _)| blocks).sum();
    let nameless: u64 = (stacks.iter())
        .filter(|(_, stack)| !stack.iter().any(|frame| frame.1.contains("at::")))
        .map(|(blocks, _)| blocks)
        .sum();
    println!(
        "{what}: {} stacks, {blocks} blocks, {nameless} of them without an operator",
        stacks.len()
    );
    assert!(blocks > 500, "{what}: {blocks}");
    assert_eq!(nameless, 0, "{what}");
    let named = [
        // Forward: the operator, then the line that called it.
        &["addmm", "at::_ops::linear", "step"][..],
        &["at::native::", "pow", "step"],
        &["softmax", "step"],
        // On autograd's thread: the operator, its node, and who called backward().
        &["at::", "AddmmBackward0", "[backward]", "step"],
        &["at::", "PowBackward0", "[backward]", "step"],
        &["at::", "SoftmaxBackward0", "[backward]", "step"],
        // Python in the middle of it.
        &[
            "at::_ops::mul",
            "doubled",
            "Twice.backward",
            "PyNode::apply",
            "Engine::thread_main",
        ],
        &[
            "at::_ops::mul",
            "Twice.forward",
            "THPFunction_apply",
            "step",
        ],
    ];
    for functions in named {
        assert!(
            stacks.iter().any(|(_, stack)| passes(stack, functions)),
            "{what}: no stack has {functions:?}"
        );
    }
    // The line of the user's that each belongs to is Python's still.
    for (_, stack) in &stacks {
        let innermost = stack.iter().find(|frame| frame.0 == "python");
        let (_, _, file) = innermost.unwrap_or_else(|| panic!("{what}: {stack:?}"));
        assert!(file.ends_with(".py"), "{what}: {file}");
    }
}

#[test]
fn the_driver_is_asked_by_somebody() {
    if let Some(reason) = missing(&tool()) {
        return skip("the_driver_is_asked_by_somebody", &reason);
    }
    let script = root().join("tests/programs/special/operators.py");
    let directory = tempfile::tempdir().unwrap();
    let recording = directory.path().join("run.vrs");
    let recording = recording.to_str().unwrap();
    let mut program = Program::start(&Setup::new(TORCHES[0]), &script, &[]);
    program.expect("ready");
    let attached = tool().attach(program.pid(), &["-o", recording]);
    program.say("go");
    program.expect("done");
    attached.interrupt();
    program.say("end");
    assert!(program.finish().success());
    let arguments = [
        "export", recording, "--to", "folded", "--layer", "driver", "-o", "-",
    ];
    let folded = tool().run(&arguments).stdout;
    let large = folded
        .lines()
        .find(|line| line.contains("operators.py:42"))
        .unwrap_or_else(|| panic!("no driver allocation of line 42 in\n{folded}"));
    for function in [
        "at::native::empty_cuda",
        "CUDACachingAllocator",
        "cudaMalloc",
    ] {
        assert!(large.contains(function), "{function} is not in\n{large}");
    }
}

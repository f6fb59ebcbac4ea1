//! `--step-on`: what the user names begins a step, as often as it happens.

use serde_json::Value;
use vramscope_test_support::{Program, Setup, TORCHES, Tool, missing, root, skip};

const STEPS: u64 = 40;

fn tool() -> Tool {
    Tool::new(env!("CARGO_BIN_EXE_vramscope"))
}

fn steps(torch: &str, step_on: &str) -> Value {
    let script = root().join("tests/programs/special/ranges.py");
    let mut program = Program::start(&Setup::new(torch), &script, &[]);
    program.expect("ready");
    let attached = tool().attach(program.pid(), &["--step-on", step_on]);
    program.say("go");
    program.expect("done");
    let run = attached.interrupt();
    program.say("end");
    assert!(program.finish().success());
    run.json()["steps"].clone()
}

#[test]
fn what_the_user_names_begins_a_step() {
    if let Some(reason) = missing(&tool()) {
        return skip("what_the_user_names_begins_a_step", &reason);
    }
    for torch in TORCHES {
        for (place, expected) in [
            ("nvtx:step", STEPS),
            ("nvtx:request", 3 * STEPS),
            ("ranges.py:16", STEPS),
            ("programs/special/ranges.py:19", STEPS),
            ("nvtxRangePushA", 4 * STEPS),
        ] {
            let steps = steps(torch, place);
            assert_eq!(steps["source"], "user", "{place} on {torch}: {steps}");
            let count = steps["count"].as_u64().unwrap();
            // The step under way at the end may or may not count as one.
            assert!(
                (expected - 1..=expected).contains(&count),
                "{place} on {torch}: {count}, not {expected}"
            );
        }
    }
}

#[test]
fn a_place_that_is_not_there_is_refused() {
    if let Some(reason) = missing(&tool()) {
        return skip("a_place_that_is_not_there", &reason);
    }
    let script = root().join("tests/programs/special/ranges.py");
    let mut program = Program::start(&Setup::new(TORCHES[0]), &script, &[]);
    program.expect("ready");
    let pid = program.pid().to_string();
    for place in ["no_such_function", &format!("nvtx:{}", "x".repeat(80))] {
        let run = tool().run(&["attach", &pid, "--headless", "--step-on", place]);
        assert_eq!(run.status.code(), Some(3), "{run:?}");
        assert!(run.stderr.contains("--step-on"), "{run:?}");
        assert!(run.stdout.is_empty());
    }
    assert!(program.alive());
}

//! What an attached vramscope costs the traced process, beside PyTorch's own recorder, in one run.
//!
//! Prints figures and ratios; asserts nothing about them. `VRAMSCOPE_BENCH_TORCH` names the
//! PyTorch version.

use std::path::PathBuf;

use vramscope_test_support::{Program, Setup, TORCHES, Tool, missing, root};

/// How often each way is measured; the ways take turns, so that a slow minute hits all.
const TURNS: usize = 3;
const FRAMES: [usize; 3] = [5, 20, 60];

fn main() {
    let tool = Tool::new(env!("CARGO_BIN_EXE_vramscope"));
    if let Some(reason) = missing(&tool) {
        println!("SKIP: {reason}");
        return;
    }
    let torch = std::env::var("VRAMSCOPE_BENCH_TORCH").unwrap_or_else(|_| TORCHES[0].into());
    println!("torch {torch}, {}", kernel());
    events(&tool, &torch);
    steps(&tool, &torch, "mlp", 400);
    steps(&tool, &torch, "gpt", 30);
}

fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(
        |_| "unknown kernel".into(),
        |release| format!("Linux {}", release.trim()),
    )
}

fn script(name: &str) -> PathBuf {
    root().join("tests/programs/bench").join(name)
}

/// The three ways in which a program is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Bare,
    Attached,
    Recorder,
}

/// Runs `measure` in one way; the program is as before afterwards.
fn in_way<T>(
    tool: &Tool,
    program: &mut Program,
    way: Way,
    measure: impl FnOnce(&mut Program) -> T,
) -> T {
    match way {
        Way::Bare => measure(program),
        Way::Attached => {
            let attached = tool.attach(program.pid(), &[]);
            let result = measure(program);
            let run = attached.interrupt();
            let lost = run.json()["lost"]["events"].as_u64();
            assert_eq!(lost, Some(0), "a measurement with losses says nothing");
            result
        }
        Way::Recorder => {
            program.say("recorder on");
            program.expect("ok");
            let result = measure(program);
            program.say("recorder off");
            program.expect("ok");
            result
        }
    }
}

fn events(tool: &Tool, torch: &str) {
    let mut program = Program::start(&Setup::new(torch), &script("events.py"), &[]);
    program.expect("ready");
    println!("\nns an event over no tracer (base: the event itself)");
    println!("frames        base alloc/free     attached alloc/free     recorder alloc/free");
    for frames in FRAMES {
        let mut best = [[f64::INFINITY; 2]; 3];
        for _ in 0..TURNS {
            for (index, way) in [Way::Bare, Way::Attached, Way::Recorder]
                .into_iter()
                .enumerate()
            {
                let result = in_way(tool, &mut program, way, |program| {
                    program.say(&format!("measure {frames}"));
                    program.expect("result")
                });
                for (best, value) in best[index].iter_mut().zip(result.split_whitespace()) {
                    *best = best.min(value.parse().unwrap());
                }
            }
        }
        let [bare, attached, recorder] = best;
        println!(
            "{frames:>6}  {:>9.0} / {:<8.0}  {:>9.0} / {:<8.0}   {:>9.0} / {:<8.0}",
            bare[0],
            bare[1],
            attached[0] - bare[0],
            attached[1] - bare[1],
            recorder[0] - bare[0],
            recorder[1] - bare[1],
        );
        println!(
            "        attached, mean of the two: {:.0} ns; ratio to the recorder's mean: {:.2}",
            mean(attached) - mean(bare),
            (mean(attached) - mean(bare)) / (mean(recorder) - mean(bare)),
        );
    }
    program.finish();
}

fn mean(pair: [f64; 2]) -> f64 {
    (pair[0] + pair[1]) / 2.0
}

fn steps(tool: &Tool, torch: &str, model: &str, count: usize) {
    let mut program = Program::start(&Setup::new(torch), &script("steps.py"), &[model]);
    let millions = program.expect("ready");
    let mut best = [f64::INFINITY; 3];
    for _ in 0..TURNS {
        for (best, way) in best
            .iter_mut()
            .zip([Way::Bare, Way::Attached, Way::Recorder])
        {
            let result = in_way(tool, &mut program, way, |program| {
                program.say(&format!("measure {count}"));
                program.expect("result")
            });
            *best = best.min(result.parse().unwrap());
        }
    }
    program.finish();
    let [bare, attached, recorder] = best;
    println!(
        "\n{model} ({millions} M parameters): {bare:.0} us a step; attached {attached:.0} \
         ({:.3}x), recorder {recorder:.0} ({:.3}x)",
        attached / bare,
        recorder / bare,
    );
}

//! What an attached vramscope costs the traced process, beside PyTorch's own recorder, in one run.
//!
//! Prints figures and ratios; asserts nothing about them. `VRAMSCOPE_BENCH_TORCH` names the
//! PyTorch version.

use std::path::PathBuf;

use vramscope_test_support::{Program, Setup, TORCHES, Tool, missing, root};

/// How often each way is measured; the ways take turns, so that a slow minute hits all.
/// `VRAMSCOPE_BENCH_TURNS` says otherwise.
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

fn turns() -> usize {
    std::env::var("VRAMSCOPE_BENCH_TURNS")
        .ok()
        .and_then(|turns| turns.parse().ok())
        .unwrap_or(TURNS)
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

/// The ways in which a program is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Bare,
    /// Probes of the kernel, Python stacks.
    Probes,
    /// With machine-code stacks, up to Python.
    ProbesNew,
    /// The same, all of it at every allocation.
    ProbesAlways,
    /// The library in the process, Python stacks, no CUPTI.
    LibraryAlone,
    /// The same with CUPTI: on the simulated device, the simulated one's cost on top.
    Library,
    /// With machine-code stacks up to Python, no CUPTI.
    LibraryNew,
    /// The same, all of it at every allocation.
    LibraryAlways,
    /// PyTorch's own recorder with Python stacks.
    Recorder,
    /// The same with C++ stacks.
    RecorderAll,
}

const WAYS: [(Way, &str); 10] = [
    (Way::Bare, "no tracer"),
    (Way::Probes, "kernel probes, --native never"),
    (Way::ProbesNew, "kernel probes (--native new)"),
    (Way::ProbesAlways, "kernel probes, --native always"),
    (Way::LibraryAlone, "--inject --no-cupti --native never"),
    (Way::Library, "--inject --native never"),
    (Way::LibraryNew, "--inject --no-cupti (--native new)"),
    (Way::LibraryAlways, "--inject --no-cupti --native always"),
    (Way::Recorder, "PyTorch's recorder, Python stacks"),
    (Way::RecorderAll, "PyTorch's recorder, all stacks"),
];

/// Runs `measure` in one way; the program is as before afterwards.
fn in_way<T>(
    tool: &Tool,
    program: &mut Program,
    way: Way,
    measure: impl FnOnce(&mut Program) -> T,
) -> T {
    let attached = |program: &mut Program,
                    arguments: &[&str],
                    measure: Box<dyn FnOnce(&mut Program) -> T + '_>| {
        let attached = tool.attach(program.pid(), arguments);
        let result = measure(program);
        let run = attached.interrupt();
        let lost = run.json()["lost"]["events"].as_u64();
        assert_eq!(lost, Some(0), "a measurement with losses says nothing");
        result
    };
    let recorded =
        |program: &mut Program, stacks: &str, measure: Box<dyn FnOnce(&mut Program) -> T + '_>| {
            program.say(&format!("recorder {stacks}"));
            program.expect("ok");
            let result = measure(program);
            program.say("recorder off");
            program.expect("ok");
            result
        };
    let measure = Box::new(measure);
    match way {
        Way::Bare => measure(program),
        Way::Probes => attached(program, &["--native", "never"], measure),
        Way::ProbesNew => attached(program, &[], measure),
        Way::ProbesAlways => attached(program, &["--native", "always"], measure),
        Way::LibraryAlone => {
            let arguments = ["--inject", "--no-cupti", "--native", "never"];
            attached(program, &arguments, measure)
        }
        Way::Library => attached(program, &["--inject", "--native", "never"], measure),
        Way::LibraryNew => attached(program, &["--inject", "--no-cupti"], measure),
        Way::LibraryAlways => attached(
            program,
            &["--inject", "--no-cupti", "--native", "always"],
            measure,
        ),
        Way::Recorder => recorded(program, "python", measure),
        Way::RecorderAll => recorded(program, "all", measure),
    }
}

fn events(tool: &Tool, torch: &str) {
    let mut program = Program::start(&Setup::new(torch), &script("events.py"), &[]);
    program.expect("ready");
    for frames in FRAMES {
        let mut best = [[f64::INFINITY; 2]; WAYS.len()];
        for _ in 0..turns() {
            for (best, (way, _)) in best.iter_mut().zip(WAYS) {
                let result = in_way(tool, &mut program, way, |program| {
                    program.say(&format!("measure {frames}"));
                    program.expect("result")
                });
                for (best, value) in best.iter_mut().zip(result.split_whitespace()) {
                    *best = best.min(value.parse().unwrap());
                }
            }
        }
        let bare = best[0];
        let over = |pair: [f64; 2]| [pair[0] - bare[0], pair[1] - bare[1]];
        let is_recorder = |(way, _): &(Way, _)| *way == Way::Recorder;
        let recorder = WAYS.iter().position(is_recorder).unwrap_or_default();
        let recorder = mean(over(best[recorder]));
        println!(
            "\n{frames} Python frames: {:.0} ns an allocation, {:.0} a free with no tracer; over that:",
            bare[0], bare[1]
        );
        println!(
            "{:<36} {:>6} {:>6} {:>6}   to PyTorch's recorder",
            "", "alloc", "free", "mean"
        );
        for (pair, (_, name)) in best.into_iter().zip(WAYS).skip(1) {
            let [alloc, free] = over(pair);
            let mean = mean([alloc, free]);
            println!(
                "{name:<36} {alloc:>6.0} {free:>6.0} {mean:>6.0}   {:.2}",
                mean / recorder
            );
        }
    }
    program.finish();
}

fn mean(pair: [f64; 2]) -> f64 {
    (pair[0] + pair[1]) / 2.0
}

fn steps(tool: &Tool, torch: &str, model: &str, count: usize) {
    let mut program = Program::start(&Setup::new(torch), &script("steps.py"), &[model]);
    let millions = program.expect("ready");
    let mut best = [f64::INFINITY; WAYS.len()];
    for _ in 0..turns() {
        for (best, (way, _)) in best.iter_mut().zip(WAYS) {
            let result = in_way(tool, &mut program, way, |program| {
                program.say(&format!("measure {count}"));
                program.expect("result")
            });
            *best = best.min(result.parse().unwrap());
        }
    }
    program.finish();
    println!(
        "\n{model} ({millions} M parameters): {:.0} us a step with no tracer",
        best[0]
    );
    for (time, (_, name)) in best.into_iter().zip(WAYS).skip(1) {
        println!("{name:<36} {time:>8.0} us   {:.3} times", time / best[0]);
    }
}

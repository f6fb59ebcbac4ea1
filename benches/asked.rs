//! How long the threads of a busy Python process wait for their turn while it is asked what holds its
//! memory, beside the same process left alone, in one run.
//!
//! Prints figures and ratios; asserts nothing about them. `VRAMSCOPE_BENCH_ASKS` says how often it is
//! asked in each turn.

use std::{thread::sleep, time::Duration};

use serde_json::Value;
use vramscope_holders::{Asker, Request};
use vramscope_test_support::{Program, Setup, TORCHES, Tool, missing, root};

/// How often both ways are measured, by turns, so that a slow minute hits both.
const TURNS: usize = 3;
const ASKS: usize = 10;
/// As `vramscope holders` asks by default, in milliseconds.
const SLICE: u64 = 10;
const BUDGET: u64 = 2_000;
/// An address at which no block lies: all objects are looked at.
const NOWHERE: u64 = 0x1000;

fn main() {
    let tool = Tool::new(env!("CARGO_BIN_EXE_vramscope"));
    if let Some(reason) = missing(&tool) {
        println!("SKIP: {reason}");
        return;
    }
    let asks = std::env::var("VRAMSCOPE_BENCH_ASKS")
        .ok()
        .and_then(|asks| asks.parse().ok())
        .unwrap_or(ASKS);
    for threads in [1, 12] {
        for (what, everything) in [("a block that is held", false), ("a block of nobody", true)] {
            println!(
                "\n{threads} training threads and one that looks at the clock; asked for {what}"
            );
            measure(threads, asks, everything);
        }
    }
}

fn measure(threads: usize, asks: usize, everything: bool) {
    let mut program = Program::start(
        &Setup::new(TORCHES[0]),
        &root().join("tests/programs/bench/pauses.py"),
        &[&threads.to_string()],
    );
    let block = program.expect("block 0x");
    let block = u64::from_str_radix(&block, 16).unwrap_or(NOWHERE);
    program.expect("ready");
    let address = if everything { NOWHERE } else { block };
    let (mut alone, mut loaded, mut asked) = (Vec::new(), Vec::new(), Vec::new());
    let (mut held, mut stayed) = (Vec::new(), 0);
    for _ in 0..TURNS {
        pauses(&mut program);
        for _ in 0..asks {
            if let Err(error) = Asker::attach(program.pid()).map(Asker::leave) {
                println!("  {error}");
            }
        }
        loaded.push(pauses(&mut program));
        let start = std::time::Instant::now();
        for _ in 0..asks {
            match ask(program.pid(), address) {
                Ok((longest, unloaded)) => {
                    held.push(longest);
                    stayed += usize::from(!unloaded);
                }
                Err(error) => println!("  {error}"),
            }
        }
        let took = start.elapsed();
        asked.push(pauses(&mut program));
        sleep(took.max(Duration::from_secs(2)));
        alone.push(pauses(&mut program));
    }
    program.say("end");
    program.expect("end");
    held.sort_unstable();
    println!(
        "  {:<12} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "us", "waits/s", "p50", "p90", "p99", "longest"
    );
    line("alone", &alone);
    line("loaded only", &loaded);
    line("asked", &asked);
    if let (Some(middle), Some(last)) = (held.get(held.len() / 2), held.last()) {
        println!(
            "  its own word for the longest time with the GIL, an answer: median {middle} us, worst \
             {last} us; slices of {SLICE} ms were asked for; {} of {} unloads were refused",
            stayed,
            held.len()
        );
    }
}

fn ask(pid: u32, address: u64) -> Result<(u64, bool), vramscope_holders::Error> {
    let mut asker = Asker::attach(pid)?;
    let answer = asker.ask(&Request {
        addresses: vec![address],
        sizes: vec![512],
        budget_ms: BUDGET,
        slice_ms: SLICE,
        memory: 160 << 20,
    });
    let unloaded = asker.leave();
    Ok((answer?.cost.longest_us, unloaded))
}

/// What it has measured since the last time.
fn pauses(program: &mut Program) -> Value {
    program.say("and now");
    serde_json::from_str(&program.expect("pauses ")).unwrap_or_default()
}

/// The median over the turns, of the longest the worst.
fn line(name: &str, turns: &[Value]) {
    let all = |field: &str| {
        let mut values: Vec<f64> = turns
            .iter()
            .filter_map(|turn| turn[field].as_f64())
            .collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let median = |field: &str| all(field).get(turns.len() / 2).copied().unwrap_or(f64::NAN);
    let seconds: f64 = all("seconds").iter().sum();
    println!(
        "  {name:<12} {:>9.1} {:>9} {:>9} {:>9} {:>9}",
        all("waits").iter().sum::<f64>() / seconds,
        median("p50"),
        median("p90"),
        median("p99"),
        all("longest").last().copied().unwrap_or(f64::NAN),
    );
}

//! CUPTI's callbacks on the simulated CUDA 12 and 13.
//!
//! Every test runs one of the programs in `programs` in a process of its own, once for
//! each CUDA: the library is found through the environment and belongs to a whole process.

mod cuda;
mod programs;

use std::io::Write as _;
use std::process::Command;

/// Runs a program with both CUDAs; `environment` names more variables for each run.
fn run(program: &str, environment: &[&[(&str, &str)]]) {
    let simulator = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/simcuda/run");
    let described = Command::new(simulator).arg("--env").output();
    let libraries = described
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("export LD_LIBRARY_PATH="))?;
            Some(line.to_owned())
        });
    let Some(libraries) = libraries else {
        // Past the test runner's capture, so that the test command can count it.
        let _ = writeln!(
            std::io::stderr(),
            "SKIP: {program}: the simulated device cannot be set up ({simulator} --env)"
        );
        return;
    };
    let once: &[&[(&str, &str)]] = &[&[]];
    for major in ["12", "13"] {
        for more in if environment.is_empty() {
            once
        } else {
            environment
        } {
            let done = Command::new(std::env::current_exe().expect("a path"))
                .args([
                    "--exact",
                    &format!("programs::{program}"),
                    "--ignored",
                    "--nocapture",
                ])
                .env("LD_LIBRARY_PATH", &libraries)
                .env("VRAMSCOPE_TEST_CUDA", major)
                .env("SIMCUDA_DEVICES", "2")
                .envs(more.iter().copied())
                .output()
                .expect("it starts");
            let output = String::from_utf8_lossy(&done.stdout);
            assert!(
                done.status.success() && output.contains("1 passed"),
                "{program} with CUDA {major}, {more:?}: {}\n{output}{}",
                done.status,
                String::from_utf8_lossy(&done.stderr)
            );
        }
    }
}

#[test]
fn every_operation_is_told_once() {
    // Whether driver calls beneath runtime calls have callbacks is not documented: both ways.
    run(
        "operations::every_operation",
        &[&[], &[("SIMCUDA_CUPTI_NESTED", "0")]],
    );
}

#[test]
fn who_holds_the_subscription_is_said() {
    run("lifecycle::held", &[]);
}

#[test]
fn threads_keep_their_order() {
    run("lifecycle::threads", &[]);
}

#[test]
fn a_stop_finalizes_at_the_end_of_a_call() {
    run("lifecycle::stopping", &[]);
}

#[test]
fn an_old_cupti_is_not_finalized() {
    run("lifecycle::old", &[&[("SIMCUDA_CUPTI_VERSION", "19")]]);
}

#[test]
fn it_lets_go_and_takes_up_again() {
    run("lifecycle::yielding", &[]);
}

#[test]
fn whoever_asks_gets_it() {
    run("lifecycle::asking", &[]);
}

#[test]
fn the_mapped_library_is_the_one_that_is_used() {
    run("lifecycle::finding", &[]);
}

#[test]
fn records_tell_of_pools_and_libraries() {
    run(
        "lifecycle::records",
        &[
            &[],
            &[("SIMCUDA_CUPTI_VERSION", "18")],
            &[("SIMCUDA_CUPTI_VERSION", "15")],
        ],
    );
}

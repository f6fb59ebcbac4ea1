//! What the integration tests share.
//!
//! A test that needs something this machine may not have asks [`missing`] first, says so with
//! [`skip`], and returns: the line goes past the test runner's capture, so that the test command
//! can count it.

#![deny(unsafe_code)]

mod program;
mod tool;

use std::{io::Write as _, path::PathBuf, process::Command};

pub use program::{Program, Setup, TORCHES};
pub use tool::{Attached, Run, Tool};

/// Says that a test was skipped, and why.
pub fn skip(test: &str, reason: &str) {
    // Not `println!`: the test runner would keep it to itself.
    let _ = writeln!(
        std::io::stderr(),
        "SKIP: {test}: {}",
        reason.replace('\n', " ")
    );
}

/// The repository's root.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("tests/support").to_owned()
}

/// Whether combination `number` of a test that has many is run today: every second one, so that each
/// program, PyTorch and way of attaching has its turn; all with `VRAMSCOPE_ALL=1`.
pub fn has_its_turn(number: usize) -> bool {
    number.is_multiple_of(2) || std::env::var_os("VRAMSCOPE_ALL").is_some()
}

/// The library for injection, as it was built for the running test.
pub fn injection_library() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a file");
    let built = test.parent().expect("in a folder");
    built.join("libvramscope_injection.so")
}

/// The folder where `scripts/newer-python` puts interpreters.
pub fn newer_pythons() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    cache.unwrap_or_default().join("vramscope/pythons/bin")
}

/// The simulated management library, for `VRAMSCOPE_NVML`.
pub fn simulated_nvml(torch: &str) -> PathBuf {
    let output = Command::new(root().join("tests/simcuda/run"))
        .args(["--torch", torch, "--env"])
        .output()
        .expect("tests/simcuda/run starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let folders = text
        .lines()
        .find_map(|line| line.strip_prefix("export LD_LIBRARY_PATH="))
        .expect("the libraries' folders");
    let first = folders.split(':').next().unwrap_or_default();
    PathBuf::from(first.trim_matches(['"', '\''])).join("libnvidia-ml.so.1")
}

/// What an attach to a simulated PyTorch would lack here: rights, kernel, or the set-up.
pub fn missing(tool: &Tool) -> Option<String> {
    let doctor = tool.run(&["doctor"]);
    if !doctor.status.success() {
        return Some(format!("vramscope doctor: {}", doctor.stdout.trim()));
    }
    let simulator = root().join("tests/simcuda/run");
    if !simulator.exists() {
        return Some(format!("{} is not there", simulator.display()));
    }
    let works = Command::new(&simulator)
        .arg("--setup")
        .output()
        .is_ok_and(|output| output.status.success());
    (!works).then(|| "the simulated device cannot be set up (`tests/simcuda/run --setup`)".into())
}

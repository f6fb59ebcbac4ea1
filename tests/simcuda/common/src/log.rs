//! The log: one line on stderr (or in `SIMCUDA_LOG_FILE`) for what the simulation did.
//!
//! `SIMCUDA_LOG=1` shows allocations, devices and symbols asked for in vain;
//! `SIMCUDA_LOG=2` shows also what happens in every step.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;

/// The level asked for; read once.
pub fn level() -> u32 {
    static LEVEL: OnceLock<u32> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        std::env::var("SIMCUDA_LOG")
            .ok()
            .and_then(|value| value.parse().ok())
            .unwrap_or(0)
    })
}

/// Writes one line, as one write, so that lines of several threads do not mix.
pub fn write(line: &str) {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let path = std::env::var_os("SIMCUDA_LOG_FILE")?;
        OpenOptions::new().append(true).create(true).open(path).ok()
    });
    let line = format!("[simcuda {}] {line}\n", std::process::id());
    // A log that cannot be written must not stop the program.
    let _ = match file {
        Some(file) => (&*file).write_all(line.as_bytes()),
        None => std::io::stderr().write_all(line.as_bytes()),
    };
}

/// Logs at level 1, or at the level given first.
#[macro_export]
macro_rules! log {
    (level 2, $($arguments:tt)*) => {
        if $crate::log::level() >= 2 { $crate::log::write(&format!($($arguments)*)) }
    };
    ($($arguments:tt)*) => {
        if $crate::log::level() >= 1 { $crate::log::write(&format!($($arguments)*)) }
    };
}

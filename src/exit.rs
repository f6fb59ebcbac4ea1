//! Errors to words and exit codes.

use std::{io, process::ExitCode};

use vramscope_collector::replay::ReplayError;
use vramscope_tracer::AttachError;

/// A wrong command line, as clap says it too where it can tell by itself.
pub const USAGE: u8 = 2;

/// A command line that makes no sense, in words.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n\nFor more information, try '--help'.", self.0)
    }
}

impl std::error::Error for Usage {}

/// The process could not be traced.
pub const CANNOT_ATTACH: u8 = 3;

/// A recording is damaged, or no recording.
pub const DAMAGED_INPUT: u8 = 4;

/// An error with its causes, each once: many a message ends with that of its cause.
pub fn words(error: &anyhow::Error) -> String {
    let mut words = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !words.ends_with(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

/// Prints an error with its causes, and gives the exit code it stands for.
pub fn report(error: &anyhow::Error) -> ExitCode {
    // Whoever read our output has had enough (`vramscope … | head`): no error.
    let closed_pipe = error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    });
    if closed_pipe {
        return ExitCode::SUCCESS;
    }
    eprintln!("vramscope: {}", words(error));
    let cannot = error.downcast_ref::<AttachError>().is_some()
        || error.downcast_ref::<vramscope_holders::Error>().is_some();
    if error.downcast_ref::<Usage>().is_some() {
        ExitCode::from(USAGE)
    } else if cannot {
        ExitCode::from(CANNOT_ATTACH)
    } else if error
        .downcast_ref::<ReplayError>()
        .is_some_and(ReplayError::is_damage)
    {
        ExitCode::from(DAMAGED_INPUT)
    } else {
        ExitCode::FAILURE
    }
}

//! Errors to words and exit codes.

use std::{io, process::ExitCode};

use vramscope_tracer::AttachError;

// A wrong command line ends with 2: clap does that.

/// The process could not be traced.
pub const CANNOT_ATTACH: u8 = 3;

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
    eprintln!("vramscope: {error:#}");
    let cannot = error.downcast_ref::<AttachError>().is_some()
        || error.downcast_ref::<vramscope_holders::Error>().is_some();
    if cannot {
        ExitCode::from(CANNOT_ATTACH)
    } else {
        ExitCode::FAILURE
    }
}

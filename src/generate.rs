//! What is made from the command line's definition: completions and the manual page.

use std::{io, process::ExitCode};

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{cli::Cli, output};

/// Prints completions for a shell.
pub fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "vramscope", &mut script);
    output::stdout(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page.
pub fn man() -> anyhow::Result<ExitCode> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut page)
        .map_err(|error: io::Error| error)?;
    output::stdout(&page)?;
    Ok(ExitCode::SUCCESS)
}

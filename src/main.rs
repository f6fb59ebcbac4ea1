//! `vramscope`: parse, dispatch, exit code.

#![deny(unsafe_code)]

mod attach;
mod cli;
mod doctor;
mod engine;
mod exit;
mod generate;
mod holders;
mod output;
mod signals;
mod target;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Attach(options) => attach::attach(&options),
        Command::Report(options) => attach::report(&options),
        Command::Flamegraph(options) => attach::flamegraph(&options),
        Command::Holders(options) => holders::holders(&options),
        Command::Doctor(options) => doctor::doctor(&options),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man => generate::man(),
    };
    match result {
        Ok(code) => code,
        Err(error) => exit::report(&error),
    }
}

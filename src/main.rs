//! `vramscope`: parse, dispatch, exit code.

#![deny(unsafe_code)]

mod asking;
mod attach;
mod cli;
mod diff;
mod doctor;
mod engine;
mod exit;
mod export;
mod flame;
mod generate;
mod holders;
mod interview;
mod live;
mod output;
mod recording;
mod run;
mod selecting;
mod signals;
mod subject;
mod target;
mod watching;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Attach(options) => attach::attach(&options),
        Command::Run(options) => run::run(&options),
        Command::Report(options) => attach::report(&options),
        Command::Flamegraph(options) => flame::flamegraph(&options),
        Command::Export(options) => export::export(&options),
        Command::Live(options) => live::live(&options),
        Command::Diff(options) => diff::diff(&options),
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

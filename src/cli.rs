//! The command line.

use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use vramscope_collector::{StepLine, view::Grouping};

/// Finds what makes GPU memory creep up in a running PyTorch process.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "Exit codes: 0 all went well, 2 wrong usage, 3 the process cannot be traced, \
                  1 any other error."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch a running process: which lines' allocations survive, and how they grow
    ///
    /// The process is neither stopped nor changed. Needs root, or CAP_BPF, CAP_PERFMON and
    /// CAP_SYS_PTRACE.
    Attach(AttachArgs),
    /// Watch a process for a while, then print the report
    ///
    /// The same as `attach --headless --duration 30`.
    Report(ReportArgs),
    /// Watch a process for a while, then draw what survived as a flamegraph
    Flamegraph(FlamegraphArgs),
    /// Tell which Python object keeps a site's surviving blocks alive
    ///
    /// Watches for a while, then loads a small library into the process, which searches its objects
    /// from the inside, and takes it out again: unlike the other commands this runs code in the
    /// process. It takes the GIL for short slices with rests between.
    Holders(HoldersArgs),
    /// Check every precondition and say what to do about those that do not hold
    Doctor(DoctorArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page (troff)
    Man,
}

#[derive(Debug, Args)]
pub struct AttachArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// Print a report at the end instead of showing the live view
    #[arg(long)]
    pub headless: bool,
    /// Stop after this time, such as 30, 90s, 10m or 1h [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    #[command(flatten)]
    pub report: ReportStyle,
    /// Write a flamegraph of the survivors to this file at the end, too
    #[arg(long, value_name = "FILE.svg")]
    pub flamegraph: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// How long to watch, such as 30, 90s, 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub duration: Duration,
    #[command(flatten)]
    pub report: ReportStyle,
}

#[derive(Debug, Args)]
pub struct FlamegraphArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// How long to watch, such as 30, 90s, 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Where to write it; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "vramscope.svg")]
    pub output: PathBuf,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
    /// What a frame's width stands for
    #[arg(long, value_enum, default_value_t = Weight::Bytes)]
    pub weight: Weight,
    /// Folded stacks (a line each) instead of a picture
    #[arg(long)]
    pub folded: bool,
    /// The device, where the process uses several [default: the one with the most survivors]
    #[arg(long, value_name = "N")]
    pub device: Option<u16>,
}

#[derive(Debug, Args)]
pub struct HoldersArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// The site, by its place in `vramscope report`, from 1 [default: 1, the one that grows most]
    #[arg(long, value_name = "N", conflicts_with_all = ["line", "address"])]
    pub site: Option<usize>,
    /// The site, by the line of your code that allocates, such as train.py:27
    #[arg(long, value_name = "FILE:LINE", conflicts_with = "address", value_parser = parse_line)]
    pub line: Option<LineOf>,
    /// Blocks by their addresses on the device, such as 0x7f0012340000, without watching; can be
    /// given several times
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub address: Vec<u64>,
    /// How long to watch for survivors first, such as 20, 90s or 10m
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = parse_duration)]
    pub duration: Duration,
    /// The most time that the search may hold the GIL, in all
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub budget: Duration,
    /// The longest time that it may hold the GIL at once, at most 50ms
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = parse_duration)]
    pub slice: Duration,
    /// What the answer is written as
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineOf {
    /// The file, or the end of its path.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// A process to check as well
    pub pid: Option<u32>,
}

/// Whom to watch, and how.
#[derive(Clone, Debug, Args)]
pub struct TargetArgs {
    /// The process
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
    /// Wait until the process has loaded PyTorch
    #[arg(long)]
    pub wait: bool,
    /// Files whose code is your own, however they are installed; can be given several times
    /// [default: all but the standard library and installed packages]
    #[arg(long, value_name = "GLOB")]
    pub user_code: Vec<String>,
    /// What begins a step: a line that allocates (train.py:42), an NVTX range (nvtx:step), or a
    /// function of a library by its linker name [default: what the backward() calls show]
    #[arg(long, value_name = "PLACE", value_parser = parse_step_on)]
    pub step_on: Option<StepOn>,
    /// Memory of the device, such as 80G, where NVML does not tell it
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub capacity: Option<u64>,
    /// Growth of the floor over its settled level that alarms, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 25.0, value_parser = parse_percent)]
    pub alarm_growth: f64,
    /// Use of the device's memory that alarms, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 85.0, value_parser = parse_percent)]
    pub alarm_capacity: f64,
    /// Size of the buffer between kernel and vramscope, such as 256M: more of it survives longer
    /// bursts
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_ring)]
    pub buffer: u64,
}

/// How a report looks.
#[derive(Clone, Debug, Args)]
pub struct ReportStyle {
    /// What the report is written as
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with_all = ["format", "markdown"])]
    json: bool,
    /// The same as --format markdown
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
    /// What makes one site
    #[arg(long, value_enum, default_value_t = Group::Line)]
    pub group: Group,
    /// Sites to print, most growth first [default: 10 as text, all as JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// List every surviving block in the JSON
    #[arg(long)]
    pub survivors: bool,
}

impl ReportStyle {
    /// What the report is written as.
    pub fn format(&self) -> Format {
        match (self.json, self.markdown) {
            (true, _) => Format::Json,
            (_, true) => Format::Markdown,
            _ => self.format,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Markdown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Weight {
    /// Bytes that survive
    Bytes,
    /// Blocks that survive
    Blocks,
    /// Growth a step
    Growth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Group {
    /// The whole stack
    Stack,
    /// File and line of the innermost frame of your code
    Line,
    /// Its function
    Function,
    /// Its file
    Module,
}

impl From<Group> for Grouping {
    fn from(group: Group) -> Grouping {
        match group {
            Group::Stack => Grouping::Stack,
            Group::Line => Grouping::Line,
            Group::Function => Grouping::Function,
            Group::Module => Grouping::Module,
        }
    }
}

/// What begins a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOn {
    /// A line of Python.
    Line(StepLine),
    /// A place in machine code.
    Native(vramscope_tracer::StepOn),
}

fn parse_step_on(text: &str) -> Result<StepOn, String> {
    if let Some(name) = text.strip_prefix("nvtx:") {
        return Ok(StepOn::Native(vramscope_tracer::StepOn::Nvtx(name.into())));
    }
    if let Some((file, line)) = text.rsplit_once(':')
        && let Ok(line) = line.parse::<u32>()
        && !file.is_empty()
    {
        return Ok(StepOn::Line(StepLine::new(file, line)));
    }
    if text.is_empty() || text.contains(char::is_whitespace) || text.contains('/') {
        return Err("use FILE:LINE, nvtx:NAME, or the linker name of a function".into());
    }
    Ok(StepOn::Native(vramscope_tracer::StepOn::Symbol(
        text.into(),
    )))
}

fn parse_line(text: &str) -> Result<LineOf, String> {
    match text.rsplit_once(':') {
        Some((file, line)) if !file.is_empty() => Ok(LineOf {
            file: file.into(),
            line: line.parse().map_err(|error| format!("`{line}`: {error}"))?,
        }),
        _ => Err("use FILE:LINE, such as train.py:27".into()),
    }
}

fn parse_address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|error| format!("{error}; use 0x7f0012340000"))
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; use s, m or h")),
    };
    let number = f64::from_str(number).map_err(|error| format!("`{number}`: {error}"))?;
    Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())
}

fn parse_size(text: &str) -> Result<u64, String> {
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let bytes = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 1.0,
        "k" | "K" => 1024.0,
        "M" => 1024.0 * 1024.0,
        "G" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("`{unit}` is no unit of size; use K, M or G")),
    };
    let number = f64::from_str(number).map_err(|error| format!("`{number}`: {error}"))?;
    if number.is_finite() && number > 0.0 {
        Ok((number * bytes) as u64)
    } else {
        Err("a size above zero is needed".into())
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent > 0.0 => Ok(percent),
        _ => Err("a number above zero is needed, such as 25".into()),
    }
}

/// The kernel takes ring sizes that are a power of two and a multiple of the page size.
fn parse_ring(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?.next_power_of_two();
    if (4096..=1 << 30).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("from 4K to 1G is possible".into())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "x", "-1", "3d", "1e999", "nan"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentages() {
        assert_eq!(parse_percent("25"), Ok(25.0));
        assert_eq!(parse_percent("12.5%"), Ok(12.5));
        for wrong in ["", "%", "0", "-1", "nan", "inf"] {
            assert!(parse_percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn places_of_steps() {
        use vramscope_tracer::StepOn as Native;
        let line = StepOn::Line(StepLine::new("a/train.py", 42));
        assert_eq!(parse_step_on("a/train.py:42"), Ok(line));
        let range = StepOn::Native(Native::Nvtx("a:1".into()));
        assert_eq!(parse_step_on("nvtx:a:1"), Ok(range));
        let symbol = StepOn::Native(Native::Symbol("ncclAllReduce".into()));
        assert_eq!(parse_step_on("ncclAllReduce"), Ok(symbol));
        for wrong in ["", "train.py: 42 ", "a/b"] {
            assert!(parse_step_on(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("80G"), Ok(80 << 30));
        assert_eq!(parse_size("80GiB"), Ok(80 << 30));
        assert_eq!(parse_size("512"), Ok(512));
        assert_eq!(parse_ring("60M"), Ok(64 << 20));
        for wrong in ["", "G", "-1G", "1T", "0", "inf"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert!(parse_ring("4G").is_err());
    }
}

//! The command line.

mod parse;
mod select;

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use vramscope_collector::{StepLine, view::Grouping};

use parse::{parse_address, parse_line, parse_percent, parse_ring, parse_size, parse_step_on};

pub use parse::parse_duration;
pub use select::{LayerName, Moment, SelectArgs, Weight, Window};

use crate::exit::Usage;
use crate::subject::{Place, Subject, parse_place, parse_subject};

/// Finds what makes GPU memory creep up in a running PyTorch process.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "Exit codes: 0 all went well, 2 wrong usage, 3 the process cannot be traced, \
                  4 a \
                  recording is damaged, 1 any other error."
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
    /// Start a program and watch it from its first allocation on
    ///
    /// Needs no rights but those to start it. Its output and its exit code are passed through; the
    /// report comes on standard error when it has ended. Child processes are watched too.
    Run(RunArgs),
    /// Print the report of a recording, or of a process after watching it for a while
    ///
    /// With a process, the same as `attach --headless --duration 30`.
    Report(ReportArgs),
    /// Draw what survives as a flamegraph: in a recording, or in a process after watching it for a
    /// while
    ///
    /// docs/exports.md says what can be selected.
    Flamegraph(FlamegraphArgs),
    /// Write a recording's allocations as another tool reads them
    ///
    /// docs/exports.md says which format is good for what, and how to open it.
    Export(ExportArgs),
    /// Look at a recording as at a live session, at any moment of it
    Live(LiveArgs),
    /// Compare two recordings, or two moments of one: which sites grew, shrank, came and went
    Diff(DiffArgs),
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
    /// Ask the process what keeps the survivors of the first line alive, when a leak is found and at
    /// the end; runs code in it
    #[arg(long)]
    pub holders: bool,
    #[command(flatten)]
    pub record: RecordArgs,
    /// Write a flamegraph of the survivors to this file at the end, too
    #[arg(long, value_name = "FILE.svg")]
    pub flamegraph: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// How to watch it: `inject` loads a library into it; `ebpf` attaches when it has loaded
    /// PyTorch, and needs root; `auto` takes `inject` where the library is there
    #[arg(long, value_enum, default_value_t = RunBackend::Auto)]
    pub backend: RunBackend,
    #[command(flatten)]
    pub watch: WatchArgs,
    #[command(flatten)]
    pub report: ReportStyle,
    /// Write the report to this file instead of standard error; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub report_to: Option<PathBuf>,
    /// Ask the program what keeps the survivors of the first line alive, when a leak is found and
    /// now and then; runs code in it
    #[arg(long)]
    pub holders: bool,
    #[command(flatten)]
    pub record: RecordArgs,
    /// Write a flamegraph of the survivors to this file at the end, too
    #[arg(long, value_name = "FILE.svg")]
    pub flamegraph: Option<PathBuf>,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    pub command: Vec<std::ffi::OsString>,
}

/// When machine code is unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Native {
    /// All of it at every allocation
    Always,
    /// Up to Python at every allocation, the rest once a stack
    New,
    /// Python's frames alone
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunBackend {
    Auto,
    Inject,
    Ebpf,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// How long to watch, such as 30, 90s, 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Ask the process at the end what keeps the survivors of the first line alive; runs code in it
    #[arg(long)]
    pub holders: bool,
    #[command(flatten)]
    pub report: ReportStyle,
}

#[derive(Debug, Args)]
pub struct FlamegraphArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// How long to watch a process, such as 30, 90s, 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Where to write it; `-` is standard output [default: vramscope.svg or .html]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub select: SelectArgs,
    /// What changed since then: another recording (FILE, FILE@10m), or a time of this one
    #[arg(long, value_name = "FILE|TIME", conflicts_with = "html")]
    pub diff: Option<String>,
    /// A page with timeline, flamegraph, search and table instead of a picture
    #[arg(long, conflicts_with = "folded")]
    pub html: bool,
    /// Folded stacks (a line each) instead of a picture
    #[arg(long)]
    pub folded: bool,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The recording; FILE@10m is the same as FILE --at 10m
    #[arg(value_name = "FILE", value_parser = parse_place)]
    pub file: Place,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: ExportFormat,
    /// Where to write it; `-` is standard output [default: named after the recording]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub select: SelectArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// JSON for speedscope.app
    Speedscope,
    /// Protocol buffer for `go tool pprof` and many others
    Pprof,
    /// JSON for profiler.firefox.com
    Firefox,
    /// Trace for ui.perfetto.dev
    Perfetto,
    /// Pickle for pytorch.org/memory_viz
    TorchSnapshot,
    /// Folded stacks, a line each
    Folded,
    /// A table, a line a stack
    Csv,
    /// A folder with tables of events, stacks and sites
    Parquet,
}

#[derive(Debug, Args)]
pub struct LiveArgs {
    /// The recording; FILE@10m begins ten minutes in, FILE@step:200 at a step [default: its end]
    #[arg(value_name = "FILE", value_parser = parse_place)]
    pub file: Place,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The recording to compare with: FILE, FILE@10m or FILE@step:200
    #[arg(value_name = "BEFORE", value_parser = parse_place)]
    pub before: Place,
    /// The recording that is compared
    #[arg(value_name = "AFTER", value_parser = parse_place)]
    pub after: Place,
    /// What makes one site
    #[arg(long, value_enum, default_value_t = Group::Line)]
    pub group: Group,
    /// Sites to print, the largest change first [default: 20 as text, all as JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// The device [default: all that both have]
    #[arg(long, value_name = "N")]
    pub device: Option<u16>,
}

/// Whether to record a session, and how much of it.
#[derive(Clone, Debug, Args)]
pub struct RecordArgs {
    /// Record the session to this file: vramscope live FILE shows it later
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Keep the last minutes in memory, and write them to this file when memory runs out or the
    /// process ends
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub flight_recorder: Option<PathBuf>,
    /// Keep at least the last so much of the recording, such as 2h, and little more [default: all;
    /// of a flight recorder 5m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub keep_last: Option<Duration>,
    /// Keep the file (of a flight recorder, its memory) about as small as this, such as 2G
    /// [default: no limit; of a flight recorder 256M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_size: Option<u64>,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
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
    /// The process, by its number; for `report` and `flamegraph` also a recording: FILE, FILE@10m
    /// or FILE@step:200
    #[arg(value_name = "PID", value_parser = parse_subject)]
    pub subject: Subject,
    /// Wait until the process has loaded PyTorch
    #[arg(long)]
    pub wait: bool,
    /// Load a library into the process instead of placing probes in the kernel: cheaper an
    /// allocation, needs no root for a process of your own, and the CUDA driver's side is seen by
    /// CUPTI
    #[arg(long)]
    pub inject: bool,
    #[command(flatten)]
    pub watch: WatchArgs,
}

/// How events are understood.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// Files whose code is your own, however they are installed; can be given several times
    /// [default: all but the standard library and installed packages]
    #[arg(long, value_name = "GLOB")]
    pub user_code: Vec<String>,
    /// What begins a step: a line that allocates (train.py:42), an NVTX range (nvtx:step), or a
    /// function of a library by its linker name [default: what the backward() calls show]
    #[arg(long, value_name = "PLACE", value_parser = parse_step_on)]
    pub step_on: Option<StepOn>,
    /// When machine code is unwound: the frames between the Python lines and the allocation, and
    /// around them
    #[arg(long, value_enum, default_value_t = Native::New, value_name = "WHEN")]
    pub native: Native,
    /// Watch this process alone, not those that it starts (with probes of the kernel: a library in
    /// the process is never loaded into others by attaching)
    #[arg(long)]
    pub no_tree: bool,
    /// Leave CUPTI alone (with a library in the process): the driver's side is then not seen
    #[arg(long)]
    pub no_cupti: bool,
    /// Memory of the device, such as 80G, where NVML does not tell it
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub capacity: Option<u64>,
    /// Growth of the floor over its settled level that alarms, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 25.0, value_parser = parse_percent)]
    pub alarm_growth: f64,
    /// Use of the device's memory that alarms, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 85.0, value_parser = parse_percent)]
    pub alarm_capacity: f64,
    /// Size of the buffer between the process and vramscope, such as 256M: more of it survives
    /// longer bursts
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_ring)]
    pub buffer: u64,
}

impl TargetArgs {
    /// The process.
    ///
    /// # Errors
    /// It is a recording.
    pub fn pid(&self) -> anyhow::Result<u32> {
        match &self.subject {
            Subject::Process(pid) => Ok(*pid),
            Subject::Recording(place) => Err(Usage(format!(
                "{} is no process number\n  to look at a recording: vramscope live {0}",
                place.path.display()
            ))
            .into()),
        }
    }
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

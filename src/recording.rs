//! Recordings on the command line: making one, and opening one.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use vramscope_collector::{
    Collector, Config, UserCode,
    recorder::{Options, Recorder, Summary},
    replay::{Replay, ReplayError},
    report::units,
};
use vramscope_events::Time;
use vramscope_recording::Recording;

use crate::{
    cli::{RecordArgs, TargetArgs},
    exit::DAMAGED_INPUT,
    output,
    subject::{At, Place},
};

/// Work that takes less is not worth a bar.
pub const QUICK: Duration = Duration::from_millis(300);

/// What the command line says about recording; `None` for nothing.
fn options(record: &RecordArgs) -> anyhow::Result<Option<Options>> {
    let (path, flight) = match (&record.output, &record.flight_recorder) {
        (Some(path), _) => (path, false),
        (None, Some(path)) => (path, true),
        (None, None) => {
            if record.keep_last.is_some() || record.max_size.is_some() {
                anyhow::bail!(
                    "--keep-last and --max-size are about a recording, and there is none\n  \
                     name its file with -o FILE or --flight-recorder FILE"
                );
            }
            return Ok(None);
        }
    };
    if path.as_os_str() == "-" {
        anyhow::bail!("a recording cannot go to standard output: name a file with -o FILE");
    }
    Ok(Some(Options {
        path: path.clone(),
        force: record.force,
        flight,
        keep_last: record.keep_last,
        max_bytes: record.max_size,
    }))
}

/// Refuses what cannot be recorded to, before anything is attached.
///
/// # Errors
/// The file is there, or the options make no sense.
pub fn check(record: &RecordArgs) -> anyhow::Result<()> {
    match options(record)? {
        Some(options) => output::check_free(&options.path, options.force),
        None => Ok(()),
    }
}

/// Begins the recording that the command line asks for.
///
/// # Errors
/// The file cannot be made.
pub fn start(record: &RecordArgs, collector: &Collector) -> anyhow::Result<Option<Recorder>> {
    let Some(options) = options(record)? else {
        return Ok(None);
    };
    let program = concat!("vramscope ", env!("CARGO_PKG_VERSION"));
    Ok(Some(Recorder::start(
        &options,
        &collector.session_info(program),
    )?))
}

/// Says what became of a recording.
pub fn tell(summary: &Summary) {
    let path = summary.path.display();
    if let Some(trouble) = &summary.trouble {
        eprintln!("warning: {trouble}");
    }
    if summary.left_out > 0 {
        eprintln!(
            "warning: the disk could not keep up: {} events are not in {path}",
            units::count(summary.left_out)
        );
    }
    if summary.bytes > 0 {
        eprintln!(
            "recorded: {path} ({}, {} events); look at it with: vramscope live {path}",
            units::bytes(summary.bytes),
            units::count(summary.events),
        );
    } else if summary.trouble.is_none() {
        eprintln!("nothing was written to {path}: memory did not run out");
    }
}

/// Opens a recording at its beginning, with what the command line says of its own.
///
/// # Errors
/// It cannot be read, or is damaged at its head.
pub fn open(place: &Place, target: Option<&TargetArgs>) -> anyhow::Result<Replay> {
    let recording = Recording::open(&place.path).map_err(ReplayError::from)?;
    let mut config = Config::of_recording(recording.info()).map_err(ReplayError::from)?;
    if let Some(target) = target {
        if !target.watch.user_code.is_empty() {
            config.user_code = UserCode::new(&target.watch.user_code)?;
        }
        config.capacity = target.watch.capacity.or(config.capacity);
    }
    Ok(Replay::with(recording, config))
}

/// Opens a recording at a moment, and says what is wrong with it.
///
/// # Errors
/// As [`open`]; there is no such moment.
pub fn at(place: &Place, target: Option<&TargetArgs>) -> anyhow::Result<Replay> {
    let mut replay = open(place, target)?;
    go(&mut replay, place)?;
    for note in replay.notes() {
        eprintln!("note: {}: {note}", place.path.display());
    }
    Ok(replay)
}

/// Goes to the moment, with a bar on a terminal where it takes long.
fn go(replay: &mut Replay, place: &Place) -> anyhow::Result<()> {
    let bar = bar(replay.recording().length());
    let started = Instant::now();
    let mut progress = |at: u64, length: u64| {
        if started.elapsed() >= QUICK {
            bar.set_length(length);
            bar.set_position(at);
        }
    };
    let (first, last) = replay.span();
    let begun = replay.recording().info().started;
    match place.at {
        At::End => replay.seek_end(&mut progress)?,
        At::Time(after) => {
            let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
            let moment = Time(begun.0.saturating_add(after));
            if moment > last || moment < first {
                bar.finish_and_clear();
                let from = |time: Time| units::age(time.seconds_since(begun));
                anyhow::bail!(
                    "{} has nothing at {}: it tells of {} to {} after the start\n  name a moment \
                     in between, such as {0}@{}s",
                    place.path.display(),
                    from(moment),
                    from(first),
                    from(last),
                    (last.seconds_since(begun)) as u64,
                );
            }
            replay.seek(moment, &mut progress)?;
        }
        At::Step(step) => {
            if !replay.seek_step(step, &mut progress)? {
                bar.finish_and_clear();
                let steps = replay.collector().steps();
                anyhow::bail!(
                    "{} has no step {step}: it ends in step {steps}\n  name an earlier one, such \
                     as {0}@step:{}",
                    place.path.display(),
                    steps / 2
                );
            }
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// A progress bar over so many bytes.
pub fn bar(length: u64) -> ProgressBar {
    // Draws nothing where standard error is no terminal.
    let target = ProgressDrawTarget::stderr_with_hz(5);
    let bar = ProgressBar::with_draw_target(Some(length), target);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent} %")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_message("reading")
}

/// The exit code where nothing else went wrong.
pub fn exit_code(replay: &Replay) -> ExitCode {
    if replay.is_corrupt() {
        ExitCode::from(DAMAGED_INPUT)
    } else {
        ExitCode::SUCCESS
    }
}

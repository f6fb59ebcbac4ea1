//! `attach`, `report`: watch a process, then tell.

use std::{
    io::IsTerminal as _,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use vramscope_collector::{
    Collector, flamegraph as flames,
    report::{Options, json, layout::Color, markdown, text},
    view::{Grouping, View},
};

use crate::{
    asking::{self, Choice, Limits},
    cli::{AttachArgs, Format, RecordArgs, ReportArgs, ReportStyle, TargetArgs},
    engine::{End, Engine, Finished},
    exit::Usage,
    interview::{self, Heard, Interview},
    output, recording, signals,
    subject::{Place, Subject},
    target, watching,
};

/// How often a headless session looks at the clock.
const TICK: Duration = Duration::from_millis(20);
/// How often the live view is given something new.
const VIEW_EVERY: Duration = Duration::from_millis(100);
/// Columns of a text report that goes to a file.
const FILE_COLUMNS: usize = 100;

/// What to say where there is nothing to draw.
pub const NOTHING_SEEN: &str =
    "nothing was allocated or freed while it was watched\n  watch longer: --duration 5m";

/// `vramscope attach PID`.
pub fn attach(options: &AttachArgs) -> anyhow::Result<ExitCode> {
    let live = !options.headless
        && options.report.format() == Format::Text
        && std::io::stdout().is_terminal()
        && std::io::stdin().is_terminal();
    let show = if live { Show::Live } else { Show::Nothing };
    recording::check(&options.record)?;
    let record = Some(&options.record);
    let finished = watch(
        &options.target,
        options.duration,
        show,
        record,
        options.holders,
    )?;
    if let Some(path) = &options.flamegraph {
        let svg = flame(&finished.view)?;
        output::file(path, &svg, options.record.force)?;
        eprintln!("flamegraph: {}", path.display());
    }
    print_report(&finished.view, &finished.collector, &options.report)?;
    leave(finished);
    Ok(ExitCode::SUCCESS)
}

/// `vramscope report PID` and `vramscope report FILE`.
pub fn report(options: &ReportArgs) -> anyhow::Result<ExitCode> {
    if let Subject::Recording(place) = &options.target.subject {
        if options.holders {
            return Err(Usage(cannot_be_asked(place)).into());
        }
        let mut replay = recording::at(place, Some(&options.target))?;
        let view = replay.view();
        print_report(&view, replay.collector(), &options.report)?;
        return Ok(recording::exit_code(&replay));
    }
    let duration = Some(options.duration);
    let finished = watch(
        &options.target,
        duration,
        Show::Nothing,
        None,
        options.holders,
    )?;
    print_report(&finished.view, &finished.collector, &options.report)?;
    leave(finished);
    Ok(ExitCode::SUCCESS)
}

/// Watches a process for a while, with nothing on the screen.
pub fn watch_quietly(target: &TargetArgs, duration: Duration) -> anyhow::Result<Finished> {
    watch(target, Some(duration), Show::Nothing, None, false)
}

/// What is on the screen meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// The live view.
    Live,
    /// Nothing.
    Nothing,
}

/// Watches until the time is over, the process ends or the user has enough.
fn watch(
    target: &TargetArgs,
    duration: Option<Duration>,
    show: Show,
    record: Option<&RecordArgs>,
    ask: bool,
) -> anyhow::Result<Finished> {
    let (session, ()) = session(target, duration, show, record, ask, |engine, heard| {
        if let Some(heard) = heard {
            ask_at_the_end(engine, &heard);
        }
    })?;
    Ok(session)
}

/// What holds the survivors of the first line. That it cannot be told is worth a word, and no
/// reason to withhold the report.
fn ask_at_the_end(engine: &Engine, heard: &Heard) {
    let handle = engine.handle();
    // Whoever has ended is not waited for.
    let asked = match engine.ended() {
        true => asking::find(handle, &Choice::Named),
        false => asking::find_soon(handle, &Choice::Named),
    };
    let asked = asked.and_then(|subject| {
        eprintln!("{}", asking::announcement(&subject));
        asking::ask(handle, &subject, Limits::default())
    });
    if let Err(error) = asked {
        interview::tell(heard, Some(&error));
    }
}

fn cannot_be_asked(recording: &Place) -> String {
    format!(
        "{} is a recording: only a running process can be asked what holds its memory\n  leave \
         --holders out: what was asked while it was recorded is in the report",
        recording.path.display()
    )
}

/// Watches likewise, does something before the session ends, and takes the probes off.
///
/// # Errors
/// The process cannot be traced.
pub fn watch_then<T>(
    target: &TargetArgs,
    duration: Option<Duration>,
    show: Show,
    then: impl FnOnce(&Engine) -> T,
) -> anyhow::Result<T> {
    let (finished, done) = session(target, duration, show, None, false, |engine, _| {
        then(engine)
    })?;
    leave(finished);
    Ok(done)
}

fn session<T>(
    target: &TargetArgs,
    duration: Option<Duration>,
    show: Show,
    record: Option<&RecordArgs>,
    ask: bool,
    then: impl FnOnce(&Engine, Option<Heard>) -> T,
) -> anyhow::Result<(Finished, T)> {
    let pid = target.pid()?;
    let stop = signals::stop_flag().context("signals could not be taken over")?;
    let started = Instant::now();
    let (session, collector) = target::attach(target, &stop)?;
    eprintln!(
        "attached to {} ({}) in {:.1} s; {}",
        pid,
        vramscope_collector::escape::line(&session.info.command, 60),
        started.elapsed().as_secs_f64(),
        match duration {
            Some(duration) => format!("watching for {} s", duration.as_secs_f64()),
            None => "watching until Ctrl-C".to_owned(),
        }
    );
    for note in &session.notes {
        eprintln!("note: {note}");
    }
    let told = session.notes.len();
    let publish = (show == Show::Live).then_some(VIEW_EVERY);
    let recorder = match record {
        Some(record) => recording::start(record, &collector)?,
        None => None,
    };
    let engine = Engine::start(session, collector, publish, recorder)?;
    let until = duration.map(|duration| Instant::now() + duration);
    let interview = match ask {
        true => Some(Interview::start(engine.handle().clone(), move |words| {
            // The terminal is the live view's.
            if show == Show::Nothing {
                eprintln!("{words}");
            }
        })?),
        false => None,
    };
    match show {
        Show::Live => watching::live(&engine, &stop, until, pid)?,
        Show::Nothing => wait(&engine, &stop, until),
    }
    let done = then(&engine, interview.map(Interview::end));
    let finished = engine.finish()?;
    for note in finished.session.notes.iter().skip(told) {
        eprintln!("note: {note}");
    }
    if finished.end == End::Exited {
        eprintln!("process {pid} ended; this is its last state");
    }
    if let Some(summary) = &finished.recording {
        recording::tell(summary);
    }
    Ok((finished, done))
}

fn wait(engine: &Engine, stop: &AtomicBool, until: Option<Instant>) {
    while !engine.ended()
        && !stop.load(Ordering::Relaxed)
        && until.is_none_or(|until| Instant::now() < until)
    {
        thread::sleep(TICK);
    }
}

/// Takes the rest of the probes off.
fn leave(finished: Finished) {
    if finished.end == End::Stopped {
        eprintln!("detaching");
    }
    drop(finished.session);
}

fn print_report(view: &View, collector: &Collector, style: &ReportStyle) -> anyhow::Result<()> {
    Ok(output::stdout(render(view, collector, style).as_bytes())?)
}

/// The report of a view.
pub fn render(view: &View, collector: &Collector, style: &ReportStyle) -> String {
    let options = Options {
        grouping: Grouping::from(style.group),
        top: match style.format() {
            Format::Json => style.top,
            Format::Text | Format::Markdown => style.top.or(Options::default().top),
        },
    };
    match style.format() {
        Format::Text => text::report(view, options, text_layout()),
        Format::Markdown => markdown::report(view, options),
        Format::Json if style.survivors => {
            json::report_with_survivors(view, options, &|process, device| {
                let survivors = collector.survivors(process, device);
                survivors
                    .map(|block| json::Survivor {
                        address: block.address,
                        size: block.size,
                        born_step: block.born_step,
                        site: block.site,
                    })
                    .collect()
            })
        }
        Format::Json => json::report(view, options),
    }
}

pub fn text_layout() -> text::Layout {
    let color = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    text::Layout {
        width: columns.unwrap_or(FILE_COLUMNS),
        color: if color { Color::Ansi } else { Color::Never },
    }
}

/// The survivors of the device with most of them.
pub fn flame(view: &View) -> anyhow::Result<Vec<u8>> {
    let process = view.processes.first().context("no process was seen")?;
    let devices = process.devices.iter();
    let device = devices.max_by_key(|device| device.live_bytes);
    let device = device.context(NOTHING_SEEN)?;
    let svg = flames::svg(view, process, device, flames::Weight::Bytes)?;
    Ok(svg.into_bytes())
}

//! `attach`, `report`, `flamegraph`: watch a process, then tell.

use std::{
    io::IsTerminal as _,
    path::Path,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use vramscope_collector::{
    flamegraph as flames,
    report::{Options, json, layout::Color, markdown, text},
    view::{DeviceView, Grouping, ProcessView, View},
};
use vramscope_events::Pid;
use vramscope_tui::{Feed, Options as LiveOptions, Source};

use crate::{
    cli::{AttachArgs, FlamegraphArgs, Format, ReportArgs, ReportStyle, TargetArgs, Weight},
    engine::{End, Engine, Finished},
    output, signals, target,
};

/// How often a headless session looks at the clock.
const TICK: Duration = Duration::from_millis(20);
/// How often the live view is given something new.
const VIEW_EVERY: Duration = Duration::from_millis(100);
/// Columns of a text report that goes to a file.
const FILE_COLUMNS: usize = 100;

/// `vramscope attach PID`.
pub fn attach(options: &AttachArgs) -> anyhow::Result<ExitCode> {
    let live = !options.headless
        && options.report.format() == Format::Text
        && std::io::stdout().is_terminal()
        && std::io::stdin().is_terminal();
    let show = if live { Show::Live } else { Show::Nothing };
    let finished = watch(&options.target, options.duration, show)?;
    if let Some(path) = &options.flamegraph {
        let svg = flame(&finished, None, Weight::Bytes, false)?;
        output::file(path, &svg, false)?;
        eprintln!("flamegraph: {}", path.display());
    }
    print_report(&finished, &options.report)?;
    leave(finished);
    Ok(ExitCode::SUCCESS)
}

/// `vramscope report PID`.
pub fn report(options: &ReportArgs) -> anyhow::Result<ExitCode> {
    let finished = watch(&options.target, Some(options.duration), Show::Nothing)?;
    print_report(&finished, &options.report)?;
    leave(finished);
    Ok(ExitCode::SUCCESS)
}

/// `vramscope flamegraph PID`.
pub fn flamegraph(options: &FlamegraphArgs) -> anyhow::Result<ExitCode> {
    let to_stdout = options.output == Path::new("-");
    if !to_stdout && !options.force && options.output.exists() {
        // Said before the watching, not after it.
        anyhow::bail!(
            "{} is there already\n  write over it with --force, or name another file with -o",
            options.output.display()
        );
    }
    let finished = watch(&options.target, Some(options.duration), Show::Nothing)?;
    let picture = flame(&finished, options.device, options.weight, options.folded)?;
    output::file(&options.output, &picture, options.force)?;
    if !to_stdout {
        eprintln!(
            "written: {} (open it in a browser)",
            options.output.display()
        );
    }
    Ok(ExitCode::SUCCESS)
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
fn watch(target: &TargetArgs, duration: Option<Duration>, show: Show) -> anyhow::Result<Finished> {
    let (session, ()) = session(target, duration, show, |_| ())?;
    Ok(session)
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
    let (finished, done) = session(target, duration, show, then)?;
    leave(finished);
    Ok(done)
}

fn session<T>(
    target: &TargetArgs,
    duration: Option<Duration>,
    show: Show,
    then: impl FnOnce(&Engine) -> T,
) -> anyhow::Result<(Finished, T)> {
    let stop = signals::stop_flag().context("signals could not be taken over")?;
    let started = Instant::now();
    let (session, collector) = target::attach(target, &stop)?;
    eprintln!(
        "attached to {} ({}) in {:.1} s; {}",
        target.pid,
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
    let publish = (show == Show::Live).then_some(VIEW_EVERY);
    let engine = Engine::start(session, collector, publish)?;
    let until = duration.map(|duration| Instant::now() + duration);
    match show {
        Show::Live => live(&engine, &stop, until, target.pid)?,
        Show::Nothing => wait(&engine, &stop, until),
    }
    let done = then(&engine);
    let finished = engine.finish()?;
    if finished.end == End::Exited {
        eprintln!("process {} ended; this is its last state", target.pid);
    }
    Ok((finished, done))
}

/// What the live view is fed with: the engine's newest view.
struct LiveFeed<'a> {
    engine: &'a Engine,
    stop: &'a AtomicBool,
    until: Option<Instant>,
    pid: u32,
}

impl Feed for LiveFeed<'_> {
    fn view(&mut self) -> Arc<View> {
        self.engine.view()
    }

    fn ended(&self) -> Option<String> {
        let over = self.until.is_some_and(|until| Instant::now() >= until);
        if self.engine.ended() {
            Some(format!("process {} ended", self.pid))
        } else if over || self.stop.load(Ordering::Relaxed) {
            Some("the time is over".into())
        } else {
            None
        }
    }
}

fn live(
    engine: &Engine,
    stop: &AtomicBool,
    until: Option<Instant>,
    pid: u32,
) -> anyhow::Result<()> {
    let mut options = LiveOptions::from_environment(Source::Process(Pid(pid)));
    // Our own handlers go on to work while the probes are taken off.
    options.default_signals_after = false;
    let mut feed = LiveFeed {
        engine,
        stop,
        until,
        pid,
    };
    vramscope_tui::run(&mut feed, options)?;
    Ok(())
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

fn print_report(finished: &Finished, style: &ReportStyle) -> anyhow::Result<()> {
    let options = Options {
        grouping: Grouping::from(style.group),
        top: match style.format() {
            Format::Json => style.top,
            Format::Text | Format::Markdown => style.top.or(Options::default().top),
        },
    };
    let report = match style.format() {
        Format::Text => text::report(&finished.view, options, text_layout()),
        Format::Markdown => markdown::report(&finished.view, options),
        Format::Json if style.survivors => {
            json::report_with_survivors(&finished.view, options, &|process, device| {
                let survivors = finished.collector.survivors(process, device);
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
        Format::Json => json::report(&finished.view, options),
    };
    Ok(output::stdout(report.as_bytes())?)
}

fn text_layout() -> text::Layout {
    let color = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    text::Layout {
        width: columns.unwrap_or(FILE_COLUMNS),
        color: if color { Color::Ansi } else { Color::Never },
    }
}

fn flame(
    finished: &Finished,
    device: Option<u16>,
    weight: Weight,
    folded: bool,
) -> anyhow::Result<Vec<u8>> {
    let view = &finished.view;
    let (process, device) = choose_device(view.processes.first(), device)?;
    let weight = match weight {
        Weight::Bytes => flames::Weight::Bytes,
        Weight::Blocks => flames::Weight::Blocks,
        Weight::Growth => flames::Weight::Growth,
    };
    if folded {
        return Ok(flames::folded(&device.sites, process, weight).into_bytes());
    }
    Ok(flames::svg(view, process, device, weight)?.into_bytes())
}

fn choose_device(
    process: Option<&ProcessView>,
    wanted: Option<u16>,
) -> anyhow::Result<(&ProcessView, &DeviceView)> {
    let process = process.context("no process was seen")?;
    let device = match wanted {
        Some(number) => process
            .devices
            .iter()
            .find(|device| device.device.0 == number),
        None => process
            .devices
            .iter()
            .max_by_key(|device| device.live_bytes),
    };
    let device = device.with_context(|| {
        let seen: Vec<_> = process
            .devices
            .iter()
            .map(|device| device.device.to_string())
            .collect();
        match (wanted, seen.is_empty()) {
            (Some(number), false) => format!(
                "device {number} had no allocation; seen: {}",
                seen.join(", ")
            ),
            _ => "nothing was allocated or freed while it was watched\n  watch longer: \
                  --duration 5m"
                .to_owned(),
        }
    })?;
    Ok((process, device))
}

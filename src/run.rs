//! `run`: start a program, watch it to its end, pass its exit code on.

use std::{
    ffi::OsString,
    io::Write as _,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, Command, ExitCode, ExitStatus},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use vramscope_collector::Collector;
use vramscope_events::Backend;
use vramscope_tracer::{AttachError, Session, inject::library};

use crate::{
    attach::{flame, render},
    cli::{RunArgs, RunBackend},
    engine::{Engine, Finished},
    interview::{self, Interview},
    output, recording, signals, target,
};

/// How often the program is looked at.
const TICK: Duration = Duration::from_millis(20);
/// What shells and `env` give for a command that is not there, or cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;
/// The variable by which the CUDA driver is told what to load.
const INJECTION: &str = "CUDA_INJECTION64_PATH";

/// `vramscope run -- CMD`.
pub fn run(options: &RunArgs) -> anyhow::Result<ExitCode> {
    for path in [&options.report_to, &options.flamegraph]
        .into_iter()
        .flatten()
    {
        output::check_free(path, options.record.force)?;
    }
    recording::check(&options.record)?;
    let stop = signals::passed_on().context("signals could not be taken over")?;
    let inject = match options.backend {
        RunBackend::Ebpf => false,
        RunBackend::Inject => true,
        RunBackend::Auto => library::find(None).is_ok() || !nix::unistd::geteuid().is_root(),
    };
    let watched = if inject {
        injected(options, &stop)?
    } else {
        probed(options, &stop)?
    };
    let (status, finished) = match watched {
        Watched::NotStarted(code) => return Ok(code),
        Watched::Ended(status, finished) => (status, finished),
    };
    match finished {
        Some(finished) => tell(options, &finished)?,
        None => eprintln!("vramscope: the program ended before there was anything to watch"),
    }
    Ok(exit_code(status))
}

enum Watched {
    NotStarted(ExitCode),
    /// The program ended; what was seen of it.
    Ended(ExitStatus, Option<Box<Finished>>),
}

/// The library comes with the CUDA driver, from the first allocation on.
fn injected(options: &RunArgs, stop: &AtomicBool) -> anyhow::Result<Watched> {
    if let Some(other) = std::env::var_os(INJECTION) {
        bail!(
            "{INJECTION} is set already, to {}: another tool is to be loaded\n  unset it, or use \
             probes of the kernel: vramscope run --backend ebpf -- CMD",
            Path::new(&other).display()
        );
    }
    let config = target::config(&options.watch, Backend::Injection)?;
    let session = Session::listen(&target::options(&options.watch)?)?;
    let environment = session.environment();
    let mut child = match start(&options.command, &environment) {
        Ok(child) => child,
        Err(code) => return Ok(Watched::NotStarted(code)),
    };
    let collector = target::collector(config, &session);
    watch(options, session, collector, &mut child, stop)
}

/// Probes of the kernel; the session places them as soon as there is something to probe.
fn probed(options: &RunArgs, stop: &AtomicBool) -> anyhow::Result<Watched> {
    let config = target::config(&options.watch, Backend::Ebpf)?;
    let mut child = match start(&options.command, &[]) {
        Ok(child) => child,
        Err(code) => return Ok(Watched::NotStarted(code)),
    };
    let mut wishes = target::options(&options.watch)?;
    wishes.patient = true;
    let session = Session::attach(child.id(), &wishes);
    if let Err(AttachError::Process(_)) = &session
        && let Some(status) = child.try_wait()?
    {
        return Ok(Watched::Ended(status, None));
    }
    // Without us the program goes on all the same.
    let session = match session {
        Ok(session) => session,
        Err(error) => {
            eprintln!("vramscope: {error:#}\n  the program goes on unwatched");
            return Ok(Watched::Ended(wait(&mut child, stop)?, None));
        }
    };
    let collector = target::collector(config, &session);
    watch(options, session, collector, &mut child, stop)
}

/// Watches the program to its end.
fn watch(
    options: &RunArgs,
    session: Session,
    collector: Collector,
    child: &mut Child,
    stop: &AtomicBool,
) -> anyhow::Result<Watched> {
    let recorder = recording::start(&options.record, &collector)?;
    let engine = Engine::start(session, collector, None, recorder)?;
    let interview = match options.holders {
        true => Some(Interview::start(engine.handle().clone(), |words| {
            eprintln!("vramscope: {words}");
        })?),
        false => None,
    };
    let status = wait(child, stop)?;
    if let Some(interview) = interview {
        interview::tell(&interview.end(), None);
    }
    let finished = Box::new(engine.finish()?);
    Ok(Watched::Ended(status, Some(finished)))
}

fn start(
    command: &[OsString],
    environment: &[(&'static str, std::path::PathBuf)],
) -> Result<Child, ExitCode> {
    let (program, arguments) = command.split_first().ok_or(ExitCode::from(2))?;
    let started = Command::new(program)
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .spawn();
    started.map_err(|error| {
        eprintln!(
            "vramscope: cannot start {}: {error}",
            Path::new(program).display()
        );
        ExitCode::from(match error.kind() {
            std::io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_RUNNABLE,
        })
    })
}

/// Waits for the program's end; a wish to end that was sent to us alone is passed on to it. While we
/// ask it what holds its memory, we trace it as well.
fn wait(child: &mut Child, stop: &AtomicBool) -> anyhow::Result<ExitStatus> {
    let mut passed_on = false;
    loop {
        if vramscope_ptrace::has_ended(child.id())? {
            return Ok(child.wait()?);
        }
        if stop.load(Ordering::Relaxed) && !passed_on {
            passed_on = true;
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
        }
        thread::sleep(TICK);
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(code as u8)
}

fn tell(options: &RunArgs, finished: &Finished) -> anyhow::Result<()> {
    if let Some(summary) = &finished.recording {
        recording::tell(summary);
    }
    for note in &finished.session.notes {
        eprintln!("note: {note}");
    }
    if finished.view.processes.is_empty() {
        eprintln!(
            "vramscope: the program never initialised CUDA, nor did a child of it: nothing to tell"
        );
        return Ok(());
    }
    if let Some(path) = &options.flamegraph {
        let svg = flame(&finished.view)?;
        output::file(path, &svg, options.record.force)?;
        eprintln!("flamegraph: {}", path.display());
    }
    let report = render(&finished.view, &finished.collector, &options.report);
    match &options.report_to {
        Some(path) => output::file(path, report.as_bytes(), options.record.force)?,
        None => std::io::stderr().write_all(report.as_bytes())?,
    }
    Ok(())
}

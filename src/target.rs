//! From the command line to a session and the collector for it.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use vramscope_collector::{Collector, Config, UserCode};
use vramscope_events::Backend;
use vramscope_tracer::{AttachError, Options, Session, inspect, now};

use crate::cli::{Native, StepOn, TargetArgs, WatchArgs};

/// How often a process that is still starting is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Attaches as the command line says, and makes the collector that the events go to.
///
/// # Errors
/// Usage errors (a glob), and why the process cannot be traced.
pub fn attach(target: &TargetArgs, stop: &AtomicBool) -> anyhow::Result<(Session, Collector)> {
    let backend = if target.inject {
        Backend::Injection
    } else {
        Backend::Ebpf
    };
    let pid = target.pid()?;
    let config = config(&target.watch, backend)?;
    let mut options = options(&target.watch)?;
    if target.wait && target.inject {
        wait_for_torch(pid, stop)?;
    }
    if target.wait && !target.inject {
        options.patient = true;
        if inspect(pid)?.check().is_err() {
            eprintln!("waiting for process {pid} to load PyTorch; Ctrl-C gives up");
        }
    }
    let session = if target.inject {
        Session::inject(pid, &options)?
    } else {
        Session::attach(pid, &options)?
    };
    let collector = collector(config, &session);
    Ok((session, collector))
}

/// What the collector is told by the command line.
///
/// # Errors
/// A glob that is none.
pub fn config(watch: &WatchArgs, backend: Backend) -> anyhow::Result<Config> {
    let mut config = Config::new(backend, now(), unix_seconds());
    // The intake brings them.
    config.read_sources = false;
    config.alarms.growth_over_baseline = watch.alarm_growth / 100.0;
    config.alarms.capacity_use = watch.alarm_capacity / 100.0;
    config.capacity = watch.capacity;
    if !watch.user_code.is_empty() {
        config.user_code = UserCode::new(&watch.user_code)?;
    }
    if let Some(StepOn::Line(line)) = &watch.step_on {
        config.step_on = Some(line.clone());
    }
    Ok(config)
}

/// What the tracer is told by the command line.
///
/// # Errors
/// A buffer that is too large for this machine.
pub fn options(watch: &WatchArgs) -> anyhow::Result<Options> {
    Ok(Options {
        ring_bytes: u32::try_from(watch.buffer)?,
        watch_devices: watch.capacity.is_none(),
        library: None,
        cupti: !watch.no_cupti,
        native: match watch.native {
            Native::Never => vramscope_tracer::Native::Never,
            Native::New => vramscope_tracer::Native::New,
            Native::Always => vramscope_tracer::Native::Always,
        },
        step_on: match &watch.step_on {
            Some(StepOn::Native(place)) => Some(place.clone()),
            _ => None,
        },
        tree: !watch.no_tree,
        patient: false,
        shared_links: true,
    })
}

/// The collector for a session that begins now.
pub fn collector(mut config: Config, session: &Session) -> Collector {
    config.started = now();
    let mut collector = Collector::new(config);
    if session.info.pid.0 != 0 {
        collector.add_process(session.info.clone());
    }
    collector.set_probes(session.probes.clone());
    collector
}

/// Waits until the process has loaded what there is to probe, or ends, or the user has enough.
pub fn wait_for_torch(pid: u32, stop: &AtomicBool) -> Result<(), AttachError> {
    let mut told = false;
    loop {
        match inspect(pid)?.check() {
            Ok(()) => return Ok(()),
            Err(error) if stop.load(Ordering::Relaxed) => return Err(error),
            Err(_) if !told => {
                eprintln!("waiting for process {pid} to load PyTorch; Ctrl-C gives up");
                told = true;
            }
            Err(_) => {}
        }
        thread::sleep(LOOK);
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

//! From the command line to a session and the collector for it.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use vramscope_collector::{Collector, Config, UserCode, view::Backend};
use vramscope_tracer::{AttachError, Options, Session, inspect, now};

use crate::cli::{StepOn, TargetArgs};

/// How often a process that is still starting is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Attaches as the command line says, and makes the collector that the events go to.
///
/// # Errors
/// Usage errors (a glob), and why the process cannot be traced.
pub fn attach(target: &TargetArgs, stop: &AtomicBool) -> anyhow::Result<(Session, Collector)> {
    let pid = target.pid()?;
    let mut config = Config::new(Backend::Ebpf, now(), unix_seconds());
    // The intake brings them.
    config.read_sources = false;
    config.alarms.growth_over_baseline = target.alarm_growth / 100.0;
    config.alarms.capacity_use = target.alarm_capacity / 100.0;
    config.capacity = target.capacity;
    if !target.user_code.is_empty() {
        config.user_code = UserCode::new(&target.user_code)?;
    }
    if target.wait {
        wait_for_torch(pid, stop)?;
    }
    let options = Options {
        ring_bytes: u32::try_from(target.buffer)?,
        watch_devices: target.capacity.is_none(),
        step_on: match &target.step_on {
            Some(StepOn::Native(place)) => Some(place.clone()),
            _ => None,
        },
    };
    let session = Session::attach(pid, &options)?;
    config.started = now();
    if let Some(StepOn::Line(line)) = &target.step_on {
        config.step_on = Some(line.clone());
    }
    let mut collector = Collector::new(config);
    collector.add_process(session.info.clone());
    collector.set_probes(session.probes.clone());
    Ok((session, collector))
}

/// Waits until the process has loaded what there is to probe, or ends, or the user has enough.
fn wait_for_torch(pid: u32, stop: &AtomicBool) -> Result<(), AttachError> {
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

//! Events in, a view out.

mod show;
mod state;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vramscope_events::{
    Address, Bytes, DeviceId, Event, Holders, LostCause, Pid, Record, StackId, StepMark, Time,
};

use crate::{
    book::{NewSites, SiteIds},
    config::Config,
    device::{Device, DeviceMemory},
    log::Log,
    process::Process,
    snapshot::BookSnapshot,
    source::SourceCache,
    stacks::Stacks,
    step_line::LineMarker,
    verdict::{self, Circumstances},
    view::{Class, LogLevel, ProbeView, ProcessInfo, SiteId, Verdict},
};

pub use state::{RestoreError, STATE_VERSION};

/// Takes events and tells what they mean.
///
/// [`Collector::ingest`] is the hot path and looks nothing up; [`Collector::view`] resolves names,
/// reads source lines and freezes everything.
#[derive(Debug)]
pub struct Collector {
    pub(crate) config: Config,
    pub(crate) processes: Vec<Process>,
    pub(crate) by_pid: FxHashMap<Pid, usize>,
    site_ids: SiteIds,
    pub(crate) stacks: Stacks,
    pub(crate) sources: SourceCache,
    lost: FxHashMap<LostCause, u64>,
    probes: Vec<ProbeView>,
    log: Log,
    snapshots: FxHashMap<(Pid, DeviceId), [BookSnapshot; 2]>,
    step_line: Option<LineMarker>,
}

/// Events between verdicts that are kept, so that the log tells when one changed; a view always
/// has the verdict of its moment. A verdict is about finished steps only: what is freed at a
/// program's end changes nothing.
const EVENTS_A_VERDICT: u64 = 5_000;
/// The same for each site that a verdict must look at.
const EVENTS_A_SITE: u64 = 200;

/// A block that was allocated since the attach and not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Where it lies.
    pub address: Address,
    /// Its size in bytes.
    pub size: Bytes,
    /// Its site.
    pub site: SiteId,
    /// Who asked for it.
    pub stack: StackId,
    /// The step in which it was allocated, from the attach.
    pub born_step: u64,
    /// When it was allocated.
    pub born: Time,
}

impl Collector {
    /// A collector that has seen nothing.
    pub fn new(config: Config) -> Collector {
        Collector {
            sources: match config.read_sources {
                true => SourceCache::new(config.started_unix),
                false => SourceCache::closed(),
            },
            step_line: config.step_on.clone().map(LineMarker::new),
            config,
            processes: Vec::new(),
            by_pid: FxHashMap::default(),
            site_ids: SiteIds::default(),
            stacks: Stacks::default(),
            lost: FxHashMap::default(),
            probes: Vec::new(),
            log: Log::default(),
            snapshots: FxHashMap::default(),
        }
    }

    /// Tells who a process is. Events of a process that was never added are counted under its
    /// number alone; adding it later fills the rest in. One that has ended begins anew: the number
    /// is another process's now, or another program runs in it.
    pub fn add_process(&mut self, info: ProcessInfo) {
        let pid = info.pid;
        let index = self.process_index(pid);
        if self.processes[index].exited.is_some() {
            self.processes[index] = Process::new(info, self.config.steps);
            self.snapshots.retain(|(of, _), _| *of != pid);
        } else {
            self.processes[index].info = Arc::new(info);
        }
    }

    /// Who a process is, if anything is known of it.
    pub fn process(&self, pid: Pid) -> Option<&ProcessInfo> {
        let index = self.by_pid.get(&pid)?;
        Some(&self.processes[*index].info)
    }

    /// Whole steps of the first process so far.
    pub fn steps(&self) -> u64 {
        let first = self.processes.first();
        first.map_or(0, |process| process.steps.view(Time(0)).count)
    }

    /// When the session began: wall clock, seconds since the Unix epoch; 0 where unknown.
    pub fn started_unix(&self) -> u64 {
        self.config.started_unix
    }

    /// Tells what became of the probes.
    pub fn set_probes(&mut self, probes: Vec<ProbeView>) {
        self.probes = probes;
    }

    fn process_index(&mut self, pid: Pid) -> usize {
        if let Some(index) = self.by_pid.get(&pid) {
            return *index;
        }
        let info = ProcessInfo {
            pid,
            ..ProcessInfo::default()
        };
        self.processes.push(Process::new(info, self.config.steps));
        let index = self.processes.len() - 1;
        self.by_pid.insert(pid, index);
        index
    }

    /// Takes events in the order in which they took effect.
    pub fn ingest(&mut self, records: &[Record]) {
        let mut current = None;
        for record in records {
            // What says who or where is no event of a process, and counts as none: whether it does
            // must not depend on how events come in batches.
            match &record.event {
                Event::Frame { .. } | Event::Stack { .. } | Event::Source { .. } => {
                    self.define(record);
                    continue;
                }
                Event::ProcessStarted { info } => {
                    self.add_process(ProcessInfo::clone(info));
                    continue;
                }
                _ => {}
            }
            let index = match current {
                Some((pid, index)) if pid == record.process => index,
                _ => {
                    // A loss may be of no process in particular.
                    if let Event::Lost { count, cause } = &record.event
                        && !self.by_pid.contains_key(&record.process)
                    {
                        self.lost_anywhere(*count, *cause, record);
                        continue;
                    }
                    let index = self.process_index(record.process);
                    current = Some((record.process, index));
                    index
                }
            };
            if let Some(line) = &mut self.step_line
                && let Some(mark) = line.mark(record)
            {
                self.take(index, &mark);
            }
            self.take(index, record);
        }
    }

    fn define(&mut self, record: &Record) {
        if let Some(line) = &mut self.step_line {
            line.define(&record.event);
        }
        // Sites learn of it at once, not when somebody looks: looking changes nothing.
        match &record.event {
            Event::Frame { id, frame } => {
                self.stacks.define_frame(*id, Arc::clone(frame));
                for process in &mut self.processes {
                    process.frame_defined(&self.stacks);
                }
            }
            Event::Stack { id, frames } => {
                self.stacks.define_stack(*id, Arc::clone(frames));
                for process in &mut self.processes {
                    process.stack_defined(*id, &self.stacks);
                }
            }
            Event::Source { frame, text } => {
                self.stacks
                    .define_source(record.process, *frame, Arc::clone(text));
            }
            _ => {}
        }
    }

    /// A loss that cannot be told to be one process's touches all of them.
    fn lost_anywhere(&mut self, count: u64, cause: LostCause, record: &Record) {
        *self.lost.entry(cause).or_default() += count;
        for process in &mut self.processes {
            process.lost(record.time);
        }
        let text = format!("{count} events lost: {}", cause_words(cause));
        self.log
            .add(record.time, record.process, None, LogLevel::Warning, text);
    }

    #[inline]
    fn take(&mut self, index: usize, record: &Record) {
        let process = &mut self.processes[index];
        let time = record.time;
        process.unjudged += 1;
        match &record.event {
            Event::Alloc(alloc) => {
                let mut new = NewSites {
                    ids: &mut self.site_ids,
                    stacks: &self.stacks,
                };
                if process.alloc(alloc, (record.thread, time), &mut new) {
                    self.step_ended(index, time);
                }
            }
            Event::Free(free) => {
                if process.free(free, time) {
                    self.step_ended(index, time);
                }
            }
            Event::StepMark(mark) => self.mark(index, mark, time),
            event => self.take_rare(index, record, event),
        }
    }

    fn mark(&mut self, index: usize, mark: &StepMark, time: Time) {
        let process = &mut self.processes[index];
        let before = process.steps.source();
        let marked = process.mark(mark, time);
        let view = process.steps.view(time);
        if before != view.source {
            let text = format!("steps are counted by {}", source_words(view.source));
            self.note(index, time, LogLevel::Info, text);
        }
        if marked.step_ended || marked.renumbered {
            self.step_ended(index, time);
        }
    }

    #[inline]
    fn step_ended(&mut self, index: usize, time: Time) {
        let process = &self.processes[index];
        let moving: u64 = process.devices.iter().map(Device::moving_sites).sum();
        if process.unjudged >= EVENTS_A_VERDICT + EVENTS_A_SITE * moving {
            self.judge(index, time);
        }
    }

    /// Makes and keeps the verdicts on a process's devices, at the end of a step, and tells where
    /// one changed. When that is depends on the events alone, never on who looks.
    #[cold]
    fn judge(&mut self, index: usize, time: Time) {
        let verdicts = self.verdicts_of(index, time);
        self.processes[index].unjudged = 0;
        for (position, verdict) in verdicts.into_iter().enumerate() {
            let device = &mut self.processes[index].devices[position];
            let entry = news_of(device, verdict.as_ref());
            device.verdict = verdict;
            if let Some((level, text)) = entry {
                self.note(index, time, level, text);
            }
        }
    }

    /// The verdicts on a process's devices as things are now.
    fn verdicts_of(&mut self, index: usize, time: Time) -> Vec<Option<Verdict>> {
        self.apply_capacity(index);
        let process = &self.processes[index];
        let (stacks, sources) = (&mut self.stacks, &mut self.sources);
        let (info, user_code) = (&process.info, &self.config.user_code);
        let circumstances = Circumstances {
            now: process.steps.now(),
            source: process.steps.source(),
            rate: process.steps.view(time).rate,
            alarms: &self.config.alarms,
            // An event without a stack is counted all the same.
            lost: self
                .lost
                .keys()
                .any(|cause| *cause != LostCause::StackUnreadable),
        };
        let mut name_of = |stack| stacks.named(stack, info, user_code, sources).0;
        let devices = process.devices.iter();
        devices
            .map(|device| verdict::judge(device, &circumstances, &mut name_of))
            .collect()
    }

    fn take_rare(&mut self, index: usize, record: &Record, event: &Event) {
        let time = record.time;
        let process = &mut self.processes[index];
        let (level, text) = match event {
            Event::OutOfMemory(failed) => {
                process.out_of_memory(failed, time);
                let text = format!(
                    "out of memory on GPU {}: asked for {} B with {} B allocated and {} B reserved",
                    failed.device,
                    failed.requested,
                    failed.totals.allocated,
                    failed.totals.reserved
                );
                (LogLevel::Error, text)
            }
            Event::CacheEmptied { device } => {
                process.cache_emptied(*device, time);
                (LogLevel::Info, format!("cache of GPU {device} emptied"))
            }
            Event::Holders(holders) => {
                process.holders(holders, time);
                (LogLevel::Info, holders_text(holders))
            }
            Event::Lost { count, cause } => {
                *self.lost.entry(*cause).or_default() += count;
                if is_gap(*cause) {
                    process.lost(time);
                }
                let what = if is_gap(*cause) {
                    "lost"
                } else {
                    "without a stack"
                };
                let text = format!("{count} events {what}: {}", cause_words(*cause));
                (LogLevel::Warning, text)
            }
            Event::DeviceMemory {
                device,
                total,
                free,
                used_by_process,
            } => {
                let memory = DeviceMemory {
                    total: *total,
                    free: *free,
                    used_by_process: *used_by_process,
                };
                process.device_memory(*device, memory);
                return;
            }
            Event::DeviceUsers { device, users } => {
                process.device(*device).shares.users = Arc::clone(users);
                return;
            }
            Event::GraphCapture { began } => {
                process.graph_capture(*began);
                return;
            }
            Event::Mapped {
                allocation,
                address,
                size,
            } => {
                process.mappings.map(*allocation, *address, *size);
                return;
            }
            Event::Unmapped { address, size } => {
                process.mappings.unmap(*address, *size);
                return;
            }
            Event::PoolsKept { device, bytes } => {
                process.device(*device).shares.pools_kept = *bytes;
                return;
            }
            Event::ProcessExited => {
                process.exited = Some(time);
                (LogLevel::Info, "process ended".to_owned())
            }
            _ => return,
        };
        self.note(index, time, level, text);
    }

    fn note(&mut self, index: usize, time: Time, level: LogLevel, text: String) {
        let process = &self.processes[index];
        let step = process.steps.now();
        self.log
            .add(time, process.info.pid, Some(step.into()), level, text);
    }

    /// The capacity that the user told; what the framework does not hold of it counts as free.
    fn apply_capacity(&mut self, index: usize) {
        let Some(total) = self.config.capacity else {
            return;
        };
        for device in &mut self.processes[index].devices {
            device.memory = Some(DeviceMemory {
                total,
                free: total.saturating_sub(device.totals.reserved),
                used_by_process: None,
            });
        }
    }

    /// Adds a line to the log that no event tells of.
    pub fn tell(&mut self, time: Time, level: LogLevel, text: String) {
        let process = self.processes.first();
        let (pid, step) = process.map_or_else(Default::default, |process| {
            (process.info.pid, Some(process.steps.now().into()))
        });
        self.log.add(time, pid, step, level, text);
    }
}

/// The line for the log where `verdict` is of another class than the one that is kept.
fn news_of(device: &Device, verdict: Option<&Verdict>) -> Option<(LogLevel, String)> {
    let verdict = verdict?;
    let before = device.verdict.as_ref().map(|verdict| verdict.class);
    if before == Some(verdict.class) {
        return None;
    }
    let level = match verdict.class {
        Class::Leak | Class::OutsideFramework => LogLevel::Warning,
        _ => LogLevel::Info,
    };
    Some((level, format!("GPU {}: {}", device.id, verdict.summary)))
}

fn holders_text(holders: &Holders) -> String {
    match holders.main() {
        Some(main) => format!(
            "asked what holds {} survivors on GPU {}: {} are held by {}",
            holders.asked, holders.device, main.blocks, main.short
        ),
        None => format!(
            "asked what holds {} survivors on GPU {}: nothing was found",
            holders.asked, holders.device
        ),
    }
}

fn source_words(source: crate::view::StepSource) -> &'static str {
    use crate::view::StepSource;
    match source {
        StepSource::User => "the place given with --step-on",
        StepSource::Backward => "calls of backward()",
        StepSource::Heartbeat => "a rhythm in the allocations",
        StepSource::Time => "seconds",
        StepSource::None => "nothing yet",
    }
}

/// Whether events are missing. One whose stack could not be read is there, and every number with
/// it is right; only its site is unknown.
fn is_gap(cause: LostCause) -> bool {
    cause != LostCause::StackUnreadable
}

fn cause_words(cause: LostCause) -> &'static str {
    match cause {
        LostCause::RingFull => "the ring was full; numbers are bounds from here on",
        LostCause::StackUnreadable => "a stack could not be read; sizes are right",
        LostCause::TableFull => "a table in the kernel was full; some stacks are missing",
        LostCause::Undecodable => "a record could not be decoded",
    }
}

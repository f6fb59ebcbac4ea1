//! A session: one process, its probes, and the stream of its events.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded};
use vramscope_events::{
    Event, LostCause, Pid, ProbeState, ProbeView, ProcessInfo, Record, Tid, Time,
};
use vramscope_python::{FindError, Process, Python};
use vramscope_wire as wire;

use crate::{
    decode::{Decoder, KnownCodes, Traced},
    error::{AttachError, Child},
    kernel::{self, Standing},
    loader::{DEFAULT_RING_BYTES, Loaded, ReaderMaps},
    nvml::Watch,
    plan::{Plan, StepOn, plan, step_probe},
    python::walk_configuration,
    target,
};

/// How a session is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of the ring between kernel and reader; a power of two.
    pub ring_bytes: u32,
    /// Whether to ask NVML for the devices' memory.
    pub watch_devices: bool,
    /// What marks a step, where it is a place in machine code.
    pub step_on: Option<StepOn>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ring_bytes: DEFAULT_RING_BYTES,
            watch_devices: true,
            step_on: None,
        }
    }
}

/// The index of the one process of a session.
const INDEX: u16 = 0;
/// Records in one batch at most: what the reader hands on in one piece.
const BATCH: usize = 8192;
/// Batches that may wait for a slow consumer. Behind them the ring fills, and then losses are
/// counted; the traced process never waits.
const WAITING_BATCHES: usize = 64;
/// The reader's rest when the ring is empty.
const REST: Duration = Duration::from_millis(4);
/// How often counters and the process's life are looked at.
const HOUSEKEEPING: Duration = Duration::from_millis(100);

/// A traced process.
pub struct Session {
    /// Who it is.
    pub info: ProcessInfo,
    /// Every planned probe, placed or not.
    pub probes: Vec<ProbeView>,
    /// Things the user should know, a line each.
    pub notes: Vec<String>,
    /// Whether blocks of the caching allocator are seen.
    pub tensor_layer: bool,
    driver_layer: bool,
    process: Process,
    records: Receiver<Vec<Record>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Dropped to end the watch over the devices' memory.
    watch: Option<Sender<()>>,
    loaded: Option<Loaded>,
}

/// A process looked at, before anything is changed.
pub struct Prospect {
    /// It.
    pub process: Process,
    /// Its interpreter, or why there is none that can be walked.
    pub python: Result<Python, FindError>,
    /// What would be probed.
    pub plan: Plan,
    /// Who it is.
    pub info: ProcessInfo,
}

/// Looks at a process without touching it.
///
/// # Errors
/// [`AttachError::Process`] when it is gone or may not be read.
pub fn inspect(pid: u32) -> Result<Prospect, AttachError> {
    let process = Process::open(pid)?;
    let mappings = process.mappings()?;
    let python = vramscope_python::find(&process);
    let plan = plan(&process, &mappings, python.as_ref().ok());
    let info = target::info(pid, &mappings, python.as_ref().ok());
    Ok(Prospect {
        process,
        python,
        plan,
        info,
    })
}

impl Prospect {
    /// Whether there is something to trace; if not, the most helpful reason.
    ///
    /// # Errors
    /// [`AttachError::Launcher`], [`AttachError::NothingToTrace`], [`AttachError::Python`].
    pub fn check(&self) -> Result<(), AttachError> {
        if self.plan.tensor_layer || self.plan.driver_layer {
            return Ok(());
        }
        let pid = self.process.pid();
        let children = likely_children(pid);
        let launcher = children.first().is_some_and(|child| child.torch) || self.python.is_err();
        if launcher && !children.is_empty() {
            return Err(AttachError::Launcher {
                pid,
                command: self.info.command.clone(),
                children,
            });
        }
        match vramscope_python::find(&self.process) {
            Err(error @ FindError::NotPython { .. }) => Err(error.into()),
            _ => Err(AttachError::NothingToTrace {
                pid,
                command: self.info.command.clone(),
                torch: self.info.torch.is_some(),
            }),
        }
    }
}

/// The descendants that run Python: only those with PyTorch if there are any.
fn likely_children(pid: u32) -> Vec<Child> {
    let mut children: Vec<_> = target::descendants(pid)
        .into_iter()
        .filter_map(|pid| {
            let process = Process::open(pid).ok()?;
            let torch = process
                .mappings()
                .ok()?
                .iter()
                .any(|mapping| mapping.file_name() == Some("libc10.so"));
            (torch || vramscope_python::find(&process).is_ok()).then(|| Child {
                pid,
                command: target::command(pid),
                torch,
            })
        })
        .collect();
    if children.iter().any(|child| child.torch) {
        children.retain(|child| child.torch);
    }
    children
}

impl Session {
    /// Attaches to a running process.
    ///
    /// # Errors
    /// Any [`AttachError`]; the process is then as it was.
    pub fn attach(pid: u32, options: &Options) -> Result<Session, AttachError> {
        let missing: Vec<_> = kernel::checks()
            .into_iter()
            .filter(|check| check.standing == Standing::Missing)
            .collect();
        // A process that is not there is the better news than rights that are missing.
        Process::open(pid)?;
        if !missing.is_empty() {
            return Err(AttachError::Precondition(missing));
        }
        let prospect = inspect(pid)?;
        prospect.check()?;
        let nonzero = NonZeroU32::new(pid).ok_or(vramscope_python::ReadError::Gone { pid })?;
        Self::attach_to(prospect, nonzero, options)
    }

    fn attach_to(
        prospect: Prospect,
        pid: NonZeroU32,
        options: &Options,
    ) -> Result<Session, AttachError> {
        let Prospect {
            process,
            python,
            plan,
            info,
        } = prospect;
        let mut notes = Vec::new();
        let python = match python {
            Ok(python) => Some(python),
            // Without PyTorch's Python the driver layer is still worth seeing.
            Err(error @ FindError::NotPython { .. }) => {
                notes.push(format!("{error}: allocations have no Python lines"));
                None
            }
            Err(error) => return Err(error.into()),
        };
        let mut loaded = Loaded::new(options.ring_bytes)?;
        if !loaded.sleepable {
            notes.push(
                "this kernel's uprobes cannot wait for memory that is swapped out: a few stacks \
                 may stay unread, and are counted"
                    .into(),
            );
        }
        if let Some(python) = &python {
            let (configuration, quick) = walk_configuration(&process, python)?;
            if !quick {
                notes.push(
                    "thread states are looked up in the interpreter's list: a few microseconds \
                     more an allocation with many threads"
                        .into(),
                );
            }
            if !python.tested {
                notes.push(format!(
                    "Python {} is known from its published layout only; its stacks were never \
                     compared with a running one",
                    python.version
                ));
            }
            loaded.set_python(INDEX, configuration)?;
        }
        let mut planned = plan.probes;
        if let Some(on) = &options.step_on {
            let probe = step_probe(&process, &process.mappings()?, on);
            if let ProbeState::Absent { consequence } = &probe.view.state {
                return Err(AttachError::StepOn {
                    reason: consequence.clone(),
                });
            }
            if let StepOn::Nvtx(name) = on {
                loaded.set_range(name)?;
            }
            planned.insert(0, probe);
        }
        let maps = loaded.reader_maps()?;
        let probes = loaded.place(pid, INDEX, &planned);
        if plan.tensor_layer {
            require_tensor_probe(pid.get(), &probes)?;
        }
        let (sender, records) = bounded(WAITING_BATCHES);
        let stop = Arc::new(AtomicBool::new(false));
        let (watch, watch_stop) = bounded(0);
        let mut threads = Vec::new();
        let environment = target::environment(pid.get());
        if uses_async_backend(&environment) {
            notes.push(
                "its allocator is cudaMallocAsync, which does not report tensors: the driver's \
                 allocations are shown instead, and they are right to the byte"
                    .into(),
            );
        }
        match options
            .watch_devices
            .then(|| Watch::open(pid.get(), &environment))
            .transpose()
        {
            Ok(None) => {}
            Ok(Some(devices)) => {
                let sender = sender.clone();
                threads.push(spawn("device-memory", move || {
                    devices.run(&watch_stop, &sender);
                })?);
            }
            Err(error) => notes.push(format!(
                "the capacity of the device is unknown, so the time to OOM is too: NVML: {error}; \
                 say it with --capacity, such as --capacity 80G"
            )),
        }
        let reader = Reader {
            maps,
            decoder: Decoder::new(vec![Traced::new(process.clone(), python)]),
            process: process.clone(),
            sender,
            stop: stop.clone(),
            lost: Lost::default(),
        };
        threads.push(spawn("ring-reader", move || reader.run())?);
        Ok(Session {
            info,
            probes,
            notes,
            tensor_layer: plan.tensor_layer,
            driver_layer: plan.driver_layer,
            process,
            records,
            stop,
            threads,
            watch: Some(watch),
            loaded: Some(loaded),
        })
    }

    /// The events, in batches. Disconnected when the session has ended and all were taken.
    pub fn records(&self) -> &Receiver<Vec<Record>> {
        &self.records
    }

    /// Places the probes on libraries that the process has loaded since it was last looked at.
    /// Whether there were any; [`Session::probes`] then tells of them.
    pub fn probe_new_libraries(&mut self) -> bool {
        let Some(loaded) = &mut self.loaded else {
            return false;
        };
        if self.tensor_layer && self.driver_layer {
            return false;
        }
        let Ok(mappings) = self.process.mappings() else {
            return false;
        };
        let plan = plan(&self.process, &mappings, None);
        let Some(pid) = NonZeroU32::new(self.process.pid()) else {
            return false;
        };
        let news: Vec<_> = plan
            .probes
            .into_iter()
            .filter(|probe| {
                !probe.attachments.is_empty()
                    && self.probes.iter().any(|known| {
                        known.name == probe.view.name
                            && matches!(known.state, ProbeState::Absent { .. })
                    })
            })
            .collect();
        for view in loaded.place(pid, INDEX, &news) {
            if let Some(known) = self.probes.iter_mut().find(|known| known.name == view.name) {
                *known = view;
            }
        }
        self.tensor_layer |= plan.tensor_layer;
        self.driver_layer |= plan.driver_layer;
        !news.is_empty()
    }

    /// Ends the stream: takes the probe off that every block passes, and lets the reader hand over
    /// what is still in the ring. The rest can be taken from [`Session::records`] until it is
    /// disconnected. The other probes go when the session is dropped, which takes a second or two.
    pub fn detach(&mut self) {
        if let Some(loaded) = &mut self.loaded {
            loaded.silence();
        }
        self.stop.store(true, Ordering::Release);
        self.watch = None;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.watch = None;
        if let Some(mut loaded) = self.loaded.take() {
            loaded.detach();
        }
        // A thread may wait for room in the channel: make it see that nobody listens.
        let (_, nobody) = bounded(0);
        self.records = nobody;
        for thread in self.threads.drain(..) {
            // One that panicked has nothing left to hand over.
            let _ = thread.join();
        }
    }
}

/// Whether the process asked for PyTorch's cudaMallocAsync backend (either name of the variable).
fn uses_async_backend(environment: &HashMap<String, String>) -> bool {
    ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"]
        .iter()
        .filter_map(|name| environment.get(*name))
        .any(|options| options.replace(' ', "").contains("backend:cudaMallocAsync"))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, AttachError> {
    thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map_err(|error| AttachError::Load {
            detail: format!("no thread for the {name}: {error}"),
        })
}

fn require_tensor_probe(pid: u32, probes: &[ProbeView]) -> Result<(), AttachError> {
    for probe in probes {
        if let ProbeState::Failed { reason } = &probe.state
            && probe.name.contains("reportMemoryUsage")
        {
            return Err(AttachError::Probe {
                pid,
                probe: probe.name.clone(),
                reason: reason.clone(),
            });
        }
    }
    Ok(())
}

struct Reader {
    maps: ReaderMaps,
    decoder: Decoder,
    process: Process,
    sender: Sender<Vec<Record>>,
    stop: Arc<AtomicBool>,
    lost: Lost,
}

/// Losses told so far.
#[derive(Default)]
struct Lost {
    ring_full: u64,
    stacks: u64,
    table_full: u64,
    undecodable: u64,
}

struct Codes<'a>(&'a aya::maps::HashMap<aya::maps::MapData, [u64; 2], [u32; 2]>);

impl KnownCodes for Codes<'_> {
    fn id(&self, address: u64, process: u16) -> Option<u32> {
        self.0
            .get(&[address, u64::from(process)], 0)
            .ok()
            .map(|[id, _]| id)
    }
}

impl Reader {
    fn run(mut self) {
        let mut last_look = std::time::Instant::now();
        loop {
            // Read before the ring is emptied: what was sent before the stop is then all there.
            let stopping = self.stop.load(Ordering::Acquire);
            let alive = last_look.elapsed() < HOUSEKEEPING || self.process.is_running();
            let mut batch = Vec::new();
            let full = self.drain(&mut batch);
            if last_look.elapsed() >= HOUSEKEEPING || stopping || !alive {
                last_look = std::time::Instant::now();
                self.tell_losses(&mut batch);
            }
            let idle = batch.is_empty();
            if !alive && !full {
                batch.push(self.record(Event::ProcessExited));
            }
            if !batch.is_empty() && self.sender.send(batch).is_err() {
                return;
            }
            if (stopping || !alive) && !full {
                return;
            }
            if idle {
                thread::sleep(REST);
            }
        }
    }

    /// Fills `batch` from the ring; whether there may be more.
    fn drain(&mut self, batch: &mut Vec<Record>) -> bool {
        let Reader { maps, decoder, .. } = self;
        let codes = Codes(&maps.codes);
        while batch.len() < BATCH {
            let Some(item) = maps.ring.next() else {
                return false;
            };
            decoder.decode(&item, &codes, batch);
        }
        true
    }

    fn record(&self, event: Event) -> Record {
        Record {
            time: now(),
            process: Pid(self.process.pid()),
            thread: Tid(0),
            event,
        }
    }

    fn tell_losses(&mut self, batch: &mut Vec<Record>) {
        let counter = |index: wire::vs_counter| -> u64 {
            self.maps
                .counters
                .get(&index, 0)
                .map_or(0, |values| values.iter().sum())
        };
        let ring_full = counter(wire::vs_counter_VS_COUNT_RING_FULL);
        let stacks = counter(wire::vs_counter_VS_COUNT_BODY_LOST)
            + counter(wire::vs_counter_VS_COUNT_NO_SLOT)
            + counter(wire::vs_counter_VS_COUNT_UNREADABLE);
        let table_full = counter(wire::vs_counter_VS_COUNT_TABLE_FULL);
        let undecodable = self.decoder.stats.undecodable;
        let news = [
            (LostCause::RingFull, ring_full - self.lost.ring_full),
            (LostCause::StackUnreadable, stacks - self.lost.stacks),
            (LostCause::TableFull, table_full - self.lost.table_full),
            (LostCause::Undecodable, undecodable - self.lost.undecodable),
        ];
        for (cause, count) in news {
            if count > 0 {
                batch.push(self.record(Event::Lost { count, cause }));
            }
        }
        self.lost = Lost {
            ring_full,
            stacks,
            table_full,
            undecodable,
        };
    }
}

/// The clock of all events, as `bpf_ktime_get_ns` reads it.
pub fn now() -> Time {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
    });
    Time(now)
}

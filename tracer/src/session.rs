//! A session: one process, its probes, and the stream of its events.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use crossbeam_channel::{Receiver, Sender, bounded};
use vramscope_events::{ProbeState, ProbeView, ProcessInfo, Record, Time};
use vramscope_python::{FindError, Process};

use crate::{
    decode::{Decoder, Traced},
    error::AttachError,
    kernel::{self, Standing},
    loader::{DEFAULT_RING_BYTES, Loaded},
    nvml::Watch,
    plan::{StepOn, plan, step_probe},
    prospect::{Prospect, inspect},
    python::walk_configuration,
    reader::{Lost, Reader},
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
/// Batches that may wait for a slow consumer. Behind them the ring fills, and then losses are
/// counted; the traced process never waits.
const WAITING_BATCHES: usize = 64;

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

/// The clock of all events, as `bpf_ktime_get_ns` reads it.
pub fn now() -> Time {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
    });
    Time(now)
}

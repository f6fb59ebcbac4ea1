//! A session: one process, its probes, and the stream of its events.

use std::{
    num::NonZeroU32,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded};
use vramscope_events::{Backend, ProbeState, ProbeView, ProcessInfo, Record, Time};
use vramscope_python::{FindError, Process};

use crate::{
    decode::{Decoder, Traced},
    error::AttachError,
    inject::{Injected, lock},
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
    /// The library for injection, where it is not in its usual place.
    pub library: Option<PathBuf>,
    /// Whether CUPTI may be used, where the backend does.
    pub cupti: bool,
    /// Whether machine-code frames are wanted, where the backend can give them.
    pub native: bool,
    /// What marks a step, where it is a place in machine code.
    pub step_on: Option<StepOn>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ring_bytes: DEFAULT_RING_BYTES,
            watch_devices: true,
            library: None,
            cupti: true,
            native: true,
            step_on: None,
        }
    }
}

/// The index of the one process of a session.
const INDEX: u16 = 0;
/// Batches that may wait for a slow consumer. Behind them the ring fills, and then losses are
/// counted; the traced process never waits.
pub(crate) const WAITING_BATCHES: usize = 64;

/// Traced processes.
pub struct Session {
    /// Who is traced: the process that was attached to, or the first one that came.
    pub info: ProcessInfo,
    /// Every planned probe, placed or not.
    pub probes: Vec<ProbeView>,
    /// Things the user should know, a line each.
    pub notes: Vec<String>,
    /// Whether blocks of the caching allocator are seen.
    pub tensor_layer: bool,
    /// Processes that could not be traced, in words.
    pub(crate) troubles: Vec<String>,
    pub(crate) hold: Hold,
    pub(crate) records: Receiver<Vec<Record>>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Dropped to end the watch over the devices' memory.
    pub(crate) watch: Option<Sender<()>>,
}

/// What keeps the events coming.
pub(crate) enum Hold {
    /// Probes of the kernel's.
    Kernel {
        process: Process,
        loaded: Loaded,
        driver_layer: bool,
    },
    /// Our library in the processes.
    Library(Injection),
    /// Nothing any more.
    Nothing,
}

/// Libraries at work, and how they got there.
pub(crate) struct Injection {
    pub injected: Injected,
    /// The library that programs are to load by themselves.
    pub library: Option<PathBuf>,
    /// The process that we loaded the library into, and are to unload it from.
    pub loaded_into: Option<crate::inject::Loaded>,
    /// The state of the board that was looked at last.
    pub seen: u64,
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
                notes.push(target::untested_note(python));
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
        if target::uses_async_backend(&environment) {
            notes.push(target::ASYNC_NOTE.into());
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
            Err(error) => notes.push(target::nvml_note(&error)),
        }
        let reader = Reader {
            maps,
            decoder: Decoder::new(vec![Traced::new(process.clone(), python)]),
            process: process.clone(),
            sender,
            stop: stop.clone(),
            lost: Lost::default(),
            _watch: watch.clone(),
        };
        threads.push(spawn("ring-reader", move || reader.run())?);
        Ok(Session {
            info,
            probes,
            notes,
            tensor_layer: plan.tensor_layer,
            troubles: Vec::new(),
            hold: Hold::Kernel {
                process,
                loaded,
                driver_layer: plan.driver_layer,
            },
            records,
            stop,
            threads,
            watch: Some(watch),
        })
    }

    /// Where the events come from.
    pub fn backend(&self) -> Backend {
        match self.hold {
            Hold::Library(_) => Backend::Injection,
            _ => Backend::Ebpf,
        }
    }

    /// Whether the session is about one process and over when that ends.
    pub fn ends_with_process(&self) -> bool {
        match &self.hold {
            Hold::Library(injection) => injection.loaded_into.is_some(),
            _ => true,
        }
    }

    /// The events, in batches. Disconnected when the session has ended and all were taken.
    pub fn records(&self) -> &Receiver<Vec<Record>> {
        &self.records
    }

    /// Places the probes on libraries that the processes have loaded since they were last looked
    /// at. Whether there were any; [`Session::probes`] then tells of them.
    pub fn probe_new_libraries(&mut self) -> bool {
        match &mut self.hold {
            Hold::Kernel { .. } => self.probe_new(),
            Hold::Library(injection) => {
                while let Some(found) = injection.injected.next_process(Duration::ZERO) {
                    match found {
                        Ok(info) if self.info.pid.0 == 0 => self.info = info,
                        Ok(_) => {}
                        Err(why) => self.troubles.push(why),
                    }
                }
                // The library looks by itself; here its word is taken over.
                let board = lock(&injection.injected.board);
                if board.version == injection.seen {
                    return false;
                }
                injection.seen = board.version;
                self.probes.clone_from(&board.probes);
                self.notes = [&board.notes[..], &self.troubles].concat();
                self.tensor_layer |= board.tensor_layer;
                true
            }
            Hold::Nothing => false,
        }
    }

    fn probe_new(&mut self) -> bool {
        let Hold::Kernel {
            process,
            loaded,
            driver_layer,
        } = &mut self.hold
        else {
            return false;
        };
        if self.tensor_layer && *driver_layer {
            return false;
        }
        let Ok(mappings) = process.mappings() else {
            return false;
        };
        let plan = plan(process, &mappings, None);
        let Some(pid) = NonZeroU32::new(process.pid()) else {
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
        *driver_layer |= plan.driver_layer;
        !news.is_empty()
    }

    /// Ends the stream: takes the probe off that every block passes, and lets the reader hand over
    /// what is still in the ring. The rest can be taken from [`Session::records`] until it is
    /// disconnected. The other probes go when the session is dropped, which takes a second or two.
    pub fn detach(&mut self) {
        match &mut self.hold {
            Hold::Kernel { loaded, .. } => loaded.silence(),
            Hold::Library(injection) => {
                let parted = injection.injected.part();
                if let Some(loaded) = injection.loaded_into.take()
                    && let Some(note) = loaded.unload(&parted)
                {
                    self.notes.push(note);
                }
            }
            Hold::Nothing => {}
        }
        self.stop.store(true, Ordering::Release);
        self.watch = None;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.watch = None;
        match std::mem::replace(&mut self.hold, Hold::Nothing) {
            Hold::Kernel { mut loaded, .. } => loaded.detach(),
            Hold::Library(mut injection) => {
                let parted = injection.injected.part();
                if let Some(loaded) = injection.loaded_into.take() {
                    loaded.unload(&parted);
                }
            }
            Hold::Nothing => {}
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

pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, AttachError> {
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

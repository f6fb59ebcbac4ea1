//! A session: processes, their probes, and the stream of their events.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use vramscope_events::{Backend, ProbeView, ProcessInfo, Record, Time};
use vramscope_python::Process;

use crate::{
    board::{Shareable, lock},
    error::AttachError,
    inject::Injected,
    kernel::{self, Standing},
    loader::{DEFAULT_RING_BYTES, Loaded},
    native::Native,
    nvml::Watch,
    plan::StepOn,
    prospect::{Prospect, inspect, or_inside},
    reader::Reader,
    target,
    tree::{Tree, Watcher},
    unwind::names::name_frames,
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
    /// When machine code is unwound.
    pub native: Native,
    /// What marks a step, where it is a place in machine code.
    pub step_on: Option<StepOn>,
    /// Whether the processes that it starts are followed, where the backend can.
    pub tree: bool,
    /// Whether a process may have nothing to probe yet: its probes are placed when it has.
    pub patient: bool,
    /// Whether the kernel may take many probes in one link, where it can; without, as kernels
    /// before 6.6, it takes seconds to take them off.
    pub shared_links: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ring_bytes: DEFAULT_RING_BYTES,
            watch_devices: true,
            library: None,
            cupti: true,
            native: Native::default(),
            step_on: None,
            tree: true,
            patient: false,
            shared_links: true,
        }
    }
}

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
    /// What the threads that look after the processes tell.
    pub(crate) board: Shareable,
    /// The state of the board that was looked at last.
    pub(crate) seen: u64,
    pub(crate) records: Receiver<Vec<Record>>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Dropped to end the watch over the devices' memory.
    pub(crate) watch: Option<Sender<()>>,
}

/// What keeps the events coming.
pub(crate) enum Hold {
    /// Probes of the kernel's.
    Kernel(Box<Watcher>),
    /// Our library in the processes.
    Library(Box<Injection>),
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
}

impl Session {
    /// Attaches to a running process.
    ///
    /// # Errors
    /// Any [`AttachError`]; the process is then as it was.
    pub fn attach(pid: u32, options: &Options) -> Result<Session, AttachError> {
        Self::attach_here(pid, options).map_err(|error| or_inside(pid, error))
    }

    fn attach_here(pid: u32, options: &Options) -> Result<Session, AttachError> {
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
        let launcher = match prospect.check() {
            Ok(()) => None,
            Err(error @ AttachError::Launcher { .. })
                if options.tree && !target::is_first_of_all(pid) =>
            {
                Some(error)
            }
            Err(_) if options.patient => None,
            Err(error) => return Err(error),
        };
        Self::attach_to(prospect, launcher, options)
    }

    fn attach_to(
        prospect: Prospect,
        launcher: Option<AttachError>,
        options: &Options,
    ) -> Result<Session, AttachError> {
        let info = prospect.info.clone();
        let mut loaded = Loaded::new(options.ring_bytes, options.shared_links)?;
        let sleepable = loaded.sleepable;
        if let Some(StepOn::Nvtx(name)) = &options.step_on {
            loaded.set_range(name)?;
        }
        let maps = loaded.reader_maps()?;
        let (sender, records) = bounded(WAITING_BATCHES);
        let stop = Arc::new(AtomicBool::new(false));
        let (notices, noticed) = unbounded();
        let (freed, free) = unbounded();
        let (watch, watch_stop) = bounded(0);
        let mut threads = Vec::new();
        let mut tree = Tree::new(
            loaded,
            prospect.process.clone(),
            options.tree,
            options.step_on.clone(),
            options.native,
            notices,
        );
        if let Some(AttachError::Launcher { pid, .. }) = launcher {
            tree.tell(format!(
                "process {pid} ({}) is a launcher: the processes that it starts are watched",
                target::short_command(pid)
            ));
        }
        if !sleepable {
            tree.tell(
                "this kernel's uprobes cannot wait for memory that is swapped out: a few stacks \
                 may stay unread, and are counted"
                    .into(),
            );
        }
        match options.watch_devices.then(Watch::open).transpose() {
            Ok(None) => {}
            Ok(Some(devices)) => {
                tree.watch(devices.watched());
                let sender = sender.clone();
                threads.push(spawn("device-memory", move || {
                    devices.run(&watch_stop, &sender);
                })?);
            }
            Err(error) => tree.tell(target::nvml_note(&error)),
        }
        // Before the first probe is placed: nothing is to wait in the ring.
        let mut names = None;
        if options.native != Native::Never {
            let (asked, nameless) = unbounded();
            let to = sender.clone();
            threads.push(spawn("symbols", move || name_frames(&nameless, &to))?);
            names = Some(asked);
        }
        let stopped = Arc::clone(&stop);
        let listens = watch.clone();
        let reader = Reader::new(maps, noticed, freed, names, sender, stopped, listens);
        threads.push(spawn("ring-reader", move || reader.run())?);
        let board = tree.board();
        let begun = tree.begin(prospect);
        let watcher = begun.and_then(|()| Watcher::start(tree, free, Arc::clone(&stop)));
        let mut session = Session {
            info,
            probes: Vec::new(),
            notes: Vec::new(),
            tensor_layer: false,
            troubles: Vec::new(),
            hold: Hold::Nothing,
            board,
            seen: 0,
            records,
            stop,
            threads,
            watch: Some(watch),
        };
        // Dropped with an error, the session ends its threads.
        session.hold = Hold::Kernel(Box::new(watcher?));
        session.take_news();
        Ok(session)
    }

    /// Where the events come from.
    pub fn backend(&self) -> Backend {
        match self.hold {
            Hold::Library(_) => Backend::Injection,
            _ => Backend::Ebpf,
        }
    }

    /// Whether the session is about one process and over when the stream tells of its end.
    pub fn ends_with_process(&self) -> bool {
        matches!(&self.hold, Hold::Library(injection) if injection.loaded_into.is_some())
    }

    /// Whether all processes that the session is about have ended.
    pub fn is_over(&self) -> bool {
        matches!(&self.hold, Hold::Kernel(watcher) if watcher.is_over())
    }

    /// The events, in batches. Disconnected when the session has ended and all were taken.
    pub fn records(&self) -> &Receiver<Vec<Record>> {
        &self.records
    }

    /// Takes over what became of the processes: probes on libraries that came later, things to know.
    /// Whether there is anything new in [`Session::probes`] and [`Session::notes`].
    pub fn take_news(&mut self) -> bool {
        if let Hold::Library(injection) = &mut self.hold {
            while let Some(found) = injection.injected.next_process(Duration::ZERO) {
                match found {
                    Ok(info) if self.info.pid.0 == 0 => self.info = info,
                    Ok(_) => {}
                    Err(why) => self.troubles.push(why),
                }
            }
        }
        let board = lock(&self.board);
        if board.version == self.seen {
            return false;
        }
        self.seen = board.version;
        self.probes.clone_from(&board.probes);
        self.notes = [&board.notes[..], &self.troubles].concat();
        self.tensor_layer |= board.tensor_layer;
        true
    }

    /// Ends the stream: takes the probes off that every block passes, and lets the reader hand over
    /// what is still in the ring. The rest can be taken from [`Session::records`] until it is
    /// disconnected. The other probes go when the session is dropped, which takes a second or two.
    pub fn detach(&mut self) {
        match &mut self.hold {
            Hold::Kernel(watcher) => watcher.silence(),
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
            // The tree goes with it, and takes all probes off.
            Hold::Kernel(mut watcher) => watcher.silence(),
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

pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, AttachError> {
    thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map_err(|error| AttachError::Load {
            detail: format!("no thread for the {name}: {error}"),
        })
}

/// The clock of all events, as `bpf_ktime_get_ns` reads it.
pub fn now() -> Time {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
    });
    Time(now)
}

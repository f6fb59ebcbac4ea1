//! The processes of a session that the kernel's probes are on: the one that was attached to, and
//! those that it started.

mod following;
mod probes;
mod probing;
mod sideband;
mod watcher;

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Instant,
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use vramscope_bpf::MAX_PROCESSES;
use vramscope_events::{Pid, ProbeView, ProcessInfo};
use vramscope_python::{Process, Python};
use vramscope_wire::vs_python;

pub(crate) use watcher::Watcher;

use crate::{
    board::{Board, Shareable, lock},
    closing,
    error::AttachError,
    loader::Loaded,
    native::Native,
    nvml::Watched,
    plan::{Ahead, Probe, StepOn},
    prospect::Prospect,
    reader::Notice,
};

use self::sideband::Sideband;

/// The processes, and what they need to be added and to go.
pub(crate) struct Tree {
    loaded: Loaded,
    /// Whether children are followed.
    follow: bool,
    step_on: Option<StepOn>,
    /// When machine code is unwound.
    native: Native,
    root: u32,
    members: BTreeMap<u32, Member>,
    indices: Indices,
    /// Whether any process was ever probed.
    began: bool,
    board: Shareable,
    notices: Sender<Notice>,
    watched: Option<Watched>,
    closers: Vec<JoinHandle<()>>,
    closing: Sender<u16>,
    closed: Receiver<u16>,
    /// What the kernel tells of processes, where it does.
    sideband: Option<Sideband>,
    /// Processes that are to be looked at, and when.
    due: BTreeMap<u32, Instant>,
    /// Copies of probed processes that are not probed themselves, and when they began.
    copies: BTreeMap<u32, u64>,
    unheard: Unheard,
    /// Probes of processes that have ended, the latest last.
    past: VecDeque<(Pid, Vec<ProbeView>)>,
}

/// A process of the tree.
struct Member {
    process: Process,
    part: Part,
    /// Who it is a copy of, by fork(2) alone.
    copy_of: Option<u32>,
    /// What it runs, see [`Process::image`].
    image: Option<u64>,
}

/// What a process has to do with the session.
enum Part {
    /// It has loaded nothing to probe.
    Nothing,
    /// It is probed.
    Probed(Probed),
    /// It cannot be; that was told.
    Refused,
}

struct Probed {
    index: u16,
    probes: Vec<ProbeView>,
    recipe: Arc<Recipe>,
    /// How many of the libraries that are awaited it had mapped when it was looked at again, and
    /// whether PyTorch's allocator was among them; probes may have been added then.
    again: Option<(usize, bool)>,
    /// The file that has the driver's probes, see [`crate::plan::Plan::driver_file`].
    driver_file: Option<(u64, u64)>,
}

impl Probed {
    fn libraries(&self) -> usize {
        self.again
            .map_or(self.recipe.libraries, |(libraries, _)| libraries)
    }

    fn tensor_layer(&self) -> bool {
        self.recipe.tensor_layer || self.again.is_some_and(|(_, allocator)| allocator)
    }
}

/// What was found in a process, and what is to be done with it.
struct Recipe {
    python: Option<Python>,
    walk: vs_python,
    /// Where the interpreter's code lies, and where the loader's state.
    code: (Range<u64>, u64),
    probes: Vec<Probe>,
    tensor_layer: bool,
    libraries: usize,
    driver_file: Option<(u64, u64)>,
    /// Probes of copies go on the same file.
    _ahead: Option<Ahead>,
    info: ProcessInfo,
}

/// The places that processes have in the programs' tables.
#[derive(Default)]
struct Indices {
    next: u16,
    free: Vec<u16>,
}

impl Indices {
    /// A place that nobody has.
    fn take(&mut self) -> Option<u16> {
        self.free.pop().or_else(|| {
            let fresh = self.next;
            (fresh < MAX_PROCESSES).then(|| {
                self.next += 1;
                fresh
            })
        })
    }
}

/// What could not be followed.
#[derive(Default)]
struct Unheard {
    /// Happenings that the kernel had no room for.
    happenings: u64,
    /// Looks at processes for which there was no place.
    processes: u64,
    /// Copies of probed processes that ended before they were probed.
    copies: u64,
    /// Where these are told among the notes, by the first words.
    notes: BTreeMap<&'static str, usize>,
}

impl Tree {
    /// A tree with its root, which is not probed yet.
    pub fn new(
        loaded: Loaded,
        root: Process,
        follow: bool,
        step_on: Option<StepOn>,
        native: Native,
        notices: Sender<Notice>,
    ) -> Tree {
        let (closing, closed) = unbounded();
        let pid = root.pid();
        let root = Member::new(root);
        let mut tree = Tree {
            loaded,
            follow,
            step_on,
            native,
            root: pid,
            members: BTreeMap::from([(pid, root)]),
            indices: Indices::default(),
            began: false,
            board: Shareable::default(),
            notices,
            watched: None,
            closers: Vec::new(),
            closing,
            closed,
            sideband: None,
            due: BTreeMap::new(),
            copies: BTreeMap::new(),
            unheard: Unheard::default(),
            past: VecDeque::new(),
        };
        // Before anybody is looked for: who comes later is told of.
        tree.listen();
        tree
    }

    /// What the session's owner can read.
    pub fn board(&self) -> Shareable {
        Shareable::clone(&self.board)
    }

    /// Has the devices' memory asked for, for all processes.
    pub fn watch(&mut self, watched: Watched) {
        self.watched = Some(watched);
    }

    /// Places the probes on the processes that are there.
    ///
    /// # Errors
    /// The root has something to probe, and it cannot be probed.
    pub fn begin(&mut self, root: Prospect) -> Result<(), AttachError> {
        if root.plan.tensor_layer || root.plan.driver_layer {
            let probed = self.probe(root)?;
            self.admit(self.root, probed);
        }
        self.look();
        Ok(())
    }

    fn admit(&mut self, pid: u32, probed: Probed) {
        if let Some(member) = self.members.get_mut(&pid) {
            member.part = Part::Probed(probed);
        }
        self.copies.remove(&pid);
    }

    /// Lets go of processes that have ended.
    pub fn bury(&mut self) {
        let ended: Vec<u32> = (self.members.iter())
            .filter(|(_, member)| !member.process.is_running())
            .map(|(pid, _)| *pid)
            .collect();
        for pid in &ended {
            self.due.remove(pid);
            if let Some(Member {
                part: Part::Probed(probed),
                ..
            }) = self.members.remove(pid)
            {
                self.end(*pid, probed.index);
                self.remember(*pid, probed.probes);
            }
        }
        if !ended.is_empty() {
            self.post();
        }
    }

    /// Nothing more comes of a process; its probes go while others go on.
    fn end(&mut self, pid: u32, index: u16) {
        if let Some(watched) = &self.watched {
            watched.remove(Pid(pid));
        }
        let _ = self.notices.send(Notice::Ended { index });
        let links = self.loaded.take_links(index);
        let closed = self.closing.clone();
        self.closers.retain(|closer| !closer.is_finished());
        self.closers.push(thread::spawn(move || {
            closing::close(links);
            // Nobody waits for it when the session is over.
            let _ = closed.send(index);
        }));
    }

    /// The probes of a process that ended are off: what is known of it can go.
    fn retire(&mut self, index: u16) {
        match self.loaded.clear(index) {
            Ok(()) => {
                let _ = self.notices.send(Notice::Retired { index });
            }
            // Then nobody gets its place.
            Err(error) => self.tell(error.to_string()),
        }
    }

    /// What became of the probes of a process is shown when it has ended, too.
    fn remember(&mut self, pid: u32, probes: Vec<ProbeView>) {
        if self.past.len() >= usize::from(MAX_PROCESSES) {
            self.past.pop_front();
        }
        self.past.push_back((Pid(pid), probes));
    }

    /// Whether all is over: the root has ended, and so has whoever was probed; or whoever might
    /// have been.
    pub fn is_over(&self) -> bool {
        let mut members = self.members.values();
        !self.members.contains_key(&self.root)
            && match self.began {
                true => !members.any(|member| matches!(member.part, Part::Probed(_))),
                false => self.members.is_empty(),
            }
    }

    /// Tells the user something, once.
    pub fn tell(&self, note: String) {
        let mut board = lock(&self.board);
        if !board.notes.contains(&note) {
            board.notes.push(note);
            board.version += 1;
        }
    }

    /// Tells the user of something that is counted: one note, always with the latest number.
    fn tell_count(&mut self, what: &'static str, note: String) {
        let mut board = lock(&self.board);
        let place = *self.unheard.notes.entry(what).or_insert(board.notes.len());
        match board.notes.get_mut(place) {
            Some(told) => *told = note,
            None => board.notes.push(note),
        }
        board.version += 1;
    }

    /// Shows what became of the probes.
    fn post(&self) {
        let probed = || {
            let members = self.members.iter();
            members.filter_map(|(pid, member)| match &member.part {
                Part::Probed(probed) => Some((Pid(*pid), probed)),
                _ => None,
            })
        };
        let past = self.past.iter().map(|(pid, probes)| (*pid, &probes[..]));
        let live = probed().map(|(pid, probed)| (pid, &probed.probes[..]));
        let merged = probes::merged(past.chain(live));
        let mut board = lock(&self.board);
        let board: &mut Board = &mut board;
        if board.probes != merged {
            board.probes = merged;
            board.version += 1;
        }
        let tensor_layer = probed().any(|(_, probed)| probed.tensor_layer());
        if tensor_layer && !board.tensor_layer {
            board.tensor_layer = true;
            board.version += 1;
        }
    }

    /// Takes the probes off that every block passes.
    pub fn silence(&mut self) {
        self.loaded.silence();
    }
}

impl Member {
    fn new(process: Process) -> Member {
        Member {
            image: process.image(),
            process,
            part: Part::Nothing,
            copy_of: None,
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.loaded.detach();
        for closer in self.closers.drain(..) {
            // One that panicked has nothing left to do.
            let _ = closer.join();
        }
    }
}

//! The processes of a session that the kernel's probes are on: the one that was attached to, and
//! those that it started.

mod probes;
mod watcher;

use std::{collections::BTreeMap, num::NonZeroU32, thread, thread::JoinHandle};

use crossbeam_channel::{Receiver, Sender, unbounded};
use vramscope_bpf::MAX_PROCESSES;
use vramscope_events::{Pid, ProbeState, ProbeView};
use vramscope_python::{FindError, Mapping, Process, ReadError};

pub(crate) use watcher::Watcher;

use crate::{
    board::{Board, Shareable, lock},
    closing,
    decode::Traced,
    error::AttachError,
    loader::Loaded,
    nvml::Watched,
    plan::{StepOn, plan, step_probe},
    prospect::{Prospect, inspect},
    python::{no_python, walk_configuration},
    reader::Notice,
    target,
};

/// The processes, and what they need to be added and to go.
pub(crate) struct Tree {
    loaded: Loaded,
    /// Whether children are followed.
    follow: bool,
    step_on: Option<StepOn>,
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
}

/// A process of the tree.
struct Member {
    process: Process,
    part: Part,
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
    tensor_layer: bool,
    driver_layer: bool,
}

/// The places that processes have in the programs' tables.
#[derive(Default)]
struct Indices {
    next: u16,
    free: Vec<u16>,
}

impl Indices {
    /// A place: one that nobody had before, while there is one.
    fn take(&mut self) -> Option<u16> {
        if self.next < MAX_PROCESSES {
            self.next += 1;
            return Some(self.next - 1);
        }
        self.free.pop()
    }
}

impl Tree {
    /// A tree with its root, which is not probed yet.
    pub fn new(
        loaded: Loaded,
        root: Process,
        follow: bool,
        step_on: Option<StepOn>,
        notices: Sender<Notice>,
    ) -> Tree {
        let (closing, closed) = unbounded();
        let member = Member {
            process: root,
            part: Part::Nothing,
        };
        Tree {
            loaded,
            follow,
            step_on,
            root: member.process.pid(),
            members: BTreeMap::from([(member.process.pid(), member)]),
            indices: Indices::default(),
            began: false,
            board: Shareable::default(),
            notices,
            watched: None,
            closers: Vec::new(),
            closing,
            closed,
        }
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

    /// Looks for new processes, and for libraries that known ones have loaded since.
    pub fn look(&mut self) {
        if self.follow {
            self.find_children();
        }
        let pids: Vec<u32> = self.members.keys().copied().collect();
        for pid in pids {
            self.look_at(pid);
        }
        self.post();
    }

    fn find_children(&mut self) {
        let mut parents: Vec<u32> = self.members.keys().copied().collect();
        while let Some(parent) = parents.pop() {
            for child in target::children(parent) {
                if self.members.contains_key(&child) {
                    continue;
                }
                // It may be over already.
                if let Ok(process) = Process::open(child) {
                    let part = Part::Nothing;
                    self.members.insert(child, Member { process, part });
                    parents.push(child);
                }
            }
        }
    }

    fn look_at(&mut self, pid: u32) {
        let Some(member) = self.members.get(&pid) else {
            return;
        };
        let Ok(mappings) = member.process.mappings() else {
            return;
        };
        match &member.part {
            Part::Nothing if mappings.iter().any(is_worth_probing) => {
                match inspect(pid).and_then(|prospect| self.probe(prospect)) {
                    Ok(probed) => self.admit(pid, probed),
                    Err(AttachError::Process(ReadError::Gone { .. })) => {}
                    Err(error) => self.refuse(pid, &error),
                }
            }
            Part::Probed(probed) if !(probed.tensor_layer && probed.driver_layer) => {
                self.probe_new(pid, &mappings);
            }
            _ => {}
        }
    }

    /// Places all probes on one process.
    fn probe(&mut self, prospect: Prospect) -> Result<Probed, AttachError> {
        let Prospect {
            process,
            python,
            plan,
            info,
        } = prospect;
        let pid = process.pid();
        let nonzero = NonZeroU32::new(pid).ok_or(ReadError::Gone { pid })?;
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
        let mut planned = plan.probes;
        if let Some(on) = &self.step_on {
            let probe = step_probe(&process, &process.mappings()?, on);
            if let ProbeState::Absent { consequence } = &probe.view.state
                && pid == self.root
            {
                return Err(AttachError::StepOn {
                    reason: consequence.clone(),
                });
            }
            planned.insert(0, probe);
        }
        let mut walk = no_python();
        if let Some(python) = &python {
            let (configuration, quick) = walk_configuration(&process, python)?;
            walk = configuration;
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
        }
        let index = self.indices.take().ok_or(AttachError::TooMany { pid })?;
        if let Err(error) = self.loaded.set_python(index, walk) {
            self.indices.free.push(index);
            return Err(error);
        }
        let environment = target::environment(pid);
        if target::uses_async_backend(&environment) {
            notes.push(target::ASYNC_NOTE.into());
        }
        if let Some(watched) = &self.watched {
            watched.add(Pid(pid), &environment);
        }
        // Known to the reader before the first record of it can come.
        let _ = self.notices.send(Notice::Began {
            index,
            info: Box::new(info),
            traced: Box::new(Traced::new(process, python)),
        });
        let probes = self.loaded.place(nonzero, index, &planned);
        if plan.tensor_layer
            && let Some(error) = tensor_probe_failed(pid, &probes)
        {
            self.end(pid, index);
            return Err(error);
        }
        self.tell(notes);
        self.began = true;
        Ok(Probed {
            index,
            probes,
            tensor_layer: plan.tensor_layer,
            driver_layer: plan.driver_layer,
        })
    }

    fn probe_new(&mut self, pid: u32, mappings: &[Mapping]) {
        let Some(Member {
            process,
            part: Part::Probed(probed),
        }) = self.members.get_mut(&pid)
        else {
            return;
        };
        let plan = plan(process, mappings, None);
        let Some(pid) = NonZeroU32::new(pid) else {
            return;
        };
        let news: Vec<_> = plan
            .probes
            .into_iter()
            .filter(|probe| {
                !probe.attachments.is_empty()
                    && probed.probes.iter().any(|known| {
                        known.name == probe.view.name
                            && matches!(known.state, ProbeState::Absent { .. })
                    })
            })
            .collect();
        for view in self.loaded.place(pid, probed.index, &news) {
            let known = probed.probes.iter_mut();
            if let Some(known) = known.into_iter().find(|known| known.name == view.name) {
                *known = view;
            }
        }
        probed.tensor_layer |= plan.tensor_layer;
        probed.driver_layer |= plan.driver_layer;
    }

    fn admit(&mut self, pid: u32, probed: Probed) {
        if let Some(member) = self.members.get_mut(&pid) {
            member.part = Part::Probed(probed);
        }
    }

    fn refuse(&mut self, pid: u32, error: &AttachError) {
        let command = target::command(pid);
        self.tell(vec![format!(
            "process {pid} ({command}) is not watched: {error}"
        )]);
        if let Some(member) = self.members.get_mut(&pid) {
            member.part = Part::Refused;
        }
    }

    /// Lets go of processes that have ended.
    pub fn bury(&mut self) {
        let ended: Vec<u32> = (self.members.iter())
            .filter(|(_, member)| !member.process.is_running())
            .map(|(pid, _)| *pid)
            .collect();
        for pid in &ended {
            if let Some(Member {
                part: Part::Probed(probed),
                ..
            }) = self.members.remove(pid)
            {
                self.end(*pid, probed.index);
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
            Err(error) => self.tell(vec![error.to_string()]),
        }
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
    pub fn tell(&self, notes: Vec<String>) {
        let mut board = lock(&self.board);
        for note in notes {
            if !board.notes.contains(&note) {
                board.notes.push(note);
                board.version += 1;
            }
        }
    }

    fn post(&self) {
        let probed = || {
            self.members
                .iter()
                .filter_map(|(pid, member)| match &member.part {
                    Part::Probed(probed) => Some((Pid(*pid), probed)),
                    _ => None,
                })
        };
        let merged = probes::merged(probed().map(|(pid, probed)| (pid, &probed.probes[..])));
        let mut board = lock(&self.board);
        let board: &mut Board = &mut board;
        // Of processes that have all ended the last word stays.
        if !merged.is_empty() && board.probes != merged {
            board.probes = merged;
            board.version += 1;
        }
        let tensor_layer = probed().any(|(_, probed)| probed.tensor_layer);
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

impl Drop for Tree {
    fn drop(&mut self) {
        self.loaded.detach();
        for closer in self.closers.drain(..) {
            // One that panicked has nothing left to do.
            let _ = closer.join();
        }
    }
}

/// Whether a mapping is of a library that has something to probe.
fn is_worth_probing(mapping: &Mapping) -> bool {
    mapping
        .file_name()
        .is_some_and(|name| name.starts_with("libc10.so") || name.starts_with("libcuda.so"))
}

/// What the session stands on must be in place where the library is.
fn tensor_probe_failed(pid: u32, probes: &[ProbeView]) -> Option<AttachError> {
    probes.iter().find_map(|probe| match &probe.state {
        ProbeState::Failed { reason } if probe.name.contains("reportMemoryUsage") => {
            Some(AttachError::Probe {
                pid,
                probe: probe.name.clone(),
                reason: reason.clone(),
            })
        }
        _ => None,
    })
}

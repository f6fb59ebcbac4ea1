//! Who belongs to the tree: children, and children of those, as they come.

use std::{
    mem,
    ops::Range,
    time::{Duration, Instant},
};

use vramscope_python::Process;

use super::{
    Member, Part, Tree,
    sideband::{Happening, Sideband},
};
use crate::{native::Native, plan, reader::Notice, target};

/// A child that is to run another program does so within this time; until then it is a copy of its
/// parent that is not worth its probes.
const UNTIL_EXECUTED: Duration = Duration::from_millis(20);
/// Libraries come together: one that was mapped is looked at with those that follow it.
const UNTIL_LOADED: Duration = Duration::from_millis(10);

impl Tree {
    /// Has the kernel tell of processes, or says why it does not.
    pub(super) fn listen(&mut self) {
        match Sideband::open() {
            Ok(sideband) => self.sideband = Some(sideband),
            Err(error) => {
                let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
                self.tell(format!(
                    "the kernel does not tell of new processes and libraries (perf_event_open: \
                     {error}; kernel.perf_event_paranoid = {}): they are looked for once a \
                     second, and what they allocate before that is seen in PyTorch's totals \
                     alone\n  it tells whoever has CAP_PERFMON, unless a container's seccomp \
                     profile forbids the call",
                    paranoid.as_deref().map_or("not readable", str::trim)
                ));
            }
        }
    }

    /// Whether the kernel tells of processes.
    pub fn hears(&self) -> bool {
        self.sideband.is_some()
    }

    /// Takes what the kernel has told, and looks at whom it is about.
    pub fn attend(&mut self) {
        let happenings = self.sideband.as_ref().map(Sideband::take);
        let now = Instant::now();
        let mut lost = 0;
        let mut ended = false;
        for happening in happenings.unwrap_or_default() {
            match happening {
                Happening::Forked {
                    parent,
                    child,
                    time,
                } => {
                    if self.follow && self.members.contains_key(&parent) {
                        if self.is_probed(parent) {
                            self.copies.insert(child, time);
                        }
                        self.adopt(child, parent, now + UNTIL_EXECUTED);
                        // What it did before we heard of it was not understood.
                        self.find_children(vec![child]);
                    }
                }
                Happening::Executed { pid } => {
                    self.copies.remove(&pid);
                    if self.members.contains_key(&pid) {
                        self.executed(pid);
                    }
                }
                Happening::Mapped {
                    pid,
                    file,
                    addresses,
                } => {
                    self.tell_mapped(pid, addresses);
                    if self.members.contains_key(&pid) && self.is_awaited(&file) {
                        self.due.entry(pid).or_insert(now + UNTIL_LOADED);
                    }
                }
                Happening::Ended { pid, time } => {
                    ended |= self.members.contains_key(&pid);
                    if let Some(born) = self.copies.remove(&pid) {
                        self.copy_ended(time.saturating_sub(born));
                    }
                }
                Happening::Lost { count } => lost += count,
            }
        }
        if ended {
            self.bury();
        }
        if lost > 0 {
            self.unheard.happenings += lost;
            self.tell_count(
                "notices",
                format!(
                    "the kernel had no room for {} notices about processes; the processes were \
                     looked through instead",
                    self.unheard.happenings
                ),
            );
            self.look();
        }
        self.look_at_due();
    }

    /// Has the reader look whether a library was mapped over: the loader's word is of what the
    /// loader does.
    fn tell_mapped(&self, pid: u32, addresses: Range<u64>) {
        if self.native != Native::Never
            && let Some(Member {
                part: Part::Probed(probed),
                ..
            }) = self.members.get(&pid)
        {
            let index = probed.index;
            let _ = self.notices.send(Notice::Mapped { index, addresses });
        }
    }

    fn is_probed(&self, pid: u32) -> bool {
        let member = self.members.get(&pid);
        member.is_some_and(|member| matches!(member.part, Part::Probed(_)))
    }

    /// A copy of a probed process that was not probed has ended, `lived` nanoseconds old: it is told
    /// of if it had the time to do something.
    fn copy_ended(&mut self, lived: u64) {
        if Duration::from_nanos(lived) <= UNTIL_EXECUTED {
            return;
        }
        self.unheard.copies += 1;
        self.tell_count(
            "copies",
            format!(
                "copies of processes ended before their probes were in place, {} of them: what \
                 they allocated, if anything, is not counted",
                self.unheard.copies
            ),
        );
    }

    fn look_at_due(&mut self) {
        let now = Instant::now();
        let (due, later): (Vec<_>, Vec<_>) = mem::take(&mut self.due)
            .into_iter()
            .partition(|(_, at)| *at <= now);
        self.due.extend(later);
        for (pid, _) in &due {
            self.look_at(*pid);
        }
        if !due.is_empty() {
            self.post();
        }
    }

    /// Looks for new processes, and for what known ones have loaded or run since.
    pub fn look(&mut self) {
        if self.follow {
            let parents = self.members.keys().copied().collect();
            self.find_children(parents);
        }
        let pids: Vec<u32> = self.members.keys().copied().collect();
        for pid in pids {
            let member = self.members.get(&pid);
            let image = member.and_then(|member| member.process.image());
            if image.is_some() && member.is_some_and(|member| member.image != image) {
                self.executed(pid);
            }
            self.due.remove(&pid);
            self.look_at(pid);
            // Nobody told where something was mapped, or not of all.
            self.tell_mapped(pid, 0..u64::MAX);
        }
        self.post();
    }

    fn find_children(&mut self, mut parents: Vec<u32>) {
        while let Some(parent) = parents.pop() {
            for child in target::children(parent) {
                if self.adopt(child, parent, Instant::now()) {
                    parents.push(child);
                }
            }
        }
    }

    /// Takes a process into the tree, to be looked at later; whether it was not there.
    fn adopt(&mut self, child: u32, parent: u32, later: Instant) -> bool {
        if self.members.contains_key(&child) {
            return false;
        }
        // It may be over already.
        let Ok(process) = Process::open(child) else {
            return false;
        };
        let mut member = Member::new(process);
        let image = self.members.get(&parent).and_then(|parent| parent.image);
        // Only a copy has its stack where the original has it.
        member.copy_of = (image.is_some() && member.image == image).then_some(parent);
        self.members.insert(child, member);
        self.due.insert(child, later);
        true
    }

    /// A process runs another program: what was probed is gone.
    fn executed(&mut self, pid: u32) {
        let Some(member) = self.members.get_mut(&pid) else {
            return;
        };
        member.image = member.process.image();
        member.copy_of = None;
        if let Part::Probed(probed) = mem::replace(&mut member.part, Part::Nothing) {
            self.end(pid, probed.index);
            self.remember(pid, probed.probes);
        }
        self.due.insert(pid, Instant::now());
    }

    fn is_awaited(&self, file: &[u8]) -> bool {
        self.step_on.is_some()
            || plan::LIBRARIES
                .iter()
                .any(|name| file.starts_with(name.as_bytes()))
    }
}

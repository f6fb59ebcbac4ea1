//! Steps: passes of the training loop.
//!
//! Best source first: a place that the user named, calls of `backward()`, a rhythm in the
//! allocations, seconds. The step number never falls; when a better source turns up, or several
//! marks turn out to be one step, everything counted so far is renumbered ([`Renumber`]).

mod heartbeat;
mod marks;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use vramscope_events::{StackId, StepMarkKind, Time};

use crate::{
    config::StepOptions,
    view::{StepSource, StepsView},
};

use heartbeat::{Beat, Heartbeat};
pub(crate) use marks::MarkSeen;
use marks::Marks;

/// Steps over which the rate is taken.
const RATE_WINDOW: usize = 32;
/// The step of last resort, in nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// How long a rhythm is waited for before seconds are counted, in nanoseconds.
const PATIENCE: u64 = 10 * SECOND;
/// Marks between two looks for a cycle.
const LOOK_EVERY: u32 = 4;

/// A new numbering of the steps so far. Keeps their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Renumber {
    /// All become step 0: they were counted by a worse source.
    Collapse,
    /// The steps after `from` were single marks; `every` of them make up a step, and step
    /// `from + first` was the first that began one.
    Fold { from: u32, every: u32, first: u32 },
    /// The steps were single allocations; these were the first of their step.
    Beats(Vec<u32>),
}

impl Renumber {
    pub fn apply(&self, step: u32) -> u32 {
        match self {
            Renumber::Collapse => 0,
            Renumber::Fold { from, every, first } => match step.checked_sub(*from) {
                None => step,
                Some(since) => from + (since + every - first) / every,
            },
            Renumber::Beats(beats) => beats.partition_point(|beat| *beat <= step) as u32,
        }
    }
}

/// What an event or a mark did to the numbering, in the order in which it must be followed.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// Whether a step began: devices end the one before.
    pub began: bool,
    /// How to renumber what was counted so far.
    pub renumber: Option<Renumber>,
}

/// Tells steps apart in one process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Steps {
    options: StepOptions,
    source: StepSource,
    now: u32,
    /// Every allocation is a step for the time being, until the rhythm is known.
    provisional: bool,
    heartbeat: Heartbeat,
    marks: Marks,
    marks_per_step: u32,
    /// Marks since the one that began the running step.
    phase: u32,
    /// Since which step every mark counted as one.
    single_since: u32,
    /// Marks since the last look for a cycle.
    unlooked: u32,
    /// When the last steps began.
    began: VecDeque<Time>,
    /// When the running second began.
    second: Option<Time>,
}

impl Steps {
    pub fn new(options: StepOptions) -> Steps {
        Steps {
            options,
            source: StepSource::None,
            now: 0,
            provisional: options.heartbeat,
            heartbeat: Heartbeat::default(),
            marks: Marks::default(),
            marks_per_step: 1,
            phase: 0,
            single_since: 0,
            unlooked: 0,
            began: VecDeque::new(),
            second: None,
        }
    }

    /// The running step.
    #[inline]
    pub fn now(&self) -> u32 {
        self.now
    }

    /// Whether the steps so far are not worth being told.
    pub fn is_provisional(&self) -> bool {
        self.provisional
    }

    pub fn source(&self) -> StepSource {
        self.source
    }

    /// What a mark of `kind` means for the numbering before it is counted: a better source makes
    /// all steps so far one.
    pub fn prefer(&mut self, kind: StepMarkKind) -> Option<Renumber> {
        let better = match (kind, self.source) {
            (StepMarkKind::User, StepSource::User)
            | (StepMarkKind::Backward, StepSource::User | StepSource::Backward) => return None,
            (StepMarkKind::User, _) => StepSource::User,
            (StepMarkKind::Backward, _) => StepSource::Backward,
        };
        self.source = better;
        self.provisional = false;
        self.marks.clear();
        self.marks_per_step = 1;
        self.phase = 0;
        self.began.clear();
        self.now = 0;
        self.single_since = 0;
        Some(Renumber::Collapse)
    }

    /// Counts a mark; whether it begins a step.
    pub fn mark(&mut self, kind: StepMarkKind, mark: MarkSeen, time: Time) -> bool {
        match (kind, self.source) {
            (StepMarkKind::User, StepSource::User) => {}
            (StepMarkKind::Backward, StepSource::Backward) => {
                self.marks.push(mark);
                self.unlooked += 1;
                self.phase += 1;
                if self.phase < self.marks_per_step {
                    return false;
                }
                self.phase = 0;
            }
            _ => return false,
        }
        self.begin(self.now + 1, time);
        true
    }

    /// Looks now and then whether several marks are one step; the steps so far must then be
    /// renumbered.
    pub fn fold(&mut self) -> Option<Renumber> {
        let due = self.unlooked >= LOOK_EVERY && self.phase == 0;
        if self.source != StepSource::Backward || !self.options.fold || !due {
            return None;
        }
        self.unlooked = 0;
        let found = self.marks.cycle();
        let every = found.map_or(1, |cycle| cycle.marks as u32);
        if every == self.marks_per_step {
            return None;
        }
        let single_before = self.marks_per_step == 1;
        let phase = found.map_or(0, |cycle| cycle.phase as u32);
        self.marks_per_step = every;
        self.phase = phase;
        let since = self.now - self.single_since;
        if !single_before || since <= phase {
            self.single_since = self.now;
            return None;
        }
        // The newest mark that begins a step is `phase` marks back.
        let first = match (since - phase) % every {
            0 => every,
            first => first,
        };
        let renumber = Renumber::Fold {
            from: self.single_since,
            every,
            first,
        };
        self.now = renumber.apply(self.now);
        let keep = self.began.iter().rev().skip(phase as usize);
        let mut began: VecDeque<Time> = keep.step_by(every as usize).copied().collect();
        began.make_contiguous().reverse();
        self.began = began;
        Some(renumber)
    }

    /// Looks at the clock, and at the stack of an allocation, while nothing better marks steps.
    #[inline]
    pub fn observe(&mut self, allocated: Option<StackId>, time: Time) -> Option<Change> {
        match self.source {
            StepSource::User | StepSource::Backward => None,
            _ => self.observe_rhythm(allocated, time),
        }
    }

    fn observe_rhythm(&mut self, allocated: Option<StackId>, time: Time) -> Option<Change> {
        let mut change = Change::default();
        let beat = match allocated {
            Some(stack) if self.options.heartbeat => self.heartbeat.allocated(stack),
            _ => Beat::Nothing,
        };
        if self.provisional && allocated.is_some() {
            self.now += 1;
            change.began = true;
        }
        match beat {
            Beat::Step => {
                self.begin(self.now + 1, time);
                change.began = true;
            }
            Beat::Found(beats) => {
                let renumber = if self.provisional {
                    // Steps were counted from 1, positions from 0.
                    Renumber::Beats(beats.into_iter().map(|at| at + 1).collect())
                } else {
                    Renumber::Collapse
                };
                self.now = renumber.apply(self.now);
                self.source = StepSource::Heartbeat;
                self.provisional = false;
                self.began.clear();
                change.renumber = Some(renumber);
            }
            Beat::Lost => {
                change.renumber = self.give_up_rhythm();
                self.source = StepSource::Time;
                self.second = Some(time);
            }
            Beat::Nothing => {}
        }
        if self.source != StepSource::Heartbeat && self.clock(time, &mut change) {
            change.began = true;
        }
        (change.began || change.renumber.is_some()).then_some(change)
    }

    /// Ends the provisional numbering by allocations.
    fn give_up_rhythm(&mut self) -> Option<Renumber> {
        std::mem::take(&mut self.provisional).then(|| {
            self.now = 0;
            Renumber::Collapse
        })
    }

    /// Counts seconds; whether one has passed.
    fn clock(&mut self, time: Time, change: &mut Change) -> bool {
        let second = *self.second.get_or_insert(time);
        let passed = time.0.saturating_sub(second.0);
        if self.provisional {
            if passed < PATIENCE {
                return false;
            }
            change.renumber = self.give_up_rhythm();
        }
        let seconds = passed / SECOND;
        if seconds == 0 {
            return false;
        }
        self.source = StepSource::Time;
        self.second = Some(Time(second.0 + seconds * SECOND));
        self.begin(self.now.saturating_add(seconds as u32), time);
        true
    }

    fn begin(&mut self, step: u32, time: Time) {
        self.now = step;
        if self.began.len() == RATE_WINDOW {
            self.began.pop_front();
        }
        self.began.push_back(time);
    }

    /// When the running step began, where that is known.
    pub fn running_since(&self) -> Option<Time> {
        self.began.back().copied()
    }

    /// Steps a second over the recent window; falls when the next step is overdue.
    pub fn rate(&self, now: Time) -> f64 {
        let (Some(first), Some(last)) = (self.began.front(), self.began.back()) else {
            return 0.0;
        };
        let steps = (self.began.len() - 1) as f64;
        let seconds = last.seconds_since(*first);
        if steps < 1.0 || seconds <= 0.0 {
            return 0.0;
        }
        let overdue = now.seconds_since(*last) - 2.0 * seconds / steps;
        steps / (seconds + overdue.max(0.0))
    }

    pub fn view(&self, now: Time) -> StepsView {
        let told = if self.provisional { 0 } else { self.now };
        StepsView {
            count: u64::from(told),
            source: self.source,
            rate: match self.source {
                StepSource::Time => 1.0,
                _ => self.rate(now),
            },
            marks_per_step: self.marks_per_step,
        }
    }
}

#[cfg(test)]
mod tests {
    use vramscope_events::StackId;

    use super::*;

    fn mark(stack: u32) -> MarkSeen {
        MarkSeen {
            stack: StackId(stack),
            optimizer_ran: true,
            backward_bytes: 0,
        }
    }

    fn run(steps: &mut Steps, stacks: impl Iterator<Item = u32>) -> Vec<Renumber> {
        let mut renumbered = Vec::new();
        for (i, stack) in stacks.enumerate() {
            let kind = StepMarkKind::Backward;
            renumbered.extend(steps.prefer(kind));
            steps.mark(kind, mark(stack), Time(i as u64 * SECOND));
            renumbered.extend(steps.fold());
        }
        renumbered
    }

    #[test]
    fn every_backward_is_a_step() {
        let mut steps = Steps::new(StepOptions::default());
        assert_eq!(run(&mut steps, (0..100).map(|_| 5)), [Renumber::Collapse]);
        assert_eq!(steps.now(), 100);
        assert!((steps.rate(Time(99 * SECOND)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn two_backwards_of_a_gan_become_one_step() {
        let mut steps = Steps::new(StepOptions::default());
        let renumbered = run(&mut steps, (0..100).map(|i| i % 2));
        assert_eq!(renumbered.len(), 2);
        assert_eq!(steps.now(), 50);
        let view = steps.view(Time(99 * SECOND));
        assert_eq!(
            (view.marks_per_step, view.source),
            (2, StepSource::Backward)
        );
        assert!((view.rate - 0.5).abs() < 0.01, "{}", view.rate);
    }

    #[test]
    fn folding_keeps_the_order_and_the_ends() {
        let fold = Renumber::Fold {
            from: 0,
            every: 8,
            first: 3,
        };
        let folded: Vec<u32> = (0..20).map(|step| fold.apply(step)).collect();
        assert_eq!(folded[..4], [0, 0, 0, 1]);
        assert_eq!(folded[10..12], [1, 2]);
        assert!(folded.is_sorted());
    }

    #[test]
    fn the_clock_is_the_last_resort_and_gives_way() {
        let mut steps = Steps::new(StepOptions::default());
        assert!(steps.observe(None, Time(5 * SECOND)).is_none());
        assert!(steps.observe(None, Time(9 * SECOND)).is_none());
        let change = steps.observe(None, Time(16 * SECOND)).unwrap();
        assert_eq!(change.renumber, Some(Renumber::Collapse));
        assert_eq!((steps.now(), steps.source()), (11, StepSource::Time));
        let kind = StepMarkKind::Backward;
        assert_eq!(steps.prefer(kind), Some(Renumber::Collapse));
        assert!(steps.mark(kind, mark(1), Time(17 * SECOND)));
        assert_eq!(steps.now(), 1);
        assert!(steps.observe(None, Time(99 * SECOND)).is_none());
    }

    #[test]
    fn passes_before_the_rhythm_was_found_are_counted_too() {
        let mut steps = Steps::new(StepOptions::default());
        let mut renumbered = 0;
        for i in 0..200u32 {
            for stack in 0..5 {
                let time = Time(u64::from(i * 5 + stack) * 1000);
                let change = steps.observe(Some(StackId(stack)), time);
                renumbered += u32::from(change.is_some_and(|change| change.renumber.is_some()));
            }
        }
        assert_eq!((steps.now(), renumbered), (200, 1));
        assert_eq!(steps.source(), StepSource::Heartbeat);
    }
}

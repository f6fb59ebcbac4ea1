//! Steps: passes of the training loop.
//!
//! Best source first: a place that the user named, calls of `backward()`, a rhythm in the
//! allocations, seconds. The step number never falls; when a better source turns up, or several
//! marks turn out to be one step, everything counted so far is renumbered ([`Renumber`]).

mod marks;

use std::collections::VecDeque;

use vramscope_events::{StepMarkKind, Time};

use crate::{
    config::StepOptions,
    view::{StepSource, StepsView},
};

pub(crate) use marks::MarkSeen;
use marks::Marks;

/// Steps over which the rate is taken.
const RATE_WINDOW: usize = 32;
/// The step of last resort, in nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// Marks between two looks for a cycle.
const LOOK_EVERY: u32 = 4;

/// A new numbering of the steps so far. Keeps their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renumber {
    /// All become step 0: they were counted by a worse source.
    Collapse,
    /// The steps after `from` were single marks; `every` of them make up a step, and step
    /// `from + first` was the first that began one.
    Fold { from: u32, every: u32, first: u32 },
}

impl Renumber {
    pub fn apply(self, step: u32) -> u32 {
        match self {
            Renumber::Collapse => 0,
            Renumber::Fold { from, every, first } => match step.checked_sub(from) {
                None => step,
                Some(since) => from + (since + every - first) / every,
            },
        }
    }
}

/// Tells steps apart in one process.
#[derive(Debug)]
pub(crate) struct Steps {
    options: StepOptions,
    source: StepSource,
    now: u32,
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

    /// Looks at the clock while nothing better marks steps; whether a step begins.
    #[inline]
    pub fn tick(&mut self, time: Time) -> bool {
        match self.source {
            StepSource::None | StepSource::Time => {}
            _ => return false,
        }
        let Some(second) = self.second else {
            self.second = Some(time);
            return false;
        };
        let passed = time.0.saturating_sub(second.0) / SECOND;
        if passed == 0 {
            return false;
        }
        self.source = StepSource::Time;
        self.second = Some(Time(second.0 + passed * SECOND));
        self.begin(self.now.saturating_add(passed as u32), time);
        true
    }

    fn begin(&mut self, step: u32, time: Time) {
        self.now = step;
        if self.began.len() == RATE_WINDOW {
            self.began.pop_front();
        }
        self.began.push_back(time);
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
        StepsView {
            count: u64::from(self.now),
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
        assert!(!steps.tick(Time(5 * SECOND)));
        assert!(steps.tick(Time(9 * SECOND)));
        assert_eq!((steps.now(), steps.source()), (4, StepSource::Time));
        assert_eq!(
            steps.prefer(StepMarkKind::Backward),
            Some(Renumber::Collapse)
        );
        assert!(steps.mark(StepMarkKind::Backward, mark(1), Time(10 * SECOND)));
        assert_eq!(steps.now(), 1);
        assert!(!steps.tick(Time(99 * SECOND)));
    }
}

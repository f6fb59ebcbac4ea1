//! How long the search may take the GIL, at once and in all.

use std::time::{Duration, Instant};

use crate::{report::Cost, turn::processor_time};

/// No slice is longer, whatever is asked.
const LONGEST_SLICE: Duration = Duration::from_millis(50);
/// No slice is shorter, however often the processor is taken from us.
const SHORTEST_SLICE: Duration = Duration::from_millis(2);
/// What is left of a slice for ending it.
const END: Duration = Duration::from_micros(500);

/// A stretch of time with the GIL.
#[derive(Debug)]
pub(crate) struct Slice {
    begun: Instant,
    ends: Instant,
    /// Of this thread.
    processor: Duration,
}

impl Slice {
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }
}

/// The budget.
#[derive(Debug)]
pub(crate) struct Pace {
    /// As it was asked for.
    slice: Duration,
    /// As the machine allows: a thread that has used up its turn on the processor waits for the
    /// others', and the GIL with it. Short slices fit a turn. (A higher priority does not help: it was
    /// tried, and makes everybody else's waits longer.)
    allowed: Duration,
    budget: Duration,
    held: Duration,
    longest: Duration,
    slices: u64,
    begun: Instant,
}

impl Pace {
    pub(crate) fn new(slice_ms: u64, budget_ms: u64) -> Pace {
        let slice = Duration::from_millis(slice_ms).clamp(Duration::from_millis(1), LONGEST_SLICE);
        Pace {
            slice,
            allowed: slice,
            budget: Duration::from_millis(budget_ms),
            held: Duration::ZERO,
            longest: Duration::ZERO,
            slices: 0,
            begun: Instant::now(),
        }
    }

    /// The GIL was just taken.
    pub(crate) fn begin(&mut self) -> Slice {
        let begun = Instant::now();
        self.slices += 1;
        Slice {
            begun,
            ends: begun + self.allowed.saturating_sub(END),
            processor: processor_time(),
        }
    }

    /// The GIL was just taken, for a look at all objects: that begins anew in every slice, so a short
    /// one might not get on at all.
    pub(crate) fn begin_long(&mut self) -> Slice {
        let slice = self.begin();
        Slice {
            ends: slice.begun + LONGEST_SLICE.saturating_sub(END),
            ..slice
        }
    }

    /// It was just given back.
    pub(crate) fn end(&mut self, slice: Slice) {
        let held = slice.begun.elapsed();
        let had = processor_time().saturating_sub(slice.processor);
        self.held += held;
        self.longest = self.longest.max(held);
        let shortest = SHORTEST_SLICE.min(self.slice);
        self.allowed = match held > had + had / 2 + END {
            true => (self.allowed / 2).max(shortest),
            false => (self.allowed + self.allowed / 4).min(self.slice),
        };
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.held >= self.budget
    }

    /// How long to leave the program alone before the next slice.
    pub(crate) fn rest(&self) -> Duration {
        self.allowed
    }

    pub(crate) fn cost(&self) -> Cost {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Cost {
            slices: self.slices,
            held_us: micros(self.held),
            longest_us: micros(self.longest),
            wall_us: micros(self.begun.elapsed()),
            ..Cost::default()
        }
    }
}

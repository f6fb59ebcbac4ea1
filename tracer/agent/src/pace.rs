//! How long the search may take the GIL, at once and in all.

use std::time::{Duration, Instant};

use crate::report::Cost;

/// No slice is longer, whatever is asked.
const LONGEST_SLICE: Duration = Duration::from_millis(50);
/// What is left of a slice for ending it.
const END: Duration = Duration::from_micros(500);

/// A stretch of time with the GIL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    begun: Instant,
    ends: Instant,
}

impl Slice {
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }
}

/// The budget.
#[derive(Debug)]
pub(crate) struct Pace {
    slice: Duration,
    budget: Duration,
    held: Duration,
    longest: Duration,
    slices: u64,
    begun: Instant,
}

impl Pace {
    pub(crate) fn new(slice_ms: u64, budget_ms: u64) -> Pace {
        Pace {
            slice: Duration::from_millis(slice_ms).clamp(Duration::from_millis(1), LONGEST_SLICE),
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
            ends: begun + self.slice.saturating_sub(END),
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
        self.held += held;
        self.longest = self.longest.max(held);
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.held >= self.budget
    }

    /// How long to leave the program alone before the next slice.
    pub(crate) fn rest(&self) -> Duration {
        self.slice
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

//! Device memory whose content is known: what the host put there, and no kernel since.
//!
//! Results of kernels are never computed, so a block holds whatever bytes a former owner
//! left. A program that reads back a number to decide on it (`item()`, the size of a
//! `nonzero`, a GradScaler's `found_inf`) would go a different way in every run. Such
//! small reads therefore give zero, except of memory that the host wrote after the last
//! kernel launch: what a program stored itself, it gets back.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ranges of device addresses with known content.
#[derive(Debug, Default)]
pub struct Known {
    /// Counts what may have written anywhere: launches of kernels and graphs, and calls
    /// of libraries that compute.
    work: AtomicU64,
    ranges: Mutex<Ranges>,
}

#[derive(Debug, Default)]
struct Ranges {
    /// The value of `work` since when the ranges hold.
    since: u64,
    /// start -> end; they neither overlap nor touch.
    by_start: BTreeMap<usize, usize>,
}

impl Known {
    /// Something ran on the device: nothing is known any more.
    pub fn work_was_done(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
    }

    /// The host wrote this range.
    pub fn learn(&self, address: usize, size: usize) {
        self.with_ranges(|ranges| ranges.insert(address, address + size));
    }

    /// The range got content that is not known.
    pub fn forget(&self, address: usize, size: usize) {
        self.with_ranges(|ranges| ranges.cut_out(address, address + size));
    }

    /// Whether the content of all of the range is known.
    pub fn holds(&self, address: usize, size: usize) -> bool {
        self.with_ranges(|ranges| {
            let before = ranges.by_start.range(..=address).next_back();
            before.is_some_and(|(_, end)| address + size <= *end)
        })
    }

    fn with_ranges<R>(&self, f: impl FnOnce(&mut Ranges) -> R) -> R {
        let mut ranges = self.ranges.lock().expect("no panics");
        let work = self.work.load(Ordering::Relaxed);
        if ranges.since != work {
            ranges.since = work;
            ranges.by_start.clear();
        }
        f(&mut ranges)
    }
}

impl Ranges {
    fn insert(&mut self, mut start: usize, mut end: usize) {
        while let Some((&from, &to)) = self.by_start.range(..=end).next_back() {
            if to < start {
                break;
            }
            self.by_start.remove(&from);
            start = start.min(from);
            end = end.max(to);
        }
        self.by_start.insert(start, end);
    }

    fn cut_out(&mut self, start: usize, end: usize) {
        while let Some((&from, &to)) = self.by_start.range(..end).next_back() {
            if to <= start {
                break;
            }
            self.by_start.remove(&from);
            if end < to {
                self.by_start.insert(end, to);
            }
            if from < start {
                self.by_start.insert(from, start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_and_overlaps_are_one_range() {
        let known = Known::default();
        known.learn(100, 10);
        known.learn(120, 10);
        assert!(!known.holds(100, 30));
        known.learn(108, 12);
        assert!(known.holds(100, 30));
        assert!(!known.holds(99, 2));
    }

    #[test]
    fn unknown_content_takes_a_piece_out() {
        let known = Known::default();
        known.learn(100, 100);
        known.forget(140, 20);
        assert!(known.holds(100, 40) && known.holds(160, 40));
        assert!(!known.holds(139, 2) && !known.holds(159, 2));
    }

    #[test]
    fn a_launch_makes_all_content_unknown() {
        let known = Known::default();
        known.learn(100, 100);
        known.work_was_done();
        assert!(!known.holds(100, 1));
    }
}

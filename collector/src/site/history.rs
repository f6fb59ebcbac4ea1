//! A site's own floor over the steps: the least it held in each step.
//!
//! What a site allocates and frees within a step never shows here; what stays does, exactly and
//! without the noise of the other sites.

use serde::{Deserialize, Serialize};
use vramscope_events::Bytes;

/// Points kept before the resolution is halved.
const MAX_POINTS: usize = 128;

/// From `step` on, until the next point, the floor was this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FloorPoint {
    pub step: u32,
    /// Least number of generations alive at one time in the step.
    pub generations: u32,
    /// Least bytes alive at one time in the step.
    pub bytes: Bytes,
}

/// The floor of one site as a run-length series.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FloorHistory {
    /// The step being watched; all before are finished.
    step: u32,
    generations: u32,
    bytes: Bytes,
    points: Vec<FloorPoint>,
    /// Steps to a point; a power of two.
    width: u32,
}

impl FloorHistory {
    pub fn new(step: u32) -> FloorHistory {
        FloorHistory {
            step,
            generations: 0,
            bytes: 0,
            points: Vec::new(),
            width: 1,
        }
    }

    /// To be called before anything changes in `step`, with what is alive.
    #[inline]
    pub fn enter(&mut self, step: u32, generations: u32, bytes: Bytes) {
        if step != self.step {
            self.finish(step, generations, bytes);
        }
    }

    /// To be called after a free.
    #[inline]
    pub fn lower(&mut self, generations: u32, bytes: Bytes) {
        self.generations = self.generations.min(generations);
        self.bytes = self.bytes.min(bytes);
    }

    #[cold]
    fn finish(&mut self, step: u32, generations: u32, bytes: Bytes) {
        self.push(self.step, self.generations, self.bytes);
        if step > self.step + 1 {
            // Untouched in between: what it held, it held all the time.
            self.push(self.step + 1, generations, bytes);
        }
        self.step = step;
        self.generations = generations;
        self.bytes = bytes;
    }

    fn push(&mut self, step: u32, generations: u32, bytes: Bytes) {
        let slot = step - step % self.width;
        match self.points.last_mut() {
            None if generations == 0 && bytes == 0 => return,
            Some(last) if (last.generations, last.bytes) == (generations, bytes) => return,
            Some(last) if last.step >= slot => {
                last.generations = last.generations.min(generations);
                last.bytes = last.bytes.min(bytes);
                return;
            }
            _ => {}
        }
        self.points.push(FloorPoint {
            step: slot,
            generations,
            bytes,
        });
        while self.points.len() > MAX_POINTS {
            self.width *= 2;
            self.merge(|step| step);
        }
    }

    /// Renumbers by `map`, then merges points of one slot, keeping the least.
    fn merge(&mut self, map: impl Fn(u32) -> u32) {
        let mut merged: Vec<FloorPoint> = Vec::with_capacity(self.points.len());
        for point in &self.points {
            let step = map(point.step);
            let slot = step - step % self.width;
            match merged.last_mut() {
                Some(last) if last.step == slot => {
                    last.generations = last.generations.min(point.generations);
                    last.bytes = last.bytes.min(point.bytes);
                }
                _ => merged.push(FloorPoint {
                    step: slot,
                    ..*point
                }),
            }
        }
        self.points = merged;
    }

    /// Renumbers the steps; `map` must not change their order.
    pub fn renumber(&mut self, map: impl Fn(u32) -> u32) {
        self.step = map(self.step);
        // The new steps may be longer than what a point had to cover.
        self.width = 1;
        self.merge(map);
    }

    /// Steps to a point: at 1 every rise is at its own step.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Number of changes of the floor that are kept.
    #[inline]
    pub fn changes(&self) -> usize {
        self.points.len()
    }

    /// Whether the floor ever left zero in a finished step.
    pub fn is_flat_zero(&self) -> bool {
        self.points.is_empty()
    }

    /// The change points of the finished steps as far as they are entered.
    pub fn recorded(&self) -> &[FloorPoint] {
        &self.points
    }

    /// The floor of all steps before `now`, given what is alive: change points, oldest first.
    /// Before the first point it was zero.
    pub fn until(&self, now: u32, generations: u32, bytes: Bytes) -> Vec<FloorPoint> {
        let mut finished = self.clone();
        finished.enter(now, generations, bytes);
        finished.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leak(every: u32, steps: u32) -> FloorHistory {
        let mut history = FloorHistory::new(0);
        for step in 0..steps {
            let live = step.div_ceil(every);
            if step % every == 0 {
                history.enter(step, live, u64::from(live) * 100);
            }
        }
        history
    }

    #[test]
    fn each_stair_is_at_its_own_step() {
        let history = leak(20, 101);
        let points = history.until(101, 6, 600);
        let stairs: Vec<_> = points.iter().map(|p| (p.step, p.generations)).collect();
        assert_eq!(stairs, [(1, 1), (21, 2), (41, 3), (61, 4), (81, 5)]);
    }

    #[test]
    fn what_comes_and_goes_within_a_step_leaves_no_point() {
        let mut history = FloorHistory::new(0);
        for step in 0..1000 {
            history.enter(step, 0, 0);
            history.lower(0, 0);
        }
        assert!(history.is_flat_zero());
    }

    #[test]
    fn memory_is_bounded_and_the_least_is_kept() {
        let history = leak(1, 1_000_000);
        let points = history.until(1_000_000, 1_000_000, 100_000_000);
        assert!(points.len() <= MAX_POINTS);
        for point in &points {
            assert!(u64::from(point.generations) * 100 == point.bytes);
            assert!(point.generations <= point.step + history.width());
        }
    }
}

//! Allocated and reserved over the steps, at a bounded number of points.
//!
//! The floor of a step is the least that was allocated in it: what the step found and left. It is
//! where growth shows, whatever the step itself needs.

use serde::{Deserialize, Serialize};
use vramscope_events::{Time, Totals};

use crate::view::Point;

/// Points kept before neighbours are merged.
const MAX_POINTS: usize = 512;

/// The curve of one device by step. Merging keeps the least floor and the most of the others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FloorSeries {
    points: Vec<Point>,
    /// Steps to a point; a power of two.
    width: u32,
    /// The step that has not ended.
    current: Point,
    started: bool,
}

impl Default for FloorSeries {
    fn default() -> Self {
        FloorSeries {
            points: Vec::new(),
            width: 1,
            current: Point::default(),
            started: false,
        }
    }
}

impl FloorSeries {
    /// The totals at the moment, in the step that has not ended.
    #[inline]
    pub fn see(&mut self, step: u32, time: Time, totals: Totals) {
        if !self.started {
            self.started = true;
            self.current = start(step, time, totals);
        }
        let now = &mut self.current;
        now.time = time;
        now.allocated = now.allocated.max(totals.allocated);
        now.floor = now.floor.min(totals.allocated);
        now.reserved = now.reserved.max(totals.reserved);
    }

    /// The step ends with `totals`; `next` begins.
    pub fn end_step(&mut self, next: u32, time: Time, totals: Totals) {
        self.see(next.saturating_sub(1), time, totals);
        let ended = self.current;
        self.push(ended);
        self.current = start(next, time, totals);
    }

    fn push(&mut self, point: Point) {
        let width = u64::from(self.width);
        match self.points.last_mut() {
            Some(last) if last.step / width == point.step / width => merge(last, &point),
            _ => self.points.push(point),
        }
        while self.points.len() > MAX_POINTS {
            self.width *= 2;
            self.merge_slots(|step| step);
        }
    }

    fn merge_slots(&mut self, map: impl Fn(u32) -> u32) {
        let width = u64::from(self.width);
        let mut merged: Vec<Point> = Vec::with_capacity(self.points.len());
        for point in &self.points {
            let point = Point {
                step: u64::from(map(point.step as u32)),
                ..*point
            };
            match merged.last_mut() {
                Some(last) if last.step / width == point.step / width => merge(last, &point),
                _ => merged.push(point),
            }
        }
        self.points = merged;
    }

    /// Renumbers the steps; `map` must not change their order.
    pub fn renumber(&mut self, map: impl Fn(u32) -> u32) {
        self.current.step = u64::from(map(self.current.step as u32));
        // The new steps may be longer than what a point had to cover.
        self.width = 1;
        self.merge_slots(map);
        // The running step may have swallowed finished ones.
        while let Some(last) = self.points.last().copied()
            && last.step >= self.current.step
        {
            self.points.pop();
            let mut joined = last;
            merge(&mut joined, &self.current);
            self.current = joined;
        }
    }

    /// Finished steps, oldest first.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Finished steps and the running one.
    pub fn all_points(&self) -> Vec<Point> {
        let running = self.started.then_some(self.current);
        self.points.iter().copied().chain(running).collect()
    }
}

fn start(step: u32, time: Time, totals: Totals) -> Point {
    Point {
        time,
        step: u64::from(step),
        allocated: totals.allocated,
        floor: totals.allocated,
        reserved: totals.reserved,
    }
}

/// Joins `later` into `point`.
fn merge(point: &mut Point, later: &Point) {
    point.time = later.time;
    point.step = later.step;
    point.allocated = point.allocated.max(later.allocated);
    point.floor = point.floor.min(later.floor);
    point.reserved = point.reserved.max(later.reserved);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn totals(allocated: u64) -> Totals {
        Totals {
            allocated,
            reserved: allocated * 2,
        }
    }

    #[test]
    fn a_step_has_its_least_and_its_most() {
        let mut series = FloorSeries::default();
        for (step, base) in [100u64, 110, 120].into_iter().enumerate() {
            series.see(step as u32, Time(0), totals(base + 50));
            series.see(step as u32, Time(1), totals(base));
            series.end_step(step as u32 + 1, Time(2), totals(base + 30));
        }
        let floors: Vec<u64> = series.points().iter().map(|point| point.floor).collect();
        // A later step begins with what the one before ended with.
        assert_eq!(floors, [100, 110, 120]);
        assert_eq!(series.points()[1].allocated, 160);
    }

    proptest! {
        #[test]
        fn bounded_and_the_least_is_never_lost(floors in proptest::collection::vec(1u64..1000, 1..3000)) {
            let mut series = FloorSeries::default();
            for (step, floor) in floors.iter().enumerate() {
                let end = totals(2000);
                series.see(step as u32, Time(step as u64), totals(*floor));
                series.end_step(step as u32 + 1, Time(step as u64), end);
            }
            prop_assert!(series.points().len() <= MAX_POINTS);
            let least = series.points().iter().map(|point| point.floor).min();
            prop_assert_eq!(least, floors.iter().copied().min());
            for pair in series.points().windows(2) {
                prop_assert!(pair[0].step < pair[1].step);
            }
        }
    }
}

//! How the survivors of one site behave over the steps.
//!
//! The question is whether ever more *generations* survive (steps in which a survivor was born),
//! not whether bytes rise: weights, gradients and workspaces stay at one generation whatever
//! their size, and so do batches that grow.

use vramscope_events::Bytes;

use crate::{
    site::{FloorPoint, Site},
    stats::median,
};

/// Rises in the number of generations from which on one can speak of growth.
pub(crate) const MIN_RISES: usize = 3;
/// A site that gave back at least this share of its generations at once has emptied itself.
const EMPTIED: f64 = 0.5;
/// Growth beyond its highest state before it last emptied itself, as a factor, from which on a
/// site counts as growing again.
const BEYOND_PEAK: f64 = 1.25;

/// Parts of the time in which growth of the sizes must show.
const QUARTERS: usize = 4;
/// Steps looked at in each.
const SAMPLES: u32 = 9;

/// A rise in the number of surviving generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rise {
    /// The first step whose floor shows it: one after the birth.
    pub step: u32,
    pub generations: u32,
    /// Bytes that came with it; 0 where the floor fell in between.
    pub bytes: Bytes,
}

/// What the survivors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Ever more generations survive, until now.
    Accumulating,
    /// It grew, more and more slowly.
    Slowing,
    /// It grew and stopped, or turns over within a bound.
    Bounded,
    /// Bytes rise while the number of generations does not.
    Swelling,
    /// None of these.
    Still,
}

/// The behaviour of one site with its numbers.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub behaviour: Behaviour,
    /// The rises since it last emptied itself, oldest first.
    pub rises: Vec<Rise>,
    /// Median distance of rises in steps; at least 1.
    pub gap: f64,
    /// Whether all rises lie at about the same distance.
    pub regular: bool,
    /// Whether all rises but the first have about the same size.
    pub even: bool,
    /// The floor: change points, oldest first.
    pub floor: Vec<FloorPoint>,
}

impl Pattern {
    /// The step in which the first survivor of the growth was born.
    pub fn since(&self) -> u32 {
        self.rises
            .first()
            .map_or(0, |rise| rise.step.saturating_sub(1))
    }

    /// Steps through which the growth has gone on, until `now`: the first rise ends the first
    /// distance.
    pub fn span(&self, now: u32) -> f64 {
        let first = self.rises.first().map_or(now, |rise| rise.step);
        f64::from(now - first) + self.gap
    }
}

/// The behaviour of `site` in the finished steps before `now`.
pub(crate) fn pattern(site: &Site, now: u32) -> Pattern {
    let floor = site.floor_until(now);
    let width = site.floor.width();
    analyse(floor, width, now)
}

fn analyse(floor: Vec<FloorPoint>, width: u32, now: u32) -> Pattern {
    let (segment, peak_before) = last_segment(&floor);
    let rises = rises(segment);
    let gaps: Vec<f64> = rises
        .windows(2)
        .map(|pair| f64::from(pair[1].step - pair[0].step))
        .collect();
    let gap = typical_gap(&gaps, &rises, width);
    let widest = gaps.iter().copied().fold(1.0, f64::max);
    let narrowest = gaps.iter().copied().fold(f64::INFINITY, f64::min);
    let slack = 1.0 + f64::from(width);
    let regular = !gaps.is_empty() && widest <= 1.5 * narrowest + slack;
    let mut pattern = Pattern {
        behaviour: Behaviour::Still,
        even: even(&rises),
        regular,
        gap,
        rises,
        floor: Vec::new(),
    };
    pattern.behaviour = behaviour(&pattern, segment, peak_before, widest, slack, now);
    pattern.floor = floor;
    pattern
}

fn behaviour(
    pattern: &Pattern,
    segment: &[FloorPoint],
    peak_before: u32,
    widest: f64,
    slack: f64,
    now: u32,
) -> Behaviour {
    let rises = &pattern.rises;
    let Some(last) = segment.last() else {
        return Behaviour::Still;
    };
    let grown: u32 = rises.iter().map(|rise| rise.generations).sum();
    if rises.len() < MIN_RISES || grown < MIN_RISES as u32 {
        return if swells(segment, now) {
            Behaviour::Swelling
        } else if peak_before > 1 {
            Behaviour::Bounded
        } else {
            Behaviour::Still
        };
    }
    let highest = segment.iter().map(|p| p.generations).max().unwrap_or(0);
    let last_rise = rises.last().map_or(0, |rise| rise.step);
    // The next rise is overdue when it has not come after the typical distance (the widest so far
    // where distances vary) and a half.
    let due = if pattern.regular { pattern.gap } else { widest };
    let overdue = f64::from(now - last_rise) > 1.5 * due + slack;
    let bounded = overdue
        || f64::from(highest) <= BEYOND_PEAK * f64::from(peak_before)
        || f64::from(last.generations) < 0.9 * f64::from(highest);
    if bounded {
        if swells(segment, now) {
            Behaviour::Swelling
        } else {
            Behaviour::Bounded
        }
    } else if slowing(rises, pattern.regular, now) {
        Behaviour::Slowing
    } else {
        Behaviour::Accumulating
    }
}

/// The floor since the site last emptied itself, and the most generations it had before.
fn last_segment(floor: &[FloorPoint]) -> (&[FloorPoint], u32) {
    let (mut start, mut before, mut highest) = (0, 0, 0);
    for (index, point) in floor.iter().enumerate() {
        let kept = f64::from(point.generations);
        // Two generations that become one are a turnover, not a container that is emptied.
        if highest >= 3 && kept <= EMPTIED * f64::from(highest) {
            start = index;
            before = before.max(highest);
            highest = point.generations;
        }
        highest = highest.max(point.generations);
    }
    (&floor[start..], before)
}

/// Where the number of generations passes its highest value so far.
fn rises(segment: &[FloorPoint]) -> Vec<Rise> {
    let mut rises = Vec::new();
    let Some(first) = segment.first() else {
        return rises;
    };
    // The first point of all is a rise from nothing; that of a later segment is what was left.
    let (mut highest, mut bytes) = (0, 0);
    if first.generations == 0 {
        bytes = first.bytes;
    }
    for point in segment {
        if point.generations > highest {
            rises.push(Rise {
                step: point.step,
                generations: point.generations - highest,
                bytes: point.bytes.saturating_sub(bytes),
            });
            highest = point.generations;
        }
        bytes = point.bytes;
    }
    rises
}

/// The typical distance of rises: their median, or, where the history no longer tells single
/// rises apart, the mean distance of generations.
fn typical_gap(gaps: &[f64], rises: &[Rise], width: u32) -> f64 {
    let median = median(&mut gaps.to_vec()).unwrap_or(1.0);
    if f64::from(width) * 2.0 <= median || width == 1 {
        return median.max(1.0);
    }
    let generations: u32 = rises.iter().skip(1).map(|rise| rise.generations).sum();
    let span: f64 = gaps.iter().sum();
    (span / f64::from(generations.max(1))).max(1.0)
}

/// Whether the rises but the first (which may have been cut by the attach) have about one size.
fn even(rises: &[Rise]) -> bool {
    let sizes = rises.iter().skip(1).map(|rise| rise.bytes);
    let (least, most) = sizes.fold((Bytes::MAX, 0), |(least, most), size| {
        (least.min(size), most.max(size))
    });
    most > 0 && least as f64 >= 0.8 * most as f64
}

/// Whether fewer generations come in the second half of the growth than in the first: by a third
/// of the rate, and beyond what chance does to counts (two standard errors of a Poisson count).
fn slowing(rises: &[Rise], regular: bool, now: u32) -> bool {
    if regular {
        return false;
    }
    let Some(first) = rises.first().map(|rise| rise.step) else {
        return false;
    };
    let middle = first + (now - first) / 2;
    let later = |rise: &&Rise| rise.step > middle;
    let count = |rises: &mut dyn Iterator<Item = &Rise>| {
        f64::from(rises.map(|rise| rise.generations).sum::<u32>())
    };
    let second = count(&mut rises.iter().filter(later));
    let first = count(&mut rises.iter().filter(|rise| !later(rise)));
    second < 0.67 * first && first - second > 2.0 * (first + second).sqrt()
}

/// Whether the bytes of a generation rise, in each quarter of the time since the site last emptied
/// itself by at least half of what an even rise would bring.
fn swells(segment: &[FloorPoint], now: u32) -> bool {
    let Some(start) = segment.first().map(|point| point.step) else {
        return false;
    };
    let span = now.saturating_sub(start);
    if segment.len() < 2 * QUARTERS || (span as usize) < 2 * QUARTERS {
        return false;
    }
    let level = |quarter: u32| {
        let steps = (0..SAMPLES).map(|i| start + span * (quarter * SAMPLES + i) / (4 * SAMPLES));
        let mut sizes: Vec<f64> = steps
            .map(|step| {
                let after = segment.partition_point(|point| point.step <= step);
                let point = &segment[after.max(1) - 1];
                point.bytes as f64 / f64::from(point.generations.max(1))
            })
            .collect();
        median(&mut sizes).unwrap_or(0.0)
    };
    let levels: [f64; QUARTERS] = [level(0), level(1), level(2), level(3)];
    let even = (levels[3] - levels[0]) / 3.0;
    levels[3] > 1.05 * levels[0] && levels.windows(2).all(|pair| pair[1] - pair[0] > even / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Analyses a site whose generations and bytes at the floor are given by step.
    fn of(steps: u32, floor: impl Fn(u32) -> (u32, u64)) -> Pattern {
        let mut points: Vec<FloorPoint> = Vec::new();
        for step in 0..steps {
            let (generations, bytes) = floor(step);
            if points.last().map_or((0, 0), |p| (p.generations, p.bytes)) != (generations, bytes) {
                points.push(FloorPoint {
                    step,
                    generations,
                    bytes,
                });
            }
        }
        analyse(points, 1, steps)
    }

    fn plain(steps: u32, generations: impl Fn(u32) -> u32) -> Pattern {
        of(steps, |step| {
            let generations = generations(step);
            (generations, u64::from(generations) * 512)
        })
    }

    #[test]
    fn leaks_accumulate_at_their_rhythm() {
        let leak = plain(150, |step| step);
        assert_eq!(leak.behaviour, Behaviour::Accumulating);
        assert_eq!((leak.gap, leak.since(), leak.span(150)), (1.0, 0, 150.0));
        for (offset, every) in [(0, 4), (3, 10), (19, 20), (7, 15), (0, 40)] {
            let stairs = plain(150, |step| (step + offset) / every);
            assert_eq!(stairs.behaviour, Behaviour::Accumulating, "every {every}");
            assert_eq!(stairs.gap, f64::from(every));
            assert!(stairs.regular && stairs.even);
        }
        let random = plain(150, |step| step * 7 / 23 + step % 3 / 2);
        assert_eq!(random.behaviour, Behaviour::Accumulating);
    }

    #[test]
    fn what_is_bounded_is_seen_once_it_is_full() {
        let deque = |bound: u32| move |step: u32| step.min(bound);
        assert_eq!(plain(150, deque(120)).behaviour, Behaviour::Bounded);
        assert_eq!(plain(100, deque(120)).behaviour, Behaviour::Accumulating);
        assert_eq!(plain(150, deque(5)).behaviour, Behaviour::Bounded);
        let epoch = |length: u32| move |step: u32| step % length;
        assert_eq!(plain(150, epoch(60)).behaviour, Behaviour::Bounded);
        assert_eq!(plain(150, epoch(20)).behaviour, Behaviour::Bounded);
        // Attached in the middle of an epoch, in the first whole one.
        let late = plain(45, |step| if step < 10 { step } else { step - 10 });
        assert_eq!(late.behaviour, Behaviour::Accumulating);
        let replay = plain(150, |step| step.min(40) + step * 7 % 3);
        assert_eq!(replay.behaviour, Behaviour::Bounded);
    }

    #[test]
    fn weights_and_growing_batches_do_not_accumulate() {
        assert_eq!(plain(150, |_| 1).behaviour, Behaviour::Still);
        assert_eq!(plain(150, |step| step % 2).behaviour, Behaviour::Still);
        let batches = of(150, |step| (1, 1000 + u64::from(step) * 50));
        assert_eq!(batches.behaviour, Behaviour::Swelling);
        let window = of(150, |step| {
            (step.min(10), u64::from(step.min(10) * (100 + step)))
        });
        assert_eq!(window.behaviour, Behaviour::Swelling);
    }

    #[test]
    fn a_cache_of_many_shapes_slows_down() {
        // Every new shape of 60, met at random: 60 * (1 - exp(-t / 60)) of them after t steps.
        let shapes = |step: u32| (60.0 * (1.0 - (-f64::from(step) / 60.0).exp())) as u32;
        assert_eq!(plain(130, shapes).behaviour, Behaviour::Slowing);
    }
}

//! What the device's own curves say: the floor, the cache, the peak.

use vramscope_events::Bytes;

use super::suspects::{Suspect, Suspects};
use crate::{
    device::Device,
    site::FloorHistory,
    snapshot::floor_at,
    stats::{Slope, Trend, change_point, mann_kendall, theil_sen},
};

/// Chance of calling a flat, noisy floor rising.
pub(crate) const FALSE_ALARM: f64 = 1e-4;
/// Points of the floor that the statistics use.
const MAX_POINTS: usize = 160;
/// Points for which a rise of the floor must stay.
const STAY: usize = 16;
/// Bounded sites that are taken out of the floor, those that hold most.
const MAX_HELD: usize = 64;
/// Steps over which the present need is taken.
const RECENT: u64 = 64;

/// The floor since it settled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloorFacts {
    /// The step at which the warm-up ended.
    pub settled: u64,
    /// The median floor of the first steps after it.
    pub level: f64,
    /// The floor of the last finished step.
    pub now: f64,
    /// The slope since it settled, bytes a step, without the sites that hold several generations
    /// within a bound.
    pub slope: Slope,
    /// Whether that is a rise.
    pub trend: Trend,
    /// The last step in which the floor clearly passed all that was before.
    pub last_rise: u64,
    /// Points that this rests on.
    pub points: usize,
}

impl FloorFacts {
    /// Whether the floor rises, and not by chance.
    pub fn rises(&self) -> bool {
        self.points >= 20 && self.trend.p_rising < FALSE_ALARM && self.slope.low > 0.0
    }
}

/// The floor of `device`, if at least two steps are finished. The first step is left out: the
/// attach cut it.
pub(crate) fn floor_facts(device: &Device, suspects: &Suspects<'_>) -> Option<FloorFacts> {
    let points = device.floor.points().get(1..).filter(|p| !p.is_empty())?;
    let every = points.len().div_ceil(MAX_POINTS);
    let offset = (points.len() - 1) % every;
    let mut held: Vec<&Suspect<'_>> = suspects
        .bounded
        .iter()
        .chain(&suspects.lazy_state)
        .collect();
    held.sort_by_key(|suspect| std::cmp::Reverse(suspect.held().1));
    held.truncate(MAX_HELD);
    let rest: Vec<(f64, f64)> = points
        .iter()
        .skip(offset)
        .step_by(every)
        .map(|point| {
            let step = point.step as u32;
            let several = held
                .iter()
                .map(|suspect| floor_at(&suspect.pattern.floor, step))
                .sum::<u64>();
            (point.step as f64, point.floor as f64 - several as f64)
        })
        .collect();
    let (start, slope, trend) = settled_trend(&rest);
    let settled = rest[start].0 as u64;
    let first: Vec<f64> = points
        .iter()
        .filter(|point| point.step >= settled)
        .take(16)
        .map(|point| point.floor as f64)
        .collect();
    let level = crate::stats::median(&mut first.clone()).unwrap_or(0.0);
    let floors: Vec<(u64, Bytes)> = points.iter().map(|p| (p.step, p.floor)).collect();
    Some(FloorFacts {
        settled,
        level,
        now: points.last()?.floor as f64,
        slope,
        trend,
        last_rise: last_rise(&floors),
        points: rest.len() - start,
    })
}

/// Where a series (step, floor) settles, how steep it is from there, and whether that is a trend.
fn settled_trend(series: &[(f64, f64)]) -> (usize, Slope, Trend) {
    let values: Vec<f64> = series.iter().map(|(_, floor)| *floor).collect();
    // A change in the second half is news, not a warm-up.
    let start = change_point(&values)
        .filter(|at| *at <= values.len() / 2)
        .unwrap_or(0);
    let slope = theil_sen(&series[start..]).unwrap_or_default();
    (start, slope, mann_kendall(&values[start..]))
}

/// The last step in which the floor rose by more than 0.5 % and stayed there for a while: a rise of
/// its least value over the steps that follow. What it gives back soon is noise.
fn last_rise(floors: &[(u64, Bytes)]) -> u64 {
    let stay = (floors.len() / 4).clamp(1, STAY);
    let (mut highest, mut at) = (0, 0);
    for window in floors.windows(stay) {
        let least = window.iter().map(|(_, floor)| *floor).min().unwrap_or(0);
        if least as f64 > highest as f64 * 1.005 {
            highest = least;
            at = window[0].0;
        }
    }
    at
}

/// The framework's cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheFacts {
    /// Rises of reserved in the second half of the watch.
    pub recent_rises: u32,
    /// Bytes by which it rose in that half.
    pub recent_growth: Bytes,
    /// The most that was allocated at one time in the recent steps.
    pub recent_peak: Bytes,
}

pub(crate) fn cache_facts(device: &Device) -> CacheFacts {
    let points = device.floor.points();
    let last = points.last().map_or(0, |point| point.step);
    let second_half = points.iter().skip(points.len() / 2);
    let (mut rises, mut growth) = (0, 0);
    let mut highest: Option<Bytes> = None;
    for point in second_half {
        if let Some(highest) = highest
            && point.reserved > highest
        {
            rises += 1;
            growth += point.reserved - highest;
        }
        highest = Some(highest.map_or(point.reserved, |highest| highest.max(point.reserved)));
    }
    let recent_peak = points
        .iter()
        .rev()
        .take_while(|point| point.step + RECENT >= last)
        .map(|point| point.allocated)
        .max();
    CacheFacts {
        recent_rises: rises,
        recent_growth: growth,
        recent_peak: recent_peak.unwrap_or(device.totals.allocated),
    }
}

/// The slope of a curve over the second half of the watch when it rises and not by chance.
pub(crate) fn rising(curve: &FloorHistory, now: u32) -> Option<Slope> {
    const SAMPLES: u32 = 64;
    let points = curve.recorded();
    let first = points.first()?.step.max(now / 2);
    let span = now.saturating_sub(1).checked_sub(first)?;
    let samples = SAMPLES.min(span);
    if samples < 16 {
        return None;
    }
    let sampled: Vec<(f64, f64)> = (0..samples)
        .map(|i| first + span * i / (samples - 1))
        .map(|step| (f64::from(step), floor_at(points, step) as f64))
        .collect();
    let values: Vec<f64> = sampled.iter().map(|(_, value)| *value).collect();
    // One jump is a library that loads; a rise goes on.
    let jumps = values.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let slope = theil_sen(&sampled)?;
    let rises = mann_kendall(&values).p_rising < FALSE_ALARM && slope.low > 0.0;
    (rises && jumps >= 4).then_some(slope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::noise::Noise;

    const WINDOW: usize = 80;

    fn rises(mut floor: impl FnMut(f64) -> f64) -> bool {
        let series: Vec<(f64, f64)> = (0..WINDOW)
            .map(|step| (step as f64, floor(step as f64)))
            .collect();
        let (_, slope, trend) = settled_trend(&series);
        trend.p_rising < FALSE_ALARM && slope.low > 0.0
    }

    /// Floors of healthy programs: independent noise, noise with outliers, noise that remembers,
    /// a warm-up before either, a sawtooth.
    #[test]
    fn at_most_one_false_alarm_in_ten_thousand_healthy_windows() {
        let mut noise = Noise(2024);
        let mut alarms = [0u32; 5];
        for _ in 0..2000 {
            alarms[0] += u32::from(rises(|_| noise.normal()));
            alarms[1] += u32::from(rises(|_| {
                let wild = noise.uniform() < 0.1;
                noise.normal() * if wild { 50.0 } else { 1.0 }
            }));
            let mut last = 0.0;
            alarms[2] += u32::from(rises(|_| {
                last = 0.5 * last + noise.normal();
                last
            }));
            alarms[3] += u32::from(rises(|step| 20.0 * step.min(15.0) + noise.normal()));
            let phase = (noise.uniform() * 20.0).floor();
            alarms[4] += u32::from(rises(|step| (step + phase) % 20.0 + noise.normal()));
        }
        assert!(alarms.iter().sum::<u32>() <= 1, "{alarms:?} of 2,000 each");
    }

    /// A rise over the window of three standard deviations of the noise: the slope is then seven
    /// times its own standard error.
    #[test]
    fn a_rise_of_three_standard_errors_over_the_window_is_seen() {
        let mut noise = Noise(7);
        let slope = 3.0 / WINDOW as f64;
        let seen = (0..1000)
            .filter(|_| rises(|step| slope * step + noise.normal()))
            .count();
        assert!(seen >= 990, "{seen} of 1000");
    }

    #[test]
    fn a_rise_that_is_given_back_is_not_the_last_one() {
        let floors: Vec<(u64, Bytes)> = (0..100)
            .map(|step| {
                (
                    step,
                    if step == 90 {
                        900
                    } else {
                        100 + 100 * (step / 40).min(1)
                    },
                )
            })
            .collect();
        assert_eq!(last_rise(&floors), 40);
    }
}

//! What the device's own curves say: the floor, the cache, the peak.

use vramscope_events::Bytes;

use super::suspects::Suspects;
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
    let held = [&suspects.bounded, &suspects.lazy_state];
    let rest: Vec<(f64, f64)> = points
        .iter()
        .skip(offset)
        .step_by(every)
        .map(|point| {
            let step = point.step as u32;
            let several = held
                .iter()
                .flat_map(|sites| sites.iter())
                .map(|suspect| floor_at(&suspect.pattern.floor, step))
                .sum::<u64>();
            (point.step as f64, point.floor as f64 - several as f64)
        })
        .collect();
    let values: Vec<f64> = rest.iter().map(|(_, floor)| *floor).collect();
    let half = values.len() / 2;
    // A change in the second half is news, not a warm-up.
    let start = change_point(&values).filter(|at| *at <= half).unwrap_or(0);
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
        slope: theil_sen(&rest[start..]).unwrap_or_default(),
        trend: mann_kendall(&values[start..]),
        last_rise: last_rise(&floors),
        points: values.len() - start,
    })
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

//! How much: the growth of the sites that keep, together and one by one.

use super::suspects::Suspect;
use crate::{
    snapshot::floor_at,
    stats::{Slope, theil_sen},
    view::{Culprit, Interval, Rhythm},
};

/// Steps at which growth is sampled.
const SAMPLES: u32 = 128;
/// Sites whose floors are summed for the interval.
const MAX_SUMMED: usize = 64;
/// Sites that a verdict names at most.
const MAX_CULPRITS: usize = 12;
/// Share of the growth below which a site is not named.
const LEAST_SHARE: f64 = 0.001;
/// Share of the distances between rises that must be equal for them to be a period.
const PERIODIC: f64 = 0.7;

/// The growth that some sites make.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    pub per_step: f64,
    pub interval: Interval,
    pub rhythm: Rhythm,
    pub period: Option<u64>,
    pub since: u32,
    /// Most first; what follows from something else (gradients, optimizer state) counts a quarter.
    pub culprits: Vec<Culprit>,
    /// Distance of rises in steps.
    pub gap: f64,
    /// Rises seen of the site that grows most.
    pub rises: usize,
}

/// The growth of `suspects` in the finished steps before `now`; `None` of none.
pub(crate) fn growth(suspects: &[Suspect<'_>], now: u32) -> Option<Growth> {
    let since = suspects.iter().map(|s| s.pattern.since()).min()?;
    let mut each: Vec<(f64, &Suspect<'_>)> = suspects
        .iter()
        .map(|suspect| (mean_slope(suspect, now), suspect))
        .collect();
    each.sort_by(|a, b| {
        let order = b.0.total_cmp(&a.0);
        order.then(a.1.site.id.cmp(&b.1.site.id))
    });
    let lead = each.first()?.1;
    // What the rest adds is far below the interval.
    let most: Vec<&Suspect<'_>> = each.iter().take(MAX_SUMMED).map(|(_, s)| *s).collect();
    let whole = slope_of(&most, lead, now);
    // The sites' own floors are exact; the slope of their sum carries the interval.
    let sum: f64 = each.iter().map(|(slope, _)| slope).sum();
    let per_step = if whole.low <= sum && sum <= whole.high {
        sum
    } else {
        whole.slope
    };
    each.sort_by(|a, b| {
        let counted = |(slope, suspect): &(f64, &Suspect<'_>)| slope * suspect.weight();
        counted(b).total_cmp(&counted(a))
    });
    let culprits = each
        .iter()
        .map(|(slope, suspect)| Culprit {
            site: suspect.site.id,
            growth_bytes_per_step: *slope,
            share: if per_step > 0.0 {
                (slope / per_step).clamp(0.0, 1.0)
            } else {
                0.0
            },
        })
        .filter(|culprit| culprit.share >= LEAST_SHARE)
        .take(MAX_CULPRITS)
        .collect();
    let (rhythm, period) = rhythm(lead);
    Some(Growth {
        per_step,
        interval: Interval {
            low: whole.low.min(per_step),
            high: whole.high.max(per_step),
        },
        rhythm,
        period,
        since,
        culprits,
        gap: lead.pattern.gap,
        rises: lead.pattern.rises.len(),
    })
}

/// The sites whose blocks get larger, with what they add to a growth of `whole` bytes a step.
pub(crate) fn swelling(suspects: &[Suspect<'_>], whole: f64, now: u32) -> Vec<Culprit> {
    let mut culprits: Vec<Culprit> = suspects
        .iter()
        .map(|suspect| {
            let floor = &suspect.pattern.floor;
            let points: Vec<(f64, f64)> = floor
                .iter()
                .filter(|point| point.step < now)
                .map(|point| (f64::from(point.step), point.bytes as f64))
                .collect();
            let slope = theil_sen(&points).unwrap_or_default().slope;
            Culprit {
                site: suspect.site.id,
                growth_bytes_per_step: slope,
                share: (slope / whole).clamp(0.0, 1.0),
            }
        })
        .filter(|culprit| culprit.share >= LEAST_SHARE)
        .collect();
    culprits.sort_by(|a, b| b.growth_bytes_per_step.total_cmp(&a.growth_bytes_per_step));
    culprits.truncate(MAX_CULPRITS);
    culprits
}

/// The mean slope of one site's floor from its first rise to its last: no noise of others is in it.
fn mean_slope(suspect: &Suspect<'_>, now: u32) -> f64 {
    let steps = sample_steps(suspect, now);
    let held =
        |step: &u32| floor_at(&suspect.pattern.floor, after_rise(suspect, *step, now)) as f64;
    match (steps.first(), steps.last()) {
        (Some(first), Some(last)) if last > first => {
            (held(last) - held(first)) / f64::from(last - first)
        }
        _ => 0.0,
    }
}

/// The slope of the sum of some sites' floors, sampled where `lead` rises.
fn slope_of(suspects: &[&Suspect<'_>], lead: &Suspect<'_>, now: u32) -> Slope {
    let points: Vec<(f64, f64)> = sample_steps(lead, now)
        .into_iter()
        .map(|step| {
            let at = after_rise(lead, step, now);
            let held = suspects.iter().map(|s| floor_at(&s.pattern.floor, at));
            (f64::from(step), held.sum::<u64>() as f64)
        })
        .collect();
    theil_sen(&points).unwrap_or_default()
}

/// The steps at which a site's growth is looked at: its rises where they are a rhythm of stairs,
/// else evenly from its first rise to the last finished step.
fn sample_steps(suspect: &Suspect<'_>, now: u32) -> Vec<u32> {
    let pattern = &suspect.pattern;
    if pattern.gap >= 2.0 && pattern.regular {
        return pattern.rises.iter().map(|rise| rise.step).collect();
    }
    let first = pattern.rises.first().map_or(0, |rise| rise.step);
    let span = now.saturating_sub(1).saturating_sub(first);
    let samples = SAMPLES.min(span + 1);
    (0..samples)
        .map(|i| first + (u64::from(span) * u64::from(i) / u64::from((samples - 1).max(1))) as u32)
        .collect()
}

/// Half a distance after a rise, so that what comes in step with it but a little later is in.
fn after_rise(suspect: &Suspect<'_>, step: u32, now: u32) -> u32 {
    let later = step + (suspect.pattern.gap / 2.0) as u32;
    later.min(now.saturating_sub(1))
}

/// Every step, or at a period: most distances between rises are the same number of steps above
/// one.
fn rhythm(lead: &Suspect<'_>) -> (Rhythm, Option<u64>) {
    let pattern = &lead.pattern;
    if pattern.gap < 1.5 {
        return (Rhythm::PerStep, None);
    }
    let gaps: Vec<f64> = pattern
        .rises
        .windows(2)
        .map(|pair| f64::from(pair[1].step - pair[0].step))
        .collect();
    let slack = (0.1 * pattern.gap).max(1.0 / 2.0);
    let equal = gaps
        .iter()
        .filter(|gap| (**gap - pattern.gap).abs() <= slack)
        .count();
    let coarse = lead.site.floor.width() > 1;
    if coarse || equal as f64 >= PERIODIC * gaps.len() as f64 {
        (Rhythm::PerPeriod, Some(pattern.gap.round() as u64))
    } else {
        // Now and then, without a period: a mean over the steps is all there is.
        (Rhythm::PerStep, None)
    }
}

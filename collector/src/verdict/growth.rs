//! How much: the growth of the sites that keep, together and one by one.

use super::suspects::Suspect;
use crate::{
    snapshot::floor_at,
    stats::{Slope, theil_sen},
    view::{Culprit, Interval, Rhythm},
};

/// Steps at which growth is sampled.
const SAMPLES: u32 = 128;
/// Sites that a verdict names at most.
const MAX_CULPRITS: usize = 12;
/// Share of the growth below which a site is not named.
const LEAST_SHARE: f64 = 0.005;
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
    /// Most first, but what autograd threads allocated in step with other culprits comes after
    /// them: it follows from what those keep.
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
        .map(|suspect| (slope_of(&[suspect], suspect, now).slope, suspect))
        .collect();
    each.sort_by(|a, b| {
        let order = b.0.total_cmp(&a.0);
        order.then(a.1.site.id.cmp(&b.1.site.id))
    });
    let lead = each.first()?.1;
    let all: Vec<&Suspect<'_>> = suspects.iter().collect();
    let whole = slope_of(&all, lead, now);
    // The sites' own slopes are exact; the slope of their sum carries the interval.
    let sum: f64 = each.iter().map(|(slope, _)| slope).sum();
    let per_step = if whole.low <= sum && sum <= whole.high {
        sum
    } else {
        whole.slope
    };
    let leads = each.iter().any(|(_, suspect)| !suspect.follows());
    if leads {
        each.sort_by_key(|(_, suspect)| suspect.follows());
    }
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

/// The slope of the sum of some sites' floors, sampled where `lead` rises: half a distance after
/// each rise, so that what comes in step with it but a little later is in.
fn slope_of(suspects: &[&Suspect<'_>], lead: &Suspect<'_>, now: u32) -> Slope {
    let last = now.saturating_sub(1);
    let pattern = &lead.pattern;
    let first = pattern.rises.first().map_or(0, |rise| rise.step);
    let after = (pattern.gap / 2.0) as u32;
    let steps: Vec<u32> = if pattern.gap < 2.0 || !pattern.regular {
        let samples = SAMPLES.min(last.saturating_sub(first) + 1);
        let span = last.saturating_sub(first);
        (0..samples)
            .map(|i| first + span * i / (samples - 1).max(1))
            .collect()
    } else {
        pattern.rises.iter().map(|rise| rise.step).collect()
    };
    let points: Vec<(f64, f64)> = steps
        .into_iter()
        .map(|step| {
            let held = suspects
                .iter()
                .map(|suspect| floor_at(&suspect.pattern.floor, (step + after).min(last)));
            (f64::from(step), held.sum::<u64>() as f64)
        })
        .collect();
    theil_sen(&points).unwrap_or_default()
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

//! The findings in words: numbers first.

use super::{
    Findings,
    growth::Growth,
    held::Says,
    suspects::{FEW_RISES, Suspect},
    words::{bytes, count, percent, steps},
};
use crate::view::{Class, Rhythm};

/// Lines of evidence about single sites.
const MAX_SITES: usize = 3;

/// The class in one sentence.
pub(super) fn summary(findings: &Findings<'_>) -> String {
    let own = own_summary(findings);
    match &findings.held {
        None => own,
        Some(held) => match held.says {
            Says::Fills { length, bound } => held.filling(length, bound),
            _ => format!("{own}; {}", held.clause()),
        },
    }
}

fn own_summary(findings: &Findings<'_>) -> String {
    let floor = &findings.floor;
    let watched = u64::from(findings.circumstances.now);
    let suspects = &findings.suspects;
    match (findings.class, &findings.growth) {
        (Class::Leak, Some(growth)) => format!(
            "blocks of {} survive; {} since step {}",
            steps(match suspects.leaking.is_empty() {
                true => generations(&suspects.growing),
                false => generations(&suspects.leaking),
            }),
            pace(growth),
            count(growth.since.into()),
        ),
        (Class::Growing, Some(growth)) => format!(
            "{} since step {}; {}",
            pace(growth),
            count(growth.since.into()),
            what_would_decide(findings, growth),
        ),
        (Class::Growing, None) => format!("{} steps watched: too early to tell", count(watched)),
        (Class::WarmUp, _) => format!(
            "still settling: the floor last rose in step {}, {} in all",
            count(floor.last_rise),
            steps(watched),
        ),
        (Class::Capacity, Some(growth)) => format!(
            "no block outlives its step, but the steps need {} more each",
            bytes(growth.per_step),
        ),
        (Class::Capacity, None) => format!(
            "no leak, but a step needs {} at its peak: nearly all there is",
            bytes(findings.cache.recent_peak as f64),
        ),
        (Class::CacheGrowth, _) => format!(
            "no leak: the cache grew by {} in the second half of the watch, the tensors did not",
            bytes(findings.cache.recent_growth as f64),
        ),
        (Class::Fragmentation, _) => format!(
            "no leak: {} of the {} that are reserved cannot be used by the largest requests",
            bytes(unused(findings)),
            bytes(findings.device.totals.reserved as f64),
        ),
        (Class::OutsideFramework, Some(growth)) => format!(
            "memory that the framework does not manage grows by {} a step",
            bytes(growth.per_step),
        ),
        _ => format!("no leak: the floor is flat over {}", steps(watched)),
    }
}

fn unused(findings: &Findings<'_>) -> f64 {
    let reserved = findings.device.totals.reserved;
    reserved.saturating_sub(findings.cache.recent_peak) as f64
}

fn generations(suspects: &[Suspect<'_>]) -> u64 {
    let most = suspects.iter().map(|suspect| suspect.held().0).max();
    u64::from(most.unwrap_or(0))
}

/// `+164.4 KB a step`, `+452.6 KB every 20 steps (22.6 KB a step)`.
fn pace(growth: &Growth) -> String {
    match (growth.rhythm, growth.period) {
        (Rhythm::PerPeriod, Some(period)) => format!(
            "+{} every {} ({} a step)",
            bytes(growth.per_step * period as f64),
            steps(period),
            bytes(growth.per_step),
        ),
        _ => format!("+{} a step", bytes(growth.per_step)),
    }
}

fn what_would_decide(findings: &Findings<'_>, growth: &Growth) -> String {
    let now = findings.circumstances.now;
    if !findings.suspects.slowing.is_empty() && findings.suspects.growing.is_empty() {
        return "it slows down, as a cache does that has seen most of its keys".to_owned();
    }
    if growth.rises == 0 {
        return "no survivors explain it".to_owned();
    }
    let needed = findings.circumstances.alarms.steps_to_decide;
    let gone = f64::from(now - growth.since) + growth.gap;
    let left = (f64::from(needed) - gone).ceil();
    if left > 0.0 {
        format!(
            "a container that is still filling looks the same: if it goes on for {} more, it is \
             a leak",
            steps(left as u64),
        )
    } else if growth.rises < FEW_RISES {
        format!(
            "{} stairs so far: {FEW_RISES} even ones would decide",
            growth.rises
        )
    } else {
        "the stairs are uneven: more of them would decide".to_owned()
    }
}

/// Facts that led to the class, most telling first.
pub(super) fn evidence(findings: &Findings<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let suspects = &findings.suspects;
    lines.extend(findings.held.iter().map(|held| held.evidence()));
    for suspect in suspects.leaking.iter().take(MAX_SITES) {
        lines.push(generations_line(suspect, findings));
    }
    for suspect in suspects.growing.iter().take(MAX_SITES) {
        lines.push(generations_line(suspect, findings));
    }
    if let Some(growth) = &findings.growth {
        lines.push(format!(
            "growth {} B a step, 95 % interval {} to {}",
            count(growth.per_step.max(0.0).round() as u64),
            count(growth.interval.low.max(0.0).round() as u64),
            count(growth.interval.high.max(0.0).round() as u64),
        ));
    }
    lines.push(floor_line(findings));
    lines.extend(set_aside(findings));
    let check = &findings.device.check;
    if findings.circumstances.lost || check.corrected > 0 {
        lines.push(format!(
            "events are missing: the ledger was put right {} times, by {} in all; survivors may be \
             too many or too few",
            count(check.corrected),
            bytes(check.corrected_bytes as f64),
        ));
    }
    lines
}

fn generations_line(suspect: &Suspect<'_>, findings: &Findings<'_>) -> String {
    let site = suspect.site;
    let since = suspect.pattern.since();
    let (generations, held) = suspect.held();
    let watched = findings.circumstances.now.saturating_sub(since);
    let place = if site.is_backward() {
        " (backward)"
    } else {
        ""
    };
    format!(
        "site {}{place}: survivors of {} of the last {} steps, {}",
        site.id.0,
        count(generations.into()),
        count(watched.into()),
        bytes(held as f64),
    )
}

fn floor_line(findings: &Findings<'_>) -> String {
    let floor = &findings.floor;
    let over = if floor.level > 0.0 {
        (floor.now - floor.level) / floor.level
    } else {
        0.0
    };
    let alarm = findings.circumstances.alarms.growth_over_baseline;
    let mut line = format!(
        "the floor settled at {} in step {} and is {} now",
        bytes(floor.level),
        count(floor.settled),
        bytes(floor.now),
    );
    if over >= alarm {
        line += &format!(", {} above (alarm at {})", percent(over), percent(alarm));
    }
    line
}

/// What was seen and is not held against the program.
fn set_aside(findings: &Findings<'_>) -> Vec<String> {
    let suspects = &findings.suspects;
    let mut lines = Vec::new();
    if suspects.replaced {
        lines.push(
            "blocks from before the attach are freed as fast as new ones are kept: a container \
             that was full at the attach"
                .to_owned(),
        );
    }
    let bounded = suspects
        .bounded
        .iter()
        .map(|suspect| suspect.held().0)
        .max();
    if let Some(most) = bounded
        && most > 1
        && !suspects.replaced
    {
        lines.push(format!(
            "containers that are bounded or were emptied: up to {} generations",
            count(most.into())
        ));
    }
    if !suspects.lazy_state.is_empty() {
        lines.push(
            "an optimizer creates state for parameters that it sees for the first time: bounded by \
             the parameters"
                .to_owned(),
        );
    }
    let unserved = findings.device.unusable_cache.requests;
    if findings.class == Class::Fragmentation {
        lines.push(format!(
            "{} requests could not be served although twice their size was cached",
            count(unserved)
        ));
    }
    lines
}

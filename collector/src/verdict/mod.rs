//! What to think of a device's memory: docs/verdicts.md explains every rule.
//!
//! Generations of survivors say whether something leaks and where, the floors say how much, the
//! framework's own totals keep both honest.

mod advice;
mod evidence;
mod facts;
mod growth;
mod held;
mod kind;
mod oom;
mod pattern;
mod suspects;
mod words;

use vramscope_events::StackId;

use crate::{
    config::Alarms,
    device::Device,
    stacks::NamedStack,
    view::{Class, Confidence, Interval, Rhythm, StepSource, Verdict},
};

use facts::{CacheFacts, FloorFacts, cache_facts, floor_facts};
use growth::{Growth, growth};
use held::{Held, Says};
use kind::Named;
use suspects::{Suspect, Suspects, beside_the_cache};

/// Steps that a program is given to start before a flat floor is called healthy.
const START: u32 = 20;
/// Share of the watch for which nothing may have risen before it counts as settled.
const SETTLED: f64 = 0.2;
/// Stairs below which a leak is of low confidence, and from which on of high.
const UNSURE_RISES: usize = 5;
/// The same in watch lengths that decide.
const LONG_WATCH: f64 = 4.0;
/// Share of the cache that is not used at the peak, from which on it counts as fragmented.
const UNUSED_CACHE: f64 = 0.6;
/// The same in bytes, and as a share of the device.
const UNUSED_BYTES: u64 = 256_000_000;
const UNUSED_SHARE: f64 = 0.02;
/// Requests that the cache could not serve although it held twice their size.
const UNSERVED: u64 = 3;
/// Growth of the cache in the second half of the watch that is worth a word, as a share of it.
const CACHE_GROWTH: f64 = 0.05;

/// What a verdict needs beside the device.
pub(crate) struct Circumstances<'a> {
    /// The running step; all before are finished.
    pub now: u32,
    pub source: StepSource,
    /// Steps a second; 0 while unknown.
    pub rate: f64,
    pub alarms: &'a Alarms,
    /// Events are missing.
    pub lost: bool,
}

/// Looks up the names of a stack.
pub(crate) type NameOf<'a> = dyn FnMut(StackId) -> NamedStack + 'a;

/// Everything found out about a device, before it is put in words.
pub(crate) struct Findings<'a> {
    pub device: &'a Device,
    pub circumstances: &'a Circumstances<'a>,
    pub class: Class,
    pub suspects: Suspects<'a>,
    /// The growth that the class is about.
    pub growth: Option<Growth>,
    pub floor: FloorFacts,
    pub cache: CacheFacts,
    /// Growth of driver memory beside the framework's cache.
    pub outside: Option<Growth>,
    /// What holds the blocks that grow, where the process was asked.
    pub held: Option<Held<'a>>,
}

/// The verdict on `device`; `None` before the first whole step.
pub(crate) fn judge(
    device: &Device,
    circumstances: &Circumstances<'_>,
    name_of: &mut NameOf<'_>,
) -> Option<Verdict> {
    let suspects = Suspects::of(device, circumstances.now, circumstances.alarms);
    let floor = floor_facts(device, &suspects)?;
    let cache = cache_facts(device);
    let beside = beside_the_cache(device, circumstances.now);
    let mut findings = Findings {
        device,
        circumstances,
        class: Class::Healthy,
        outside: outside_growth(device, &beside, circumstances.now),
        suspects,
        growth: None,
        floor,
        cache,
        held: None,
    };
    classify(&mut findings);
    ask_the_answer(&mut findings);
    Some(put_together(&findings, &beside, name_of))
}

fn classify(findings: &mut Findings<'_>) {
    let now = findings.circumstances.now;
    let leak = growth(&findings.suspects.leaking, now);
    if leak.is_some() {
        findings.class = Class::Leak;
        findings.growth = leak;
        return;
    }
    let outside = findings.outside.as_ref().map_or(0.0, |g| g.per_step);
    let growing = growth(&findings.suspects.growing, now);
    if let Some(growing) = growing
        && growing.per_step >= outside
        && now > START
    {
        findings.class = Class::Growing;
        findings.growth = Some(growing);
        return;
    }
    if findings.outside.is_some() {
        findings.class = Class::OutsideFramework;
        findings.growth.clone_from(&findings.outside);
        return;
    }
    findings.class = without_survivors(findings);
    findings.growth = match findings.class {
        Class::Capacity | Class::Growing => floor_growth(findings),
        _ => None,
    };
}

/// What the process said holds the blocks decides where generations alone cannot: a container with a
/// bound will stop, one without that grew from one question to the next will not.
fn ask_the_answer(findings: &mut Findings<'_>) {
    let Some(growth) = &findings.growth else {
        return;
    };
    findings.held = Held::of(findings.device, growth, findings.cache.recent_peak);
    let says = findings.held.as_ref().map(|held| held.says);
    findings.class = match (findings.class, says) {
        (Class::Leak | Class::Growing, Some(Says::Fills { .. })) => Class::WarmUp,
        (Class::Growing, Some(Says::Grows)) => Class::Leak,
        (class, _) => class,
    };
}

/// The class where no site keeps ever more generations.
fn without_survivors(findings: &Findings<'_>) -> Class {
    let Findings {
        device,
        floor,
        cache,
        suspects,
        ..
    } = findings;
    let now = findings.circumstances.now;
    if floor.rises() && recently(floor.last_rise, now) {
        // Rising although no block outlives its step: the steps need more. Where not even larger
        // blocks explain it, events are missing or the growth is too young.
        return if !suspects.swelling.is_empty() {
            Class::Capacity
        } else if floor.points >= 2 * START as usize && suspects.lazy_state.is_empty() {
            Class::Growing
        } else {
            Class::WarmUp
        };
    }
    if nearly_full(findings) {
        return Class::Capacity;
    }
    if !suspects.slowing.is_empty() && now > START {
        return Class::Growing;
    }
    let lazy = suspects.lazy_state.iter().any(|_| true);
    if now < START || lazy || (recently(floor.last_rise, now) && !floor_is_noise(floor)) {
        return Class::WarmUp;
    }
    let reserved = device.totals.reserved;
    let unused = reserved.saturating_sub(cache.recent_peak);
    let capacity = device.memory.map_or(u64::MAX, |memory| memory.total);
    let enough = UNUSED_BYTES.min((capacity as f64 * UNUSED_SHARE) as u64);
    let much = unused as f64 >= UNUSED_CACHE * reserved as f64 && unused >= enough;
    if device.unusable_cache.requests >= UNSERVED && much {
        return Class::Fragmentation;
    }
    let grew = cache.recent_growth as f64 >= CACHE_GROWTH * reserved as f64;
    if cache.recent_rises >= 2 && grew {
        return Class::CacheGrowth;
    }
    Class::Healthy
}

/// Whether `step` lies so close to `now` that what happened there may go on.
fn recently(step: u64, now: u32) -> bool {
    let quiet = f64::from(now) - step as f64;
    quiet < (SETTLED * f64::from(now)).max(f64::from(START))
}

/// Whether the floor only wanders: it has passed its highest, but not by a trend.
fn floor_is_noise(floor: &FloorFacts) -> bool {
    floor.points >= START as usize && floor.trend.p_rising > 0.01
}

/// Whether a step at its peak needs nearly all the device has, or failed to get it.
fn nearly_full(findings: &Findings<'_>) -> bool {
    let Some(memory) = findings.device.memory else {
        return findings.device.out_of_memory.is_some();
    };
    let others = memory
        .total
        .saturating_sub(memory.free)
        .saturating_sub(findings.device.totals.reserved);
    let need = findings.cache.recent_peak + others;
    need as f64 >= findings.circumstances.alarms.capacity_use * memory.total as f64
        || findings.device.out_of_memory.is_some()
}

/// The growth of the floor itself.
fn floor_growth(findings: &Findings<'_>) -> Option<Growth> {
    let now = findings.circumstances.now;
    let sites = match findings.suspects.slowing.is_empty() {
        false => growth(&findings.suspects.slowing, now),
        true => None,
    };
    if let Some(slowing) = sites {
        return Some(slowing);
    }
    if !findings.floor.rises() {
        return None;
    }
    let slope = findings.floor.slope;
    let culprits = growth::swelling(&findings.suspects.swelling, slope.slope, now);
    Some(Growth {
        per_step: slope.slope,
        interval: Interval {
            low: slope.low,
            high: slope.high,
        },
        rhythm: Rhythm::PerStep,
        period: None,
        since: findings.floor.settled as u32,
        culprits,
        gap: 1.0,
        rises: 0,
    })
}

/// Growth of driver memory that is not the framework's cache: by sites of the driver's book where
/// it shows there, else by what the driver says the process uses.
fn outside_growth(device: &Device, beside: &[Suspect<'_>], now: u32) -> Option<Growth> {
    if !device.tensor_layer {
        return None;
    }
    let by_book = facts::rising(&device.beside_history, now);
    let by_use = facts::rising(&device.outside_history, now);
    let slope = by_book.or(by_use)?;
    let sites = by_book.and_then(|_| growth(beside, now));
    Some(sites.unwrap_or(Growth {
        per_step: slope.slope,
        interval: Interval {
            low: slope.low,
            high: slope.high,
        },
        rhythm: Rhythm::PerStep,
        period: None,
        since: now / 2,
        culprits: Vec::new(),
        gap: 1.0,
        rises: 0,
    }))
}

fn put_together(
    findings: &Findings<'_>,
    beside: &[Suspect<'_>],
    name_of: &mut NameOf<'_>,
) -> Verdict {
    let growth = findings.growth.as_ref();
    let named = growth.map_or_else(Vec::new, |growth| {
        name_culprits(findings, growth, beside, name_of)
    });
    let kind = match (findings.class, growth) {
        (Class::Leak | Class::Growing, Some(growth)) => kind::kind(&named, growth),
        _ => None,
    };
    let rate = findings.circumstances.rate;
    let fills = matches!(&findings.held, Some(held) if matches!(held.says, Says::Fills { .. }));
    let out_of_memory = growth.filter(|_| !fills).and_then(|growth| {
        let headroom = oom::headroom(findings.device, findings.cache.recent_peak)?;
        oom::out_of_memory(growth, headroom, rate)
    });
    let culprits = growth.map_or_else(Vec::new, |growth| growth.culprits.clone());
    Verdict {
        class: findings.class,
        confidence: confidence(findings),
        rhythm: growth.map_or(Rhythm::None, |growth| growth.rhythm),
        period_steps: growth.and_then(|growth| growth.period),
        growth_bytes_per_step: growth.map_or(0.0, |growth| growth.per_step),
        interval: growth.map_or_else(Interval::default, |growth| growth.interval),
        since_step: growth.map_or(findings.floor.settled, |growth| growth.since.into()),
        share_explained: culprits
            .iter()
            .map(|culprit| culprit.share)
            .sum::<f64>()
            .min(1.0),
        culprits,
        out_of_memory,
        kind,
        retained_by: findings.held.as_ref().map(|held| held.short().to_owned()),
        summary: evidence::summary(findings),
        evidence: evidence::evidence(findings),
        advice: advice::advice(findings.class, kind, findings.held.as_ref()).to_owned(),
    }
}

fn name_culprits<'a>(
    findings: &'a Findings<'a>,
    growth: &Growth,
    beside: &'a [Suspect<'a>],
    name_of: &mut NameOf<'_>,
) -> Vec<Named<'a>> {
    let suspects = &findings.suspects;
    let all = [
        &suspects.leaking,
        &suspects.growing,
        &suspects.slowing,
        &suspects.swelling,
    ];
    let find = |id| {
        let mut sites = all.iter().flat_map(|list| list.iter()).chain(beside);
        sites.find(|suspect| suspect.site.id == id)
    };
    growth
        .culprits
        .iter()
        .filter_map(|culprit| {
            let suspect = find(culprit.site)?;
            Some(Named {
                suspect,
                stack: name_of(suspect.site.stack),
                share: culprit.share,
            })
        })
        .collect()
}

fn confidence(findings: &Findings<'_>) -> Confidence {
    let circumstances = findings.circumstances;
    let now = f64::from(circumstances.now);
    let long = LONG_WATCH * f64::from(circumstances.alarms.steps_to_decide);
    let guessed_steps = !matches!(
        circumstances.source,
        StepSource::User | StepSource::Backward
    );
    let few = findings
        .growth
        .as_ref()
        .is_some_and(|growth| growth.rises < UNSURE_RISES);
    if circumstances.lost || (findings.class == Class::Leak && few) {
        return Confidence::Low;
    }
    // Two questions say that it grew, not for how long it will.
    let by_asking = findings.class == Class::Leak && findings.suspects.leaking.is_empty();
    match findings.class {
        Class::Leak if by_asking => Confidence::Medium,
        Class::Growing => Confidence::Low,
        Class::WarmUp if circumstances.now < START => Confidence::Low,
        _ if now >= long && !guessed_steps => Confidence::High,
        _ => Confidence::Medium,
    }
}

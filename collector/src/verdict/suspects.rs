//! Which sites keep ever more, and which of those are known to stop.

use vramscope_events::Bytes;

use super::pattern::{Behaviour, Pattern, pattern};
use crate::{
    config::Alarms,
    device::Device,
    site::{FloorHistory, Site},
    snapshot::floor_at,
    view::FOLLOWER_WEIGHT,
};

/// Stairs from which on neither their distance nor their size must be even to be believed.
const MANY_RISES: usize = 8;
/// Stairs below which nothing is believed: the first may have been cut by the attach.
pub(crate) const FEW_RISES: usize = 4;
/// Distances of rises that differ by less than this factor are one rhythm.
const SAME_RHYTHM: f64 = 1.4;
/// State of an optimizer that it creates when it first sees a gradient, in parameters: Adam with
/// amsgrad keeps three values for each.
const STATE_PER_PARAMETER: f64 = 3.0;
/// Parts of the recent time in which frees of older blocks are held against the growth.
const PARTS: u32 = 8;

/// A site with its behaviour.
#[derive(Debug)]
pub(crate) struct Suspect<'a> {
    pub site: &'a Site,
    pub pattern: Pattern,
}

impl Suspect<'_> {
    /// Whether its growth went on for long enough to be called a leak.
    fn decided(&self, now: u32, alarms: &Alarms) -> bool {
        let pattern = &self.pattern;
        let even = pattern.rises.len() >= FEW_RISES && pattern.regular && pattern.even;
        let believed = pattern.rises.len() >= MANY_RISES || even;
        believed && pattern.span(now) >= f64::from(alarms.steps_to_decide)
    }

    /// Whether it says enough to be shown as growing.
    fn speaks(&self) -> bool {
        let pattern = &self.pattern;
        pattern.rises.len() >= MANY_RISES || (pattern.regular && pattern.gap >= 4.0)
    }

    /// Made on a thread without Python frames of its own.
    pub fn follows(&self) -> bool {
        self.site.is_backward()
    }

    /// What its growth counts where culprits are put in order.
    pub fn weight(&self) -> f64 {
        match self.follows() || self.site.is_optimizer() {
            true => FOLLOWER_WEIGHT,
            false => 1.0,
        }
    }

    fn same_rhythm(&self, other: &Suspect<'_>) -> bool {
        let (a, b) = (self.pattern.gap, other.pattern.gap);
        a.max(b) <= SAME_RHYTHM * a.min(b)
    }

    /// Its survivors at the floor of the last finished step: generations and bytes.
    pub fn held(&self) -> (u32, Bytes) {
        let last = self.pattern.floor.last();
        last.map_or((0, 0), |point| (point.generations, point.bytes))
    }

    /// Growth of its floor from step `from` to the last finished one.
    fn grown(&self, from: u32, now: u32) -> f64 {
        let floor = &self.pattern.floor;
        floor_at(floor, now.saturating_sub(1)) as f64 - floor_at(floor, from) as f64
    }
}

/// All sites of a book that are not still, by what they do.
#[derive(Debug, Default)]
pub(crate) struct Suspects<'a> {
    /// Their growth went on for long enough.
    pub leaking: Vec<Suspect<'a>>,
    /// Their growth is too young, or there are too few stairs.
    pub growing: Vec<Suspect<'a>>,
    /// They grew, more and more slowly.
    pub slowing: Vec<Suspect<'a>>,
    /// State that an optimizer creates as it goes.
    pub lazy_state: Vec<Suspect<'a>>,
    /// They hold several generations within a bound.
    pub bounded: Vec<Suspect<'a>>,
    /// Their bytes rise, their generations do not.
    pub swelling: Vec<Suspect<'a>>,
    /// What is kept only replaces what was there at the attach.
    pub replaced: bool,
}

impl<'a> Suspects<'a> {
    /// Looks at the sites of `device`'s main book in the finished steps before `now`.
    pub fn of(device: &'a Device, now: u32, alarms: &Alarms) -> Suspects<'a> {
        let mut suspects = Suspects::default();
        let mut accumulating = Vec::new();
        for site in device.main_book().moving() {
            let pattern = pattern(site, now);
            let behaviour = pattern.behaviour;
            let suspect = Suspect { site, pattern };
            match behaviour {
                Behaviour::Accumulating => accumulating.push(suspect),
                Behaviour::Slowing => suspects.slowing.push(suspect),
                Behaviour::Bounded => suspects.bounded.push(suspect),
                Behaviour::Swelling => suspects.swelling.push(suspect),
                Behaviour::Still => {}
            }
        }
        let (lazy, mut accumulating) = split_lazy_state(accumulating, device, now);
        suspects.lazy_state = lazy;
        for grown in [&mut accumulating, &mut suspects.slowing] {
            if replaces_older(grown, &device.baseline_history, now) {
                suspects.replaced = true;
                suspects.bounded.append(grown);
            }
        }
        let (mut leaking, rest): (Vec<_>, Vec<_>) = accumulating
            .into_iter()
            .partition(|suspect| suspect.decided(now, alarms));
        // What grows in step with a leak is part of it, even if it began a period later.
        let (joined, rest): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|suspect| leaking.iter().any(|leak| leak.same_rhythm(suspect)));
        leaking.extend(joined);
        suspects.leaking = leaking;
        suspects.growing = rest;
        if !suspects.growing.iter().any(Suspect::speaks) {
            suspects.growing.clear();
        }
        suspects
    }
}

/// State that an optimizer creates when it first sees a gradient rises in stairs while layers are
/// thawed one by one. Unlike a leak of state,
/// - it is bounded by the parameters,
/// - no other blocks are left behind with it (the parameters it belongs to),
/// - gradients come with it: `backward()` is given more memory after each stair. Where it is not,
///   an even rhythm means that state is made again for the same parameters.
fn split_lazy_state<'a>(
    accumulating: Vec<Suspect<'a>>,
    device: &Device,
    now: u32,
) -> (Vec<Suspect<'a>>, Vec<Suspect<'a>>) {
    let (state, others): (Vec<_>, Vec<_>) = accumulating
        .into_iter()
        .partition(|suspect| suspect.site.is_optimizer());
    let alone = !state.iter().any(|state| {
        let joined = |other: &Suspect<'_>| !other.follows() && other.same_rhythm(state);
        others.iter().any(joined)
    });
    let again = state.iter().any(|state| {
        let pattern = &state.pattern;
        pattern.rises.len() >= FEW_RISES && pattern.regular && pattern.even
    });
    let lazy = alone
        && state_fits(&state, device)
        && (!again || gradients_came_along(&state, device, now));
    if state.is_empty() || !lazy {
        let mut all = others;
        all.extend(state);
        return (Vec::new(), all);
    }
    // Gradients that come with it and stay are its parameters' first.
    let (mut lazy, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|other| other.follows() && state.iter().any(|state| state.same_rhythm(other)));
    lazy.extend(state);
    (lazy, others)
}

/// Whether everything else alive is enough to be the parameters of so much state.
fn state_fits(state: &[Suspect<'_>], device: &Device) -> bool {
    let held: Bytes = state.iter().map(|suspect| suspect.held().1).sum();
    let floor = device.floor.points().last().map_or(0, |point| point.floor);
    held as f64 <= STATE_PER_PARAMETER * floor.saturating_sub(held) as f64
}

/// Whether `backward()` was given more memory a step as the state grew: at least half of what the
/// gradients of its parameters need.
fn gradients_came_along(state: &[Suspect<'_>], device: &Device, now: u32) -> bool {
    let gradients = device.gradient_history.recorded();
    let since = state.iter().map(|s| s.pattern.since() + 1).min();
    // Before the first point, the stacks of the autograd threads were not known yet.
    let (Some(since), Some(known)) = (since, gradients.first()) else {
        return false;
    };
    let since = since.max(known.step);
    let last = now.saturating_sub(1);
    let eighth = (last - since.min(last)) / 8;
    let most = |steps: std::ops::RangeInclusive<u32>| {
        let given = steps.map(|step| floor_at(gradients, step) as f64);
        given.fold(0.0, f64::max)
    };
    let before = most(since..=since + eighth);
    let after = most(last - eighth..=last);
    let grown: f64 = state.iter().map(|s| s.grown(since + eighth, now)).sum();
    after - before >= 0.5 * grown / STATE_PER_PARAMETER
}

/// Whether blocks from before the attach are freed as fast as new ones are kept: a container that
/// was full at the attach turns over unseen.
fn replaces_older(accumulating: &[Suspect<'_>], baseline: &FloorHistory, now: u32) -> bool {
    let Some(since) = accumulating.iter().map(|s| s.pattern.since()).min() else {
        return false;
    };
    let last = now.saturating_sub(1);
    // What slows down has made most of its growth early.
    let slowing = accumulating
        .iter()
        .all(|s| s.pattern.behaviour == Behaviour::Slowing);
    let span = last.saturating_sub(since);
    let middle = if slowing { since } else { since + span / 2 };
    let width = (last - middle.min(last)) / PARTS;
    if width == 0 {
        return false;
    }
    let older = baseline.recorded();
    let at = |step| floor_at(older, step) as f64;
    let grown: f64 = accumulating.iter().map(|s| s.grown(middle, now)).sum();
    let even = grown / f64::from(PARTS);
    let falls = (0..PARTS)
        .map(|part| middle + part * width)
        .filter(|from| at(*from) - at(from + width) >= 0.25 * even)
        .count();
    grown > 0.0 && at(middle) - at(last) >= 0.5 * grown && falls as u32 > PARTS / 2
}

/// Sites of the driver's book that keep ever more beside the framework's cache.
pub(crate) fn beside_the_cache(device: &Device, now: u32) -> Vec<Suspect<'_>> {
    let beside = |site: &&Site| site.segment_bytes * 2 < site.live_bytes;
    let book = &device.driver;
    book.moving()
        .filter(beside)
        .map(|site| Suspect {
            site,
            pattern: pattern(site, now),
        })
        .filter(|suspect| suspect.pattern.behaviour == Behaviour::Accumulating)
        .filter(Suspect::speaks)
        .collect()
}

//! From the books to what a view shows of them.

use std::{cmp::Ordering, sync::Arc};

use rustc_hash::FxHashMap;

use crate::{
    book::Book,
    retained::Answers,
    site::{FloorPoint, Site},
    source::SourceCache,
    stacks::Stacks,
    usercode::UserCode,
    view::{Culprit, GenerationSpan, ProcessInfo, SiteId, SiteView, Verdict},
};

/// Points of a site's trend.
const TREND_POINTS: u32 = 64;
/// Spans of generations in a view.
const VIEW_SPANS: usize = 64;
/// Steps over which a site's growth is taken.
const GROWTH_WINDOW: u32 = 256;

/// Looks names up.
pub(crate) struct Names<'a> {
    pub stacks: &'a mut Stacks,
    pub user_code: &'a UserCode,
    pub sources: &'a mut SourceCache,
}

/// What was shown last of one book, so that what did not change need not be made again.
#[derive(Debug, Default)]
pub(crate) struct BookSnapshot {
    /// Versions of the book and of the answers about it, running step and definitions at the time.
    made_at: Option<(u64, u64, u32, u64)>,
    /// What the verdict said of them: culprits and the growth of all.
    blamed: (Vec<Culprit>, f64),
    sites: Vec<(u32, u64, SiteView)>,
    shown: Arc<[SiteView]>,
}

impl BookSnapshot {
    /// The sites of `book` in step `now`: those that the verdict blames first, in its order, then
    /// by growth and by live bytes, both falling.
    pub fn sites(
        &mut self,
        book: &Book,
        answers: &Answers,
        now: u32,
        verdict: Option<&Verdict>,
        process: &ProcessInfo,
        names: &mut Names<'_>,
    ) -> Arc<[SiteView]> {
        let made_at = Some((book.version, answers.version, now, names.stacks.version()));
        let culprits = verdict.map_or(&[][..], |verdict| &verdict.culprits);
        let total_growth = verdict.map_or(0.0, |verdict| verdict.growth_bytes_per_step);
        let blamed = (culprits.to_vec(), total_growth);
        if self.made_at == made_at && self.blamed == blamed {
            return Arc::clone(&self.shown);
        }
        self.refresh(book, now, process, names);
        let rank: FxHashMap<SiteId, usize> = culprits
            .iter()
            .enumerate()
            .map(|(rank, culprit)| (culprit.site, rank))
            .collect();
        let mut order: Vec<(Place, &SiteView)> = self
            .sites
            .iter()
            .map(|(_, _, view)| (Place::of(view, &rank), view))
            .collect();
        order.sort_by(|a, b| a.0.cmp(&b.0));
        self.shown = order
            .into_iter()
            .map(|(_, view)| {
                let mut view = view.clone();
                view.retained = answers.of(view.id).cloned();
                let blamed = rank
                    .get(&view.id)
                    .and_then(|rank| verdict.map(|verdict| verdict.culprits[*rank]));
                match blamed {
                    Some(culprit) => {
                        view.growth_bytes_per_step = culprit.growth_bytes_per_step;
                        view.growth_share = culprit.share;
                    }
                    None => view.growth_share = share(view.growth_bytes_per_step, total_growth),
                }
                view
            })
            .collect();
        self.made_at = made_at;
        self.blamed = blamed;
        Arc::clone(&self.shown)
    }

    fn refresh(&mut self, book: &Book, now: u32, process: &ProcessInfo, names: &mut Names<'_>) {
        let definitions = names.stacks.version();
        for (index, site) in book.sites().iter().enumerate() {
            match self.sites.get_mut(index) {
                Some((version, defined, view))
                    if *version == site.version
                        && (site.traits.is_some() || *defined == definitions) =>
                {
                    // Only what depends on the present moment. What is alive is part of the floor
                    // once its step is over, whether or not it was touched since.
                    if !site.floor.is_flat_zero() || site.live_blocks > 0 {
                        let floor = site.floor_until(now);
                        view.growth_bytes_per_step = growth(view.generations, &floor, now);
                        view.trend = trend(&floor, now);
                    }
                }
                Some(old) => *old = (site.version, definitions, show(site, now, process, names)),
                None => {
                    let view = show(site, now, process, names);
                    self.sites.push((site.version, definitions, view));
                }
            }
        }
    }
}

/// What decides about a site's place: the verdict's word, then growth, then live bytes.
struct Place {
    rank: usize,
    growth: f64,
    live_bytes: u64,
    id: SiteId,
}

impl Place {
    fn of(site: &SiteView, ranks: &FxHashMap<SiteId, usize>) -> Place {
        Place {
            rank: ranks.get(&site.id).copied().unwrap_or(usize::MAX),
            growth: site.growth_in_order(),
            live_bytes: site.live_bytes,
            id: site.id,
        }
    }

    fn cmp(&self, other: &Place) -> Ordering {
        self.rank
            .cmp(&other.rank)
            .then(other.growth.total_cmp(&self.growth))
            .then(other.live_bytes.cmp(&self.live_bytes))
            .then(self.id.cmp(&other.id))
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (part / whole).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

fn show(site: &Site, now: u32, process: &ProcessInfo, names: &mut Names<'_>) -> SiteView {
    let (stack, user_frame) =
        names
            .stacks
            .named(site.stack, process, names.user_code, names.sources);
    let floor = site.floor_until(now);
    let generations = u64::from(site.generations.count());
    SiteView {
        id: site.id,
        stack,
        user_frame,
        stacks: 1,
        live_bytes: site.live_bytes,
        live_blocks: site.live_blocks,
        total_bytes: site.total_bytes,
        total_blocks: site.total_blocks,
        generations,
        spans: spans(site),
        growth_bytes_per_step: growth(generations, &floor, now),
        growth_share: 0.0,
        first_seen: site.first_seen,
        last_seen: site.last_seen,
        oldest_survivor: site.generations.oldest(),
        sizes: site.sizes.view(),
        lifetimes: site.lifetimes.view(),
        trend: trend(&floor, now),
        retained: None,
    }
}

/// The generations at a bounded resolution: neighbours joined until they fit.
fn spans(site: &Site) -> Arc<[GenerationSpan]> {
    let all: Vec<GenerationSpan> = site.generations.spans().collect();
    let group = all.len().div_ceil(VIEW_SPANS).max(1);
    all.chunks(group)
        .map(|spans| GenerationSpan {
            first: spans[0].first,
            last: spans[spans.len() - 1].last,
            blocks: spans.iter().map(|span| span.blocks).sum(),
            bytes: spans.iter().map(|span| span.bytes).sum(),
            generations: spans.iter().map(|span| span.generations).sum(),
        })
        .collect()
}

/// Floor at `step`, from change points.
pub(crate) fn floor_at(floor: &[FloorPoint], step: u32) -> u64 {
    match floor.partition_point(|point| point.step <= step) {
        0 => 0,
        after => floor[after - 1].bytes,
    }
}

/// Mean growth of the floor over the recent window, bytes a step.
/// Growth as shown. Survivors of one step are there once, whenever they came (weights, gradients,
/// optimizer state): that they were not there earlier in the window is no growth a step.
fn growth(generations: u64, floor: &[FloorPoint], now: u32) -> f64 {
    let recent = recent_growth(floor, now);
    if generations <= 1 {
        recent.min(0.0)
    } else {
        recent
    }
}

fn recent_growth(floor: &[FloorPoint], now: u32) -> f64 {
    let Some(last) = now.checked_sub(1) else {
        return 0.0;
    };
    let first = last.saturating_sub(GROWTH_WINDOW.min(last / 2 + 1));
    if last == first {
        return 0.0;
    }
    let grown = floor_at(floor, last) as f64 - floor_at(floor, first) as f64;
    grown / f64::from(last - first)
}

fn trend(floor: &[FloorPoint], now: u32) -> Arc<[u64]> {
    let points = TREND_POINTS.min(now);
    (1..=points)
        .map(|point| floor_at(floor, now * point / points - 1))
        .collect()
}

//! Puts sites together: by line, by function, by file.

use std::{cmp::Ordering, collections::HashMap, sync::Arc};

use vramscope_events::{Bytes, FrameKind};

use crate::view::{GenerationSpan, Grouping, LOG2_BUCKETS, Log2Histogram, SiteId, SiteView};

mod spans;

pub use spans::{MAX_SPANS, merge_spans};

/// Sites of one device and layer at `grouping`, the fastest growing first, then the largest, then
/// by id. All of them; [`Groups`] makes only those that are looked at.
pub fn group(sites: &[SiteView], grouping: Grouping) -> Vec<SiteView> {
    let groups = Groups::new(sites, grouping);
    (0..groups.len()).map(|index| groups.site(index)).collect()
}

/// Sites put together and sorted as [`group`] does, each made when it is asked for: a screen
/// shows fifty of a hundred thousand.
#[derive(Debug)]
pub struct Groups<'a> {
    members: Members<'a>,
    /// Sorted, with the index into `members`.
    ranks: Vec<(Rank, usize)>,
}

impl<'a> Groups<'a> {
    /// Finds which sites belong together and sorts the groups.
    pub fn new(sites: &'a [SiteView], grouping: Grouping) -> Groups<'a> {
        let members = Members::of(sites, grouping);
        let mut ranks: Vec<(Rank, usize)> = (0..members.groups())
            .map(|index| (Rank::of_group(members.of_group(index)), index))
            .collect();
        ranks.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Groups { members, ranks }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// The sites of a group by its place in the order, as they came.
    ///
    /// # Panics
    /// If there are not so many groups.
    pub fn members(&self, index: usize) -> &[&'a SiteView] {
        self.members.of_group(self.ranks[index].1)
    }

    /// The member of a group that names it: the one that [`order`] puts first.
    ///
    /// # Panics
    /// If there are not so many groups.
    pub fn head(&self, index: usize) -> &'a SiteView {
        head(self.members(index))
    }

    /// Bytes that a group holds.
    ///
    /// # Panics
    /// If there are not so many groups.
    pub fn live_bytes(&self, index: usize) -> Bytes {
        self.ranks[index].0.live_bytes
    }

    /// A group as one site.
    ///
    /// Sums, histograms, times and trends are exact. Id, stack and user frame are those of
    /// [`Groups::head`]. `generations` are the size of the union where the members' spans tell the
    /// birth steps (a survivor of every step of the span), and otherwise the fewest that the spans
    /// allow. They are as sure as the members' own.
    ///
    /// # Panics
    /// If there are not so many groups.
    pub fn site(&self, index: usize) -> SiteView {
        merge(self.members(index))
    }
}

/// The order in which sites are shown: growth per step as it counts for the order
/// ([`SiteView::growth_in_order`]), then live bytes, both falling, then id. A growth that is not a
/// number counts as none.
pub fn order(a: &SiteView, b: &SiteView) -> Ordering {
    Rank::of(a).cmp(&Rank::of(b))
}

/// What decides about the order.
#[derive(Debug, PartialEq)]
struct Rank {
    growth: f64,
    live_bytes: Bytes,
    id: SiteId,
}

impl Rank {
    fn of(site: &SiteView) -> Rank {
        Rank {
            growth: counted(site),
            live_bytes: site.live_bytes,
            id: site.id,
        }
    }

    fn of_group(members: &[&SiteView]) -> Rank {
        Rank {
            growth: members.iter().fold(0.0, |sum, site| sum + counted(site)),
            live_bytes: members.iter().map(|site| site.live_bytes).sum(),
            id: head(members).id,
        }
    }

    fn cmp(&self, other: &Rank) -> Ordering {
        (other.growth.total_cmp(&self.growth))
            .then(other.live_bytes.cmp(&self.live_bytes))
            .then(self.id.cmp(&other.id))
    }
}

/// The member that names a group.
fn head<'a>(members: &[&'a SiteView]) -> &'a SiteView {
    match members.iter().min_by(|a, b| order(a, b)) {
        Some(head) => head,
        None => unreachable!("a group is made by its first member"),
    }
}

/// Sites by group, in one allocation: `sites[starts[i]..starts[i + 1]]` are those of group `i`.
#[derive(Debug)]
struct Members<'a> {
    sites: Vec<&'a SiteView>,
    starts: Vec<usize>,
}

impl<'a> Members<'a> {
    fn of(sites: &'a [SiteView], grouping: Grouping) -> Members<'a> {
        if grouping == Grouping::Stack {
            return Members {
                sites: sites.iter().collect(),
                starts: (0..=sites.len()).collect(),
            };
        }
        let mut index: HashMap<Key<'_>, usize> = HashMap::new();
        let mut starts = vec![0];
        let groups: Vec<usize> = sites
            .iter()
            .map(|site| {
                let next = index.len();
                let group = *index.entry(Key::of(site, grouping)).or_insert(next);
                if group == next {
                    starts.push(0);
                }
                starts[group + 1] += 1;
                group
            })
            .collect();
        for group in 1..starts.len() {
            starts[group] += starts[group - 1];
        }
        let mut next = starts.clone();
        let mut sorted: Vec<usize> = vec![0; sites.len()];
        for (site, group) in groups.into_iter().enumerate() {
            sorted[next[group]] = site;
            next[group] += 1;
        }
        Members {
            sites: sorted.into_iter().map(|site| &sites[site]).collect(),
            starts,
        }
    }

    fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    fn of_group(&self, index: usize) -> &[&'a SiteView] {
        &self.sites[self.starts[index]..self.starts[index + 1]]
    }
}

/// Whether `group`, made at `grouping`, holds `site`.
pub fn holds(group: &SiteView, site: &SiteView, grouping: Grouping) -> bool {
    match grouping {
        Grouping::Stack => group.id == site.id,
        _ => Key::of(group, grouping) == Key::of(site, grouping),
    }
}

/// What members of a group share.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    /// No frame is known.
    Unknown,
    Line(FrameKind, &'a str, u32),
    Function(FrameKind, &'a str, &'a str),
    Module(FrameKind, &'a str),
}

impl<'a> Key<'a> {
    fn of(site: &'a SiteView, grouping: Grouping) -> Key<'a> {
        let Some(frame) = site.own_frame() else {
            return Key::Unknown;
        };
        match grouping {
            // Without a line number (machine code without debug information) the function is the
            // finest that is known.
            Grouping::Stack | Grouping::Line if frame.line > 0 => {
                Key::Line(frame.kind, &frame.file, frame.line)
            }
            Grouping::Module => Key::Module(frame.kind, &frame.file),
            _ => Key::Function(frame.kind, &frame.file, &frame.function),
        }
    }
}

/// What a site's growth counts in the order.
fn counted(site: &SiteView) -> f64 {
    let growth = site.growth_in_order();
    // Makes -0 and 0 equal for `total_cmp`.
    if growth.is_finite() {
        growth + 0.0
    } else {
        0.0
    }
}

fn growth(site: &SiteView) -> f64 {
    if site.growth_bytes_per_step.is_finite() {
        // Makes -0 and 0 equal for `total_cmp`.
        site.growth_bytes_per_step + 0.0
    } else {
        0.0
    }
}

fn sum_growth(members: &[&SiteView]) -> f64 {
    // Not `sum`, which starts at -0.
    members.iter().fold(0.0, |sum, site| sum + growth(site))
}

fn merge(members: &[&SiteView]) -> SiteView {
    let mut out = head(members).clone();
    if members.len() == 1 {
        return out;
    }
    out.growth_bytes_per_step = sum_growth(members);
    out.stacks = (members.iter()).fold(0, |sum: u32, site| sum.saturating_add(site.stacks));
    out.live_bytes = sum(members, |site| site.live_bytes);
    out.live_blocks = sum(members, |site| site.live_blocks);
    out.total_bytes = sum(members, |site| site.total_bytes);
    out.total_blocks = sum(members, |site| site.total_blocks);
    out.growth_share = members
        .iter()
        .fold(0.0, |sum, site| sum + site.growth_share);
    for site in members {
        out.first_seen = out.first_seen.min(site.first_seen);
        out.last_seen = out.last_seen.max(site.last_seen);
    }
    out.oldest_survivor = members.iter().filter_map(|site| site.oldest_survivor).min();
    out.sizes = sum_histograms(members.iter().map(|site| &site.sizes));
    out.lifetimes = sum_histograms(members.iter().map(|site| &site.lifetimes));
    out.trend = sum_trends(members);
    let answers = members.iter().filter_map(|site| site.retained.as_ref());
    out.retained = answers.max_by_key(|answer| answer.asked_at).cloned();
    let spans: Vec<GenerationSpan> = members
        .iter()
        .flat_map(|site| site.spans.iter().copied())
        .collect();
    out.spans = merge_spans(spans).into();
    let by_spans: u64 = out.spans.iter().map(|span| span.generations).sum();
    out.generations = (members.iter().map(|site| site.generations))
        .max()
        .unwrap_or(0)
        .max(by_spans);
    out
}

fn sum(members: &[&SiteView], get: fn(&SiteView) -> u64) -> u64 {
    members.iter().map(|site| get(site)).sum()
}

fn sum_histograms<'a>(all: impl Iterator<Item = &'a Log2Histogram>) -> Log2Histogram {
    let mut counts = [0; LOG2_BUCKETS];
    for one in all {
        for (sum, count) in counts.iter_mut().zip(one.counts.iter()) {
            *sum += count;
        }
    }
    Log2Histogram {
        counts: counts.into(),
    }
}

/// Trends cover the whole session, each at its own number of points.
fn sum_trends(members: &[&SiteView]) -> Arc<[u64]> {
    let points = members.iter().map(|site| site.trend.len()).max();
    let points = points.unwrap_or(0);
    let mut sum = vec![0u64; points];
    for site in members {
        let own = site.trend.len();
        if own == 0 {
            continue;
        }
        for (index, value) in sum.iter_mut().enumerate() {
            // The last point of both is now.
            let from_end = (points - 1 - index) * own / points;
            *value += site.trend[own - 1 - from_end];
        }
    }
    sum.into()
}

#[cfg(test)]
mod tests;

//! Puts sites together: by line, by function, by file.

use std::{
    cmp::Ordering,
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use vramscope_events::FrameKind;

use crate::view::{GenerationSpan, Grouping, SiteView};

mod spans;

pub use spans::{MAX_SPANS, merge_spans};

/// Sites of one device and layer at `grouping`, the fastest growing first, then the largest, then
/// by id.
///
/// Sums, histograms, times and trends of a group are exact. Its id, stack and user frame are those
/// of the member that [`order`] puts first. Its `generations` are exact where the members' spans
/// tell the birth steps exactly (a survivor of every step of the span), and otherwise the fewest
/// that the spans allow: "at least".
pub fn group(sites: &[SiteView], grouping: Grouping) -> Vec<SiteView> {
    let mut groups = if grouping == Grouping::Stack {
        sites.to_vec()
    } else {
        let mut members: Vec<Vec<&SiteView>> = Vec::new();
        let mut index: HashMap<Key<'_>, usize> = HashMap::new();
        for site in sites {
            match index.entry(Key::of(site, grouping)) {
                Entry::Occupied(entry) => members[*entry.get()].push(site),
                Entry::Vacant(entry) => {
                    entry.insert(members.len());
                    members.push(vec![site]);
                }
            }
        }
        members.iter().map(|members| merge(members)).collect()
    };
    groups.sort_by(order);
    groups
}

/// The order in which sites are shown: growth per step, then live bytes, both falling, then id.
/// A growth that is not a number counts as none.
pub fn order(a: &SiteView, b: &SiteView) -> Ordering {
    growth(b)
        .total_cmp(&growth(a))
        .then(b.live_bytes.cmp(&a.live_bytes))
        .then(a.id.cmp(&b.id))
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

fn growth(site: &SiteView) -> f64 {
    if site.growth_bytes_per_step.is_finite() {
        // Makes -0 and 0 equal for `total_cmp`.
        site.growth_bytes_per_step + 0.0
    } else {
        0.0
    }
}

fn merge(members: &[&SiteView]) -> SiteView {
    let Some((&first, rest)) = members.split_first() else {
        unreachable!("a group is made by its first member");
    };
    let mut out = first.clone();
    if rest.is_empty() {
        return out;
    }
    let mut head = first;
    out.growth_bytes_per_step = growth(first);
    for &site in rest {
        if order(site, head) == Ordering::Less {
            head = site;
        }
        out.stacks = out.stacks.saturating_add(site.stacks);
        out.live_bytes += site.live_bytes;
        out.live_blocks += site.live_blocks;
        out.total_bytes += site.total_bytes;
        out.total_blocks += site.total_blocks;
        out.growth_bytes_per_step += growth(site);
        out.growth_share += site.growth_share;
        out.first_seen = out.first_seen.min(site.first_seen);
        out.last_seen = out.last_seen.max(site.last_seen);
        out.oldest_survivor = match (out.oldest_survivor, site.oldest_survivor) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for (sum, count) in out.sizes.counts.iter_mut().zip(site.sizes.counts.iter()) {
            *sum += count;
        }
        for (sum, count) in (out.lifetimes.counts.iter_mut()).zip(site.lifetimes.counts.iter()) {
            *sum += count;
        }
    }
    out.id = head.id;
    out.stack = Arc::clone(&head.stack);
    out.user_frame = head.user_frame;
    out.trend = sum_trends(members);
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

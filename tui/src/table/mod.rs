//! The table of sites: filter, grouping, order. Made anew only when the view or the question
//! changes; a frame reads the rows that it shows.
//!
//! [`vramscope_collector::grouping`] makes whole sites of groups, histograms and all. A table of a
//! hundred thousand sites needs only their sums, so these are made here, and the rest for the rows
//! on the screen alone.

mod filter;
mod key;
mod query;

use std::{cmp::Reverse, sync::Arc};

use rustc_hash::FxHashMap;
use vramscope_collector::{
    grouping,
    view::{FrameView, Grouping, SiteId, SiteView},
};
use vramscope_events::{Bytes, Time};

pub use filter::Filter;
use key::Key;
pub use query::{Mark, Order, Query};

/// One row: sums over a group's sites.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// The group's number, the same as long as the grouping is.
    pub group: u32,
    /// Index of the site that names the group: the one that grows most.
    pub head: u32,
    /// How many sites.
    pub sites: u32,
    /// Different stacks in them.
    pub stacks: u32,
    /// Growth of the survivors, bytes a step.
    pub growth: f64,
    /// Share of the device's growth.
    pub share: f64,
    /// Live bytes.
    pub live_bytes: Bytes,
    /// Live blocks: the survivors.
    pub live_blocks: u64,
    /// Bytes ever allocated.
    pub total_bytes: Bytes,
    /// Birth of the oldest survivor.
    pub oldest: Option<Time>,
    /// Most generations in one of the sites: a lower bound for the group.
    pub generations: u64,
    /// Bytes and blocks more than at the mark; 0 without one.
    pub since_mark: (i64, i64),
}

/// What is worked out only for rows on the screen.
#[derive(Clone, Debug, Default)]
pub struct RowDetail {
    /// Different birth steps of the survivors, or the fewest there can be.
    pub generations: u64,
    /// Live bytes over the session, oldest first.
    pub trend: Arc<[u64]>,
}

/// What is known of a site by its number, as long as its stack is the same one.
#[derive(Clone)]
struct Known {
    stack: Arc<[Arc<FrameView>]>,
    group: u32,
    kept: bool,
}

/// Sites are numbered by first appearance, so what is known of them fits a vector. Beyond this
/// number it is worked out anew for every view.
const MAX_KNOWN: usize = 1 << 24;

/// The table and all it remembers between views.
#[derive(Default)]
pub struct Table {
    query: Query,
    known: Vec<Option<Known>>,
    groups: FxHashMap<Key, u32>,
    frame_groups: FxHashMap<usize, (Arc<FrameView>, u32)>,
    sites: Arc<[SiteView]>,
    rows: Vec<Row>,
    /// Indices of `rows` in the order asked for.
    order: Vec<u32>,
    /// Sites by group: `members[starts[group]..starts[group + 1]]`.
    members: Vec<u32>,
    starts: Vec<u32>,
    /// The group of each site; `NONE` where it is filtered away.
    site_groups: Vec<u32>,
    /// The index in `rows` of each group.
    group_rows: Vec<u32>,
    /// The place in `order` of each group.
    places: Vec<u32>,
    changed: bool,
    edition: u64,
}

const NONE: u32 = u32::MAX;

impl Table {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// The row at a place in the order.
    pub fn row(&self, place: usize) -> Option<&Row> {
        self.order
            .get(place)
            .map(|&index| &self.rows[index as usize])
    }

    /// The rows, in order.
    #[cfg(test)]
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.order.iter().map(|&index| &self.rows[index as usize])
    }

    /// The place of a group in the order.
    pub fn place(&self, group: u32) -> Option<usize> {
        let place = *self.places.get(group as usize)?;
        (place != NONE).then_some(place as usize)
    }

    /// The row of a group.
    pub fn of_group(&self, group: u32) -> Option<&Row> {
        self.row(self.place(group)?)
    }

    /// The sites the rows are made of.
    pub fn sites(&self) -> &Arc<[SiteView]> {
        &self.sites
    }

    /// The site that names `row`.
    pub fn head(&self, row: &Row) -> &SiteView {
        &self.sites[row.head as usize]
    }

    /// The sites of `row`.
    pub fn members(&self, row: &Row) -> impl Iterator<Item = &SiteView> {
        let from = self.starts[row.group as usize] as usize;
        let to = self.starts[row.group as usize + 1] as usize;
        self.members[from..to]
            .iter()
            .map(|&index| &self.sites[index as usize])
    }

    /// The sites that pass the filter with their indices, in the order of the view.
    pub fn kept(&self) -> impl Iterator<Item = (u32, &SiteView)> {
        let all = self.sites.iter().zip(&self.site_groups).zip(0..);
        all.filter(|((_, group), _)| **group != NONE)
            .map(|((site, _), index)| (index, site))
    }

    /// A number that changes when a [`Table::refresh`] finds other stacks than the one before:
    /// sites that are new, gone, or pass the filter only now.
    pub fn edition(&self) -> u64 {
        self.edition
    }

    /// The group of a site, if it passes the filter.
    pub fn group_of_site(&self, site: SiteId) -> Option<u32> {
        let known = self.known.get(site.0 as usize)?.as_ref()?;
        known.kept.then_some(known.group)
    }

    /// Makes the rows for `sites`.
    pub fn refresh(&mut self, sites: &Arc<[SiteView]>, query: &Query, mark: Option<&Mark>) {
        let regrouped = query.grouping != self.query.grouping;
        let refiltered =
            query.filter.as_ref().map(Filter::text) != self.query.filter.as_ref().map(Filter::text);
        self.changed = refiltered;
        if regrouped || refiltered {
            self.known.clear();
        }
        if regrouped {
            self.groups.clear();
            self.frame_groups.clear();
        }
        self.query = query.clone();
        self.sites = Arc::clone(sites);
        let before = self.members.len();
        self.sum(mark);
        self.collect_members();
        // None new and none gone: the same.
        if self.changed || self.members.len() != before {
            self.edition += 1;
        }
        self.sort();
    }

    /// Finds the group of every site, or that it is filtered away, and sums up: one pass, because
    /// the sites are more than fits a cache.
    fn sum(&mut self, mark: Option<&Mark>) {
        let sites = Arc::clone(&self.sites);
        self.rows.clear();
        self.group_rows.clear();
        self.site_groups.clear();
        self.site_groups.reserve(sites.len());
        for (index, site) in sites.iter().enumerate() {
            let group = match self.known.get(site.id.0 as usize) {
                Some(Some(known)) if Arc::ptr_eq(&known.stack, &site.stack) => {
                    if known.kept {
                        known.group
                    } else {
                        NONE
                    }
                }
                _ => self.learn(site),
            };
            self.site_groups.push(group);
            if group == NONE {
                continue;
            }
            let slot = group as usize;
            if self.group_rows.len() <= slot {
                self.group_rows.resize(slot + 1, NONE);
            }
            let at = &mut self.group_rows[slot];
            if *at == NONE {
                *at = self.rows.len() as u32;
                self.rows.push(Row {
                    group,
                    // Sites come fastest growing first.
                    head: index as u32,
                    ..Row::default()
                });
            }
            let row = &mut self.rows[*at as usize];
            add(row, site);
            if let Some(mark) = mark {
                let (bytes, blocks) = mark.since(site);
                row.since_mark.0 = row.since_mark.0.saturating_add(bytes);
                row.since_mark.1 = row.since_mark.1.saturating_add(blocks);
            }
        }
    }

    fn learn(&mut self, site: &SiteView) -> u32 {
        self.changed = true;
        let filter = self.query.filter.as_ref();
        let kept = filter.is_none_or(|filter| filter.keeps(site.stack.iter().map(Arc::as_ref)));
        let group = self.group_of(site);
        let slot = site.id.0 as usize;
        if slot < MAX_KNOWN {
            if self.known.len() <= slot {
                self.known.resize(slot + 1, None);
            }
            self.known[slot] = Some(Known {
                stack: Arc::clone(&site.stack),
                group,
                kept,
            });
        }
        if kept { group } else { NONE }
    }

    fn group_of(&mut self, site: &SiteView) -> u32 {
        // Sites share their frames, so most are told by the address of theirs.
        let own = site
            .user_frame
            .and_then(|index| site.stack.get(index))
            .or_else(|| site.stack.first())
            .filter(|_| self.query.grouping != Grouping::Stack);
        let address = own.map(|frame| Arc::as_ptr(frame) as usize);
        if let Some((_, group)) = address.and_then(|address| self.frame_groups.get(&address)) {
            return *group;
        }
        let next = self.groups.len() as u32;
        let key = Key::of(site, self.query.grouping);
        let group = *self.groups.entry(key).or_insert(next);
        if let (Some(address), Some(frame)) = (address, own) {
            self.frame_groups
                .insert(address, (Arc::clone(frame), group));
        }
        group
    }

    fn collect_members(&mut self) {
        let groups = self.group_rows.len();
        self.starts.clear();
        self.starts.resize(groups + 1, 0);
        for row in &self.rows {
            self.starts[row.group as usize + 1] = row.sites;
        }
        for group in 0..groups {
            self.starts[group + 1] += self.starts[group];
        }
        let mut next = self.starts.clone();
        self.members.clear();
        self.members.resize(self.starts[groups] as usize, 0);
        for (index, &group) in self.site_groups.iter().enumerate() {
            if group != NONE {
                let at = &mut next[group as usize];
                self.members[*at as usize] = index as u32;
                *at += 1;
            }
        }
    }

    fn sort(&mut self) {
        let order = self.query.order;
        if order == Order::Generations && self.query.grouping != Grouping::Stack {
            for index in 0..self.rows.len() {
                self.rows[index].generations = self.generations(&self.rows[index]);
            }
        }
        self.order.clear();
        if order == Order::Name {
            let place = |index: u32| {
                let row = &self.rows[index as usize];
                let frame = self.sites[row.head as usize].own_frame();
                let place = frame.map(|frame| (&*frame.file, frame.line, &*frame.function));
                (place, row.group)
            };
            self.order.extend(0..self.rows.len() as u32);
            self.order.sort_by(|&a, &b| place(a).cmp(&place(b)));
        } else {
            // Rows are large; what they are ordered by is not.
            let keys = self.rows.iter().enumerate().map(|(index, row)| {
                (
                    Reverse(rank(row, order)),
                    Reverse(row.live_bytes),
                    row.group,
                    index as u32,
                )
            });
            let mut keys: Vec<_> = keys.collect();
            keys.sort_unstable();
            self.order.extend(keys.iter().map(|(.., index)| index));
        }
        if self.query.reversed {
            self.order.reverse();
        }
        self.places.clear();
        self.places.resize(self.group_rows.len(), NONE);
        for (place, &index) in self.order.iter().enumerate() {
            self.places[self.rows[index as usize].group as usize] = place as u32;
        }
    }

    /// What a row on the screen shows beyond its sums.
    pub fn detail(&self, row: &Row) -> RowDetail {
        if row.sites == 1 {
            let site = self.head(row);
            return RowDetail {
                generations: site.generations,
                trend: Arc::clone(&site.trend),
            };
        }
        RowDetail {
            generations: self.generations(row),
            trend: self.trend(row),
        }
    }

    /// The group as one site, with everything.
    pub fn site(&self, row: &Row) -> Option<SiteView> {
        if row.sites == 1 {
            return Some(self.head(row).clone());
        }
        let members: Vec<SiteView> = self.members(row).cloned().collect();
        grouping::group(&members, self.query.grouping)
            .into_iter()
            .next()
    }

    fn generations(&self, row: &Row) -> u64 {
        let spans = self
            .members(row)
            .flat_map(|site| site.spans.iter().copied())
            .collect();
        let certain: u64 = grouping::merge_spans(spans)
            .iter()
            .map(|span| span.generations)
            .sum();
        certain.max(row.generations)
    }

    /// The sum of the members' trends, each of which ends now.
    fn trend(&self, row: &Row) -> Arc<[u64]> {
        let points = self.members(row).map(|site| site.trend.len()).max();
        let points = points.unwrap_or(0);
        let mut sum = vec![0u64; points];
        for site in self.members(row) {
            let own = site.trend.len();
            if own == points {
                for (sum, value) in sum.iter_mut().zip(site.trend.iter()) {
                    *sum = sum.saturating_add(*value);
                }
                continue;
            }
            if own == 0 {
                continue;
            }
            for (index, sum) in sum.iter_mut().enumerate() {
                let value = site.trend[own - 1 - (points - 1 - index) * own / points];
                *sum = sum.saturating_add(value);
            }
        }
        sum.into()
    }
}

fn add(row: &mut Row, site: &SiteView) {
    row.sites += 1;
    row.stacks = row.stacks.saturating_add(site.stacks);
    if site.growth_bytes_per_step.is_finite() {
        row.growth += site.growth_bytes_per_step;
    }
    row.share += site.growth_share;
    // A damaged recording may hold any number.
    row.live_bytes = row.live_bytes.saturating_add(site.live_bytes);
    row.live_blocks = row.live_blocks.saturating_add(site.live_blocks);
    row.total_bytes = row.total_bytes.saturating_add(site.total_bytes);
    row.generations = row.generations.max(site.generations);
    row.oldest = match (row.oldest, site.oldest_survivor) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
}

/// A number that falls as the row belongs further down.
fn rank(row: &Row, order: Order) -> i64 {
    let unsigned = match order {
        // Sixteenths of a byte: finer differences mean nothing.
        Order::Growth | Order::Name => return (row.growth * 16.0) as i64,
        Order::SinceMark => return row.since_mark.0,
        Order::Live => row.live_bytes,
        Order::Survivors => row.live_blocks,
        Order::Generations => row.generations,
        Order::Total => row.total_bytes,
        Order::Age => match row.oldest {
            Some(birth) => i64::MAX as u64 - birth.0.min(i64::MAX as u64),
            None => 0,
        },
    };
    unsigned.min(i64::MAX as u64) as i64
}

#[cfg(test)]
mod tests;

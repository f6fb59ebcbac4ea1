//! What the table is asked, and the mark it compares with.

use rustc_hash::FxHashMap;
use vramscope_collector::view::{Grouping, SiteView};
use vramscope_events::{Bytes, Time};

use super::Filter;

/// By what the rows are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// Growth per step.
    #[default]
    Growth,
    /// Live bytes.
    Live,
    /// Live blocks.
    Survivors,
    /// Different birth steps of the survivors.
    Generations,
    /// Age of the oldest survivor.
    Age,
    /// Live bytes more than at the mark.
    SinceMark,
    /// Bytes ever allocated.
    Total,
    /// The place.
    Name,
}

impl Order {
    /// In the order in which the key goes through them.
    pub const ALL: [Order; 8] = [
        Order::Growth,
        Order::Live,
        Order::Survivors,
        Order::Generations,
        Order::Age,
        Order::SinceMark,
        Order::Total,
        Order::Name,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Order::Growth => "growth",
            Order::Live => "live",
            Order::Survivors => "survivors",
            Order::Generations => "generations",
            Order::Age => "age",
            Order::SinceMark => "since mark",
            Order::Total => "total",
            Order::Name => "name",
        }
    }
}

/// What the table is asked.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// How sites are put together.
    pub grouping: Grouping,
    /// By what they are ordered.
    pub order: Order,
    /// The small ones first.
    pub reversed: bool,
    /// Which are kept.
    pub filter: Option<Filter>,
}

/// Survivors of every site at the moment of a mark.
#[derive(Clone, Debug, Default)]
pub struct Mark {
    /// When.
    pub time: Time,
    /// After which step.
    pub step: u64,
    live: FxHashMap<u32, (Bytes, u64)>,
}

impl Mark {
    /// Remembers what is live at `sites`.
    pub fn new<'a>(time: Time, step: u64, sites: impl Iterator<Item = &'a SiteView>) -> Mark {
        Mark {
            time,
            step,
            live: sites
                .map(|site| (site.id.0, (site.live_bytes, site.live_blocks)))
                .collect(),
        }
    }

    /// Bytes and blocks that `site` has more than then.
    pub(super) fn since(&self, site: &SiteView) -> (i64, i64) {
        let (bytes, blocks) = self.live.get(&site.id.0).copied().unwrap_or_default();
        (
            difference(site.live_bytes, bytes),
            difference(site.live_blocks, blocks),
        )
    }
}

fn difference(now: u64, then: u64) -> i64 {
    let far = i64::try_from(now.abs_diff(then)).unwrap_or(i64::MAX);
    if now < then { -far } else { far }
}

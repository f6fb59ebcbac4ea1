//! Curves over the session, at a bounded number of points.

use serde::{Deserialize, Serialize};
use vramscope_events::{Bytes, Time};

/// Curves of one device since the attach. When there are too many points, neighbours are merged:
/// the floor keeps its minimum, the other curves their maximum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Oldest first.
    pub points: Vec<Point>,
    /// Things worth a mark on the time axis, oldest first.
    pub marks: Vec<SeriesMark>,
}

/// One span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Its end.
    pub time: Time,
    /// The last step in it.
    pub step: u64,
    /// Highest allocated.
    pub allocated: Bytes,
    /// Lowest allocated: the floor.
    pub floor: Bytes,
    /// Highest reserved.
    pub reserved: Bytes,
}

/// A mark on the time axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesMark {
    /// When.
    pub time: Time,
    /// What.
    pub kind: MarkKind,
}

/// What a [`SeriesMark`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// A request failed.
    OutOfMemory,
    /// The cache was given back.
    CacheEmptied,
    /// Events were lost.
    Lost,
    /// Growth began here, as the verdict sees it.
    GrowthBegan,
}

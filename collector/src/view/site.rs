//! Sites: who allocated what is still there.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vramscope_events::{Bytes, FrameKind, Time};

use super::Retained;

/// A site's number within its session: by order of first appearance, never reused.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct SiteId(pub u32);

/// How allocations are put together into sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Grouping {
    /// By the whole stack.
    Stack,
    /// By file and line of the innermost user frame.
    #[default]
    Line,
    /// By function of the innermost user frame.
    Function,
    /// By file of the innermost user frame.
    Module,
}

/// One frame as shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FrameView {
    /// What kind of code.
    pub kind: FrameKind,
    /// Source file or module. Foreign text.
    pub file: Arc<str>,
    /// Function. Foreign text.
    pub function: Arc<str>,
    /// Line from 1; 0 where unknown.
    pub line: u32,
    /// Whether it is the user's own code (not the standard library, not an installed package).
    pub user: bool,
    /// The text of the source line, trimmed, where the file could be read. Foreign text.
    pub source: Option<Arc<str>>,
}

/// Allocations that share a stack (or what a [`Grouping`] makes of it), and what became of them.
#[derive(Clone, Debug)]
pub struct SiteView {
    /// Its number. Of a group: that of the member which grows most.
    pub id: SiteId,
    /// Innermost frame first; empty for a thread of which nothing is known. Of a group: the stack
    /// of the member which grows most.
    pub stack: Arc<[Arc<FrameView>]>,
    /// Index in `stack` of the innermost frame of the user's code.
    pub user_frame: Option<usize>,
    /// How many different stacks are put together here.
    pub stacks: u32,
    /// Bytes allocated since the attach and not freed.
    pub live_bytes: Bytes,
    /// Blocks likewise.
    pub live_blocks: u64,
    /// Bytes ever allocated since the attach.
    pub total_bytes: Bytes,
    /// Blocks likewise.
    pub total_blocks: u64,
    /// Different steps in which the survivors were born.
    pub generations: u64,
    /// The survivors by birth, oldest first, at a resolution that is bounded: spans of steps.
    pub spans: Arc<[GenerationSpan]>,
    /// Bytes by which the survivors grow a step, over the recent window.
    pub growth_bytes_per_step: f64,
    /// Share of the device's growth that this site explains, 0 to 1.
    pub growth_share: f64,
    /// The first allocation here.
    pub first_seen: Time,
    /// The last one.
    pub last_seen: Time,
    /// Birth of the oldest survivor.
    pub oldest_survivor: Option<Time>,
    /// Sizes of all allocations, in bytes.
    pub sizes: Log2Histogram,
    /// Lifetimes of the freed ones, in nanoseconds.
    pub lifetimes: Log2Histogram,
    /// Live bytes over the session at equal distances, oldest first, at most 64 points.
    pub trend: Arc<[u64]>,
    /// What keeps the survivors alive, once the process was asked about this site. Of a group: the
    /// last answer about any of its members.
    pub retained: Option<Arc<Retained>>,
}

impl FrameView {
    /// Whether it is an optimizer's own code. Optimizers live in a folder named for it:
    /// `torch/optim/adam.py`, `apex/optimizers/…`, `bitsandbytes/optim/…`.
    pub fn is_optimizer(&self) -> bool {
        self.kind == FrameKind::Python && is_optimizer_file(&self.file)
    }
}

/// Whether a Python file belongs to an optimizer.
pub(crate) fn is_optimizer_file(file: &str) -> bool {
    let mut folders = file.split(['/', '\\']).rev().skip(1);
    folders.any(|folder| matches!(folder, "optim" | "optimizers"))
}

/// Weight of the growth of what follows from something else, where sites are put in order.
pub(crate) const FOLLOWER_WEIGHT: f64 = 0.25;

impl SiteView {
    /// The frame that names the site: the innermost one of the user's code, else the innermost.
    pub fn own_frame(&self) -> Option<&FrameView> {
        self.user_frame
            .and_then(|index| self.stack.get(index))
            .or_else(|| self.stack.first())
            .map(Arc::as_ref)
    }

    /// Whether an autograd thread allocated this for a `backward()` call.
    pub fn backward(&self) -> bool {
        self.stack
            .iter()
            .any(|frame| frame.kind == FrameKind::Backward)
    }

    /// Whether this is likely kept because something else is: gradients and whatever else autograd
    /// threads allocate, and the state that an optimizer keeps for parameters.
    pub fn follows(&self) -> bool {
        self.stack.is_empty()
            || self.backward()
            || self.stack.iter().any(|frame| frame.is_optimizer())
    }

    /// Growth as it counts for the order of sites, bytes a step: of what follows from something
    /// else ([`SiteView::follows`]) a quarter. Half of a leak's bytes can be gradients of what is
    /// kept, with Adam three quarters gradients and state; the line to name is the one that
    /// made what they belong to.
    pub fn growth_in_order(&self) -> f64 {
        // Most sites do not grow, and looking at all their frames takes time.
        if self.growth_bytes_per_step == 0.0 || !self.follows() {
            self.growth_bytes_per_step
        } else {
            self.growth_bytes_per_step * FOLLOWER_WEIGHT
        }
    }
}

/// Survivors that were born in the steps `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationSpan {
    /// First step.
    pub first: u64,
    /// Last step.
    pub last: u64,
    /// Live blocks.
    pub blocks: u64,
    /// Live bytes.
    pub bytes: Bytes,
    /// Different steps within the span that have survivors, exact.
    pub generations: u64,
}

/// Number of buckets of a [`Log2Histogram`].
pub const LOG2_BUCKETS: usize = 48;

/// Counts by powers of two: bucket `i` holds values in `2^i .. 2^(i+1)`, bucket 0 also zero, the
/// last one everything above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log2Histogram {
    /// The counts; shared, so that a view is cheap to clone.
    pub counts: Arc<[u64; LOG2_BUCKETS]>,
}

impl Default for Log2Histogram {
    fn default() -> Self {
        Log2Histogram {
            counts: Arc::new([0; LOG2_BUCKETS]),
        }
    }
}

impl Log2Histogram {
    /// The bucket that `value` falls into.
    pub fn bucket(value: u64) -> usize {
        (value.max(1).ilog2() as usize).min(LOG2_BUCKETS - 1)
    }

    /// Counts `value` once.
    pub fn add(&mut self, value: u64) {
        self.fill([(Self::bucket(value), 1)]);
    }

    /// Adds counts by bucket.
    pub fn fill(&mut self, buckets: impl IntoIterator<Item = (usize, u64)>) {
        let counts = Arc::make_mut(&mut self.counts);
        for (bucket, count) in buckets {
            counts[bucket] += count;
        }
    }
}

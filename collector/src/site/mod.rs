//! Sites: allocations by stack, and what became of them.

mod generations;
mod histogram;
mod history;

use serde::{Deserialize, Serialize};
use vramscope_events::{Bytes, StackId, Time};

use crate::view::SiteId;

pub(crate) use generations::Generations;
pub(crate) use histogram::SparseHistogram;
pub(crate) use history::{FloorHistory, FloorPoint};

use crate::{ledger::Block, stacks::StackTraits};

/// All allocations of one stack in one book.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Site {
    pub id: SiteId,
    pub stack: StackId,
    /// `None` until the stack is defined.
    pub traits: Option<StackTraits>,
    /// Its floor changed often enough to be looked at for growth.
    pub moving: bool,
    pub live_bytes: Bytes,
    pub live_blocks: u64,
    /// Of the live bytes, those in segments of the framework's allocator (driver book only).
    pub segment_bytes: Bytes,
    pub total_bytes: Bytes,
    pub total_blocks: u64,
    /// The smallest and the largest block ever.
    pub block_sizes: (Bytes, Bytes),
    pub generations: Generations,
    pub floor: FloorHistory,
    pub first_seen: Time,
    pub last_seen: Time,
    pub sizes: SparseHistogram,
    pub lifetimes: SparseHistogram,
    /// Counts changes, so that a view knows what it can keep.
    pub version: u32,
}

impl Site {
    pub fn new(id: SiteId, stack: StackId, step: u32, time: Time) -> Site {
        Site {
            id,
            stack,
            traits: None,
            moving: false,
            live_bytes: 0,
            live_blocks: 0,
            segment_bytes: 0,
            total_bytes: 0,
            total_blocks: 0,
            block_sizes: (Bytes::MAX, 0),
            generations: Generations::default(),
            floor: FloorHistory::new(step),
            first_seen: time,
            last_seen: time,
            sizes: SparseHistogram::default(),
            lifetimes: SparseHistogram::default(),
            version: 0,
        }
    }

    #[inline]
    pub fn alloc(&mut self, size: Bytes, step: u32, time: Time) {
        self.floor
            .enter(step, self.generations.count(), self.live_bytes);
        self.live_bytes += size;
        self.live_blocks += 1;
        self.total_bytes += size;
        self.total_blocks += 1;
        self.block_sizes.0 = self.block_sizes.0.min(size);
        self.block_sizes.1 = self.block_sizes.1.max(size);
        self.generations.add(step, size, time);
        self.last_seen = time;
        self.sizes.add(size);
        self.version = self.version.wrapping_add(1);
    }

    /// Takes out `block` in `step`; its lifetime is counted where `time` is known.
    #[inline]
    pub fn free(&mut self, block: &Block, step: u32, time: Option<Time>) {
        self.floor
            .enter(step, self.generations.count(), self.live_bytes);
        self.live_bytes -= block.size();
        self.live_blocks -= 1;
        if block.is_segment() {
            self.segment_bytes -= block.size();
        }
        self.generations.remove(block.step, block.size());
        self.floor.lower(self.generations.count(), self.live_bytes);
        if let Some(time) = time {
            self.lifetimes.add(time.0.saturating_sub(block.time.0));
        }
        self.version = self.version.wrapping_add(1);
    }

    pub fn is_backward(&self) -> bool {
        self.traits.is_some_and(|traits| traits.backward)
    }

    pub fn is_optimizer(&self) -> bool {
        self.traits.is_some_and(|traits| traits.optimizer)
    }

    /// The floor of all steps before `now`: change points, oldest first.
    pub fn floor_until(&self, now: u32) -> Vec<FloorPoint> {
        self.floor
            .until(now, self.generations.count(), self.live_bytes)
    }

    /// Renumbers the steps; `map` must not change their order.
    pub fn renumber(&mut self, map: impl Fn(u32) -> u32) {
        self.generations.renumber(&map);
        self.floor.renumber(&map);
        self.version = self.version.wrapping_add(1);
    }
}

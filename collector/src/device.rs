//! One device of one process: its books, its totals, its curves.

use serde::{Deserialize, Serialize};
use vramscope_events::{Alloc, Bytes, DeviceId, Free, Layer, OutOfMemory, StackId, Time, Totals};

use crate::{
    book::{Book, NewSites},
    floor::FloorSeries,
    ledger::Block,
    retained::Answers,
    shares::Shares,
    site::FloorHistory,
    stacks::Stacks,
    steps::Renumber,
    view::{LedgerCheck, MarkKind, SeriesMark, Verdict},
};

/// Marks kept on the time axis; beyond it the oldest go.
const MAX_MARKS: usize = 256;
/// Requests from this size on are served by the large pool of PyTorch's allocator (`kSmallSize`
/// in c10's CUDACachingAllocator).
const LARGE_POOL: Bytes = 1 << 20;

/// One device of one process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Device {
    pub id: DeviceId,
    pub tensor: Book,
    pub driver: Book,
    /// Whether the framework reports its blocks.
    pub tensor_layer: bool,
    /// The framework's totals after the last event; without a tensor layer, what the driver's
    /// book holds.
    pub totals: Totals,
    /// Whether any event told totals.
    seen: bool,
    pub totals_at_attach: Totals,
    pub peak: Bytes,
    pub check: LedgerCheck,
    pub floor: FloorSeries,
    /// What existed before the attach and is still there, by step.
    pub baseline_history: FloorHistory,
    /// Bytes that autograd threads were given in a step, by step.
    pub gradient_history: FloorHistory,
    /// Driver bytes beside the framework's segments, by step.
    pub beside_history: FloorHistory,
    /// What the driver says the process uses beyond the framework's cache, by step.
    pub outside_history: FloorHistory,
    pub memory: Option<DeviceMemory>,
    pub marks: Vec<SeriesMark>,
    pub out_of_memory: Option<OutOfMemory>,
    /// Requests of the large pool that made the cache grow although more than enough was cached.
    pub unusable_cache: UnusableCache,
    pub shares: Shares,
    /// What the process answered when it was asked who holds blocks.
    pub answers: Answers,
    /// The verdict of the last step at which one was asked for.
    pub verdict: Option<Verdict>,
}

/// What the driver says of the device.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct DeviceMemory {
    pub total: Bytes,
    pub free: Bytes,
    pub used_by_process: Option<Bytes>,
}

/// The framework's cache took memory from the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheGrew {
    /// How much; `None` where nothing was known before.
    pub by: Option<Bytes>,
}

/// Signs that cached memory could not be used.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct UnusableCache {
    pub requests: u64,
    /// The last step in which it happened.
    pub last_step: u32,
}

impl Device {
    pub fn new(id: DeviceId) -> Device {
        Device {
            id,
            tensor: Book::default(),
            driver: Book::default(),
            tensor_layer: false,
            totals: Totals::default(),
            seen: false,
            totals_at_attach: Totals::default(),
            peak: 0,
            check: LedgerCheck::default(),
            floor: FloorSeries::default(),
            baseline_history: FloorHistory::new(0),
            gradient_history: FloorHistory::new(0),
            beside_history: FloorHistory::new(0),
            outside_history: FloorHistory::new(0),
            memory: None,
            marks: Vec::new(),
            out_of_memory: None,
            unusable_cache: UnusableCache::default(),
            shares: Shares::default(),
            answers: Answers::default(),
            verdict: None,
        }
    }

    /// The book that tells what leaks.
    pub fn main_book(&self) -> &Book {
        if self.tensor_layer {
            &self.tensor
        } else {
            &self.driver
        }
    }

    /// Sites that a verdict must look at.
    pub fn moving_sites(&self) -> u64 {
        (self.tensor.moving_count() + self.driver.moving_count()) as u64
    }

    /// What existed before the attach and is still there: whatever the framework counts and the
    /// ledger does not know. Negative only while events are missing.
    pub fn baseline(&self) -> i64 {
        self.totals.allocated as i64 - self.main_book().ledger.bytes() as i64
    }

    /// Enters an allocation. Whether the framework's cache grew for it, and by how much where that
    /// can be told: then the driver's allocations just before it are segments.
    #[inline]
    pub fn alloc(
        &mut self,
        alloc: &Alloc,
        at: (u32, Time),
        new: &mut NewSites<'_>,
    ) -> Option<CacheGrew> {
        let book = match alloc.layer {
            Layer::Tensor => &mut self.tensor,
            Layer::Driver | Layer::Host => &mut self.driver,
        };
        if alloc.layer == Layer::Tensor {
            self.check.double_allocs += book.make_room(alloc.address, alloc.size, at.0);
        }
        let replaced = book.alloc(alloc.address, alloc.size, alloc.stack, at, new);
        if replaced.is_some() {
            self.check.double_allocs += 1;
        }
        match alloc.layer {
            Layer::Tensor => {
                self.shares.requested(alloc.size, at.0);
                let (first, before) = (!self.tensor_layer || !self.seen, self.totals);
                let released = self.tensor_totals(alloc.size as i64, alloc.totals, at);
                if first {
                    return Some(CacheGrew { by: None });
                }
                let held = before.reserved.saturating_sub(released);
                let grown = self.totals.reserved.saturating_sub(held);
                if grown > 0 {
                    if self.totals.reserved > before.reserved {
                        self.cache_grew(alloc.size, before, at.0);
                    }
                    return Some(CacheGrew { by: Some(grown) });
                }
            }
            Layer::Driver | Layer::Host => self.driver_totals(at),
        }
        None
    }

    /// Whether the block was known.
    #[inline]
    pub fn free(&mut self, free: &Free, at: (u32, Time)) -> bool {
        let book = match free.layer {
            Layer::Tensor => &mut self.tensor,
            Layer::Driver | Layer::Host => &mut self.driver,
        };
        let block = book.free(free.address, at.0, at.1);
        match free.layer {
            Layer::Tensor => {
                if block.is_none() {
                    self.check.unknown_frees += 1;
                }
                let size = free.size.or(block.map(|block| block.size())).unwrap_or(0);
                self.tensor_totals(-(size as i64), free.totals, at);
            }
            Layer::Driver | Layer::Host => {
                if let Some(block) = block.filter(Block::is_segment) {
                    self.shares.segment_freed(block.size());
                }
                self.driver_totals(at);
            }
        }
        block.is_some()
    }

    /// Events of the process were lost.
    pub fn lost(&mut self, step: u32) {
        self.check.double_allocs += self.tensor.lost(step);
    }

    /// Takes over the framework's totals, or keeps them up where it does not tell them. Gives back
    /// what it gave back to the driver since it told them last.
    #[inline]
    fn tensor_totals(&mut self, delta: i64, told: Option<Totals>, at: (u32, Time)) -> Bytes {
        if !self.tensor_layer {
            // Whatever the driver's book showed before is not what tensors hold.
            self.tensor_layer = true;
            self.floor = FloorSeries::default();
            self.peak = 0;
            self.seen = false;
        }
        let expected = self.totals.allocated.saturating_add_signed(delta);
        let totals = told.unwrap_or(Totals {
            allocated: expected,
            ..self.totals
        });
        if !self.seen {
            self.seen = true;
            self.totals_at_attach = Totals {
                allocated: totals.allocated.saturating_add_signed(-delta),
                ..totals
            };
        } else if told.is_some() {
            let off = expected.abs_diff(totals.allocated);
            if off == 0 {
                self.check.agreed += 1;
            } else {
                self.check.corrected += 1;
                self.check.corrected_bytes += off;
            }
        }
        self.see(totals, at);
        match told {
            Some(_) => self.shares.totals_told(),
            None => 0,
        }
    }

    /// Without a tensor layer, the driver's book is all there is to go by.
    fn driver_totals(&mut self, at: (u32, Time)) {
        if !self.tensor_layer {
            self.seen = true;
            let bytes = self.driver.ledger.bytes();
            self.see(
                Totals {
                    allocated: bytes,
                    reserved: bytes,
                },
                at,
            );
        }
    }

    #[inline]
    fn see(&mut self, totals: Totals, (step, time): (u32, Time)) {
        self.totals = totals;
        self.peak = self.peak.max(totals.allocated);
        self.floor.see(step, time, totals);
    }

    /// The cache took bytes from the driver for a request of `size`.
    #[cold]
    fn cache_grew(&mut self, size: Bytes, before: Totals, step: u32) {
        let cached = before.reserved.saturating_sub(before.allocated);
        if size >= LARGE_POOL && cached >= 2 * size {
            self.unusable_cache.requests += 1;
            self.unusable_cache.last_step = step;
        }
    }

    /// What the framework holds from the driver: its own word, less what it gave back since.
    pub fn reserved(&self) -> Bytes {
        match self.tensor_layer {
            true => (self.totals.reserved).saturating_sub(self.shares.released()),
            false => self.totals.reserved,
        }
    }

    /// What is known of the process's use of the device.
    fn known(&self) -> Bytes {
        let taken = match self.tensor_layer {
            true => self.reserved() + self.driver.bytes_beside_segments(),
            false => self.driver.ledger.bytes(),
        };
        taken + self.shares.pools_kept
    }

    /// Whether the process has nothing on it: all that is known is that the device is there, as
    /// for each process that sees it.
    pub fn is_untouched(&self) -> bool {
        let used = self.memory.and_then(|memory| memory.used_by_process);
        !self.seen && self.driver.sites().is_empty() && used.unwrap_or(0) == 0
    }

    /// The driver says how much memory the device has and who uses it.
    pub fn told_memory(&mut self, memory: DeviceMemory) {
        let known = self.known();
        self.shares.used(memory.used_by_process, known);
        self.memory = Some(memory);
    }

    pub fn mark(&mut self, kind: MarkKind, time: Time) {
        if self.marks.len() == MAX_MARKS {
            self.marks.remove(0);
        }
        self.marks.push(SeriesMark { time, kind });
    }

    pub fn end_step(&mut self, next: u32, time: Time) {
        if self.seen {
            self.floor.end_step(next, time, self.totals);
            let baseline = self.baseline().max(0) as u64;
            self.baseline_history.enter(next, 0, baseline);
            let book = match self.tensor_layer {
                true => &mut self.tensor,
                false => &mut self.driver,
            };
            let gradients = std::mem::take(&mut book.gradients);
            self.gradient_history.enter(next, 0, gradients);
            let beside = self.driver.bytes_beside_segments();
            self.beside_history.enter(next, 0, beside);
            if let Some(outside) = self.outside() {
                self.outside_history.enter(next, 0, outside);
            }
        }
    }

    pub fn renumber(&mut self, renumber: &Renumber) {
        let map = |step| renumber.apply(step);
        self.tensor.renumber(&map);
        self.driver.renumber(&map);
        self.floor.renumber(map);
        self.baseline_history.renumber(map);
        self.gradient_history.renumber(map);
        self.beside_history.renumber(map);
        self.outside_history.renumber(map);
        self.unusable_cache.last_step = map(self.unusable_cache.last_step);
        self.shares.renumber(map);
    }

    pub fn stack_defined(&mut self, stack: StackId, stacks: &Stacks) {
        self.tensor.stack_defined(stack, stacks);
        self.driver.stack_defined(stack, stacks);
    }

    pub fn frame_defined(&mut self, stacks: &Stacks) {
        self.tensor.frame_defined(stacks);
        self.driver.frame_defined(stacks);
    }

    /// Device memory beyond the framework's cache that the process took since the attach, where
    /// it shows.
    pub fn outside(&self) -> Option<Bytes> {
        let memory = self.memory?;
        Some(memory.used_by_process?.saturating_sub(self.reserved()))
    }
}

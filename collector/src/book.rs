//! One book of one device: its live blocks and its sites.

use rustc_hash::FxHashMap;
use vramscope_events::{Address, Bytes, StackId, Time};

use crate::{
    ledger::{Block, Ledger},
    site::Site,
    stacks::Stacks,
    view::SiteId,
};

/// Changes of a site's floor from which on it is looked at for growth: fewer stairs are no rhythm.
const MOVING: usize = 3;

/// The blocks and sites of one layer of one device.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub ledger: Ledger,
    sites: Vec<Site>,
    by_stack: FxHashMap<StackId, u32>,
    /// Sites whose floor changed at least [`MOVING`] times.
    moving: Vec<u32>,
    /// Sites whose stack is not fully defined yet.
    unresolved: Vec<u32>,
    resolved_at: u64,
    /// Live bytes of sites that autograd threads fill.
    backward_bytes: Bytes,
    /// Bytes that autograd threads were given since this was last cleared.
    pub gradients: Bytes,
    /// An optimizer gave back what it had just taken since this was last cleared: it made a step.
    /// State that it creates does not count, that may come at any rhythm.
    pub optimizer_ran: bool,
    /// Counts changes, so that a view knows what it can keep.
    pub version: u64,
    /// Bytes marked as segments of the framework's allocator.
    segment_bytes: Bytes,
}

impl Book {
    /// Enters an allocation; gives back the block that was thought to live there.
    #[inline]
    pub fn alloc(
        &mut self,
        address: Address,
        size: Bytes,
        stack: StackId,
        (step, time): (u32, Time),
        ids: &mut SiteIds,
    ) -> Option<Block> {
        self.version += 1;
        let index = match self.by_stack.get(&stack) {
            Some(index) => *index,
            None => self.new_site(stack, step, time, ids),
        };
        let old = self
            .ledger
            .insert(address, Block::new(size, index, step, time));
        if let Some(old) = old {
            self.take_from_site(&old, step, None);
        }
        let site = &mut self.sites[index as usize];
        site.alloc(size, step, time);
        if !site.moving && site.floor.changes() >= MOVING {
            site.moving = true;
            self.moving.push(index);
        }
        if site.is_backward() {
            self.backward_bytes += size;
            self.gradients += size;
        }
        old
    }

    /// Takes out the block at `address`; `None` for an unknown one.
    #[inline]
    pub fn free(&mut self, address: Address, step: u32, time: Time) -> Option<Block> {
        let block = self.ledger.remove(address)?;
        self.version += 1;
        self.take_from_site(&block, step, Some(time));
        Some(block)
    }

    fn take_from_site(&mut self, block: &Block, step: u32, time: Option<Time>) {
        let site = &mut self.sites[block.site as usize];
        site.free(block, step, time);
        if let Some(traits) = site.traits {
            self.optimizer_ran |= traits.optimizer && block.step == step;
            if traits.backward {
                self.backward_bytes -= block.size();
            }
        }
        if block.is_segment() {
            self.segment_bytes -= block.size();
        }
    }

    #[cold]
    fn new_site(&mut self, stack: StackId, step: u32, time: Time, ids: &mut SiteIds) -> u32 {
        let index = self.sites.len() as u32;
        self.sites.push(Site::new(ids.next(), stack, step, time));
        self.by_stack.insert(stack, index);
        self.unresolved.push(index);
        self.resolved_at = u64::MAX;
        index
    }

    /// Marks the block at `address` as a segment of the framework's allocator.
    pub fn mark_segment(&mut self, address: Address) {
        if let Some(block) = self.ledger.mark_segment(address) {
            self.version += 1;
            self.sites[block.site as usize].segment_bytes += block.size();
            self.segment_bytes += block.size();
        }
    }

    /// Looks up what the stacks of new sites say; cheap when nothing was defined since.
    pub fn resolve(&mut self, stacks: &Stacks) {
        if self.unresolved.is_empty() || self.resolved_at == stacks.version() {
            return;
        }
        self.resolved_at = stacks.version();
        let sites = &mut self.sites;
        let backward_bytes = &mut self.backward_bytes;
        self.unresolved.retain(|index| {
            let site = &mut sites[*index as usize];
            site.traits = stacks.traits(site.stack);
            if site.is_backward() {
                *backward_bytes += site.live_bytes;
            }
            site.traits.is_none()
        });
    }

    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The sites whose floor changed more than a start explains.
    pub fn moving(&self) -> impl Iterator<Item = &Site> {
        self.moving.iter().map(|index| &self.sites[*index as usize])
    }

    pub fn moving_count(&self) -> usize {
        self.moving.len()
    }

    /// The site that `block` belongs to.
    pub fn site_of(&self, block: &Block) -> &Site {
        &self.sites[block.site as usize]
    }

    pub fn backward_bytes(&self) -> Bytes {
        self.backward_bytes
    }

    /// Live bytes that are not segments of the framework's allocator.
    pub fn bytes_beside_segments(&self) -> Bytes {
        self.ledger.bytes() - self.segment_bytes
    }

    /// Renumbers the steps; `map` must not change their order.
    pub fn renumber(&mut self, map: &impl Fn(u32) -> u32) {
        self.version += 1;
        self.ledger.renumber(map);
        for site in &mut self.sites {
            site.renumber(map);
        }
    }
}

/// Hands out site numbers: by order of first appearance, never reused.
#[derive(Debug, Default)]
pub(crate) struct SiteIds(u32);

impl SiteIds {
    fn next(&mut self) -> SiteId {
        let id = SiteId(self.0);
        self.0 += 1;
        id
    }
}

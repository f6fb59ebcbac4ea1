//! One book of one device: its live blocks and its sites.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
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
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Book {
    /// Kept beside the rest: a recording has it in a form of its own.
    #[serde(skip)]
    pub ledger: Ledger,
    sites: Vec<Site>,
    #[serde(skip)]
    by_stack: FxHashMap<StackId, u32>,
    /// Sites whose floor changed at least [`MOVING`] times.
    moving: Vec<u32>,
    /// Sites whose stack is not fully defined yet.
    unresolved: Vec<u32>,
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
        new: &mut NewSites<'_>,
    ) -> Option<Block> {
        self.version += 1;
        let index = match self.by_stack.get(&stack) {
            Some(index) => *index,
            None => self.new_site(stack, step, time, new),
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

    /// Takes out the block at `address` to enter it elsewhere: it was not freed. With its stack.
    pub fn take(&mut self, address: Address, step: u32) -> Option<(Block, StackId)> {
        let block = self.ledger.remove(address)?;
        self.version += 1;
        self.take_from_site(&block, step, None);
        Some((block, self.site_of(&block).stack))
    }

    /// Events were lost. Takes out the blocks that were freed unseen, as far as it shows; how many.
    #[cold]
    pub fn lost(&mut self, step: u32) -> u64 {
        let gone = self.ledger.keep_order();
        for address in &gone {
            self.take_unseen(*address, step);
        }
        gone.len() as u64
    }

    /// Takes out the blocks in whose place a new one was handed out; how many. Before anything was
    /// lost there are none.
    #[inline]
    pub fn make_room(&mut self, address: Address, size: Bytes, step: u32) -> u64 {
        let mut gone = 0;
        while let Some(phantom) = self.ledger.overlapped(address, size) {
            self.take_unseen(phantom, step);
            gone += 1;
        }
        gone
    }

    /// When it was freed nobody knows, so it has no lifetime.
    #[cold]
    fn take_unseen(&mut self, address: Address, step: u32) {
        if let Some(block) = self.ledger.remove(address) {
            self.version += 1;
            self.take_from_site(&block, step, None);
        }
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
    fn new_site(&mut self, stack: StackId, step: u32, time: Time, new: &mut NewSites<'_>) -> u32 {
        let index = self.sites.len() as u32;
        let mut site = Site::new(new.ids.next(), stack, step, time);
        site.traits = new.stacks.traits(stack);
        if site.traits.is_none() {
            self.unresolved.push(index);
        }
        self.sites.push(site);
        self.by_stack.insert(stack, index);
        index
    }

    /// Marks the block at `address` as a segment of the framework's allocator.
    pub fn mark_segment(&mut self, address: Address, graph: bool) {
        if self.ledger.get(address).is_some_and(Block::is_segment) {
            return;
        }
        if let Some(block) = self.ledger.mark_segment(address, graph) {
            self.version += 1;
            self.sites[block.site as usize].segment_bytes += block.size();
            self.segment_bytes += block.size();
        }
    }

    /// A stack was defined after its first use.
    pub fn stack_defined(&mut self, stack: StackId, stacks: &Stacks) {
        if self.unresolved.is_empty() {
            return;
        }
        let Some(index) = self.by_stack.get(&stack) else {
            return;
        };
        let site = &mut self.sites[*index as usize];
        if site.traits.is_some() {
            return;
        }
        site.traits = stacks.traits(stack);
        if site.traits.is_some() {
            site.version = site.version.wrapping_add(1);
            if site.is_backward() {
                self.backward_bytes += site.live_bytes;
            }
            self.unresolved.retain(|unresolved| unresolved != index);
        }
    }

    /// A frame was defined: perhaps the one that a stack still lacked.
    pub fn frame_defined(&mut self, stacks: &Stacks) {
        let sites = &mut self.sites;
        let backward_bytes = &mut self.backward_bytes;
        self.unresolved.retain(|index| {
            let site = &mut sites[*index as usize];
            site.traits = stacks.traits(site.stack);
            // It has a name now: views must show it.
            site.version = site.version.wrapping_add(u32::from(site.traits.is_some()));
            if site.is_backward() {
                *backward_bytes += site.live_bytes;
            }
            site.traits.is_none()
        });
    }

    /// Takes back what was kept beside the rest. `None` if the two do not fit.
    pub fn restore(&mut self, blocks: &[vramscope_recording::Block]) -> Option<()> {
        let sites = self.sites.iter().zip(0..);
        self.by_stack = sites.map(|(site, index)| (site.stack, index)).collect();
        let indices = self.moving.iter().chain(&self.unresolved);
        let inside = |index: &u32| (*index as usize) < self.sites.len();
        if !indices.copied().all(|index| inside(&index)) || self.by_stack.len() != self.sites.len()
        {
            return None;
        }
        for block in blocks {
            let site = *self.by_stack.get(&block.stack)?;
            let new = Block::new(block.size, site, block.step, block.born);
            self.ledger.insert(block.address, new);
            if block.segment {
                self.ledger.mark_segment(block.address, block.graph);
            }
        }
        Some(())
    }

    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The sites of some stacks.
    pub fn sites_of(&self, stacks: &[StackId]) -> Vec<SiteId> {
        let known = stacks.iter().filter_map(|stack| self.by_stack.get(stack));
        known.map(|index| self.sites[*index as usize].id).collect()
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

    /// The segments of the framework's allocator, in no order.
    pub fn segments(&self) -> impl Iterator<Item = (Address, &Block)> {
        self.ledger.iter().filter(|(_, block)| block.is_segment())
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

/// What a new site needs.
pub(crate) struct NewSites<'a> {
    pub ids: &'a mut SiteIds,
    pub stacks: &'a Stacks,
}

/// Hands out site numbers: by order of first appearance, never reused.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SiteIds(u32);

impl SiteIds {
    fn next(&mut self) -> SiteId {
        let id = SiteId(self.0);
        self.0 += 1;
        id
    }
}

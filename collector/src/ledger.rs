//! Live blocks by address.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use vramscope_events::{Address, Bytes, Time};

/// A live block: everything known of a survivor but its address. 24 bytes, 33 with its address
/// and the hash table's control byte; at the table's lowest filling after growth (7/16) that is
/// 75 bytes a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The size, and in the highest bits what the framework's allocator took it for.
    size: u64,
    /// When it was allocated.
    pub time: Time,
    /// Index of its site in its book.
    pub site: u32,
    /// The step it was born in.
    pub step: u32,
}

const SEGMENT: u64 = 1 << 63;
const GRAPH: u64 = 1 << 62;

impl Block {
    pub fn new(size: Bytes, site: u32, step: u32, time: Time) -> Block {
        Block {
            size: size & !(SEGMENT | GRAPH),
            time,
            site,
            step,
        }
    }

    pub fn size(&self) -> Bytes {
        self.size & !(SEGMENT | GRAPH)
    }

    /// Whether the framework's allocator took it to cut tensors from.
    pub fn is_segment(&self) -> bool {
        self.size & SEGMENT != 0
    }

    /// Whether that was for the private pool of a graph.
    pub fn is_graph(&self) -> bool {
        self.size & GRAPH != 0
    }
}

/// The live blocks of one layer of one device. Neither a double allocation nor an unknown free is
/// an error: both happen whenever events are missing.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    blocks: FxHashMap<u64, Block>,
    bytes: Bytes,
    /// The addresses in order, once events are missing: two live blocks never overlap, so a block
    /// in whose place another one was handed out has been freed unseen. Until then there is
    /// nothing to find, and nobody pays for the order.
    order: Option<BTreeSet<u64>>,
}

impl Ledger {
    /// Enters a block; gives back the one that was thought to live at its address.
    pub fn insert(&mut self, address: Address, block: Block) -> Option<Block> {
        let old = self.blocks.insert(address.0, block);
        if let Some(order) = &mut self.order {
            order.insert(address.0);
        }
        self.bytes += block.size();
        self.bytes -= old.map_or(0, |old| old.size());
        old
    }

    /// Takes a block out; `None` for an address that is not known.
    pub fn remove(&mut self, address: Address) -> Option<Block> {
        let block = self.blocks.remove(&address.0)?;
        if let Some(order) = &mut self.order {
            order.remove(&address.0);
        }
        self.bytes -= block.size();
        Some(block)
    }

    /// Events were lost: from here on [`Ledger::overlapped`] finds what was freed unseen. Gives
    /// back the blocks that are in each other's way already, the older one of each two; they are
    /// still to be removed. A loss is told after it happened, so there may be some.
    pub fn keep_order(&mut self) -> Vec<Address> {
        if self.order.is_some() {
            return Vec::new();
        }
        let mut starts: Vec<u64> = self.blocks.keys().copied().collect();
        starts.sort_unstable();
        let mut gone = Vec::new();
        // The block that reaches furthest of those before, and is not gone.
        let mut before: Option<(u64, Block)> = None;
        for start in &starts {
            let block = self.blocks[start];
            match before {
                Some((other, known)) if end(other, &known) > *start => {
                    if known.time <= block.time {
                        gone.push(Address(other));
                        before = Some((*start, block));
                    } else {
                        gone.push(Address(*start));
                    }
                }
                _ => before = Some((*start, block)),
            }
        }
        self.order = Some(starts.into_iter().collect());
        gone
    }

    /// The first block that a new one at `address` would overlap, beside one at the very same
    /// address. `None` as long as no order is kept.
    pub fn overlapped(&self, address: Address, size: Bytes) -> Option<Address> {
        let order = self.order.as_ref()?;
        let below = order.range(..address.0).next_back();
        let reaches = |start: &&u64| {
            let block = self.blocks.get(start);
            block.is_some_and(|block| end(**start, block) > address.0)
        };
        let above = address.0.saturating_add(1)..address.0.saturating_add(size.max(1));
        below
            .filter(reaches)
            .or_else(|| order.range(above).next())
            .map(|start| Address(*start))
    }

    /// Marks a block as a segment of the framework's allocator.
    pub fn mark_segment(&mut self, address: Address, graph: bool) -> Option<Block> {
        let block = self.blocks.get_mut(&address.0)?;
        block.size |= SEGMENT | if graph { GRAPH } else { 0 };
        Some(*block)
    }

    pub fn get(&self, address: Address) -> Option<&Block> {
        self.blocks.get(&address.0)
    }

    pub fn contains(&self, address: Address) -> bool {
        self.blocks.contains_key(&address.0)
    }

    pub fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// All blocks, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Address, &Block)> {
        self.blocks
            .iter()
            .map(|(address, block)| (Address(*address), block))
    }

    /// Renumbers the births of all blocks; `map` must not change the order of steps.
    pub fn renumber(&mut self, map: impl Fn(u32) -> u32) {
        for block in self.blocks.values_mut() {
            block.step = map(block.step);
        }
    }
}

/// Where a block ends.
fn end(start: u64, block: &Block) -> u64 {
    start.saturating_add(block.size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_small() {
        assert_eq!(size_of::<(u64, Block)>(), 32);
    }

    #[test]
    fn bytes_follow_the_blocks() {
        let mut ledger = Ledger::default();
        let block = |size| Block::new(size, 0, 0, Time(1));
        assert_eq!(ledger.insert(Address(512), block(10)), None);
        assert_eq!(ledger.insert(Address(512), block(30)), Some(block(10)));
        assert_eq!((ledger.bytes(), ledger.blocks()), (30, 1));
        let marked = ledger.mark_segment(Address(512), true).unwrap();
        assert!(marked.is_segment() && marked.is_graph() && marked.size() == 30);
        assert_eq!(ledger.remove(Address(512)).unwrap().size(), 30);
        assert_eq!(ledger.remove(Address(512)), None);
        assert_eq!((ledger.bytes(), ledger.blocks()), (0, 0));
    }

    #[test]
    fn what_is_overlapped_is_found_once_the_order_is_kept() {
        let mut ledger = Ledger::default();
        let block = |size, time| Block::new(size, 0, 0, Time(time));
        for (address, size, time) in [(0, 100, 5), (50, 10, 4), (200, 100, 1), (250, 100, 2)] {
            ledger.insert(Address(address), block(size, time));
        }
        assert_eq!(ledger.overlapped(Address(90), 20), None);
        // Of two in one place the older one is gone.
        assert_eq!(ledger.keep_order(), [Address(50), Address(200)]);
        for gone in [50, 200] {
            ledger.remove(Address(gone));
        }
        assert!(ledger.keep_order().is_empty());
        assert_eq!(ledger.overlapped(Address(100), 150), None);
        assert_eq!(ledger.overlapped(Address(100), 151), Some(Address(250)));
        assert_eq!(ledger.overlapped(Address(99), 1), Some(Address(0)));
        assert_eq!(ledger.overlapped(Address(0), 100), None);
        assert_eq!(ledger.overlapped(Address(349), 1), Some(Address(250)));
        assert_eq!(ledger.overlapped(Address(350), u64::MAX), None);
        assert_eq!(ledger.overlapped(Address(0), u64::MAX), Some(Address(250)));
    }
}

//! Live blocks by address.

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
}

impl Ledger {
    /// Enters a block; gives back the one that was thought to live at its address.
    pub fn insert(&mut self, address: Address, block: Block) -> Option<Block> {
        let old = self.blocks.insert(address.0, block);
        self.bytes += block.size();
        self.bytes -= old.map_or(0, |old| old.size());
        old
    }

    /// Takes a block out; `None` for an address that is not known.
    pub fn remove(&mut self, address: Address) -> Option<Block> {
        let block = self.blocks.remove(&address.0)?;
        self.bytes -= block.size();
        Some(block)
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
}

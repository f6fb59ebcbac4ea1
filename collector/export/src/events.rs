//! Allocations and frees one by one, in pairs that add up to a selection.

use rustc_hash::FxHashMap;
use vramscope_events::{Address, Bytes, Tid, Time};

use crate::{
    frames::StackIndex,
    gather::Gathered,
    selection::{Kind, Part},
    tail::TailKind,
};

/// A block comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// When.
    pub time: Time,
    /// On which thread; 0 where it is not kept.
    pub thread: Tid,
    /// Where the block lies.
    pub address: Address,
    /// Its size.
    pub size: Bytes,
    /// Who asked for it.
    pub stack: StackIndex,
    /// Whether it comes.
    pub comes: bool,
}

/// The events of one part, oldest first: first the blocks from before the kept tail, then the
/// tail. A free comes only after its allocation, and what has come and not gone at the end is the
/// selection. Selections that are not the state at the end of the tail have no frees.
pub fn block_events(gathered: &Gathered, part: &Part) -> Vec<BlockEvent> {
    let mut out = Vec::new();
    let survivors = part.blocks.iter().map(|block| BlockEvent {
        time: block.born,
        thread: Tid(0),
        address: block.address,
        size: block.size,
        stack: block.stack,
        comes: true,
    });
    if !gathered.tail_is_state {
        out.extend(survivors);
        return out;
    }
    debug_assert_eq!(gathered.selection.kind, Kind::Alive);
    let (churn, alive) = tail_events(gathered, part);
    let from_before = survivors.filter(|block| {
        alive
            .get(&block.address)
            .is_none_or(|come| come.time != block.time)
    });
    out.extend(from_before);
    out.extend(churn);
    // A recording's clock may step back by what two threads race for; viewers want order. Stable,
    // so what is of one moment stays as it was.
    out.sort_by_key(|event| event.time);
    out
}

/// The tail's events in pairs, and what is alive of them at its end.
fn tail_events(
    gathered: &Gathered,
    part: &Part,
) -> (Vec<BlockEvent>, FxHashMap<Address, BlockEvent>) {
    let mut out = Vec::new();
    let mut alive: FxHashMap<Address, BlockEvent> = FxHashMap::default();
    let gone = |block: BlockEvent, time: Time, thread: Tid| BlockEvent {
        time: time.max(block.time),
        thread,
        comes: false,
        ..block
    };
    for event in gathered.tail.events().filter(|event| event.is_of(part.key)) {
        match event.what {
            TailKind::Alloc {
                address,
                size,
                stack,
                ..
            } => {
                let Some(stack) = gathered.tail_stacks.get(&(event.process, stack)) else {
                    continue;
                };
                let block = BlockEvent {
                    time: event.time,
                    thread: event.thread,
                    address,
                    size,
                    stack: *stack,
                    comes: true,
                };
                // Its free was missed.
                if let Some(old) = alive.insert(address, block) {
                    out.push(gone(old, event.time, event.thread));
                }
                out.push(block);
            }
            TailKind::Free { address, .. } => {
                // Blocks from before the tail have left no allocation to pair with.
                if let Some(block) = alive.remove(&address) {
                    out.push(gone(block, event.time, event.thread));
                }
            }
            _ => {}
        }
    }
    (out, alive)
}

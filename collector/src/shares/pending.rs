//! Which of the driver's allocations are segments of the framework's allocator.
//!
//! PyTorch's allocator takes a segment and reports the block that it was taken for under one lock,
//! on one thread. So the driver's call stands just before the report on the same thread, and the
//! framework's `reserved` has grown by it since the report before.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use vramscope_events::{Address, Bytes, DeviceId, Tid};

/// Driver allocations that may yet turn out to be segments. A segment that grows takes its memory
/// in pieces of 2 or 20 MiB: so many are 80 GB.
const MOST: usize = 4096;

/// Sizes of PyTorch's segments (`kSmallSize`, `kSmallBuffer`, `kMinLargeAlloc`, `kLargeBuffer` and
/// `kRoundLarge` in c10's CUDACachingAllocator).
pub(crate) const SMALL_REQUEST: Bytes = 1 << 20;
pub(crate) const SMALL_SEGMENT: Bytes = 2 << 20;
const LARGE_REQUEST: Bytes = 10 << 20;
const LARGE_SEGMENT: Bytes = 20 << 20;

/// A driver allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Taken {
    pub thread: Tid,
    pub device: DeviceId,
    pub address: Address,
    pub size: Bytes,
    /// Whether it was taken while a graph was captured.
    pub graph: bool,
}

/// The latest driver allocations that no report claimed, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pending(VecDeque<Taken>);

impl Pending {
    pub fn add(&mut self, taken: Taken) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(taken);
    }

    /// It was given back.
    pub fn remove(&mut self, address: Address) {
        // What goes soon came lately.
        if let Some(index) = self.0.iter().rposition(|taken| taken.address == address) {
            self.0.remove(index);
        }
    }

    /// The segments that a block of `request` bytes was cut from, taken by `thread` just before:
    /// the cache grew by `grown`, where that is known.
    pub fn claim(&mut self, thread: Tid, request: Bytes, grown: Option<Bytes>) -> Vec<Taken> {
        let latest: Vec<usize> = (0..self.0.len())
            .rev()
            .filter(|index| self.0[*index].thread == thread)
            .collect();
        let sizes: Vec<Bytes> = latest.iter().map(|index| self.0[*index].size).collect();
        let run = grown
            .and_then(|grown| run_of(&sizes, grown))
            .or_else(|| expected(&sizes, request));
        let Some(run) = run else {
            return Vec::new();
        };
        // From the newest: removing one moves none of those that follow.
        latest[run]
            .iter()
            .filter_map(|index| self.0.remove(*index))
            .collect()
    }
}

/// The allocations, newest first, that make up `sum`: the newest ones if they do, else the first
/// that does alone.
fn run_of(sizes: &[Bytes], sum: Bytes) -> Option<std::ops::Range<usize>> {
    let mut total: Bytes = 0;
    for (index, size) in sizes.iter().enumerate() {
        total = total.saturating_add(*size);
        if total == sum {
            return Some(0..index + 1);
        }
        if total > sum {
            break;
        }
    }
    let alone = sizes.iter().position(|size| *size == sum)?;
    Some(alone..alone + 1)
}

/// The newest ones, if they are what PyTorch takes for a request of that size: a segment, or
/// pieces of one that grows.
fn expected(sizes: &[Bytes], request: Bytes) -> Option<std::ops::Range<usize>> {
    let (segment, piece) = if request <= SMALL_REQUEST {
        (SMALL_SEGMENT, SMALL_SEGMENT)
    } else if request < LARGE_REQUEST {
        (LARGE_SEGMENT, LARGE_SEGMENT)
    } else {
        (request.next_multiple_of(SMALL_SEGMENT), LARGE_SEGMENT)
    };
    if sizes.first() == Some(&segment) {
        return Some(0..1);
    }
    let pieces = usize::try_from(request.div_ceil(piece)).ok()?;
    let newest = sizes.get(..pieces)?;
    newest
        .iter()
        .all(|size| *size == piece)
        .then_some(0..pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: Bytes = 1 << 20;

    fn pending(taken: &[(u32, u64, Bytes)]) -> Pending {
        let mut pending = Pending::default();
        for &(thread, address, size) in taken {
            pending.add(Taken {
                thread: Tid(thread),
                device: DeviceId(0),
                address: Address(address),
                size,
                graph: false,
            });
        }
        pending
    }

    fn claimed(pending: &mut Pending, request: Bytes, grown: Option<Bytes>) -> Vec<u64> {
        let claimed = pending.claim(Tid(1), request, grown);
        claimed.iter().map(|taken| taken.address.0).collect()
    }

    #[test]
    fn a_library_on_another_thread_or_of_another_size_is_left() {
        let mut all = pending(&[(1, 10, 20 * MIB), (2, 20, 2 * MIB), (1, 30, 4 * MIB)]);
        assert_eq!(claimed(&mut all, 3 * MIB, Some(20 * MIB)), [10]);
        assert_eq!(claimed(&mut all, 3 * MIB, Some(20 * MIB)), [] as [u64; 0]);
        // Removed by its owner: nothing is left of thread 1.
        all.remove(Address(30));
        assert_eq!(claimed(&mut all, 1, Some(4 * MIB)), [] as [u64; 0]);
    }

    #[test]
    fn pieces_of_a_growing_segment_make_up_the_growth() {
        let pieces = [(1, 1, 2 * MIB), (1, 2, 20 * MIB), (1, 3, 20 * MIB)];
        assert_eq!(
            claimed(&mut pending(&pieces), 30 * MIB, Some(40 * MIB)),
            [3, 2]
        );
        // Before the first report nobody knows by how much.
        assert_eq!(claimed(&mut pending(&pieces), 30 * MIB, None), [3, 2]);
        assert_eq!(
            claimed(&mut pending(&pieces), 70 * MIB, None),
            [] as [u64; 0]
        );
    }

    #[test]
    fn the_first_report_claims_what_it_must_have_taken() {
        let mut all = pending(&[(1, 1, 33 * MIB), (1, 2, 2 * MIB)]);
        assert_eq!(claimed(&mut all, 512, None), [2]);
        assert_eq!(claimed(&mut all, 512, None), [] as [u64; 0]);
        let mut all = pending(&[(1, 1, 34 * MIB)]);
        assert_eq!(claimed(&mut all, 33 * MIB, None), [1]);
    }

    #[test]
    fn the_oldest_go_first() {
        let mut all = Pending::default();
        for number in 0..2 * MOST as u64 {
            all.add(Taken {
                thread: Tid(1),
                device: DeviceId(0),
                address: Address(number),
                size: number,
                graph: false,
            });
        }
        assert_eq!(all.0.len(), MOST);
        assert_eq!(all.0[0].address.0, MOST as u64);
    }
}

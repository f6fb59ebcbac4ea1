//! Where the framework's cache is: which gaps its segments have between live blocks.

use vramscope_events::Bytes;

use super::pending::SMALL_SEGMENT;

/// A segment whose every block is known: it was taken since the attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Segment {
    pub start: u64,
    pub size: Bytes,
    /// Of the private pool of a graph.
    pub graph: bool,
    /// A piece of a segment that grows: one block may lie in several that follow one another.
    pub piece: bool,
}

/// The largest blocks that were asked for lately; PyTorch serves small ones from segments of their
/// own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Largest {
    pub small: Bytes,
    pub large: Bytes,
}

/// What the cached bytes of segments can be used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cached {
    /// In gaps that the largest recent request fits into.
    pub reusable: Bytes,
    /// In smaller gaps.
    pub fragmented: Bytes,
    /// In private pools: for their graphs alone.
    pub graph: Bytes,
}

impl Cached {
    pub fn sum(&self) -> Bytes {
        let reusable = self.reusable.saturating_add(self.fragmented);
        reusable.saturating_add(self.graph)
    }
}

/// Finds the gaps. `blocks`: address and size of the live blocks, of whatever segment, in no order.
pub(crate) fn cached(
    mut segments: Vec<Segment>,
    blocks: impl Iterator<Item = (u64, Bytes)>,
    largest: Largest,
) -> Cached {
    segments.sort_unstable();
    let segments = joined(&segments);
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
        return Cached::default();
    };
    let all = first.0.start..last.0.start.saturating_add(last.0.size);
    let mut blocks: Vec<_> = blocks.filter(|(at, _)| all.contains(at)).collect();
    blocks.sort_unstable();
    let mut blocks = blocks.into_iter().peekable();
    let mut out = Cached::default();
    for (segment, small) in segments {
        let end = segment.start.saturating_add(segment.size);
        while blocks.next_if(|(at, _)| *at < segment.start).is_some() {}
        let needed = if small { largest.small } else { largest.large };
        let mut gap = |from: u64, to: u64| {
            let bytes = to.saturating_sub(from);
            let share = match segment.graph {
                true => &mut out.graph,
                false if bytes >= needed => &mut out.reusable,
                false => &mut out.fragmented,
            };
            *share = share.saturating_add(bytes);
        };
        let mut free_from = segment.start;
        while let Some((at, size)) = blocks.next_if(|(at, _)| *at < end) {
            gap(free_from, at);
            free_from = free_from.max(at.saturating_add(size));
        }
        gap(free_from, end);
    }
    out
}

/// Pieces that follow one another as one segment; and whether it is for small requests.
fn joined(sorted: &[Segment]) -> Vec<(Segment, bool)> {
    let mut out: Vec<(Segment, bool)> = Vec::with_capacity(sorted.len());
    for next in sorted {
        let small = next.size == SMALL_SEGMENT;
        if let Some((last, same)) = out.last_mut()
            && last.piece
            && next.piece
            && last.graph == next.graph
            && *same == small
            && last.start.checked_add(last.size) == Some(next.start)
        {
            last.size = last.size.saturating_add(next.size);
        } else {
            out.push((*next, small));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn segment(start: u64, size: u64) -> Segment {
        Segment {
            start: start * MIB,
            size: size * MIB,
            graph: false,
            piece: false,
        }
    }

    fn find(segments: &[Segment], blocks: &[(u64, u64)], large: u64) -> Cached {
        let largest = Largest {
            small: 512,
            large: large * MIB,
        };
        let blocks = blocks.iter().map(|(at, size)| (at * MIB, size * MIB));
        cached(segments.to_vec(), blocks, largest)
    }

    fn mib(reusable: u64, fragmented: u64, graph: u64) -> Cached {
        Cached {
            reusable: reusable * MIB,
            fragmented: fragmented * MIB,
            graph: graph * MIB,
        }
    }

    #[test]
    fn a_gap_is_of_use_if_the_largest_request_fits() {
        let segments = [segment(100, 20), segment(200, 40)];
        // 5 free, 5 used, 10 free; all of 40 free.
        assert_eq!(find(&segments, &[(105, 5)], 8), mib(50, 5, 0));
        assert_eq!(find(&segments, &[(105, 5)], 11), mib(40, 15, 0));
        assert_eq!(find(&segments, &[(105, 5)], 64), mib(0, 55, 0));
        assert_eq!(find(&[], &[(105, 5)], 64), Cached::default());
    }

    #[test]
    fn blocks_of_unknown_segments_count_for_none() {
        let segments = [segment(100, 20), segment(200, 20)];
        let blocks = [(10, 5), (150, 5), (205, 15), (300, 20)];
        assert_eq!(find(&segments, &blocks, 20), mib(20, 5, 0));
    }

    #[test]
    fn small_requests_have_segments_of_their_own() {
        // Half of it is free: enough for what it is for.
        assert_eq!(find(&[segment(100, 2)], &[(100, 1)], 500), mib(1, 0, 0));
    }

    #[test]
    fn a_graphs_pool_is_for_that_graph() {
        let private = Segment {
            graph: true,
            ..segment(100, 20)
        };
        assert_eq!(
            find(&[private, segment(120, 20)], &[(100, 1)], 1),
            mib(20, 0, 19)
        );
    }

    #[test]
    fn pieces_make_one_segment_and_segments_do_not() {
        let piece = |start| Segment {
            piece: true,
            ..segment(start, 20)
        };
        // A block over the seam, and a request larger than a piece.
        assert_eq!(
            find(&[piece(120), piece(100)], &[(115, 10)], 15),
            mib(30, 0, 0)
        );
        assert_eq!(find(&[piece(120), piece(100)], &[], 40), mib(40, 0, 0));
        assert_eq!(
            find(&[segment(120, 20), segment(100, 20)], &[], 40),
            mib(0, 40, 0)
        );
    }

    #[test]
    fn nonsense_does_not_overflow() {
        let odd = Segment {
            start: u64::MAX - 5,
            size: u64::MAX,
            graph: false,
            piece: true,
        };
        let largest = Largest::default();
        let blocks = [(u64::MAX - 3, u64::MAX), (u64::MAX - 3, 1)];
        let found = cached(vec![odd, odd], blocks.into_iter(), largest);
        assert!(found.sum() < 100);
    }
}

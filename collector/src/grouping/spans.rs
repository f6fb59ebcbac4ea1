//! The union of several sites' survivors by birth step.

use crate::view::GenerationSpan;

/// The most spans that a group keeps: neighbours beyond are put together.
pub const MAX_SPANS: usize = 64;

/// Spans of several sites as disjoint spans, oldest first, at most [`MAX_SPANS`].
///
/// Blocks and bytes are sums. Spans that overlap become one, whose `generations` are the size of
/// the union of birth steps: exact where each has a survivor of every step it spans, else the
/// largest number that is certain.
pub fn merge_spans(mut spans: Vec<GenerationSpan>) -> Vec<GenerationSpan> {
    spans.retain(|span| span.blocks > 0 || span.generations > 0);
    spans.sort_by_key(|span| (span.first, span.last));
    let mut out: Vec<GenerationSpan> = Vec::new();
    let mut rest = spans.as_slice();
    while let Some(first) = rest.first() {
        let mut last = first.last;
        let mut length = 1;
        while length < rest.len() && rest[length].first <= last {
            last = last.max(rest[length].last);
            length += 1;
        }
        let (cluster, after) = rest.split_at(length);
        rest = after;
        out.push(GenerationSpan {
            first: first.first,
            last,
            blocks: cluster.iter().map(|span| span.blocks).sum(),
            bytes: cluster.iter().map(|span| span.bytes).sum(),
            generations: certain_generations(cluster),
        });
    }
    coarsen(&mut out);
    out
}

/// How many different birth steps the spans of one cluster have for certain.
///
/// Full spans (a survivor of every step) are known exactly. A partial one adds at least the steps
/// that do not fit into what the full ones cover; partial ones that do not overlap each other add
/// up, and of those that do, a best disjoint choice is taken (weighted interval scheduling).
fn certain_generations(cluster: &[GenerationSpan]) -> u64 {
    if let [only] = cluster {
        return only.generations;
    }
    let (full, mut partial): (Vec<GenerationSpan>, Vec<GenerationSpan>) =
        cluster.iter().partition(|span| is_full(span));
    let covered = union(&full);
    let sure: u64 = covered.iter().map(|(first, last)| last - first + 1).sum();

    partial.sort_by_key(|span| span.last);
    // best[i]: the most that the first i partial spans add.
    let mut best = vec![0u64; partial.len() + 1];
    for (index, span) in partial.iter().enumerate() {
        let adds = span.generations.saturating_sub(overlap(&covered, span));
        let before = partial[..index].partition_point(|other| other.last < span.first);
        best[index + 1] = best[index].max(best[before] + adds);
    }
    sure + best[partial.len()]
}

fn is_full(span: &GenerationSpan) -> bool {
    span.generations == steps(span)
}

fn steps(span: &GenerationSpan) -> u64 {
    (span.last - span.first).saturating_add(1)
}

/// Disjoint intervals that cover the same steps; `spans` are sorted by their first step.
fn union(spans: &[GenerationSpan]) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for span in spans {
        match out.last_mut() {
            Some((_, last)) if span.first <= last.saturating_add(1) => *last = span.last.max(*last),
            _ => out.push((span.first, span.last)),
        }
    }
    out
}

/// How many steps of `span` lie in the disjoint, sorted intervals.
fn overlap(intervals: &[(u64, u64)], span: &GenerationSpan) -> u64 {
    let from = intervals.partition_point(|(_, last)| *last < span.first);
    intervals[from..]
        .iter()
        .take_while(|(first, _)| *first <= span.last)
        .map(|(first, last)| last.min(&span.last) - first.max(&span.first) + 1)
        .sum()
}

/// Puts neighbours together until at most [`MAX_SPANS`] are left. They are disjoint, so their
/// generations add up exactly.
fn coarsen(spans: &mut Vec<GenerationSpan>) {
    if spans.len() <= MAX_SPANS {
        return;
    }
    let together = spans.len().div_ceil(MAX_SPANS);
    *spans = spans
        .chunks(together)
        .map(|chunk| GenerationSpan {
            first: chunk[0].first,
            last: chunk[chunk.len() - 1].last,
            blocks: chunk.iter().map(|span| span.blocks).sum(),
            bytes: chunk.iter().map(|span| span.bytes).sum(),
            generations: chunk.iter().map(|span| span.generations).sum(),
        })
        .collect();
}

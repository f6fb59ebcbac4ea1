//! Survivors by the step they were born in, in bounded memory.

use serde::{Deserialize, Serialize};
use vramscope_events::{Bytes, Time};

use crate::view::GenerationSpan;

/// Spans kept before older ones are merged.
const MAX_SPANS: usize = 128;

/// Survivors born in `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Span {
    first: u32,
    last: u32,
    /// Different steps in the span that still have survivors.
    generations: u32,
    blocks: u32,
    bytes: Bytes,
    /// The first birth.
    born: Time,
}

/// The survivors of one site by birth.
///
/// The newest half of the spans are single steps, older ones are merged pairwise, so the
/// resolution falls with age. The number of generations stays exact as long as blocks of merged
/// spans are not freed; when they are, it is an upper bound that never exceeds the blocks left.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Generations {
    spans: Vec<Span>,
    count: u32,
}

impl Generations {
    /// Different steps that have survivors.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Enters a block born in `step`, which must not lie before an earlier one's.
    #[inline]
    pub fn add(&mut self, step: u32, bytes: Bytes, time: Time) {
        if let Some(span) = self.spans.last_mut()
            && step <= span.last
        {
            span.blocks += 1;
            span.bytes += bytes;
            return;
        }
        if self.spans.len() == MAX_SPANS {
            self.merge_older();
        }
        self.spans.push(Span {
            first: step,
            last: step,
            generations: 1,
            blocks: 1,
            bytes,
            born: time,
        });
        self.count += 1;
    }

    /// Takes out a block that was entered for `step`.
    #[inline]
    pub fn remove(&mut self, step: u32, bytes: Bytes) {
        let index = match self.spans.last() {
            Some(last) if last.first <= step => self.spans.len() - 1,
            _ => match self.spans.partition_point(|span| span.first <= step) {
                0 => return,
                after => after - 1,
            },
        };
        let span = &mut self.spans[index];
        span.blocks = span.blocks.saturating_sub(1);
        span.bytes = span.bytes.saturating_sub(bytes);
        if span.blocks == 0 {
            self.count -= span.generations;
            self.spans.remove(index);
        } else if span.generations > span.blocks {
            self.count -= span.generations - span.blocks;
            span.generations = span.blocks;
        }
    }

    fn merge_older(&mut self) {
        let half = self.spans.len() / 2;
        let merged: Vec<Span> = self.spans[..half].chunks(2).map(merge).collect();
        self.spans.splice(..half, merged);
    }

    /// Renumbers the steps; `map` must not change their order.
    pub fn renumber(&mut self, map: impl Fn(u32) -> u32) {
        let mut renumbered: Vec<Span> = Vec::with_capacity(self.spans.len());
        for span in &self.spans {
            let (first, last) = (map(span.first), map(span.last));
            let span = Span {
                first,
                last,
                generations: span.generations.min(last - first + 1),
                ..*span
            };
            match renumbered.last_mut() {
                Some(before) if before.last >= first => {
                    let width = last.max(before.last) - before.first + 1;
                    let mut both = merge(&[*before, span]);
                    both.generations = (both.generations - 1).max(1).min(width);
                    *before = both;
                }
                _ => renumbered.push(span),
            }
        }
        self.count = renumbered.iter().map(|span| span.generations).sum();
        self.spans = renumbered;
    }

    /// Spans for a view, oldest first.
    pub fn spans(&self) -> impl Iterator<Item = GenerationSpan> {
        self.spans.iter().map(|span| GenerationSpan {
            first: u64::from(span.first),
            last: u64::from(span.last),
            blocks: u64::from(span.blocks),
            bytes: span.bytes,
            generations: u64::from(span.generations),
        })
    }

    /// Birth of the oldest survivor; earlier than that where others of its span are gone.
    pub fn oldest(&self) -> Option<Time> {
        self.spans.first().map(|span| span.born)
    }
}

fn merge(spans: &[Span]) -> Span {
    let last = spans.last().map_or(0, |span| span.last);
    Span {
        first: spans[0].first,
        last,
        generations: spans.iter().map(|span| span.generations).sum(),
        blocks: spans.iter().map(|span| span.blocks).sum(),
        bytes: spans.iter().map(|span| span.bytes).sum(),
        born: spans[0].born,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_leak_of_any_length_is_counted_exactly_in_bounded_memory() {
        let mut generations = Generations::default();
        for step in 0..100_000 {
            generations.add(step, 512, Time(0));
            generations.add(step, 1024, Time(0));
            generations.remove(step, 1024);
        }
        assert_eq!(generations.count(), 100_000);
        assert!(generations.spans.len() <= MAX_SPANS);
        let bytes: u64 = generations.spans().map(|span| span.bytes).sum();
        assert_eq!(bytes, 512 * 100_000);
    }

    #[test]
    fn a_sliding_window_keeps_its_width() {
        let mut generations = Generations::default();
        for step in 0..10_000u32 {
            generations.add(step, 8, Time(0));
            if step >= 300 {
                generations.remove(step - 300, 8);
            }
        }
        // Blocks of merged spans are freed here: a bound, not the exact 300.
        assert_eq!(generations.count(), 300);
        assert!(generations.spans.len() <= MAX_SPANS);
    }

    #[test]
    fn renumbering_joins_the_steps_that_become_one() {
        let mut generations = Generations::default();
        for step in 0..24 {
            generations.add(step, 1, Time(0));
        }
        generations.renumber(|step| step / 8);
        assert_eq!(generations.count(), 3);
        generations.renumber(|_| 0);
        assert_eq!(generations.count(), 1);
        assert_eq!(generations.spans().map(|span| span.blocks).sum::<u64>(), 24);
    }

    proptest! {
        /// Against a model that keeps everything: exact while no span was merged, and blocks and
        /// bytes exact always.
        #[test]
        fn agrees_with_a_model(moves in proptest::collection::vec((any::<bool>(), 0u32..3, 1u64..100), 1..600)) {
            let mut model: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
            let mut generations = Generations::default();
            let mut step = 0;
            for (add, advance, bytes) in moves {
                step += advance;
                if add || model.is_empty() {
                    generations.add(step, bytes, Time(0));
                    model.entry(step).or_default().push(bytes);
                } else {
                    let key = *model.keys().nth(bytes as usize % model.len()).unwrap();
                    let blocks = model.get_mut(&key).unwrap();
                    let freed = blocks.pop().unwrap();
                    if blocks.is_empty() {
                        model.remove(&key);
                    }
                    generations.remove(key, freed);
                }
                let blocks: usize = model.values().map(Vec::len).sum();
                let bytes: u64 = model.values().flatten().sum();
                prop_assert_eq!(generations.spans().map(|s| s.blocks).sum::<u64>(), blocks as u64);
                prop_assert_eq!(generations.spans().map(|s| s.bytes).sum::<u64>(), bytes);
                prop_assert!(generations.count() as usize >= model.len());
                prop_assert!(generations.count() as usize <= blocks);
                if generations.spans.iter().all(|s| s.first == s.last) {
                    prop_assert_eq!(generations.count() as usize, model.len());
                }
            }
        }
    }
}

//! A rhythm in the sequence of allocations, for programs that never run backward.
//!
//! The body of a loop allocates from the same stacks in every pass. The beat is a stack that
//! allocates once a pass. Which one? Stacks inside an inner loop (the layers of a model) allocate
//! more often, something that happens now and then less often. So: of the stacks seen lately, take
//! the most frequent one than which nearly all others are as frequent. An inner loop fails that by
//! the stacks of the outer one, the occasional one is not frequent enough.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use vramscope_events::StackId;

/// Allocations that are kept while searching.
const MAX_KEPT: usize = 1 << 17;
/// Allocations before the first look; the next looks come at each doubling.
const FIRST_LOOK: usize = 96;
/// Passes that must have been seen in the looked-at half.
const MIN_PASSES: usize = 8;
/// Share of the stacks that must be as frequent as the beat.
const COVERED: f64 = 0.8;
/// Counts that differ by no more than this factor are the same frequency.
const SAME_COUNT: f64 = 0.85;
/// Most the distances of two beats may vary, standard deviation over mean.
const MAX_VARIATION: f64 = 0.5;
/// Usual distances without a beat after which it is given up.
const GIVE_UP: f64 = 32.0;

/// Searches for the beat and then follows it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Heartbeat {
    state: State,
}

#[derive(Debug, Serialize, Deserialize)]
enum State {
    Searching {
        sequence: Vec<StackId>,
        next_look: usize,
    },
    Following {
        beat: StackId,
        distance: f64,
        since: u32,
    },
}

/// What an allocation was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Nothing to count by.
    Nothing,
    /// The beat of a new step.
    Step,
    /// The beat was found: it was at these positions of the sequence, the last of which is the
    /// present one or before.
    Found(Vec<u32>),
    /// The beat stopped.
    Lost,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Heartbeat {
            state: State::Searching {
                sequence: Vec::new(),
                next_look: FIRST_LOOK,
            },
        }
    }
}

impl Heartbeat {
    /// Takes the stack of the next allocation.
    #[inline]
    pub fn allocated(&mut self, stack: StackId) -> Beat {
        match &mut self.state {
            State::Following {
                beat,
                distance,
                since,
            } => {
                *since += 1;
                if stack == *beat {
                    *since = 0;
                    return Beat::Step;
                }
                if f64::from(*since) > GIVE_UP * *distance {
                    *self = Heartbeat::default();
                    return Beat::Lost;
                }
                Beat::Nothing
            }
            State::Searching { .. } => self.search(stack),
        }
    }

    fn search(&mut self, stack: StackId) -> Beat {
        let State::Searching {
            sequence,
            next_look,
        } = &mut self.state
        else {
            return Beat::Nothing;
        };
        sequence.push(stack);
        if sequence.len() < *next_look {
            return Beat::Nothing;
        }
        if let Some((beat, distance)) = find(&sequence[sequence.len() / 2..]) {
            let found = positions(sequence, beat).collect();
            self.state = State::Following {
                beat,
                distance,
                since: 0,
            };
            return Beat::Found(found);
        }
        if sequence.len() >= MAX_KEPT {
            *self = Heartbeat::default();
            return Beat::Lost;
        }
        *next_look = *next_look * 3 / 2;
        Beat::Nothing
    }
}

fn positions(sequence: &[StackId], beat: StackId) -> impl Iterator<Item = u32> {
    let all = sequence.iter().enumerate();
    all.filter(move |(_, stack)| **stack == beat)
        .map(|(at, _)| at as u32)
}

/// The beat of a sequence and its mean distance.
fn find(sequence: &[StackId]) -> Option<(StackId, f64)> {
    let mut counts: FxHashMap<StackId, usize> = FxHashMap::default();
    for stack in sequence {
        *counts.entry(*stack).or_default() += 1;
    }
    let mut frequencies: Vec<usize> = counts.values().copied().collect();
    frequencies.sort_unstable_by(|a, b| b.cmp(a));
    // The highest count than which the given share of all stacks is as frequent.
    let covering = (COVERED * frequencies.len() as f64).ceil() as usize;
    let lowest = *frequencies.get(covering.max(1) - 1)?;
    if lowest < MIN_PASSES {
        return None;
    }
    let highest = (lowest as f64 / SAME_COUNT) as usize;
    let candidates = counts
        .iter()
        .filter(|(_, count)| (lowest..=highest.max(lowest)).contains(*count));
    candidates
        .filter_map(|(stack, _)| {
            let (mean, variation) = regularity(sequence, *stack)?;
            Some((*stack, mean, variation))
        })
        .min_by(|a, b| a.2.total_cmp(&b.2).then(a.0.cmp(&b.0)))
        .filter(|(_, _, variation)| *variation <= MAX_VARIATION)
        .map(|(stack, mean, _)| (stack, mean))
}

/// Mean distance of a stack's allocations and how much it varies.
fn regularity(sequence: &[StackId], stack: StackId) -> Option<(f64, f64)> {
    let at: Vec<f64> = positions(sequence, stack).map(f64::from).collect();
    let distances: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let count = distances.len() as f64;
    let mean = distances.iter().sum::<f64>() / count;
    let spread = distances.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / count;
    (count > 0.0).then(|| (mean, spread.sqrt() / mean))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocations until the beat is found, and how many passes were told.
    fn found(passes: impl Iterator<Item = Vec<u32>>) -> Option<(usize, Vec<u32>)> {
        let mut heartbeat = Heartbeat::default();
        let mut sequence = Vec::new();
        for stack in passes.flatten() {
            sequence.push(stack);
            if let Beat::Found(at) = heartbeat.allocated(StackId(stack)) {
                let stacks: Vec<u32> = at.iter().map(|at| sequence[*at as usize]).collect();
                assert!(stacks.iter().all(|stack| *stack == stacks[0]));
                return Some((sequence.len(), at));
            }
        }
        None
    }

    #[test]
    fn one_pass_is_one_beat() {
        // Two layers share a stack, as in a sequential model.
        let (after, beats) = found((0..100).map(|_| vec![1, 2, 3, 2, 4])).unwrap();
        assert_eq!(beats.len(), after.div_ceil(5));
    }

    #[test]
    fn inner_loops_and_rare_things_are_not_the_beat() {
        let pass = |i: usize| {
            let mut pass = vec![1, 2, 3];
            for _layer in 0..12 {
                pass.extend([10, 11, 12, 13, 14, 15]);
            }
            pass.extend([4, 5]);
            if i.is_multiple_of(10) {
                pass.push(99);
            }
            pass
        };
        let (after, beats) = found((0..200).map(pass)).unwrap();
        let passes = after.div_ceil(77);
        assert!(
            beats.len().abs_diff(passes) <= 1,
            "{} for {passes}",
            beats.len()
        );
    }

    #[test]
    fn what_happened_once_at_the_start_does_not_hinder() {
        let start = std::iter::once((1000..1300).collect());
        assert!(found(start.chain((0..400).map(|_| vec![1, 2, 3, 4]))).is_some());
    }

    #[test]
    fn without_a_rhythm_there_is_no_beat() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        let chaos = (0..20_000).map(|_| vec![random() % 5000]);
        assert_eq!(found(chaos), None);
    }

    #[test]
    fn a_beat_that_stops_is_given_up() {
        let mut heartbeat = Heartbeat::default();
        for _ in 0..100 {
            for stack in [1, 2, 3] {
                heartbeat.allocated(StackId(stack));
            }
        }
        let lost = (0..1000).any(|_| heartbeat.allocated(StackId(9)) == Beat::Lost);
        assert!(lost);
    }
}

//! How many `backward()` calls make up one pass of the training loop.
//!
//! A GAN calls `backward()` at two places in turn; gradient accumulation calls it several times at
//! one place before the optimizer runs. Both show in the sequence of marks:
//! - the call stacks repeat with a period of at most [`MAX_CYCLE`];
//! - at one stack, the optimizer uses temporary memory in every k-th interval only;
//! - where the optimizer uses none (plain SGD), the gradients, which autograd threads
//!   allocate, stay from mark to mark and are gone at every k-th.
//!
//! A period is believed after [`CYCLES`] repetitions without an exception.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use vramscope_events::{Bytes, StackId};

/// Longest cycle of different call stacks that counts as one step. Longer ones are something that
/// happens now and then beside the steps (a regularisation every 16 steps).
const MAX_CYCLE: usize = 12;
/// Longest gradient accumulation that is recognised.
const MAX_ACCUMULATION: usize = 64;
/// Repetitions after which a period is believed.
const CYCLES: usize = 3;

/// One call of `backward()`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MarkSeen {
    /// Who called.
    pub stack: StackId,
    /// Whether an optimizer used temporary memory since the mark before.
    pub optimizer_ran: bool,
    /// Live bytes that autograd threads had allocated, at the mark.
    pub backward_bytes: Bytes,
}

/// So many marks make up a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub marks: usize,
    /// Marks since the one that began the last step; 0 when that was the last one.
    pub phase: usize,
}

/// The recent marks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Marks {
    recent: VecDeque<MarkSeen>,
}

impl Marks {
    pub fn push(&mut self, mark: MarkSeen) {
        if self.recent.len() == MAX_ACCUMULATION * CYCLES + 1 {
            self.recent.pop_front();
        }
        self.recent.push_back(mark);
    }

    pub fn clear(&mut self) {
        self.recent.clear();
    }

    /// The cycle that the recent marks show, if any.
    pub fn cycle(&self) -> Option<Cycle> {
        let newest_first: Vec<MarkSeen> = self.recent.iter().rev().copied().collect();
        stack_cycle(&newest_first).or_else(|| accumulation(&newest_first))
    }
}

fn stack_cycle(marks: &[MarkSeen]) -> Option<Cycle> {
    let repeats = |period: usize| {
        let needed = period * CYCLES;
        marks.len() >= needed
            && (0..needed - period).all(|at| marks[at].stack == marks[at + period].stack)
    };
    if repeats(1) {
        // Constant for as long as the shortest cycle; a longer one may end in it, but then its
        // rare member has not come round CYCLES times yet or breaks this soon.
        let constant = marks.iter().take_while(|mark| mark.stack == marks[0].stack);
        if constant.count() >= MAX_CYCLE {
            return None;
        }
    }
    let period = (2..=MAX_CYCLE).find(|period| repeats(*period))?;
    let cycle = &marks[..period];
    if cycle.iter().all(|mark| mark.stack == cycle[0].stack) {
        return None;
    }
    // The step begins where a stack comes after its longest absence: the first of a cycle. Of
    // several, the one seen first, so that the answer does not depend on the moment.
    let first = (0..period).max_by_key(|at| {
        let absence = (1..=period)
            .find(|back| marks[(at + back) % period].stack == marks[*at].stack)
            .unwrap_or(period);
        (absence, std::cmp::Reverse(marks[*at].stack))
    })?;
    Some(Cycle {
        marks: period,
        phase: first,
    })
}

fn accumulation(marks: &[MarkSeen]) -> Option<Cycle> {
    let same = marks
        .iter()
        .take_while(|mark| mark.stack == marks[0].stack)
        .count();
    let marks = &marks[..same];
    if marks.iter().any(|mark| mark.optimizer_ran) {
        return every_kth(marks, |mark| mark.optimizer_ran);
    }
    let most = marks.iter().map(|mark| mark.backward_bytes).max()?;
    every_kth(marks, |mark| mark.backward_bytes < most / 2)
}

/// The distance at which `event` happens, when it happens at that distance only.
fn every_kth(newest_first: &[MarkSeen], event: impl Fn(&MarkSeen) -> bool) -> Option<Cycle> {
    let mut hits = (0..newest_first.len()).filter(|at| event(&newest_first[*at]));
    let phase = hits.next()?;
    let mut before = phase;
    let mut distance = None;
    for _ in 0..CYCLES {
        let hit = hits.next()?;
        if *distance.get_or_insert(hit - before) != hit - before {
            return None;
        }
        before = hit;
    }
    let marks = distance.filter(|k| (2..=MAX_ACCUMULATION).contains(k) && phase < *k)?;
    Some(Cycle { marks, phase })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(of: impl IntoIterator<Item = (u32, bool, u64)>) -> Marks {
        let mut marks = Marks::default();
        for (stack, optimizer_ran, backward_bytes) in of {
            marks.push(MarkSeen {
                stack: StackId(stack),
                optimizer_ran,
                backward_bytes,
            });
        }
        marks
    }

    #[test]
    fn one_backward_a_step_is_no_cycle() {
        assert_eq!(marks((0..100).map(|_| (1, true, 0))).cycle(), None);
        assert_eq!(marks((0..100).map(|_| (1, false, 0))).cycle(), None);
        assert_eq!(marks((0..100).map(|_| (1, false, 999))).cycle(), None);
        assert_eq!(Marks::default().cycle(), None);
    }

    #[test]
    fn a_gan_is_folded_after_three_rounds() {
        let gan = |count| marks((0..count).map(|i| (1 + i % 2, true, 0)));
        assert_eq!(gan(5).cycle(), None);
        let cycle = gan(6).cycle().unwrap();
        assert_eq!((cycle.marks, cycle.phase), (2, 1));
        assert_eq!(gan(7).cycle().unwrap().phase, 0);
        let critic = marks((0..24).map(|i| (if i % 6 == 5 { 2 } else { 1 }, true, 0)));
        assert_eq!(critic.cycle().unwrap().marks, 6);
    }

    #[test]
    fn something_rare_beside_the_steps_is_no_cycle() {
        let lazy = marks((0..160).map(|i| (if i % 16 == 15 { 2 } else { 1 }, true, 0)));
        assert_eq!(lazy.cycle(), None);
    }

    #[test]
    fn accumulation_shows_by_the_optimizer_or_by_the_gradients() {
        // In the interval before mark 0, 8, 16, … the optimizer ran.
        let adam = marks((0..33).map(|i| (1, i % 8 == 0, 7)));
        assert_eq!(adam.cycle().unwrap(), Cycle { marks: 8, phase: 0 });
        let sgd = marks((0..36).map(|i| (1, false, if i % 8 == 0 { 0 } else { 900 })));
        assert_eq!(sgd.cycle().unwrap(), Cycle { marks: 8, phase: 3 });
        let irregular = marks((0..40).map(|i| (1, i % 8 == 0 || i == 17, 7)));
        assert_eq!(irregular.cycle(), None);
    }
}

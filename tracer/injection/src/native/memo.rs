//! Walks that were made before, as the words of the stack that led them.
//!
//! Each rule gives the place of the next word by the words before it. So where all of them are there
//! again, at the same distances from the stack pointer, the walk that begins at the same address
//! goes the same way and meets the same frames: comparing them is a third of the cost of making it.
//!
//! No locks: a note has a version that is odd while somebody writes. A reader that sees it change
//! under its eyes makes the walk itself; a writer that meets another one leaves.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use super::place::{Place, Stack};
use crate::zeroed::zeroed;

const SETS: usize = 64;
/// Notes of a set: walks that begin alike.
const WAYS: usize = 8;
/// Words of the stack that a walk may depend on.
const WORDS: usize = 80;
/// Words of a note before those.
const HEAD: usize = 8;
/// Words of a note: each word of the stack with its distance.
const NOTE: usize = HEAD + 2 * WORDS;
/// In a distance, which is a multiple of 8: the word is compared less the stack pointer.
const RELATIVE: u64 = 1;
/// Beside a note's number of words: the frame register that the walk began with was followed.
const FOLLOWS: u64 = 1 << 32;

/// Where a walk begins, and all else that decides where it leads.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The caller of the hooked function.
    pub place: Place,
    /// Where the thread's stack ends.
    pub end: u64,
    /// How deep in the thread's stack it is, see [`super::place::depth`].
    pub depth: u64,
    /// Where the code begins that it stops before, 0: nowhere.
    pub until: u64,
    /// See [`Memos::epoch`].
    pub epoch: u64,
}

/// What a walk depends on.
pub struct Dependencies {
    sp: u64,
    words: [(u64, u64); WORDS],
    count: usize,
    follows: bool,
    fit: bool,
}

impl Dependencies {
    /// None yet.
    pub fn new(sp: u64) -> Dependencies {
        Dependencies {
            sp,
            words: [(0, 0); WORDS],
            count: 0,
            follows: false,
            fit: true,
        }
    }

    /// The address that a function returns to, read at `at`.
    pub fn on_address(&mut self, at: u64, address: u64) {
        self.add(at, address, 0);
    }

    /// A place on the stack, read at `at`; `None`: the frame register as it was in the beginning.
    pub fn on_place(&mut self, at: Option<u64>, place: u64) {
        match at {
            Some(at) => self.add(at, place.wrapping_sub(self.sp), RELATIVE),
            None => self.follows = true,
        }
    }

    fn add(&mut self, at: u64, word: u64, kind: u64) {
        let distance = at.wrapping_sub(self.sp);
        match self.words.get_mut(self.count) {
            Some(place) if distance & 7 == 0 => {
                *place = (distance | kind, word);
                self.count += 1;
            }
            _ => self.fit = false,
        }
    }
}

/// Walks that are remembered, with what came of each: a number.
pub struct Memos {
    notes: Box<[AtomicU64]>,
    /// Of each set: where the last walk was found (low half), and where the next one goes.
    hints: Box<[AtomicU64]>,
    epoch: AtomicU64,
}

impl Memos {
    /// None.
    pub fn new() -> Memos {
        Memos {
            notes: zeroed(SETS * WAYS * NOTE),
            hints: zeroed(SETS),
            epoch: AtomicU64::new(1),
        }
    }

    /// Differs after rules were forgotten. To be read before a walk begins.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Forgets everything. Who changes what walks depend on does so before and after.
    pub fn forget(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    #[inline]
    fn set(&self, start: &Start) -> (usize, &[[AtomicU64; NOTE]]) {
        let key = start.place.pc ^ start.depth.rotate_left(32) ^ start.until.rotate_left(17);
        let set = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SETS;
        let words = self.notes.get(set * WAYS * NOTE..(set + 1) * WAYS * NOTE);
        (set, words.unwrap_or(&[]).as_chunks().0)
    }

    /// What came of the walk that begins here, where it was made before.
    #[inline]
    pub fn recall(&self, start: &Start) -> Option<u64> {
        let (set, notes) = self.set(start);
        let hint = self.hints.get(set)?;
        let known = hint.load(Ordering::Relaxed);
        // Programs repeat themselves: it is the last one, or the one that came after it before.
        for tries in 0..WAYS {
            let way = (known as usize).wrapping_add(tries) % WAYS;
            let Some(result) = notes.get(way).and_then(|note| compare(note, start)) else {
                continue;
            };
            if tries != 0 {
                hint.store(known & !0xffff_ffff | way as u64, Ordering::Relaxed);
            }
            return Some(result);
        }
        None
    }

    /// Remembers a walk, and what came of it.
    pub fn remember(&self, start: &Start, on: &Dependencies, result: u64) {
        if !on.fit {
            return;
        }
        let (set, notes) = self.set(start);
        let Some(hint) = self.hints.get(set) else {
            return;
        };
        let way = (hint.fetch_add(1 << 32, Ordering::Relaxed) >> 32) as usize % WAYS;
        let Some(note) = notes.get(way) else { return };
        let [version, ..] = note;
        let before = version.load(Ordering::Relaxed);
        let taken = before & 1 == 0
            && version
                .compare_exchange(before, before + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if !taken {
            return;
        }
        // What follows is seen after the odd version, or not at all.
        fence(Ordering::Release);
        let Start { place, depth, .. } = *start;
        let bp = place.bp.wrapping_sub(place.sp);
        let count = on.count as u64 | if on.follows { FOLLOWS } else { 0 };
        let head = [start.epoch, place.pc, depth, start.until, bp, count, result];
        let words = on.words.iter().take(on.count);
        let words = words.flat_map(|(distance, word)| [*distance, *word]);
        for (place, word) in note.iter().skip(1).zip(head.into_iter().chain(words)) {
            place.store(word, Ordering::Relaxed);
        }
        version.store(before + 2, Ordering::Release);
    }
}

/// The result of a note, if it is of the walk that begins here.
#[inline]
fn compare(note: &[AtomicU64; NOTE], start: &Start) -> Option<u64> {
    let [
        version,
        epoch,
        pc,
        depth,
        until,
        bp,
        count,
        result,
        words @ ..,
    ] = note;
    let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let Place { sp, .. } = start.place;
    let before = version.load(Ordering::Acquire);
    let begins = before & 1 == 0
        && read(pc) == start.place.pc
        && read(depth) == start.depth
        && read(until) == start.until
        && read(epoch) == start.epoch;
    if !begins {
        return None;
    }
    let count = read(count);
    if count & FOLLOWS != 0 && read(bp) != start.place.bp.wrapping_sub(sp) {
        return None;
    }
    let stack = Stack { sp, end: start.end };
    let words = words.as_chunks::<2>().0;
    for [distance, word] in words.get(..(count & !FOLLOWS) as usize)? {
        let distance = read(distance);
        let found = stack.read(sp.wrapping_add(distance & !RELATIVE))?;
        let less = if distance & RELATIVE == 0 { 0 } else { sp };
        if found.wrapping_sub(less) != read(word) {
            return None;
        }
    }
    let result = read(result);
    // All that was read was read before the version is looked at again.
    fence(Ordering::Acquire);
    (version.load(Ordering::Relaxed) == before).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack of 512 words that a walk from its beginning depends on in three places.
    fn case(stack: &[u64]) -> (Start, Dependencies) {
        let sp = stack.as_ptr() as u64;
        let start = Start {
            place: Place {
                pc: 7,
                sp,
                bp: sp + 64,
            },
            end: sp + 8 * stack.len() as u64,
            depth: 4096,
            until: 0,
            epoch: 1,
        };
        let mut on = Dependencies::new(sp);
        on.on_address(sp + 8, stack[1]);
        on.on_place(None, start.place.bp);
        on.on_place(Some(sp + 16), stack[2]);
        on.on_address(sp + 8 * 300, stack[300]);
        (start, on)
    }

    fn stack() -> Vec<u64> {
        let mut stack: Vec<u64> = (1000..1512).collect();
        stack[2] = stack.as_ptr() as u64 + 800;
        stack
    }

    #[test]
    fn a_walk_is_recalled_where_all_is_as_it_was_and_only_there() {
        let mut words = stack();
        let memos = Memos::new();
        let (start, on) = case(&words);
        assert_eq!(memos.recall(&start), None);
        memos.remember(&start, &on, 42);
        assert_eq!(memos.recall(&start), Some(42));
        // What it does not depend on may be anything.
        words[3] = 0;
        assert_eq!(memos.recall(&start), Some(42));
        let Start { place, .. } = start;
        let others = [
            Start {
                place: Place { pc: 8, ..place },
                ..start
            },
            Start {
                place: Place {
                    bp: place.bp + 8,
                    ..place
                },
                ..start
            },
            Start {
                depth: start.depth + 8,
                ..start
            },
            Start { until: 1, ..start },
            Start { epoch: 2, ..start },
            // The word at 300 lies beyond the end.
            Start {
                end: start.end - 8 * 212,
                ..start
            },
        ];
        for other in others {
            assert_eq!(memos.recall(&other), None, "{other:?}");
        }
        for index in [1, 2, 300] {
            words[index] += 8;
            assert_eq!(memos.recall(&start), None, "word {index}");
            words[index] -= 8;
        }
        assert_eq!(memos.recall(&start), Some(42));
    }

    #[test]
    fn places_are_compared_by_their_distances() {
        let (one, other) = (stack(), stack());
        let memos = Memos::new();
        let (start, on) = case(&one);
        memos.remember(&start, &on, 42);
        // Another thread's stack, the same but for where it lies.
        assert_eq!(memos.recall(&case(&other).0), Some(42));
    }

    #[test]
    fn as_many_as_there_is_room_for_are_kept_of_those_that_begin_alike() {
        let mut words = stack();
        let memos = Memos::new();
        for number in 0..2 * WAYS as u64 {
            words[300] = number;
            let (start, on) = case(&words);
            memos.remember(&start, &on, number);
        }
        let mut recalled = Vec::new();
        for number in 0..2 * WAYS as u64 {
            words[300] = number;
            recalled.extend(memos.recall(&case(&words).0));
        }
        assert_eq!(recalled, Vec::from_iter(WAYS as u64..2 * WAYS as u64));
    }

    #[test]
    fn what_is_too_long_or_crooked_is_not_remembered() {
        let words = stack();
        let memos = Memos::new();
        let (start, mut on) = case(&words);
        let sp = start.place.sp;
        for (index, word) in words.iter().take(WORDS).enumerate() {
            on.on_address(sp + 8 * index as u64, *word);
        }
        memos.remember(&start, &on, 42);
        let (_, mut on) = case(&words);
        on.on_address(sp + 12, 0);
        memos.remember(&start, &on, 42);
        assert_eq!(memos.recall(&start), None);
    }

    #[test]
    fn threads_that_write_at_once_leave_no_mixture() {
        let memos = Memos::new();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let memos = &memos;
                scope.spawn(move || {
                    let mut words = stack();
                    for round in 0..20_000 {
                        // The number is told by the word that leads to it.
                        words[300] = thread * 1_000_000 + round % 50;
                        words[1] = words[300] * 3;
                        let (start, on) = case(&words);
                        match memos.recall(&start) {
                            Some(number) => assert_eq!(number, words[300]),
                            None => memos.remember(&start, &on, words[300]),
                        }
                    }
                });
            }
        });
    }
}

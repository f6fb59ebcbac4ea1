//! The ring in one process. `RUSTFLAGS="--cfg loom" cargo test -p vramscope-ring --release` runs
//! the interleavings in `loom.rs` instead; Miri runs this file.
#![cfg(not(loom))]

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use vramscope_ring::{Damaged, Parts, Reader, Writer};

struct Memory {
    head: AtomicU64,
    tail: AtomicU64,
    words: Vec<AtomicU64>,
}

impl Memory {
    fn new(words: usize) -> Memory {
        Memory {
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn parts(&self) -> Parts<'_> {
        Parts {
            head: &self.head,
            tail: &self.tail,
            words: &self.words,
        }
    }
}

#[test]
fn records_come_out_as_they_went_in_across_the_end() {
    let memory = Memory::new(32);
    let writer = Writer::new(memory.parts()).unwrap();
    let mut reader = Reader::new();
    let mut payload = Vec::new();
    for round in 0..100 {
        let words = 4 + (round as usize % 3) * 8;
        let slot = writer.reserve(words).unwrap();
        (0..words).for_each(|index| slot.write(index, round * 100 + index as u64));
        // Not a word of the record: ignored.
        slot.write(words, 99);
        assert_eq!(reader.next(memory.parts(), &mut payload), Ok(false));
        slot.commit();
        assert_eq!(reader.next(memory.parts(), &mut payload), Ok(true));
        let expected: Vec<_> = (0..words as u64).map(|index| round * 100 + index).collect();
        assert_eq!(payload, expected);
    }
}

#[test]
fn a_full_ring_refuses_and_takes_again_when_read() {
    let memory = Memory::new(16);
    let writer = Writer::new(memory.parts()).unwrap();
    writer.reserve(3).unwrap().commit();
    writer.reserve(7).unwrap().commit();
    assert!(writer.reserve(0).is_none());
    let mut payload = Vec::new();
    let mut reader = Reader::new();
    assert_eq!(reader.next(memory.parts(), &mut payload), Ok(true));
    assert!(writer.reserve(8).is_none(), "two lines");
    writer.reserve(7).unwrap().commit();
    assert!(writer.reserve(16).is_none(), "it never fits");
    assert!(writer.reserve(usize::MAX).is_none());
}

#[test]
fn an_unfinished_record_holds_back_those_behind_it() {
    let memory = Memory::new(32);
    let writer = Writer::new(memory.parts()).unwrap();
    let first = writer.reserve(1).unwrap();
    let second = writer.reserve(1).unwrap();
    second.write(0, 2);
    second.commit();
    let mut payload = Vec::new();
    let mut reader = Reader::new();
    assert_eq!(reader.next(memory.parts(), &mut payload), Ok(false));
    first.write(0, 1);
    first.commit();
    for expected in [1, 2] {
        assert_eq!(reader.next(memory.parts(), &mut payload), Ok(true));
        assert_eq!(payload, [expected]);
    }
}

#[test]
fn many_writers_lose_nothing_but_what_they_counted() {
    let rounds: u64 = if cfg!(miri) { 50 } else { 200_000 };
    let memory = Memory::new(64);
    let done = AtomicBool::new(false);
    let (mut seen, mut refused) = (0, 0);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3_u64)
            .map(|thread| {
                let memory = &memory;
                scope.spawn(move || {
                    let writer = Writer::new(memory.parts()).unwrap();
                    let mut refused = 0;
                    for round in 0..rounds {
                        let words = 2 + (round % 11) as usize;
                        let Some(slot) = writer.reserve(words) else {
                            refused += 1;
                            continue;
                        };
                        slot.write(0, thread);
                        (1..words).for_each(|index| slot.write(index, round));
                        slot.commit();
                    }
                    refused
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut reader = Reader::new();
            let mut payload = Vec::new();
            let mut last: HashMap<u64, u64> = HashMap::new();
            let mut seen = 0;
            loop {
                let over = done.load(Ordering::Acquire);
                while reader.next(memory.parts(), &mut payload).unwrap() {
                    let round = payload[1];
                    assert_eq!(payload.len(), 2 + (round % 11) as usize);
                    assert!(payload[1..].iter().all(|word| *word == round));
                    // Each writer's records are in its order.
                    if let Some(before) = last.insert(payload[0], round) {
                        assert!(before < round);
                    }
                    seen += 1;
                }
                if over {
                    return seen;
                }
                std::hint::spin_loop();
            }
        });
        refused = writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .sum();
        done.store(true, Ordering::Release);
        seen = reader.join().unwrap();
    });
    assert_eq!(seen + refused, 3 * rounds);
    assert!(seen > 0);
}

/// Whatever the other side writes, reading ends: in records, in nothing, or in [`Damaged`].
#[test]
fn garbage_never_hurts_the_reader() {
    // xorshift64 (Marsaglia, 2003).
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let runs = std::env::var("VRAMSCOPE_FUZZ_RUNS").map_or(20_000, |runs| runs.parse().unwrap());
    let (mut damaged, mut read) = (0_u64, 0_u64);
    for _ in 0..if cfg!(miri) { 50 } else { runs } {
        let memory = Memory::new(64);
        let writer = Writer::new(memory.parts()).unwrap();
        let mut reader = Reader::new();
        let mut payload = Vec::new();
        for _ in 0..8 {
            match random() % 4 {
                0 => {
                    let index = random() as usize % 64;
                    let noise = match random() % 3 {
                        0 => random(),
                        1 => random() % 80,
                        _ => (random() % 80) | (1 << 63),
                    };
                    memory.words[index].store(noise, Ordering::Relaxed);
                }
                1 => memory.head.store(random() % 160, Ordering::Relaxed),
                2 => {
                    if let Some(slot) = writer.reserve((random() % 20) as usize) {
                        slot.commit();
                    }
                }
                _ => match reader.next(memory.parts(), &mut payload) {
                    Ok(true) => {
                        assert!(payload.len() < 64);
                        read += 1;
                    }
                    Ok(false) => {}
                    Err(Damaged) => damaged += 1,
                },
            }
        }
    }
    assert!(
        damaged > 0 && read > 0,
        "both ends were seen: {damaged}, {read}"
    );
}

#[test]
fn a_ring_of_an_odd_size_is_refused() {
    for words in [0, 1, 4, 24, 100] {
        let memory = Memory::new(words);
        assert!(Writer::new(memory.parts()).is_none());
        let mut payload = Vec::new();
        assert_eq!(
            Reader::new().next(memory.parts(), &mut payload),
            Err(Damaged)
        );
    }
}

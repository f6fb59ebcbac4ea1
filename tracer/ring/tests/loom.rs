//! Every interleaving of two writers and the reader, as far as the memory model allows it.
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p vramscope-ring --release --test loom`.
#![cfg(loom)]

use loom::{
    sync::{Arc, atomic::AtomicU64},
    thread,
};
use vramscope_ring::{Parts, Reader, Writer};

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

fn write(memory: &Memory, value: u64) -> bool {
    let writer = Writer::new(memory.parts()).unwrap();
    let Some(slot) = writer.reserve(1) else {
        return false;
    };
    slot.write(0, value);
    slot.commit();
    true
}

#[test]
fn two_writers_and_a_reader() {
    loom::model(|| {
        // Room for two records: the third meets a full ring or words that were cleared.
        let memory = Arc::new(Memory::new(16));
        let first = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || u64::from(write(&memory, 1)) + u64::from(write(&memory, 2)))
        };
        let second = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || u64::from(write(&memory, 3)))
        };
        let mut reader = Reader::new();
        let mut payload = Vec::new();
        let mut seen = Vec::new();
        for _ in 0..2 {
            if reader.next(memory.parts(), &mut payload).unwrap() {
                seen.push(payload[0]);
            }
        }
        let written = first.join().unwrap() + second.join().unwrap();
        while reader.next(memory.parts(), &mut payload).unwrap() {
            seen.push(payload[0]);
        }
        assert_eq!(seen.len() as u64, written);
        let own: Vec<_> = seen.iter().filter(|value| **value < 3).collect();
        assert!(
            own.is_sorted(),
            "a writer's records are in its order: {seen:?}"
        );
    });
}

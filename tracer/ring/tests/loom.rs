//! Every interleaving of two writers and the reader, as far as the memory model allows it.
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p vramscope-ring --release --test loom`.
#![cfg(loom)]

use loom::{
    sync::{Arc, atomic::AtomicU64},
    thread,
};
use vramscope_ring::{
    Parts, Reader, Writer,
    tables::{Code, CodeTable, StackCache},
};

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

fn words(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// What is found is what was put in under that address, whoever puts in and takes out meanwhile.
#[test]
fn codes_are_never_mixed_up() {
    loom::model(|| {
        let table = Arc::new(CodeTable::new(words(2), words(2)));
        let code = |id| Code {
            id,
            first_traceable: id,
        };
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                table.insert(0x100, code(1));
                table.remove(0x100);
                table.insert(0x200, code(2));
            })
        };
        // Both threads run the code object at 0x200, which nobody frees.
        table.insert(0x200, code(3));
        let found = table.find(0x200);
        assert!(
            matches!(found.map(|code| code.id), None | Some(2 | 3)),
            "{found:?}"
        );
        let gone = table.find(0x100);
        assert!(
            matches!(gone.map(|code| code.id), None | Some(1)),
            "{gone:?}"
        );
        other.join().unwrap();
        let found = table.find(0x200);
        assert!(
            matches!(found.map(|code| code.id), Some(2 | 3)),
            "{found:?}"
        );
        table.remove(0x200);
        assert_eq!(table.find(0x200), None);
    });
}

#[test]
fn stacks_are_never_mixed_up() {
    loom::model(|| {
        // One set of four ways, and five stacks.
        let cache = Arc::new(StackCache::new(words(4)));
        let hash = |id: u32| u64::from(id + 1) << 40;
        for id in 0..3 {
            cache.insert(hash(id), id);
        }
        let other = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || cache.insert(hash(3), 3))
        };
        cache.insert(hash(4), 4);
        for id in 0..5 {
            let found = cache.find(hash(id));
            assert!(found.is_none_or(|found| found == id), "{id}: {found:?}");
        }
        other.join().unwrap();
    });
}

//! Where a thread keeps the pointer to its Python thread state.
//!
//! CPython stores it with `pthread_setspecific`. In glibc the first 32 keys
//! live in the thread's own block (`struct pthread`, at the FS base) as an
//! array of (sequence number, pointer); its place in the block differs between
//! glibc versions and is in no header. So it is found by looking for a pointer
//! that is known: the thread states of the interpreter's own list, each of
//! which also tells the address of its thread's block.

use std::collections::BTreeMap;

use crate::error::ReadError;
use crate::find::Python;
use crate::process::{Address, Process};
use crate::threads::{Thread, threads};

/// Where each thread has the pointer to its `PyThreadState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadStateSlot {
    /// Bytes from the FS base to the pointer.
    pub offset: u32,
    /// Bytes from the FS base to `pthread.specific_1stblock` (0x310 in glibc
    /// 2.36): `offset - 16 * key - 8`. None when the key is not known.
    pub first_block: Option<u32>,
    /// How many threads were found to have their thread state there.
    pub threads: usize,
}

/// `struct pthread` is about 2,300 bytes long in glibc 2.31 to 2.41.
const BLOCK: usize = 4096;
/// `PTHREAD_KEY_2NDLEVEL_SIZE` of glibc: keys from this on are elsewhere.
const KEYS_IN_BLOCK: u32 = 32;
/// Bytes of one entry: sequence number and pointer.
const ENTRY: u32 = 16;
/// The list of threads can change while it is read.
const TRIES: usize = 3;

/// Finds the place that holds the thread state in every thread of the process.
///
/// None when there is no such place: the key is not one of the first 32, the C
/// library keeps such data elsewhere (musl), or no thread has run Python yet.
/// A tracer then has to look the thread up in the interpreter's list.
///
/// # Errors
/// [`ReadError`] when the process cannot be read.
pub fn calibrate_tsd(
    process: &Process,
    python: &Python,
) -> Result<Option<ThreadStateSlot>, ReadError> {
    if python.tss_key.is_some_and(|key| key >= KEYS_IN_BLOCK) {
        return Ok(None);
    }
    for _ in 0..TRIES {
        if let Some(slot) = try_once(process, python)? {
            return Ok(Some(slot));
        }
    }
    Ok(None)
}

fn try_once(process: &Process, python: &Python) -> Result<Option<ThreadStateSlot>, ReadError> {
    let mut votes: BTreeMap<u32, usize> = BTreeMap::new();
    let mut threads_read = 0;
    for (pthread, states) in states_by_thread(&threads(process, python)?) {
        let mut block = vec![0; BLOCK];
        let got = process.read_some(Address(pthread), &mut block)?;
        block.truncate(got);
        if got > 0 {
            threads_read += 1;
        }
        for offset in slots(&block, &states) {
            *votes.entry(offset).or_default() += 1;
        }
    }
    let first_block = |offset: u32| offset.checked_sub(8)?.checked_sub(ENTRY * python.tss_key?);
    // A slot counts when every thread has it. Libraries keep the thread state under keys of their
    // own as well (pybind11 does): the interpreter made its key before any library was there, and
    // the C library gives out the lowest free one.
    let lowest = votes
        .iter()
        .filter(|(_, count)| **count == threads_read)
        .map(|(offset, count)| (*offset, *count))
        .find(|(offset, _)| python.tss_key.is_none() || first_block(*offset).is_some());
    let Some((offset, threads)) = lowest else {
        return Ok(None);
    };
    Ok(Some(ThreadStateSlot {
        offset,
        first_block: first_block(offset),
        threads,
    }))
}

/// A thread has one state for each interpreter that it has entered, and one of
/// them in its slot.
fn states_by_thread(threads: &[Thread]) -> BTreeMap<u64, Vec<Address>> {
    let mut by_thread: BTreeMap<u64, Vec<Address>> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| thread.pthread != 0) {
        by_thread
            .entry(thread.pthread)
            .or_default()
            .push(thread.state);
    }
    by_thread
}

/// Offsets in a thread's block of pointers to one of its states, in the form
/// of an entry: the sequence number before it is odd while the key is in use.
fn slots(block: &[u8], states: &[Address]) -> Vec<u32> {
    let (entries, _) = block.as_chunks::<{ ENTRY as usize }>();
    entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| {
            let (words, _) = entry.as_chunks::<8>();
            let [sequence, pointer] = [words[0], words[1]].map(u64::from_le_bytes);
            sequence % 2 == 1 && states.contains(&Address(pointer))
        })
        .map(|(index, _)| index as u32 * ENTRY + 8)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_live_entries_count() {
        let mut block = vec![0; 100];
        block[32] = 1;
        block[40] = 7;
        block[48] = 2;
        block[56] = 7;
        block[64] = 3;
        block[72] = 9;
        assert_eq!(slots(&block, &[Address(7)]), [40]);
        assert_eq!(slots(&block, &[Address(7), Address(9)]), [40, 72]);
        assert_eq!(slots(&block[..39], &[Address(7)]), []);
    }
}

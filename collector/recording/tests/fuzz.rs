//! Foreign bytes with right checksums: never a panic, never endless, whatever the content is.
//!
//! A second in ordinary runs, VRAMSCOPE_FUZZ_SECONDS for longer ones; VRAMSCOPE_FUZZ_SEED for
//! another beginning. A failure prints the seed and the round that lead to it again.

mod common;

use std::time::{Duration, Instant};

use vramscope_recording::{Checkpoint, Recording, Writer};

/// Bytes of a chunk's head, and where its checksums are.
const HEAD: usize = 48;

struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

/// Changes a few bytes, takes some out, or says some twice.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        let end = (at + 1 + random.below(16)).min(bytes.len());
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => bytes[at..end].fill(0xff),
            _ => bytes.truncate(at),
        }
    }
}

fn chunks(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut chunks = Vec::new();
    let mut rest = &bytes[8..];
    while rest.len() >= HEAD && &rest[..4] == b"vrsC" {
        let stored = u32::from_le_bytes([rest[32], rest[33], rest[34], rest[35]]) as usize;
        let (chunk, after) = rest.split_at(HEAD + stored);
        chunks.push(chunk.to_vec());
        rest = after;
    }
    chunks
}

/// Puts lengths and checksums right.
fn seal(chunk: &mut [u8], raw: usize) {
    let stored = (chunk.len() - HEAD) as u32;
    chunk[32..36].copy_from_slice(&stored.to_le_bytes());
    chunk[36..40].copy_from_slice(&(raw as u32).to_le_bytes());
    let crc = crc32c::crc32c(&chunk[HEAD..]);
    chunk[40..44].copy_from_slice(&crc.to_le_bytes());
    let own = crc32c::crc32c(&chunk[..44]);
    chunk[44..48].copy_from_slice(&own.to_le_bytes());
}

/// A recording with one chunk's content changed below its compression, where it has one.
fn crafted(random: &mut Random, original: &[Vec<u8>]) -> Vec<u8> {
    let mut all = original.to_vec();
    let index = random.below(all.len());
    let chunk = &mut all[index];
    let (kind, flags) = (chunk[4], chunk[5]);
    let payload = chunk[HEAD..].to_vec();
    let whole_frame = kind == 3 || (kind == 2 && flags & 1 != 0);
    if whole_frame && random.below(8) > 0 {
        let raw_length = u32::from_le_bytes([chunk[36], chunk[37], chunk[38], chunk[39]]) as usize;
        let mut raw = vec![0; raw_length];
        let mut zstd = zstd::stream::read::Decoder::new(&payload[..]).expect("a frame");
        std::io::Read::read_exact(&mut zstd, &mut raw).expect("as long as it says");
        mutate(random, &mut raw);
        chunk.truncate(HEAD);
        chunk.extend(zstd::bulk::compress(&raw, 1).expect("memory"));
        seal(chunk, raw.len());
    } else {
        let raw = u32::from_le_bytes([chunk[36], chunk[37], chunk[38], chunk[39]]) as usize;
        let mut changed = payload;
        mutate(random, &mut changed);
        chunk.truncate(HEAD);
        chunk.extend(changed);
        seal(chunk, raw);
    }
    let mut bytes = b"\x89VRAM\r\n\x1a".to_vec();
    bytes.extend(all.concat());
    bytes
}

#[test]
fn no_content_makes_a_reader_panic() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seconds = setting("VRAMSCOPE_FUZZ_SECONDS").unwrap_or(1);
    let seed = setting("VRAMSCOPE_FUZZ_SEED").unwrap_or(0x5eed);
    let small = common::small();
    let mut writer = Writer::default();
    let mut varied = writer.session(&common::info());
    let records: Vec<_> = (0..2).flat_map(common::varied).collect();
    varied.extend(writer.records(&records));
    varied.extend(writer.checkpoint(&Checkpoint {
        time: records[0].time,
        definitions: common::definitions(&records),
        blocks: common::live_blocks(&records),
        state_version: 1,
        state: Vec::new(),
    }));
    varied.extend(writer.records(&records));
    let originals = [chunks(&small.bytes), chunks(&varied)];
    let mut random = Random(seed);
    let started = Instant::now();
    let mut rounds = 0u64;
    let mut read = 0u64;
    while started.elapsed() < Duration::from_secs(seconds) {
        rounds += 1;
        let mut bytes = crafted(&mut random, &originals[random_index(rounds)]);
        if random.below(4) == 0 {
            mutate(&mut random, &mut bytes);
        }
        let outcome = std::panic::catch_unwind(|| {
            let Ok(recording) = Recording::from_bytes(bytes) else {
                return 0;
            };
            recording.batches().map_while(Result::ok).count() as u64
                + recording
                    .batches_from(vramscope_events::Time(u64::MAX))
                    .map_while(Result::ok)
                    .count() as u64
        });
        read += outcome.unwrap_or_else(|_| panic!("seed {seed}, round {rounds}"));
    }
    println!("{rounds} files, {read} batches read");
    assert!(read > 0);
}

fn random_index(round: u64) -> usize {
    (round % 2) as usize
}

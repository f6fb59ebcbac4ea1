//! When most was alive.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use vramscope_collector::{BookKey, HOST_DEVICE};
use vramscope_events::{Address, Bytes, DeviceId, Event, Layer, Pid, Record, Time};

/// The moments at which most of each book was alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peaks(BTreeMap<BookKey, Peak>);

/// A moment: after the record with this number, counted from 0 over the whole stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// The record.
    pub record: u64,
    /// When it was.
    pub time: Time,
    /// What was alive then, of what was allocated since the attach.
    pub bytes: Bytes,
}

impl Peaks {
    /// The peak of a book.
    pub fn of(&self, key: BookKey) -> Option<Peak> {
        self.0.get(&key).copied()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (BookKey, Peak)> {
        self.0.iter().map(|(key, peak)| (*key, *peak))
    }
}

/// Finds the peaks of a stream; memory by live blocks.
#[derive(Debug, Default)]
pub struct PeakFinder {
    live: FxHashMap<(Pid, Layer, Address), (DeviceId, Bytes)>,
    bytes: FxHashMap<BookKey, Bytes>,
    peaks: Peaks,
    record: u64,
}

impl PeakFinder {
    /// Takes the next records of the stream.
    pub fn push(&mut self, batch: &[Record]) {
        for record in batch {
            match &record.event {
                Event::Alloc(alloc) => {
                    let device = match alloc.layer {
                        Layer::Host => HOST_DEVICE,
                        _ => alloc.device,
                    };
                    let block = (device, alloc.size);
                    let at = (record.process, alloc.layer, alloc.address);
                    // An address lives once: its free was missed.
                    if let Some((old, size)) = self.live.insert(at, block) {
                        self.lower(record.process, alloc.layer, old, size);
                    }
                    self.rise(record, alloc.layer, device, alloc.size);
                }
                Event::Free(free) => {
                    let at = (record.process, free.layer, free.address);
                    if let Some((device, size)) = self.live.remove(&at) {
                        self.lower(record.process, free.layer, device, size);
                    }
                }
                _ => {}
            }
            self.record += 1;
        }
    }

    /// Records are missing: the stream goes on with what these allocations say is alive.
    pub fn restart(&mut self, restated: &[Record]) {
        self.live.clear();
        self.bytes.clear();
        let (record, peaks) = (self.record, self.peaks.clone());
        self.push(restated);
        // They are no records of the stream, and no peak lies in them.
        self.record = record;
        self.peaks = peaks;
    }

    /// The peaks of what was taken.
    pub fn finish(self) -> Peaks {
        self.peaks
    }

    fn rise(&mut self, record: &Record, layer: Layer, device: DeviceId, size: Bytes) {
        let key = BookKey {
            process: record.process,
            device,
            layer,
        };
        let bytes = self.bytes.entry(key).or_default();
        *bytes += size;
        let peak = self.peaks.0.entry(key).or_default();
        if *bytes > peak.bytes {
            *peak = Peak {
                record: self.record,
                time: record.time,
                bytes: *bytes,
            };
        }
    }

    fn lower(&mut self, process: Pid, layer: Layer, device: DeviceId, size: Bytes) {
        let key = BookKey {
            process,
            device,
            layer,
        };
        if let Some(bytes) = self.bytes.get_mut(&key) {
            *bytes -= size;
        }
    }
}

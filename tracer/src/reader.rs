//! The thread that empties the ring.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::Sender;
use vramscope_events::{Event, LostCause, Pid, Record, Tid};
use vramscope_python::Process;
use vramscope_wire as wire;

use crate::{
    decode::{Decoder, KnownCodes},
    loader::ReaderMaps,
    session::now,
};

/// Records in one batch at most: what the reader hands on in one piece.
const BATCH: usize = 8192;
/// The reader's rest when the ring is empty.
const REST: Duration = Duration::from_millis(4);
/// How often counters and the process's life are looked at.
const HOUSEKEEPING: Duration = Duration::from_millis(100);

/// Takes records from the ring, decodes them and hands them on, until it is told to stop or the
/// process has ended.
pub(crate) struct Reader {
    pub maps: ReaderMaps,
    pub decoder: Decoder,
    pub process: Process,
    pub sender: Sender<Vec<Record>>,
    pub stop: Arc<AtomicBool>,
    /// Losses told so far: none.
    pub lost: Lost,
    /// Keeps the watch over the devices going until the ring is empty: its last figures are then of
    /// the same moment as the last events.
    pub _watch: Sender<()>,
}

/// Losses told so far.
#[derive(Default)]
pub(crate) struct Lost {
    ring_full: u64,
    stacks: u64,
    table_full: u64,
    undecodable: u64,
}

struct Codes<'a>(&'a aya::maps::HashMap<aya::maps::MapData, [u64; 2], [u32; 2]>);

impl KnownCodes for Codes<'_> {
    fn id(&self, address: u64, process: u16) -> Option<u32> {
        self.0
            .get(&[address, u64::from(process)], 0)
            .ok()
            .map(|[id, _]| id)
    }
}

impl Reader {
    pub fn run(mut self) {
        let mut last_look = Instant::now();
        loop {
            // Read before the ring is emptied: what was sent before the stop is then all there.
            let stopping = self.stop.load(Ordering::Acquire);
            let alive = last_look.elapsed() < HOUSEKEEPING || self.process.is_running();
            let mut batch = Vec::new();
            let full = self.drain(&mut batch);
            if last_look.elapsed() >= HOUSEKEEPING || stopping || !alive {
                last_look = Instant::now();
                self.tell_losses(&mut batch);
                self.decoder.settle(now(), &mut batch);
            }
            let idle = batch.is_empty();
            if !alive && !full {
                batch.push(self.record(Event::ProcessExited));
            }
            if !batch.is_empty() && self.sender.send(batch).is_err() {
                return;
            }
            if (stopping || !alive) && !full {
                return;
            }
            if idle {
                thread::sleep(REST);
            }
        }
    }

    /// Fills `batch` from the ring; whether there may be more.
    fn drain(&mut self, batch: &mut Vec<Record>) -> bool {
        let Reader { maps, decoder, .. } = self;
        let codes = Codes(&maps.codes);
        while batch.len() < BATCH {
            let Some(item) = maps.ring.next() else {
                return false;
            };
            decoder.decode(&item, &codes, batch);
        }
        true
    }

    fn record(&self, event: Event) -> Record {
        Record {
            time: now(),
            process: Pid(self.process.pid()),
            thread: Tid(0),
            event,
        }
    }

    fn tell_losses(&mut self, batch: &mut Vec<Record>) {
        let counter = |index: wire::vs_counter| -> u64 {
            self.maps
                .counters
                .get(&index, 0)
                .map_or(0, |values| values.iter().sum())
        };
        let ring_full = counter(wire::vs_counter_VS_COUNT_RING_FULL);
        let stacks = counter(wire::vs_counter_VS_COUNT_BODY_LOST)
            + counter(wire::vs_counter_VS_COUNT_NO_SLOT)
            + counter(wire::vs_counter_VS_COUNT_UNREADABLE);
        let table_full = counter(wire::vs_counter_VS_COUNT_TABLE_FULL);
        let undecodable = self.decoder.stats.undecodable;
        let news = [
            (LostCause::RingFull, ring_full - self.lost.ring_full),
            (LostCause::StackUnreadable, stacks - self.lost.stacks),
            (LostCause::TableFull, table_full - self.lost.table_full),
            (LostCause::Undecodable, undecodable - self.lost.undecodable),
        ];
        for (cause, count) in news {
            if count > 0 {
                batch.push(self.record(Event::Lost { count, cause }));
            }
        }
        self.lost = Lost {
            ring_full,
            stacks,
            table_full,
            undecodable,
        };
    }
}

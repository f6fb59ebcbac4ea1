//! The thread that empties the ring.

use std::{
    mem,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender};
use vramscope_events::{Event, LostCause, Pid, ProcessInfo, Record, Tid};
use vramscope_wire as wire;

use crate::{
    decode::{Decoder, KnownCodes, Traced},
    loader::{ReaderMaps, remove_where},
    pod::{NativeValue, RulesValue},
    session::now,
    unwind::names::Nameless,
};

/// Records in one batch at most: what the reader hands on in one piece.
const BATCH: usize = 8192;
/// The reader's rest when the ring is empty.
const REST: Duration = Duration::from_millis(4);
/// How often counters are looked at.
const HOUSEKEEPING: Duration = Duration::from_millis(100);

/// What the reader is told of processes.
pub(crate) enum Notice {
    /// A process has this index from here on. Told before its probes are placed.
    Began {
        index: u16,
        info: Box<ProcessInfo>,
        traced: Box<Traced>,
    },
    /// It has mapped code at these addresses.
    Mapped { index: u16, addresses: Range<u64> },
    /// The process with this index has ended: nothing of it comes any more.
    Ended { index: u16 },
    /// Its probes are off too: the index is to be free.
    Retired { index: u16 },
}

/// Takes records from the ring, decodes them and hands them on, until it is told to stop.
pub(crate) struct Reader {
    maps: ReaderMaps,
    decoder: Decoder,
    notices: Receiver<Notice>,
    /// Where indices go that are free again.
    free: Sender<u16>,
    sender: Sender<Vec<Record>>,
    stop: Arc<AtomicBool>,
    /// Losses told so far.
    lost: Lost,
    /// Processes that were told of and have not ended.
    live: Vec<(u16, Pid)>,
    /// To be told of when the ring has been emptied.
    ended: Vec<u16>,
    retired: Vec<u16>,
    /// Keeps the watch over the devices going until the ring is empty: its last figures are then of
    /// the same moment as the last events.
    _watch: Sender<()>,
}

/// Losses told so far.
#[derive(Default)]
struct Lost {
    ring_full: u64,
    stacks: u64,
    table_full: u64,
    undecodable: u64,
}

struct Known<'a> {
    codes: &'a aya::maps::HashMap<aya::maps::MapData, [u64; 2], [u32; 2]>,
    natives: &'a aya::maps::Array<aya::maps::MapData, NativeValue>,
    replaced: &'a aya::maps::Array<aya::maps::MapData, u64>,
}

impl<'a> Known<'a> {
    fn of(
        codes: &'a aya::maps::HashMap<aya::maps::MapData, [u64; 2], [u32; 2]>,
        natives: &'a aya::maps::Array<aya::maps::MapData, NativeValue>,
        replaced: &'a aya::maps::Array<aya::maps::MapData, u64>,
    ) -> Known<'a> {
        Known {
            codes,
            natives,
            replaced,
        }
    }
}

impl KnownCodes for Known<'_> {
    fn id(&self, address: u64, process: u16) -> Option<u32> {
        self.codes
            .get(&[address, u64::from(process)], 0)
            .ok()
            .map(|[id, _]| id)
    }

    fn epoch(&self, process: u16) -> Option<u64> {
        let index = u32::from(process);
        let native = self.natives.get(&index, 0).ok()?;
        Some(native.0.epoch + self.replaced.get(&index, 0).ok()?)
    }
}

impl Reader {
    /// A reader of processes that it is told of through `notices`, until `stop`. Machine code is
    /// named through `names`.
    pub fn new(
        maps: ReaderMaps,
        notices: Receiver<Notice>,
        free: Sender<u16>,
        names: Option<Sender<Nameless>>,
        sender: Sender<Vec<Record>>,
        stop: Arc<AtomicBool>,
        watch: Sender<()>,
    ) -> Reader {
        let decoder = Decoder::default();
        Reader {
            maps,
            decoder: match names {
                Some(names) => decoder.with_names(names),
                None => decoder,
            },
            notices,
            free,
            sender,
            stop,
            lost: Lost::default(),
            live: Vec::new(),
            ended: Vec::new(),
            retired: Vec::new(),
            _watch: watch,
        }
    }

    pub fn run(mut self) {
        let mut last_look = Instant::now();
        loop {
            // Read before the ring is emptied: what was sent before the stop is then all there.
            let stopping = self.stop.load(Ordering::Acquire);
            let mut batch = Vec::new();
            self.take_notice(&mut batch);
            let full = self.drain(&mut batch);
            if last_look.elapsed() >= HOUSEKEEPING || stopping {
                last_look = Instant::now();
                self.tell_losses(&mut batch);
                self.decoder.settle(now(), &mut batch);
            }
            if !full {
                self.tell_ends(&mut batch);
            }
            let idle = batch.is_empty();
            if !batch.is_empty() && self.sender.send(batch).is_err() {
                return;
            }
            if stopping && !full {
                return;
            }
            if idle {
                thread::sleep(REST);
            }
        }
    }

    fn take_notice(&mut self, batch: &mut Vec<Record>) {
        for notice in self.notices.try_iter() {
            match notice {
                Notice::Began {
                    index,
                    info,
                    traced,
                } => {
                    self.live.push((index, traced.pid));
                    batch.push(record(
                        traced.pid,
                        Event::ProcessStarted {
                            info: Arc::from(info),
                        },
                    ));
                    self.decoder.set(index, *traced);
                }
                Notice::Mapped { index, addresses } => {
                    if self.decoder.is_replaced(index, addresses) {
                        let index = u32::from(index);
                        let count = self.maps.replaced.get(&index, 0).unwrap_or(0);
                        // Should the kernel refuse, it goes on in a time that is over, and its
                        // stacks are counted as lost.
                        let _ = self.maps.replaced.set(index, count + 1, 0);
                    }
                }
                Notice::Ended { index } => self.ended.push(index),
                Notice::Retired { index } => self.retired.push(index),
            }
        }
    }

    /// Fills `batch` from the ring; whether there may be more.
    fn drain(&mut self, batch: &mut Vec<Record>) -> bool {
        while batch.len() < BATCH {
            let Some(item) = self.maps.ring.next() else {
                return false;
            };
            // A process may have been told of after the last look, and be quick.
            let known =
                wire::process(&item).is_none_or(|index| self.decoder.process(index).is_some());
            if known {
                let known = Known::of(&self.maps.codes, &self.maps.natives, &self.maps.replaced);
                self.decoder.decode(&item, &known, batch);
            } else {
                let late = item.to_vec();
                drop(item);
                self.take_notice(batch);
                let known = Known::of(&self.maps.codes, &self.maps.natives, &self.maps.replaced);
                self.decoder.decode(&late, &known, batch);
            }
            for (set, rules) in self.decoder.rules.changes() {
                // A rule that the kernel does not take is asked for again.
                let _ = self.maps.rules.set(set, RulesValue(rules), 0);
            }
        }
        true
    }

    /// The ring was empty after the notice came: everything of these processes has been handed on.
    fn tell_ends(&mut self, batch: &mut Vec<Record>) {
        for index in mem::take(&mut self.ended) {
            self.live.retain(|(of, pid)| {
                if *of == index {
                    batch.push(record(*pid, Event::ProcessExited));
                }
                *of != index
            });
        }
        for index in mem::take(&mut self.retired) {
            self.decoder.remove(index);
            remove_where(&mut self.maps.codes, |[_, process], _| {
                *process == u64::from(index)
            });
            // Who waits for it may be gone.
            let _ = self.free.send(index);
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
            + counter(wire::vs_counter_VS_COUNT_UNREADABLE)
            + counter(wire::vs_counter_VS_COUNT_NATIVE_LOST)
            + self.decoder.stats.stale_stacks;
        let table_full = counter(wire::vs_counter_VS_COUNT_TABLE_FULL);
        let undecodable = self.decoder.stats.undecodable;
        let news = [
            (LostCause::RingFull, ring_full - self.lost.ring_full),
            (LostCause::StackUnreadable, stacks - self.lost.stacks),
            (LostCause::TableFull, table_full - self.lost.table_full),
            (LostCause::Undecodable, undecodable - self.lost.undecodable),
        ];
        // The kernel counts for all processes together.
        let process = match self.live[..] {
            [(_, pid)] => pid,
            _ => Pid(0),
        };
        for (cause, count) in news {
            if count > 0 {
                batch.push(record(process, Event::Lost { count, cause }));
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

fn record(process: Pid, event: Event) -> Record {
    Record {
        time: now(),
        process,
        thread: Tid(0),
        event,
    }
}

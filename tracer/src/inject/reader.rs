//! The thread that empties the rings of all injected processes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender};
use vramscope_events::{Event, LostCause, Pid, ProcessInfo, Record, Tid};
use vramscope_python::{Process, Python};
use vramscope_ring::Reader as Ring;
use vramscope_wire as wire;

use super::{clock::Clock, shared::Shared};
use crate::{
    decode::{Decoder, KnownCodes, Traced},
    session::now,
    unwind::names::Nameless,
};

/// Records taken from one ring before the next one has its turn.
const TURN: usize = 8192;
/// The rest when all rings are empty.
const REST: Duration = Duration::from_millis(2);
/// How often counters and the processes' lives are looked at.
const HOUSEKEEPING: Duration = Duration::from_millis(100);

/// A process whose hooks are in place.
pub struct Peer {
    /// Whether its times are counters.
    pub tsc: bool,
    pub info: ProcessInfo,
    pub process: Process,
    pub python: Option<Python>,
    pub shared: Shared,
}

/// What the reader is told.
pub enum News {
    /// A process more.
    Came(Box<Peer>),
    /// In one of them, other code lies where code was. `done` is dropped when that is known here.
    Replaced { pid: Pid, done: Sender<()> },
}

/// Everything was sent whole: there is nothing to look up again.
struct NothingMore;

impl KnownCodes for NothingMore {
    fn id(&self, _: u64, _: u16) -> Option<u32> {
        None
    }

    fn epoch(&self, _: u16) -> Option<u64> {
        None
    }
}

struct Line {
    tsc: bool,
    pid: Pid,
    process: Process,
    shared: Shared,
    ring: Ring,
    /// What was told of losses so far.
    full: u64,
    stacks: u64,
    over: bool,
}

/// Takes records from the rings, decodes them and hands them on.
pub struct Reader {
    decoder: Decoder,
    /// Of the decoder's failures, those that were told.
    undecodable: u64,
    clock: Clock,
    lines: Vec<Line>,
    news: Receiver<News>,
    sender: Sender<Vec<Record>>,
    stop: Arc<AtomicBool>,
}

impl Reader {
    /// A reader of the rings of processes that come among the `news`, until `stop`.
    pub fn new(
        news: Receiver<News>,
        sender: Sender<Vec<Record>>,
        names: Sender<Nameless>,
        stop: Arc<AtomicBool>,
    ) -> Reader {
        Reader {
            decoder: Decoder::default().with_names(names),
            undecodable: 0,
            clock: Clock::new(),
            lines: Vec::new(),
            news,
            sender,
            stop,
        }
    }

    /// Works until it is told to stop and the rings are empty, or nobody listens.
    pub fn run(mut self) {
        let mut last_look = Instant::now();
        loop {
            // Read before the rings are emptied: what was written before the stop is then there.
            let stopping = self.stop.load(Ordering::Acquire);
            let mut batch = Vec::new();
            self.take_news(&mut batch);
            let look = last_look.elapsed() >= HOUSEKEEPING || stopping;
            if look {
                last_look = Instant::now();
                self.clock.refresh();
            }
            let mut full = false;
            for index in 0..self.lines.len() {
                full |= self.turn(index, look, &mut batch);
            }
            if look {
                self.decoder.settle(now(), &mut batch);
            }
            let idle = batch.is_empty();
            if !idle && self.sender.send(batch).is_err() {
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

    fn take_news(&mut self, batch: &mut Vec<Record>) {
        while let Ok(news) = self.news.try_recv() {
            let peer = match news {
                News::Came(peer) => *peer,
                News::Replaced { pid, done } => {
                    let index = self.lines.iter().position(|line| line.pid == pid);
                    if let Some(index) = index {
                        self.decoder.is_replaced(index as u16, 0..u64::MAX);
                    }
                    drop(done);
                    continue;
                }
            };
            let pid = peer.info.pid;
            batch.push(record(
                pid,
                Event::ProcessStarted {
                    info: Arc::new(peer.info),
                },
            ));
            self.decoder
                .add(Traced::new(peer.process.clone(), peer.python));
            self.lines.push(Line {
                tsc: peer.tsc,
                pid,
                process: peer.process,
                shared: peer.shared,
                ring: Ring::new(),
                full: 0,
                stacks: 0,
                over: false,
            });
        }
    }

    /// Takes what one ring has; whether there may be more.
    fn turn(&mut self, index: usize, look: bool, batch: &mut Vec<Record>) -> bool {
        let line = &mut self.lines[index];
        if line.over {
            return false;
        }
        let alive = !look || line.process.is_running();
        let mut payload = Vec::new();
        for _ in 0..TURN {
            match line.ring.next(line.shared.parts(), &mut payload) {
                Ok(true) => {
                    let bytes = bytemuck::cast_slice_mut::<u64, u8>(&mut payload);
                    address(bytes, index as u16);
                    if line.tsc {
                        set_time(bytes, &self.clock);
                    }
                    self.decoder.decode(bytes, &NothingMore, batch);
                }
                Ok(false) => {
                    if look {
                        tell_losses(line, batch);
                        let undecodable = self.decoder.stats.undecodable;
                        if undecodable > self.undecodable {
                            let count = undecodable - self.undecodable;
                            let cause = LostCause::Undecodable;
                            batch.push(record(line.pid, Event::Lost { count, cause }));
                            self.undecodable = undecodable;
                        }
                    }
                    if !alive {
                        line.over = true;
                        batch.push(record(line.pid, Event::ProcessExited));
                    }
                    return false;
                }
                Err(_) => {
                    // Nothing of it can be believed any more.
                    line.over = true;
                    batch.push(record(
                        line.pid,
                        Event::Lost {
                            count: 1,
                            cause: LostCause::Undecodable,
                        },
                    ));
                    return false;
                }
            }
        }
        true
    }
}

/// Writes the process's index into a record: its producer does not know it.
fn address(bytes: &mut [u8], index: u16) {
    let at = std::mem::offset_of!(wire::vs_header, process);
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&index.to_le_bytes());
    }
}

/// Turns a record's counter into its time.
fn set_time(bytes: &mut [u8], clock: &Clock) {
    let at = std::mem::offset_of!(wire::vs_header, time);
    if let Some(place) = bytes.get_mut(at..at + 8)
        && let Ok(counter) = <[u8; 8]>::try_from(&*place)
    {
        let time = clock.time(u64::from_le_bytes(counter));
        place.copy_from_slice(&time.to_le_bytes());
    }
}

fn tell_losses(line: &mut Line, batch: &mut Vec<Record>) {
    let full = line.shared.counter(wire::vs_counter_VS_COUNT_RING_FULL);
    let stacks = line.shared.counter(wire::vs_counter_VS_COUNT_BODY_LOST);
    // The counters are the process's own: they may be anything.
    let news = [
        (LostCause::RingFull, full.saturating_sub(line.full)),
        (
            LostCause::StackUnreadable,
            stacks.saturating_sub(line.stacks),
        ),
    ];
    for (cause, count) in news {
        if count > 0 {
            batch.push(record(line.pid, Event::Lost { count, cause }));
        }
    }
    line.full = full;
    line.stacks = stacks;
}

fn record(process: Pid, event: Event) -> Record {
    Record {
        time: now(),
        process,
        thread: Tid(0),
        event,
    }
}

//! The last events of a stream, for formats that show them one by one.

use std::collections::VecDeque;

use vramscope_collector::{BookKey, HOST_DEVICE};
use vramscope_events::{
    Address, Bytes, DeviceId, Event, Layer, Pid, Record, StackId, StepMarkKind, Tid, Time,
};

/// Most events that are kept: PyTorch's memory viewer shows no more.
pub const MOST_EVENTS: usize = 600_000;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailEvent {
    /// When.
    pub time: Time,
    /// On which thread.
    pub thread: Tid,
    /// In which process.
    pub process: Pid,
    /// What.
    pub what: TailKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailKind {
    /// Memory was handed out.
    Alloc {
        /// In which layer.
        layer: Layer,
        /// On which device.
        device: DeviceId,
        /// Its first byte.
        address: Address,
        /// Its size.
        size: Bytes,
        /// Who asked.
        stack: StackId,
    },
    /// Memory was given back.
    Free {
        /// In which layer.
        layer: Layer,
        /// On which device, where the tracer knows it.
        device: Option<DeviceId>,
        /// Its first byte.
        address: Address,
    },
    /// A request failed.
    OutOfMemory {
        /// On which device.
        device: DeviceId,
        /// What was asked for.
        requested: Bytes,
        /// Who asked.
        stack: StackId,
    },
    /// The cache was given back.
    CacheEmptied {
        /// On which device.
        device: DeviceId,
    },
    /// The training loop passed a known place.
    Mark(StepMarkKind),
    /// Events are missing.
    Lost(u64),
}

/// The last events, at most a given number.
#[derive(Clone, Debug)]
pub struct Tail {
    events: VecDeque<TailEvent>,
    most: usize,
    dropped: u64,
}

impl Tail {
    /// Keeps at most `most` events.
    pub fn new(most: usize) -> Tail {
        Tail {
            events: VecDeque::new(),
            most,
            dropped: 0,
        }
    }

    /// Takes the next records of the stream.
    pub fn push(&mut self, batch: &[Record]) {
        if self.most == 0 {
            return;
        }
        for record in batch {
            let Some(what) = kind(&record.event) else {
                continue;
            };
            if self.events.len() == self.most {
                self.events.pop_front();
                self.dropped += 1;
            }
            self.events.push_back(TailEvent {
                time: record.time,
                thread: record.thread,
                process: record.process,
                what,
            });
        }
    }

    /// Forgets what was kept: the stream begins anew.
    pub(crate) fn restart(&mut self) {
        self.dropped += self.events.len() as u64;
        self.events.clear();
    }

    /// The events, oldest first.
    pub fn events(&self) -> impl Iterator<Item = &TailEvent> {
        self.events.iter()
    }

    /// How many came before and were not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl TailEvent {
    /// Whether it is an allocation or a free in this book, as far as it tells: a driver's free
    /// does not say on which device.
    pub fn is_of(&self, key: BookKey) -> bool {
        let (layer, device) = match self.what {
            TailKind::Alloc { layer, device, .. } => (layer, Some(device)),
            TailKind::Free { layer, device, .. } => (layer, device),
            _ => return false,
        };
        let host = layer == Layer::Host && key.device == HOST_DEVICE;
        self.process == key.process
            && layer == key.layer
            && (host || device.is_none_or(|device| device == key.device))
    }
}

fn kind(event: &Event) -> Option<TailKind> {
    Some(match event {
        Event::Alloc(alloc) => TailKind::Alloc {
            layer: alloc.layer,
            device: alloc.device,
            address: alloc.address,
            size: alloc.size,
            stack: alloc.stack,
        },
        Event::Free(free) => TailKind::Free {
            layer: free.layer,
            device: free.device,
            address: free.address,
        },
        Event::OutOfMemory(failed) => TailKind::OutOfMemory {
            device: failed.device,
            requested: failed.requested,
            stack: failed.stack,
        },
        Event::CacheEmptied { device } => TailKind::CacheEmptied { device: *device },
        Event::StepMark(mark) => TailKind::Mark(mark.kind),
        Event::Lost { count, .. } => TailKind::Lost(*count),
        _ => return None,
    })
}

//! Events to columns.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vramscope_events::{
    Alloc, DeviceId, Event, FrameId, Free, Layer, Pid, Record, StepMarkKind, Totals,
};

use super::{
    COLUMNS, GRAIN, REACH,
    shape::{Shape, SizeMode, TotalsMode, What, cause_number},
};
use crate::wire::{put, put_bytes, zigzag};

/// What a writer remembers within a segment. A reader remembers the same.
#[derive(Default)]
pub(crate) struct Encoder {
    shapes: FxHashMap<(u64, u64), u64>,
    strings: FxHashMap<Arc<str>, u64>,
    /// By process, layer and address: which allocation it was, and its size.
    live: FxHashMap<(u64, u64), (u64, u64)>,
    totals: FxHashMap<(Pid, DeviceId), Totals>,
    allocations: u64,
    last_address: u64,
    last_stack: Arc<[FrameId]>,
}

/// The columns of one chunk.
#[derive(Default)]
struct Columns {
    shapes: Vec<u8>,
    times: Vec<u8>,
    stacks: Vec<u8>,
    sizes: Vec<u8>,
    addresses: Vec<u8>,
    distances: Vec<u8>,
    rest: Vec<u8>,
}

impl Encoder {
    /// The payload for `records`. Events of a kind that this format does not know are left out;
    /// how many is the second result.
    pub fn encode(&mut self, records: &[Record]) -> (Vec<u8>, u64) {
        let unit = unit(records);
        let start = records.first().map_or(0, |record| record.time.0);
        let mut columns = Columns::default();
        let mut new_shapes = Vec::new();
        let known = self.shapes.len();
        let mut last = start;
        let (mut count, mut unknown) = (0, 0);
        for record in records {
            let Some(shape) = self.event(record, &mut columns) else {
                unknown += 1;
                continue;
            };
            let next = self.shapes.len() as u64;
            let index = *self.shapes.entry(shape.key()).or_insert_with(|| {
                shape.write(&mut new_shapes);
                next
            });
            put(&mut columns.shapes, index);
            let passed = record.time.0.wrapping_sub(last) as i64 / unit as i64;
            put(&mut columns.times, zigzag(passed));
            last = record.time.0;
            count += 1;
        }
        let all: [&[u8]; COLUMNS] = [
            &columns.shapes,
            &columns.times,
            &columns.stacks,
            &columns.sizes,
            &columns.addresses,
            &columns.distances,
            &columns.rest,
        ];
        let length: usize = all.iter().map(|column| column.len() + 5).sum();
        let mut out = Vec::with_capacity(length + new_shapes.len() + 32);
        put(&mut out, count);
        put(&mut out, unit);
        put(&mut out, start);
        put(&mut out, (self.shapes.len() - known) as u64);
        out.extend_from_slice(&new_shapes);
        for column in all {
            put_bytes(&mut out, column);
        }
        (out, unknown)
    }

    fn event(&mut self, record: &Record, columns: &mut Columns) -> Option<Shape> {
        let shape = |what| Shape::new(what, record.process, record.thread);
        let rest = &mut columns.rest;
        Some(match &record.event {
            Event::Alloc(alloc) => self.alloc(shape(What::Alloc), alloc, columns),
            Event::Free(free) => self.free(shape(What::FreeAt), free, columns),
            Event::Frame { id, frame } => {
                put(rest, id.0.into());
                rest.push(frame.kind as u8);
                put(rest, frame.line.into());
                self.string(&frame.file, rest);
                self.string(&frame.function, rest);
                shape(What::Frame)
            }
            Event::Stack { id, frames } => {
                put(rest, id.0.into());
                self.stack(frames, rest);
                shape(What::Stack)
            }
            Event::Source { frame, text } => {
                put(rest, frame.0.into());
                self.string(text, rest);
                shape(What::Source)
            }
            Event::OutOfMemory(failed) => {
                put(rest, failed.requested);
                put(rest, failed.totals.allocated);
                put(rest, failed.totals.reserved);
                put(rest, failed.stack.0.into());
                shape(What::OutOfMemory).on(failed.device)
            }
            Event::CacheEmptied { device } => shape(What::CacheEmptied).on(*device),
            Event::StepMark(mark) => {
                put(rest, mark.stack.0.into());
                shape(match mark.kind {
                    StepMarkKind::Backward => What::Backward,
                    StepMarkKind::User => What::UserMark,
                })
            }
            Event::Lost { count, cause } => {
                rest.push(cause_number(*cause));
                put(rest, *count);
                shape(What::Lost)
            }
            Event::DeviceMemory {
                device,
                total,
                free,
                used_by_process,
            } => {
                put(rest, *total);
                put(rest, *free);
                rest.push(u8::from(used_by_process.is_some()));
                put(rest, used_by_process.unwrap_or(0));
                shape(What::DeviceMemory).on(*device)
            }
            Event::DeviceUsers { device, users } => {
                put(rest, users.len() as u64);
                for user in users.iter() {
                    put(rest, user.pid.0.into());
                    self.string(&user.command, rest);
                    rest.push(u8::from(user.bytes.is_some()));
                    put(rest, user.bytes.unwrap_or(0));
                }
                shape(What::DeviceUsers).on(*device)
            }
            Event::GraphCapture { began: true } => shape(What::CaptureBegan),
            Event::GraphCapture { began: false } => shape(What::CaptureEnded),
            Event::Mapped {
                allocation,
                address,
                size,
            } => {
                put(rest, allocation.0);
                put(rest, address.0);
                put(rest, *size);
                shape(What::Mapped)
            }
            Event::Unmapped { address, size } => {
                put(rest, address.0);
                put(rest, *size);
                shape(What::Unmapped)
            }
            Event::PoolsKept { device, bytes } => {
                put(rest, *bytes);
                shape(What::PoolsKept).on(*device)
            }
            Event::ProcessExited => shape(What::ProcessExited),
            Event::Holders(holders) => {
                // Strings and numbers in plain structs: nothing that can fail to be written.
                put_bytes(rest, &serde_json::to_vec(holders.as_ref()).ok()?);
                shape(What::Holders).on(holders.device)
            }
            _ => return None,
        })
    }

    fn alloc(&mut self, shape: Shape, alloc: &Alloc, columns: &mut Columns) -> Shape {
        put(&mut columns.stacks, alloc.stack.0.into());
        let size = put_size(&mut columns.sizes, alloc.size);
        let grains = self.address(alloc.address.0, columns);
        let key = live_key(shape.process, alloc.layer, alloc.address.0);
        self.live.insert(key, (self.allocations, alloc.size));
        self.allocations += 1;
        let device = (shape.process, alloc.device);
        Shape {
            layer: alloc.layer,
            totals: self.totals(device, alloc.size as i64, alloc.totals, columns),
            size,
            grains,
            ..shape
        }
        .on(alloc.device)
    }

    fn free(&mut self, shape: Shape, free: &Free, columns: &mut Columns) -> Shape {
        let key = live_key(shape.process, free.layer, free.address.0);
        let known = self
            .live
            .remove(&key)
            .filter(|(number, _)| self.allocations - number < REACH);
        let (what, grains) = match known {
            Some((number, _)) => {
                put(&mut columns.distances, self.allocations - number);
                (What::Free, false)
            }
            None => (What::FreeAt, self.address(free.address.0, columns)),
        };
        let size = match (free.size, known) {
            (None, _) => SizeMode::None,
            (Some(size), Some((_, same))) if size == same => SizeMode::Same,
            (Some(size), _) => put_size(&mut columns.sizes, size),
        };
        let freed = free.size.or(known.map(|(_, size)| size)).unwrap_or(0);
        let totals = match free.device {
            Some(device) => {
                let change = (freed as i64).wrapping_neg();
                self.totals((shape.process, device), change, free.totals, columns)
            }
            None => match free.totals {
                None => TotalsMode::None,
                Some(totals) => {
                    put(&mut columns.rest, totals.allocated);
                    put(&mut columns.rest, totals.reserved);
                    TotalsMode::Told
                }
            },
        };
        let shape = Shape {
            what,
            layer: free.layer,
            totals,
            size,
            grains,
            ..shape
        };
        match free.device {
            Some(device) => shape.on(device),
            None => shape,
        }
    }

    /// Addresses as the distance from the one told before.
    fn address(&mut self, address: u64, columns: &mut Columns) -> bool {
        let distance = address.wrapping_sub(self.last_address) as i64;
        self.last_address = address;
        let grains = distance % GRAIN as i64 == 0;
        let scale = if grains { GRAIN as i64 } else { 1 };
        put(&mut columns.addresses, zigzag(distance / scale));
        grains
    }

    fn totals(
        &mut self,
        device: (Pid, DeviceId),
        change: i64,
        told: Option<Totals>,
        columns: &mut Columns,
    ) -> TotalsMode {
        let Some(told) = told else {
            return TotalsMode::None;
        };
        let before = self.totals.insert(device, told).unwrap_or_default();
        let expected = Totals {
            allocated: before.allocated.wrapping_add_signed(change),
            ..before
        };
        if told == expected {
            return TotalsMode::Predicted;
        }
        put(&mut columns.rest, told.allocated);
        put(&mut columns.rest, told.reserved);
        TotalsMode::Told
    }

    fn string(&mut self, text: &Arc<str>, out: &mut Vec<u8>) {
        if let Some(number) = self.strings.get(text) {
            put(out, *number);
            return;
        }
        let number = self.strings.len() as u64 + 1;
        self.strings.insert(Arc::clone(text), number);
        put(out, 0);
        put_bytes(out, text.as_bytes());
    }

    /// A stack as what it shares with the one before: its outermost frames.
    fn stack(&mut self, frames: &Arc<[FrameId]>, out: &mut Vec<u8>) {
        let shared = frames
            .iter()
            .rev()
            .zip(self.last_stack.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        let own = &frames[..frames.len() - shared];
        put(out, shared as u64);
        put(out, own.len() as u64);
        for frame in own {
            put(out, frame.0.into());
        }
        self.last_stack = Arc::clone(frames);
    }
}

fn put_size(out: &mut Vec<u8>, size: u64) -> SizeMode {
    if size.is_multiple_of(GRAIN) {
        put(out, size / GRAIN);
        SizeMode::Grains
    } else {
        put(out, size);
        SizeMode::Bytes
    }
}

fn live_key(process: Pid, layer: Layer, address: u64) -> (u64, u64) {
    (u64::from(process.0) << 8 | layer as u64, address)
}

/// Microseconds where every time is one, else nanoseconds.
fn unit(records: &[Record]) -> u64 {
    let whole = |record: &Record| record.time.0.is_multiple_of(1000);
    if records.iter().all(whole) { 1000 } else { 1 }
}

//! Columns to events.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vramscope_events::{
    Address, Alloc, DeviceId, DeviceUser, Event, Frame, FrameId, FrameKind, Free, Holders,
    OutOfMemory, Pid, Record, StackId, StepMark, StepMarkKind, Time, Totals,
};

use super::{
    COLUMNS, GRAIN, REACH,
    shape::{Shape, SizeMode, TotalsMode, What, cause},
};
use crate::{error::Malformed, wire::Input};

/// Frames of a stack above which something is wrong.
const MAX_FRAMES: usize = 1 << 16;

/// What a reader remembers within a segment.
#[derive(Default)]
pub(crate) struct Decoder {
    shapes: Vec<Shape>,
    strings: Vec<Arc<str>>,
    /// The last [`REACH`] allocations, round and round.
    allocations: Vec<(u64, u64)>,
    count: u64,
    totals: FxHashMap<(Pid, DeviceId), Totals>,
    /// The totals that were used last: nearly always the same device's.
    recent: Option<((Pid, DeviceId), Totals)>,
    last_address: u64,
    last_stack: Arc<[FrameId]>,
}

struct Columns<'a> {
    shapes: Input<'a>,
    times: Input<'a>,
    stacks: Input<'a>,
    sizes: Input<'a>,
    addresses: Input<'a>,
    distances: Input<'a>,
    rest: Input<'a>,
}

impl Decoder {
    /// The events of a payload.
    pub fn decode(&mut self, payload: &[u8]) -> Result<Vec<Record>, Malformed> {
        let mut input = Input::new(payload);
        let count = input.count()?;
        let unit = input.varint()? as i64;
        let mut time = input.varint()?;
        for _ in 0..input.count()? {
            self.shapes.push(Shape::read(&mut input)?);
        }
        let mut columns = [const { None }; COLUMNS];
        for column in &mut columns {
            *column = Some(Input::new(input.bytes()?));
        }
        let [
            Some(shapes),
            Some(times),
            Some(stacks),
            Some(sizes),
            Some(addresses),
            Some(distances),
            Some(rest),
        ] = columns
        else {
            return Err(Malformed("a column is missing"));
        };
        let mut columns = Columns {
            shapes,
            times,
            stacks,
            sizes,
            addresses,
            distances,
            rest,
        };
        let mut records = Vec::with_capacity(count);
        for _ in 0..count {
            let index = columns.shapes.varint()? as usize;
            let shape = *self
                .shapes
                .get(index)
                .ok_or(Malformed("an unknown shape"))?;
            let passed = columns.times.signed()?.wrapping_mul(unit);
            time = time.wrapping_add_signed(passed);
            records.push(Record {
                time: Time(time),
                process: shape.process,
                thread: shape.thread,
                event: self.event(&shape, &mut columns)?,
            });
        }
        if !columns.shapes.is_empty() || !columns.rest.is_empty() {
            return Err(Malformed("more than the events need"));
        }
        Ok(records)
    }

    #[inline]
    fn event(&mut self, shape: &Shape, columns: &mut Columns<'_>) -> Result<Event, Malformed> {
        match shape.what {
            What::Alloc => self.alloc(shape, columns),
            What::Free | What::FreeAt => self.free(shape, columns),
            _ => self.rare(shape, columns),
        }
    }

    #[inline]
    fn alloc(&mut self, shape: &Shape, columns: &mut Columns<'_>) -> Result<Event, Malformed> {
        let stack = StackId(columns.stacks.u32()?);
        let size = size(shape, columns, None)?.ok_or(Malformed("no size"))?;
        let address = self.address(shape, columns)?;
        let slot = (self.count % REACH) as usize;
        match self.allocations.get_mut(slot) {
            Some(slot) => *slot = (address, size),
            None => self.allocations.push((address, size)),
        }
        self.count += 1;
        let device = shape.device().ok_or(Malformed("no device"))?;
        Ok(Event::Alloc(Alloc {
            layer: shape.layer,
            device,
            address: Address(address),
            size,
            stack,
            totals: self.totals(shape, size as i64, columns)?,
        }))
    }

    #[inline]
    fn free(&mut self, shape: &Shape, columns: &mut Columns<'_>) -> Result<Event, Malformed> {
        let (address, known) = if shape.what == What::Free {
            let distance = columns.distances.varint()?;
            if distance == 0 || distance >= REACH || distance > self.count {
                return Err(Malformed("a free of an allocation that never was"));
            }
            let slot = ((self.count - distance) % REACH) as usize;
            let (address, size) = *self
                .allocations
                .get(slot)
                .ok_or(Malformed("a free out of reach"))?;
            (address, Some(size))
        } else {
            (self.address(shape, columns)?, None)
        };
        let size = size(shape, columns, known)?;
        let freed = size.or(known).unwrap_or(0) as i64;
        Ok(Event::Free(Free {
            layer: shape.layer,
            device: shape.device(),
            address: Address(address),
            size,
            totals: self.totals(shape, freed.wrapping_neg(), columns)?,
        }))
    }

    #[inline]
    fn address(&mut self, shape: &Shape, columns: &mut Columns<'_>) -> Result<u64, Malformed> {
        let scale = if shape.grains { GRAIN as i64 } else { 1 };
        let distance = columns.addresses.signed()?.wrapping_mul(scale);
        self.last_address = self.last_address.wrapping_add_signed(distance);
        Ok(self.last_address)
    }

    #[inline]
    fn totals(
        &mut self,
        shape: &Shape,
        change: i64,
        columns: &mut Columns<'_>,
    ) -> Result<Option<Totals>, Malformed> {
        if shape.totals == TotalsMode::None {
            return Ok(None);
        }
        let Some(device) = shape.device() else {
            return Ok(Some(told(columns)?));
        };
        let key = (shape.process, device);
        let before = match self.recent {
            Some((recent, totals)) if recent == key => totals,
            recent => {
                if let Some((key, totals)) = recent {
                    self.totals.insert(key, totals);
                }
                self.totals.get(&key).copied().unwrap_or_default()
            }
        };
        let now = match shape.totals {
            TotalsMode::Predicted => Totals {
                allocated: before.allocated.wrapping_add_signed(change),
                ..before
            },
            _ => told(columns)?,
        };
        self.recent = Some((key, now));
        Ok(Some(now))
    }

    fn rare(&mut self, shape: &Shape, columns: &mut Columns<'_>) -> Result<Event, Malformed> {
        let rest = &mut columns.rest;
        let device = shape.device().unwrap_or_default();
        Ok(match shape.what {
            What::Frame => Event::Frame {
                id: FrameId(rest.u32()?),
                frame: Arc::new(self.frame(rest)?),
            },
            What::Stack => Event::Stack {
                id: StackId(rest.u32()?),
                frames: self.stack(rest)?,
            },
            What::Source => Event::Source {
                frame: FrameId(rest.u32()?),
                text: self.string(rest)?,
            },
            What::OutOfMemory => Event::OutOfMemory(OutOfMemory {
                device,
                requested: rest.varint()?,
                totals: Totals {
                    allocated: rest.varint()?,
                    reserved: rest.varint()?,
                },
                stack: StackId(rest.u32()?),
            }),
            What::CacheEmptied => Event::CacheEmptied { device },
            What::Backward => mark(StepMarkKind::Backward, rest)?,
            What::UserMark => mark(StepMarkKind::User, rest)?,
            What::Lost => Event::Lost {
                cause: cause(rest.byte()?)?,
                count: rest.varint()?,
            },
            What::DeviceMemory => {
                let (total, free) = (rest.varint()?, rest.varint()?);
                let told = rest.byte()? != 0;
                let used = rest.varint()?;
                Event::DeviceMemory {
                    device,
                    total,
                    free,
                    used_by_process: told.then_some(used),
                }
            }
            What::DeviceUsers => Event::DeviceUsers {
                device,
                users: self.users(rest)?,
            },
            What::CaptureBegan => Event::GraphCapture { began: true },
            What::CaptureEnded => Event::GraphCapture { began: false },
            What::Mapped => Event::Mapped {
                allocation: Address(rest.varint()?),
                address: Address(rest.varint()?),
                size: rest.varint()?,
            },
            What::Unmapped => Event::Unmapped {
                address: Address(rest.varint()?),
                size: rest.varint()?,
            },
            What::PoolsKept => Event::PoolsKept {
                device,
                bytes: rest.varint()?,
            },
            What::ProcessExited => Event::ProcessExited,
            What::Holders => {
                let holders = serde_json::from_slice(rest.bytes()?);
                Event::Holders(Arc::new(Holders {
                    device,
                    ..holders.map_err(|_| Malformed("an answer about holders that is none"))?
                }))
            }
            What::Alloc | What::Free | What::FreeAt => {
                return Err(Malformed("an event in the wrong place"));
            }
        })
    }

    fn users(&mut self, rest: &mut Input<'_>) -> Result<Arc<[DeviceUser]>, Malformed> {
        let mut users = Vec::new();
        for _ in 0..rest.count()? {
            let pid = Pid(rest.u32()?);
            let command = self.string(rest)?;
            let told = rest.byte()? != 0;
            let bytes = rest.varint()?;
            users.push(DeviceUser {
                pid,
                command,
                bytes: told.then_some(bytes),
            });
        }
        Ok(users.into())
    }

    fn frame(&mut self, rest: &mut Input<'_>) -> Result<Frame, Malformed> {
        let kind = match rest.byte()? {
            0 => FrameKind::Python,
            1 => FrameKind::Native,
            2 => FrameKind::Backward,
            _ => return Err(Malformed("an unknown kind of frame")),
        };
        Ok(Frame {
            kind,
            line: rest.u32()?,
            file: self.string(rest)?,
            function: self.string(rest)?,
        })
    }

    fn string(&mut self, rest: &mut Input<'_>) -> Result<Arc<str>, Malformed> {
        match rest.varint()? {
            0 => {
                let bytes = rest.bytes()?;
                let text = str::from_utf8(bytes).map_err(|_| Malformed("text that is no UTF-8"))?;
                let text: Arc<str> = text.into();
                self.strings.push(Arc::clone(&text));
                Ok(text)
            }
            number => usize::try_from(number - 1)
                .ok()
                .and_then(|index| self.strings.get(index))
                .cloned()
                .ok_or(Malformed("an unknown string")),
        }
    }

    fn stack(&mut self, rest: &mut Input<'_>) -> Result<Arc<[FrameId]>, Malformed> {
        let shared = rest.varint()?;
        let own = rest.count()?;
        let before = self.last_stack.len();
        let shared = usize::try_from(shared)
            .ok()
            .filter(|shared| *shared <= before)
            .ok_or(Malformed("a stack that shares more than there is"))?;
        if own + shared > MAX_FRAMES {
            return Err(Malformed("a stack above 65536 frames"));
        }
        let mut frames = Vec::with_capacity(own + shared);
        for _ in 0..own {
            frames.push(FrameId(rest.u32()?));
        }
        frames.extend_from_slice(&self.last_stack[before - shared..]);
        let frames: Arc<[FrameId]> = frames.into();
        self.last_stack = Arc::clone(&frames);
        Ok(frames)
    }
}

#[inline]
fn size(
    shape: &Shape,
    columns: &mut Columns<'_>,
    known: Option<u64>,
) -> Result<Option<u64>, Malformed> {
    Ok(match shape.size {
        SizeMode::None => None,
        SizeMode::Same => Some(known.ok_or(Malformed("a size like that of nothing"))?),
        SizeMode::Bytes => Some(columns.sizes.varint()?),
        SizeMode::Grains => Some(columns.sizes.varint()?.wrapping_mul(GRAIN)),
    })
}

fn told(columns: &mut Columns<'_>) -> Result<Totals, Malformed> {
    Ok(Totals {
        allocated: columns.rest.varint()?,
        reserved: columns.rest.varint()?,
    })
}

fn mark(kind: StepMarkKind, rest: &mut Input<'_>) -> Result<Event, Malformed> {
    Ok(Event::StepMark(StepMark {
        kind,
        stack: StackId(rest.u32()?),
    }))
}

//! Shapes: everything about an event that takes few values, as one number.

use vramscope_events::{DeviceId, Layer, LostCause, Pid, Tid};

use crate::{
    error::Malformed,
    wire::{Input, put},
};

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum What {
    Alloc = 0,
    /// The free of an allocation within reach.
    Free = 1,
    /// The free of any other.
    FreeAt = 2,
    Frame = 3,
    Stack = 4,
    Source = 5,
    OutOfMemory = 6,
    CacheEmptied = 7,
    Backward = 8,
    UserMark = 9,
    Lost = 10,
    DeviceMemory = 11,
    ProcessExited = 12,
    /// This and what follows: since 1.1.
    Holders = 13,
    DeviceUsers = 14,
    CaptureBegan = 15,
    CaptureEnded = 16,
    Mapped = 17,
    Unmapped = 18,
    PoolsKept = 19,
}

const WHATS: [What; 20] = [
    What::Alloc,
    What::Free,
    What::FreeAt,
    What::Frame,
    What::Stack,
    What::Source,
    What::OutOfMemory,
    What::CacheEmptied,
    What::Backward,
    What::UserMark,
    What::Lost,
    What::DeviceMemory,
    What::ProcessExited,
    What::Holders,
    What::DeviceUsers,
    What::CaptureBegan,
    What::CaptureEnded,
    What::Mapped,
    What::Unmapped,
    What::PoolsKept,
];

/// How the framework's totals are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum TotalsMode {
    None = 0,
    /// As before, but for the size of this block.
    Predicted = 1,
    Told = 2,
}

/// How a size is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum SizeMode {
    None = 0,
    /// As the allocation's.
    Same = 1,
    Bytes = 2,
    /// In units of the grain.
    Grains = 3,
}

/// One shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub what: What,
    pub layer: Layer,
    pub totals: TotalsMode,
    pub size: SizeMode,
    /// Whether the address is told in units of the grain.
    pub grains: bool,
    /// 0 for none, else the device and one.
    pub device: u32,
    pub process: Pid,
    pub thread: Tid,
}

impl Shape {
    pub fn new(what: What, process: Pid, thread: Tid) -> Shape {
        Shape {
            what,
            layer: Layer::Tensor,
            totals: TotalsMode::None,
            size: SizeMode::None,
            grains: false,
            device: 0,
            process,
            thread,
        }
    }

    pub fn on(self, device: DeviceId) -> Shape {
        Shape {
            device: u32::from(device.0) + 1,
            ..self
        }
    }

    pub fn device(&self) -> Option<DeviceId> {
        self.device
            .checked_sub(1)
            .and_then(|id| u16::try_from(id).ok())
            .map(DeviceId)
    }

    /// Two numbers that no other shape has.
    pub fn key(&self) -> (u64, u64) {
        let small = self.what as u64
            | (self.layer as u64) << 8
            | (self.totals as u64) << 16
            | (self.size as u64) << 24
            | u64::from(self.grains) << 32
            | u64::from(self.device) << 40;
        let who = u64::from(self.process.0) << 32 | u64::from(self.thread.0);
        (small, who)
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(self.what as u8);
        out.push(self.layer as u8);
        out.push(self.totals as u8);
        out.push(self.size as u8);
        out.push(u8::from(self.grains));
        put(out, u64::from(self.device));
        put(out, u64::from(self.process.0));
        put(out, u64::from(self.thread.0));
    }

    pub fn read(input: &mut Input<'_>) -> Result<Shape, Malformed> {
        let what = *WHATS
            .get(usize::from(input.byte()?))
            .ok_or(Malformed("an unknown event"))?;
        let layer = layer(input.byte()?)?;
        let totals = match input.byte()? {
            0 => TotalsMode::None,
            1 => TotalsMode::Predicted,
            2 => TotalsMode::Told,
            _ => return Err(Malformed("an unknown way to tell totals")),
        };
        let size = match input.byte()? {
            0 => SizeMode::None,
            1 => SizeMode::Same,
            2 => SizeMode::Bytes,
            3 => SizeMode::Grains,
            _ => return Err(Malformed("an unknown way to tell a size")),
        };
        let grains = input.byte()? != 0;
        let device = input.u32()?;
        if device > u32::from(u16::MAX) + 1 {
            return Err(Malformed("a device above 65535"));
        }
        let shape = Shape {
            what,
            layer,
            totals,
            size,
            grains,
            device,
            process: Pid(input.u32()?),
            thread: Tid(input.u32()?),
        };
        shape.check()?;
        Ok(shape)
    }

    /// Only shapes that a writer makes.
    fn check(&self) -> Result<(), Malformed> {
        let sized = matches!(self.size, SizeMode::Bytes | SizeMode::Grains);
        let needs_device = matches!(
            self.what,
            What::Alloc
                | What::OutOfMemory
                | What::CacheEmptied
                | What::DeviceMemory
                | What::DeviceUsers
                | What::PoolsKept
        );
        let wrong = (needs_device && self.device == 0)
            || (self.what == What::Alloc && !sized)
            || (self.what == What::FreeAt && self.size == SizeMode::Same)
            || (self.totals == TotalsMode::Predicted && self.device == 0);
        if wrong {
            return Err(Malformed("a shape that makes no sense"));
        }
        Ok(())
    }
}

pub(crate) fn layer(number: u8) -> Result<Layer, Malformed> {
    match number {
        0 => Ok(Layer::Tensor),
        1 => Ok(Layer::Driver),
        2 => Ok(Layer::Host),
        _ => Err(Malformed("an unknown layer")),
    }
}

pub(crate) fn cause_number(cause: LostCause) -> u8 {
    match cause {
        LostCause::RingFull => 0,
        LostCause::StackUnreadable => 1,
        LostCause::TableFull => 2,
        LostCause::Undecodable => 3,
    }
}

pub(crate) fn cause(number: u8) -> Result<LostCause, Malformed> {
    match number {
        0 => Ok(LostCause::RingFull),
        1 => Ok(LostCause::StackUnreadable),
        2 => Ok(LostCause::TableFull),
        3 => Ok(LostCause::Undecodable),
        _ => Err(Malformed("an unknown cause of a loss")),
    }
}

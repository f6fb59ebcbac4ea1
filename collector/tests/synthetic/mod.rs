//! Made-up programs: events with right totals, step by step.

#![allow(dead_code)] // not every test uses all of it

use std::sync::Arc;

use vramscope_collector::{
    Collector, Config,
    view::{Backend, DeviceView, Verdict, View},
};
use vramscope_events::{
    Address, Alloc, DeviceId, Event, Frame, FrameId, FrameKind, Free, Layer, LostCause, Pid,
    Record, StackId, StepMark, StepMarkKind, Tid, Time, Totals,
};

/// The process of all made-up programs.
pub const PID: Pid = Pid(4121);

/// A block of a made-up program.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub address: u64,
    pub size: u64,
}

/// Writes events of one process on one device.
pub struct Program {
    pub collector: Collector,
    pub totals: Totals,
    pub layer: Layer,
    pub time: u64,
    /// Nanoseconds between two events.
    pub pace: u64,
    next: u64,
    border: u64,
    free: Vec<u64>,
    /// Whether events reach the collector.
    pub attached: bool,
}

impl Program {
    pub fn new() -> Program {
        Program {
            collector: Collector::new(Config::new(Backend::Recording, Time(0), 0)),
            totals: Totals::default(),
            layer: Layer::Tensor,
            time: 0,
            pace: 20_000,
            next: 0,
            border: 1 << 60,
            free: Vec::new(),
            attached: true,
        }
    }

    pub fn emit(&mut self, event: Event) {
        self.time += self.pace;
        if self.attached {
            self.collector.ingest(&[Record {
                time: Time(self.time),
                process: PID,
                thread: Tid(7),
                event,
            }]);
        }
    }

    /// Defines stack `id` with Python frames, innermost first: file, function, line.
    pub fn define(&mut self, id: u32, frames: &[(&str, &str, u32)]) {
        let ids: Vec<FrameId> = (0..frames.len() as u32)
            .map(|frame| FrameId(id * 100 + frame))
            .collect();
        for (frame_id, (file, function, line)) in ids.iter().zip(frames) {
            self.emit(Event::Frame {
                id: *frame_id,
                frame: Arc::new(Frame {
                    kind: FrameKind::Python,
                    file: (*file).into(),
                    function: (*function).into(),
                    line: *line,
                }),
            });
        }
        self.emit(Event::Stack {
            id: StackId(id),
            frames: ids.into(),
        });
    }

    pub fn alloc(&mut self, stack: u32, size: u64) -> Block {
        let address = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next << 30
        });
        self.alloc_in(stack, address, size)
    }

    /// A block right behind the one that was made so before.
    pub fn alloc_behind(&mut self, stack: u32, size: u64) -> Block {
        self.border += size;
        self.alloc_in(stack, self.border - size, size)
    }

    /// A block at `address`, which is for the caller to choose well.
    pub fn alloc_in(&mut self, stack: u32, address: u64, size: u64) -> Block {
        self.totals.allocated += size;
        self.totals.reserved = self.totals.reserved.max(self.totals.allocated);
        let tensor = self.layer == Layer::Tensor;
        self.emit(Event::Alloc(Alloc {
            layer: self.layer,
            device: DeviceId(0),
            address: Address(address),
            size,
            stack: StackId(stack),
            totals: tensor.then_some(self.totals),
        }));
        Block { address, size }
    }

    pub fn free(&mut self, block: Block) {
        self.totals.allocated -= block.size;
        self.free.push(block.address);
        let tensor = self.layer == Layer::Tensor;
        self.emit(Event::Free(Free {
            layer: self.layer,
            device: tensor.then_some(DeviceId(0)),
            address: Address(block.address),
            size: tensor.then_some(block.size),
            totals: tensor.then_some(self.totals),
        }));
    }

    pub fn backward(&mut self, stack: u32) {
        self.emit(Event::StepMark(StepMark {
            kind: StepMarkKind::Backward,
            stack: StackId(stack),
        }));
    }

    pub fn user_mark(&mut self) {
        self.emit(Event::StepMark(StepMark {
            kind: StepMarkKind::User,
            stack: StackId::EMPTY,
        }));
    }

    pub fn lost(&mut self, count: u64) {
        self.emit(Event::Lost {
            count,
            cause: LostCause::RingFull,
        });
    }

    /// An ordinary step: a batch and some activations of `activations` bytes that come and go.
    pub fn step(&mut self, activations: u64) {
        let batch = self.alloc(1, 4096);
        let hidden = self.alloc(2, activations.max(512));
        self.backward(9);
        let gradient = self.alloc(0, 8192);
        self.free(hidden);
        self.free(gradient);
        self.free(batch);
    }

    pub fn view(&mut self) -> View {
        self.collector.view(Time(self.time))
    }

    pub fn device(&mut self) -> DeviceView {
        self.view().processes[0].devices[0].clone()
    }

    pub fn verdict(&mut self) -> Verdict {
        self.device().verdict.expect("a verdict")
    }
}

/// xorshift64*: enough for test programs.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

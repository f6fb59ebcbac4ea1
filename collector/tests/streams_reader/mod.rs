//! Recorded allocator streams of real programs, cut as if the tool had attached in mid-run.

#![allow(dead_code)] // not every test uses all of it

use std::{io::Read, path::Path, sync::Arc};

use serde::Deserialize;
use vramscope_collector::{
    Collector, Config,
    view::{Backend, DeviceView, SiteView, View},
};
use vramscope_events::{
    Address, Alloc, DeviceId, Event, Frame, FrameId, FrameKind, Free, Layer, Pid, Record, StackId,
    StepMark, StepMarkKind, Tid, Time, Totals,
};

pub const PID: Pid = Pid(4121);
/// Capacity of the device that the streams are said to come from.
pub const CAPACITY: u64 = 8 << 30;
/// Distance of two events in a stream, which has no clock of its own.
const EVENT_NS: u64 = 20_000;

/// What streams/record.py writes.
#[derive(Deserialize)]
struct File {
    files: Vec<String>,
    functions: Vec<String>,
    frames: Vec<(usize, usize, u32)>,
    stacks: Vec<Vec<i64>>,
    events: Vec<u64>,
}

#[derive(Clone, Copy)]
enum Op {
    Alloc { address: u64, size: u64, stack: u32 },
    Free { address: u64 },
    Mark { stack: u32 },
    SegmentAlloc { size: u64 },
    SegmentFree { size: u64 },
}

/// A recorded program.
pub struct Stream {
    definitions: Vec<Event>,
    ops: Vec<Op>,
    /// Indices in `ops` of the calls of backward().
    marks: Vec<usize>,
}

impl Stream {
    pub fn read(path: &Path) -> Stream {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_string(&mut text)
            .expect("gzip");
        let file: File = serde_json::from_str(&text).expect("a stream");
        let ops = ops(&file.events);
        let marks = ops
            .iter()
            .enumerate()
            .filter(|(_, op)| matches!(op, Op::Mark { .. }))
            .map(|(index, _)| index)
            .collect();
        Stream {
            definitions: definitions(&file),
            ops,
            marks,
        }
    }

    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Index of the event at the `n`-th call of backward().
    pub fn mark(&self, n: usize) -> usize {
        self.marks.get(n).copied().unwrap_or(self.ops.len())
    }

    /// What a tracer tells that attaches before event `from` and is asked after event `to`. The
    /// definitions come late: after everything else.
    pub fn records(&self, from: usize, to: usize) -> Vec<Record> {
        let mut live = std::collections::HashMap::new();
        let mut totals = Totals::default();
        let mut records = Vec::new();
        let mut time = 0;
        let mut emit = |seen: bool, time: u64, event: Event| {
            if seen {
                records.push(Record {
                    time: Time(time),
                    process: PID,
                    thread: Tid(PID.0),
                    event,
                });
            }
        };
        for (index, op) in self.ops[..to.min(self.ops.len())].iter().enumerate() {
            let seen = index >= from;
            time += EVENT_NS;
            let device = DeviceId(0);
            match *op {
                Op::SegmentAlloc { size } => totals.reserved += size,
                Op::SegmentFree { size } => totals.reserved -= size,
                Op::Mark { stack } => {
                    let mark = StepMark {
                        kind: StepMarkKind::Backward,
                        stack: StackId(stack),
                    };
                    emit(seen, time, Event::StepMark(mark));
                }
                Op::Alloc {
                    address,
                    size,
                    stack,
                } => {
                    totals.allocated += size;
                    live.insert(address, size);
                    let alloc = Alloc {
                        layer: Layer::Tensor,
                        device,
                        address: Address(address),
                        size,
                        stack: StackId(stack),
                        totals: Some(totals),
                    };
                    emit(seen, time, Event::Alloc(alloc));
                }
                Op::Free { address } => {
                    let size = live.remove(&address).expect("a live block");
                    totals.allocated -= size;
                    let free = Free {
                        layer: Layer::Tensor,
                        device: Some(device),
                        address: Address(address),
                        size: Some(size),
                        totals: Some(totals),
                    };
                    emit(seen, time, Event::Free(free));
                }
            }
        }
        emit(
            true,
            time,
            Event::DeviceMemory {
                device: DeviceId(0),
                total: CAPACITY,
                free: CAPACITY - totals.reserved,
                used_by_process: None,
            },
        );
        let late = records.len() / 3;
        let definitions = self.definitions.iter().map(|event| Record {
            time: Time(0),
            process: PID,
            thread: Tid(0),
            event: event.clone(),
        });
        records.splice(late..late, definitions);
        records
    }
}

fn ops(numbers: &[u64]) -> Vec<Op> {
    let mut numbers = numbers.iter().copied();
    let mut ops = Vec::new();
    while let Some(kind) = numbers.next() {
        let mut next = || numbers.next().expect("an operand");
        ops.push(match kind {
            0 => Op::Alloc {
                address: next() * 512,
                size: next() * 512,
                stack: next() as u32 + 1,
            },
            1 => Op::Free {
                address: next() * 512,
            },
            2 => Op::Mark {
                stack: next() as u32 + 1,
            },
            3 => Op::SegmentAlloc { size: next() * 512 },
            4 => Op::SegmentFree { size: next() * 512 },
            other => panic!("unknown event {other}"),
        });
    }
    ops
}

/// Frame 0 is the mark of an autograd thread, stack 0 is the empty one.
fn definitions(file: &File) -> Vec<Event> {
    let backward = Frame {
        kind: FrameKind::Backward,
        file: "".into(),
        function: "backward".into(),
        line: 0,
    };
    let python = file.frames.iter().map(|(path, function, line)| Frame {
        kind: FrameKind::Python,
        file: file.files[*path].as_str().into(),
        function: file.functions[*function].as_str().into(),
        line: *line,
    });
    let frames = std::iter::once(backward)
        .chain(python)
        .enumerate()
        .map(|(id, frame)| Event::Frame {
            id: FrameId(id as u32),
            frame: Arc::new(frame),
        });
    let stacks = file.stacks.iter().enumerate().map(|(id, stack)| {
        let frames = stack.iter().map(|frame| FrameId((frame + 1) as u32));
        Event::Stack {
            id: StackId(id as u32 + 1),
            frames: frames.collect(),
        }
    });
    frames.chain(stacks).collect()
}

/// The view after `records`.
pub fn view_of(records: &[Record]) -> View {
    let mut collector = Collector::new(Config::new(Backend::Recording, Time(0), 0));
    collector.ingest(records);
    let now = records.last().map_or(Time(0), |record| record.time);
    collector.view(now)
}

/// The only device.
pub fn device(view: &View) -> &DeviceView {
    &view.processes[0].devices[0]
}

/// Line of the user's frame that names a site; 0 for none.
pub fn line(site: &SiteView) -> u32 {
    site.own_frame()
        .filter(|frame| frame.user)
        .map_or(0, |frame| frame.line)
}

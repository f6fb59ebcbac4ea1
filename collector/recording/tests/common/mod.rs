//! Recordings made up for tests.

#![allow(dead_code)] // not every test uses all of it

use std::sync::Arc;

use vramscope_events::{
    Address, Alloc, Backend, DeviceId, DeviceUser, Event, Frame, FrameId, FrameKind, Free, Holder,
    Holders, Layer, LostCause, OutOfMemory, Pid, Record, StackId, StepMark, StepMarkKind, Tid,
    Time, Totals,
};
use vramscope_recording::{
    Block, Checkpoint, CheckpointAt, End, FORMAT, Piece, Recording, SessionInfo, Settings, Writer,
};

pub fn info() -> SessionInfo {
    SessionInfo {
        format: FORMAT,
        program: "test".into(),
        started: Time(1_000_000),
        started_unix: 1_700_000_000,
        backend: Backend::Ebpf,
        processes: Vec::new(),
        probes: Vec::new(),
        settings: Settings::default(),
    }
}

fn record(time: u64, event: Event) -> Record {
    Record {
        time: Time(time),
        process: Pid(4121),
        thread: Tid(4121),
        event,
    }
}

/// One of every event, twice.
pub fn one_of_each(from: u64) -> Vec<Record> {
    let totals = |allocated| Totals {
        allocated,
        reserved: 1 << 21,
    };
    let frame = |id, file: &str| Event::Frame {
        id: FrameId(id),
        frame: Arc::new(Frame {
            kind: FrameKind::Python,
            file: file.into(),
            function: "step".into(),
            line: 7,
        }),
    };
    let alloc = |address, size, totals| {
        Event::Alloc(Alloc {
            layer: Layer::Tensor,
            device: DeviceId(0),
            address: Address(address),
            size,
            stack: StackId(3),
            totals,
        })
    };
    let free = |layer, address, device, size, totals| {
        Event::Free(Free {
            layer,
            device,
            address: Address(address),
            size,
            totals,
        })
    };
    let events = [
        frame(1, "train.py"),
        frame(2, "model.py"),
        Event::Source {
            frame: FrameId(1),
            text: "loss = step()".into(),
        },
        Event::Stack {
            id: StackId(3),
            frames: [FrameId(2), FrameId(1)].into(),
        },
        Event::Stack {
            id: StackId(4),
            frames: [FrameId(1)].into(),
        },
        alloc(0x7000_0000_0000, 512, Some(totals(512))),
        alloc(0x7000_0000_0200, 1024, Some(totals(1536))),
        alloc(0x7000_0000_0601, 100, None),
        free(
            Layer::Tensor,
            0x7000_0000_0200,
            Some(DeviceId(0)),
            Some(1024),
            Some(totals(512)),
        ),
        free(Layer::Driver, 0x7000_0000_0200, None, None, None),
        free(
            Layer::Tensor,
            0x9999,
            Some(DeviceId(1)),
            Some(77),
            Some(totals(9)),
        ),
        Event::StepMark(StepMark {
            kind: StepMarkKind::Backward,
            stack: StackId(4),
        }),
        Event::StepMark(StepMark {
            kind: StepMarkKind::User,
            stack: StackId::EMPTY,
        }),
        Event::Lost {
            count: 12,
            cause: LostCause::TableFull,
        },
        Event::CacheEmptied {
            device: DeviceId(0),
        },
        Event::DeviceMemory {
            device: DeviceId(0),
            total: 80 << 30,
            free: 1 << 30,
            used_by_process: Some(3),
        },
        Event::DeviceUsers {
            device: DeviceId(0),
            users: [
                DeviceUser {
                    pid: Pid(77),
                    command: "python other.py".into(),
                    bytes: Some(5),
                },
                DeviceUser {
                    pid: Pid(78),
                    command: "".into(),
                    bytes: None,
                },
            ]
            .into(),
        },
        Event::GraphCapture { began: true },
        Event::GraphCapture { began: false },
        Event::Mapped {
            allocation: Address(1 << 63 | 7),
            address: Address(0x7000_0000_0000),
            size: 2 << 20,
        },
        Event::Unmapped {
            address: Address(0x7000_0000_0000),
            size: 2 << 20,
        },
        Event::PoolsKept {
            device: DeviceId(1),
            bytes: 32 << 20,
        },
        Event::Holders(Arc::new(Holders {
            device: DeviceId(0),
            stacks: vec![StackId(3), StackId(4)],
            survivors: 148,
            asked: 148,
            holders: vec![Holder {
                kind: "tensor".into(),
                words: "`__main__.replay[*]` (a deque of 87, at most 120)".into(),
                short: "`__main__.replay`".into(),
                path: "__main__.replay[*]".into(),
                blocks: 140,
                bytes: 140 << 10,
                length: Some(87),
                bound: Some(120),
            }],
            partial: Some("the time was used up".into()),
            notes: vec!["the collector is off".into()],
            cost: "the GIL 6 times".into(),
        })),
        Event::OutOfMemory(OutOfMemory {
            device: DeviceId(0),
            requested: 1 << 40,
            totals: totals(5),
            stack: StackId(3),
        }),
    ];
    let mut time = from;
    events
        .into_iter()
        .map(|event| {
            time += 17_000;
            record(time, event)
        })
        .collect()
}

/// A small recording: records, a checkpoint, records, an end. The bytes and where each chunk ends.
pub struct Small {
    pub bytes: Vec<u8>,
    pub records: Vec<Vec<Record>>,
    pub checkpoint: Checkpoint,
}

pub fn small() -> Small {
    let mut writer = Writer::default();
    let mut bytes = writer.session(&info());
    let records: Vec<Vec<Record>> = (0..4).map(|i| one_of_each(2_000_000 * (i + 1))).collect();
    bytes.extend(writer.records(&records[0]));
    bytes.extend(writer.records(&records[1]));
    let checkpoint = Checkpoint {
        time: records[1].last().expect("some").time,
        definitions: records[1][..5].to_vec(),
        blocks: vec![block(1), block(2)],
        state_version: 1,
        state: b"the collector's own".to_vec(),
    };
    let at = CheckpointAt {
        offset: bytes.len() as u64,
        sequence: writer.sequence(),
        time: checkpoint.time,
    };
    bytes.extend(writer.checkpoint(&checkpoint));
    bytes.extend(writer.records(&records[2]));
    bytes.extend(writer.records(&records[3]));
    let end = End {
        until: Time(99_000_000),
        events: writer.events(),
        reason: "test".into(),
        checkpoints: vec![at],
    };
    let offset = bytes.len() as u64;
    bytes.extend(writer.end(&end, offset));
    Small {
        bytes,
        records,
        checkpoint,
    }
}

pub fn block(number: u64) -> Block {
    Block {
        process: Pid(4121),
        layer: Layer::Tensor,
        device: DeviceId(0),
        address: Address(0x7000_0000_0000 + number * 512),
        size: 512 * number,
        stack: StackId(3),
        born: Time(number * 1_001),
        step: 3,
        segment: number.is_multiple_of(2),
        graph: number.is_multiple_of(4),
    }
}

/// Every record of a file that can be read, and whether anything else was found.
pub fn read(bytes: Vec<u8>) -> (Vec<Record>, Vec<Piece>) {
    let recording = Recording::from_bytes(bytes).expect("a recording");
    let pieces: Vec<Piece> = recording
        .pieces()
        .map(|piece| piece.expect("memory"))
        .collect();
    let records = pieces
        .iter()
        .flat_map(|piece| match piece {
            Piece::Records(records) => records.clone(),
            _ => Vec::new(),
        })
        .collect();
    (records, pieces)
}

/// Allocations and frees of many kinds, each call others; some blocks stay.
pub fn varied(seed: u64) -> Vec<Record> {
    let mut random = seed * 77 + 1;
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut out = one_of_each(10_000_000 * (seed + 1));
    let mut time = 10_000_000 * (seed + 1) + 1_000_000;
    for _ in 0..200 {
        // Some chunks have times that are no whole microseconds.
        time += next(9) * if seed.is_multiple_of(3) { 777 } else { 1000 };
        let layer = [Layer::Tensor, Layer::Driver, Layer::Host][next(3) as usize];
        let device = DeviceId(next(2) as u16);
        let address = Address(match next(4) {
            0 => next(50) * 1000 + 7,
            _ => 0x7000_0000_0000 + next(50) * 512,
        });
        let totals = (next(2) == 0).then(|| Totals {
            allocated: next(1 << 40),
            reserved: 1 << 30,
        });
        let event = if next(2) == 0 {
            Event::Alloc(Alloc {
                layer,
                device: DeviceId(0),
                address,
                size: next(64) * [1, 512][next(2) as usize],
                stack: StackId(next(9) as u32),
                totals,
            })
        } else {
            Event::Free(Free {
                layer,
                device: (next(2) == 0).then_some(device),
                address,
                size: (next(3) == 0).then_some(4096),
                totals,
            })
        };
        out.push(record(time, event));
    }
    out
}

/// What is live after `records`.
pub fn live_blocks(records: &[Record]) -> Vec<Block> {
    let mut live = std::collections::BTreeMap::new();
    for record in records {
        match &record.event {
            Event::Alloc(alloc) => {
                let block = Block {
                    process: record.process,
                    layer: alloc.layer,
                    device: alloc.device,
                    address: alloc.address,
                    size: alloc.size,
                    stack: alloc.stack,
                    born: record.time,
                    step: 1,
                    segment: false,
                    graph: false,
                };
                live.insert((alloc.layer, alloc.address), block);
            }
            Event::Free(free) => {
                live.remove(&(free.layer, free.address));
            }
            _ => {}
        }
    }
    live.into_values().collect()
}

/// The definitions among `records`.
pub fn definitions(records: &[Record]) -> Vec<Record> {
    let all = records.iter().filter(|record| {
        matches!(
            record.event,
            Event::Frame { .. } | Event::Stack { .. } | Event::Source { .. }
        )
    });
    all.cloned().collect()
}

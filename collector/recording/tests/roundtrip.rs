//! What is written is what is read: any records, in any chunks.

mod common;

use std::sync::Arc;

use proptest::{collection::vec, option, prelude::*};
use vramscope_events::{
    Address, Alloc, DeviceId, DeviceUser, Event, Frame, FrameId, FrameKind, Free, Layer, LostCause,
    Pid, Record, StackId, StepMark, StepMarkKind, Tid, Time, Totals,
};
use vramscope_recording::{Piece, Recording, Writer};

fn layer() -> impl Strategy<Value = Layer> {
    prop::sample::select(vec![Layer::Tensor, Layer::Driver, Layer::Host])
}

fn totals() -> impl Strategy<Value = Option<Totals>> {
    option::of(
        (any::<u64>(), 0u64..5).prop_map(|(allocated, reserved)| Totals {
            allocated,
            reserved,
        }),
    )
}

/// Few addresses, so that frees find allocations; and any.
fn address() -> impl Strategy<Value = Address> {
    prop_oneof![
        (0u64..6).prop_map(|n| Address(n * 512)),
        any::<u64>().prop_map(Address)
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let alloc = (
        layer(),
        any::<u16>(),
        address(),
        any::<u64>(),
        any::<u32>(),
        totals(),
    );
    let alloc = alloc.prop_map(|(layer, device, address, size, stack, totals)| {
        Event::Alloc(Alloc {
            layer,
            device: DeviceId(device),
            address,
            size,
            stack: StackId(stack),
            totals,
        })
    });
    let free = (
        layer(),
        option::of(0u16..3),
        address(),
        option::of(0u64..3),
        totals(),
    );
    let free = free.prop_map(|(layer, device, address, size, totals)| {
        Event::Free(Free {
            layer,
            device: device.map(DeviceId),
            address,
            size: size.map(|size| size * 512),
            totals,
        })
    });
    let frame = (any::<u32>(), ".{0,9}", any::<u32>()).prop_map(|(id, text, line)| Event::Frame {
        id: FrameId(id),
        frame: Arc::new(Frame {
            kind: FrameKind::Native,
            file: text.as_str().into(),
            function: "f".into(),
            line,
        }),
    });
    let stack = (any::<u32>(), vec(0u32..4, 0..6)).prop_map(|(id, frames)| Event::Stack {
        id: StackId(id),
        frames: frames.into_iter().map(FrameId).collect(),
    });
    let mark = any::<u32>().prop_map(|stack| {
        Event::StepMark(StepMark {
            kind: StepMarkKind::User,
            stack: StackId(stack),
        })
    });
    let lost = any::<u64>().prop_map(|count| Event::Lost {
        count,
        cause: LostCause::RingFull,
    });
    let device = any::<u16>().prop_map(DeviceId);
    let user = (any::<u32>(), ".{0,9}", option::of(any::<u64>()));
    let user = user.prop_map(|(pid, command, bytes)| DeviceUser {
        pid: Pid(pid),
        command: command.as_str().into(),
        bytes,
    });
    let users = (device.clone(), vec(user, 0..4)).prop_map(|(device, users)| Event::DeviceUsers {
        device,
        users: users.into(),
    });
    let capture = any::<bool>().prop_map(|began| Event::GraphCapture { began });
    let mapped = (address(), address(), any::<u64>());
    let mapped = mapped.prop_map(|(allocation, address, size)| Event::Mapped {
        allocation,
        address,
        size,
    });
    let unmapped = (address(), any::<u64>());
    let unmapped = unmapped.prop_map(|(address, size)| Event::Unmapped { address, size });
    let kept = (device, any::<u64>());
    let kept = kept.prop_map(|(device, bytes)| Event::PoolsKept { device, bytes });
    let rare = prop_oneof![users, capture, mapped, unmapped, kept];
    prop_oneof![4 => alloc, 4 => free, 1 => frame, 1 => stack, 1 => mark, 1 => lost, 1 => rare]
}

fn record() -> impl Strategy<Value = Record> {
    let time = prop_oneof![any::<u64>(), (0u64..1 << 40).prop_map(|time| time * 1000)];
    (time, 0u32..3, 0u32..3, event()).prop_map(|(time, process, thread, event)| Record {
        time: Time(time),
        process: Pid(process),
        thread: Tid(thread),
        event,
    })
}

proptest! {
    #[test]
    fn any_records_survive(chunks in vec(vec(record(), 0..60), 1..6)) {
        let mut writer = Writer::default();
        let mut bytes = writer.session(&common::info());
        for chunk in &chunks {
            bytes.extend(writer.records(chunk));
        }
        let (records, _) = common::read(bytes);
        prop_assert_eq!(records, chunks.concat());
    }
}

#[test]
fn a_whole_recording_is_read_whole() {
    let small = common::small();
    let (records, pieces) = common::read(small.bytes.clone());
    assert_eq!(records, small.records.concat());
    let recording = Recording::from_bytes(small.bytes).unwrap();
    assert_eq!(recording.damage(), []);
    let mut reading = recording.pieces();
    assert!(reading.by_ref().all(|piece| piece.is_ok()));
    assert_eq!(reading.damage(), []);
    assert_eq!(recording.info(), &common::info());
    assert_eq!(recording.span(), (Time(1_000_000), Time(99_000_000)));
    let checkpoint = pieces.iter().find_map(|piece| match piece {
        Piece::Checkpoint {
            checkpoint,
            restart,
        } => Some((checkpoint, restart)),
        _ => None,
    });
    let (checkpoint, restart) = checkpoint.expect("a checkpoint");
    assert_eq!((&**checkpoint, *restart), (&small.checkpoint, false));
    assert!(matches!(pieces.last(), Some(Piece::End(end)) if end.reason == "test"));
}

#[test]
fn reading_can_begin_at_a_checkpoint() {
    let small = common::small();
    let recording = Recording::from_bytes(small.bytes).unwrap();
    let batches = |moment| -> Vec<_> {
        recording
            .batches_from(moment)
            .map(|batch| batch.unwrap())
            .collect()
    };
    let late = batches(Time(50_000_000));
    assert!(late[0].restart);
    assert_eq!(late[0].records, small.checkpoint.restated());
    let rest: Vec<_> = late[1..]
        .iter()
        .flat_map(|batch| batch.records.clone())
        .collect();
    assert_eq!(rest, small.records[2..].concat());
    let early = batches(Time(1_500_000));
    assert!(!early[0].restart);
    assert_eq!(early.len(), 4);
}

#[test]
fn a_step_of_a_training_takes_few_bytes() {
    // The same thousand events again and again, as training steps are, at times that jitter.
    let mut writer = Writer::default();
    let mut bytes = writer.session(&common::info()).len();
    let (mut time, mut random, mut allocated) = (0u64, 7u64, 0u64);
    let mut events = 0;
    for _step in 0..200 {
        let mut records = Vec::new();
        for i in 0..1000u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            time += 1000 * (20 + (random >> 60));
            let block = i / 2;
            let (address, size) = (
                Address(0x7f00_0000_0000 + block * 8192),
                512 * (block % 14 + 1),
            );
            let alloc = i % 2 == 0;
            allocated = if alloc {
                allocated + size
            } else {
                allocated - size
            };
            let totals = Some(Totals {
                allocated,
                reserved: 1 << 30,
            });
            let device = DeviceId(0);
            let event = if alloc {
                let stack = StackId(block as u32 % 97);
                Event::Alloc(Alloc {
                    layer: Layer::Tensor,
                    device,
                    address,
                    size,
                    stack,
                    totals,
                })
            } else {
                let (device, size) = (Some(device), Some(size));
                Event::Free(Free {
                    layer: Layer::Tensor,
                    device,
                    address,
                    size,
                    totals,
                })
            };
            records.push(Record {
                time: Time(time),
                process: Pid(1),
                thread: Tid(1),
                event,
            });
        }
        events += records.len();
        bytes += writer.records(&records).len();
    }
    let each = bytes as f64 / events as f64;
    assert!(each <= 1.5, "{each:.2} bytes an event");
}

//! A trace for ui.perfetto.dev: counters of what is allocated, its floor and what is reserved;
//! marks; and the selection as instants that carry their call stack and their bytes as its weight
//! (select them all for a flamegraph).

use std::io::{self, Write};

use prost::Message;
use vramscope_collector::{escape, view::MarkKind};

use crate::{
    gather::Gathered,
    selection::{Part, Selection},
    tail::TailKind,
};

/// The messages, as far as we write them; numbers as in Perfetto's `trace.proto` and what it
/// imports.
mod message {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TracePacket {
        #[prost(uint64, optional, tag = "8")]
        pub timestamp: Option<u64>,
        #[prost(uint32, optional, tag = "10")]
        pub sequence: Option<u32>,
        #[prost(message, optional, tag = "11")]
        pub track_event: Option<TrackEvent>,
        #[prost(message, optional, tag = "12")]
        pub interned_data: Option<InternedData>,
        #[prost(uint32, optional, tag = "13")]
        pub sequence_flags: Option<u32>,
        #[prost(message, optional, tag = "60")]
        pub track_descriptor: Option<TrackDescriptor>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TrackEvent {
        #[prost(int32, optional, tag = "9")]
        pub kind: Option<i32>,
        #[prost(uint64, optional, tag = "11")]
        pub track: Option<u64>,
        #[prost(string, repeated, tag = "22")]
        pub categories: Vec<String>,
        #[prost(string, optional, tag = "23")]
        pub name: Option<String>,
        #[prost(int64, optional, tag = "30")]
        pub counter_value: Option<i64>,
        #[prost(uint64, optional, tag = "56")]
        pub callstack: Option<u64>,
        #[prost(double, optional, tag = "57")]
        pub callstack_weight: Option<f64>,
        #[prost(message, repeated, tag = "4")]
        pub annotations: Vec<DebugAnnotation>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct DebugAnnotation {
        #[prost(string, optional, tag = "10")]
        pub name: Option<String>,
        #[prost(uint64, optional, tag = "3")]
        pub number: Option<u64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TrackDescriptor {
        #[prost(uint64, optional, tag = "1")]
        pub uuid: Option<u64>,
        #[prost(string, optional, tag = "2")]
        pub name: Option<String>,
        #[prost(message, optional, tag = "3")]
        pub process: Option<ProcessDescriptor>,
        #[prost(uint64, optional, tag = "5")]
        pub parent: Option<u64>,
        #[prost(message, optional, tag = "8")]
        pub counter: Option<CounterDescriptor>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ProcessDescriptor {
        #[prost(int32, optional, tag = "1")]
        pub pid: Option<i32>,
        #[prost(string, optional, tag = "6")]
        pub name: Option<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct CounterDescriptor {
        #[prost(int32, optional, tag = "3")]
        pub unit: Option<i32>,
        #[prost(string, optional, tag = "7")]
        pub share_axis: Option<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct InternedData {
        #[prost(message, repeated, tag = "5")]
        pub function_names: Vec<InternedString>,
        #[prost(message, repeated, tag = "6")]
        pub frames: Vec<Frame>,
        #[prost(message, repeated, tag = "7")]
        pub callstacks: Vec<Callstack>,
        #[prost(message, repeated, tag = "17")]
        pub mapping_paths: Vec<InternedString>,
        #[prost(message, repeated, tag = "18")]
        pub source_paths: Vec<InternedString>,
        #[prost(message, repeated, tag = "19")]
        pub mappings: Vec<Mapping>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct InternedString {
        #[prost(uint64, optional, tag = "1")]
        pub id: Option<u64>,
        #[prost(bytes = "vec", optional, tag = "2")]
        pub text: Option<Vec<u8>>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Frame {
        #[prost(uint64, optional, tag = "1")]
        pub id: Option<u64>,
        #[prost(uint64, optional, tag = "2")]
        pub function: Option<u64>,
        #[prost(uint64, optional, tag = "3")]
        pub mapping: Option<u64>,
        #[prost(uint64, optional, tag = "5")]
        pub source_path: Option<u64>,
        #[prost(uint32, optional, tag = "6")]
        pub line: Option<u32>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Mapping {
        #[prost(uint64, optional, tag = "1")]
        pub id: Option<u64>,
        #[prost(uint64, repeated, packed = "false", tag = "7")]
        pub path: Vec<u64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Callstack {
        #[prost(uint64, optional, tag = "1")]
        pub id: Option<u64>,
        #[prost(uint64, repeated, packed = "false", tag = "2")]
        pub frames: Vec<u64>,
    }
}

use message::{TracePacket, TrackDescriptor, TrackEvent};

/// `TrackEvent.Type`.
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;
/// `CounterDescriptor.Unit`.
const BYTES: i32 = 3;
/// `TracePacket.SequenceFlags`: interned data begins anew; interned data is needed.
const CLEARED: u32 = 1;
const NEEDED: u32 = 2;
/// Our only sequence.
const SEQUENCE: u32 = 1;
/// Marks from the tail, at most: a viewer lives with so many.
const MOST_MARKS: usize = 20_000;

/// A selection with curves and marks.
///
/// # Errors
/// The writer's.
pub fn write(gathered: &Gathered, out: impl Write) -> io::Result<()> {
    let mut trace = Trace { out, next_track: 1 };
    trace.packet(TracePacket {
        sequence_flags: Some(CLEARED | NEEDED),
        interned_data: Some(interned(&gathered.selection)),
        ..TracePacket::default()
    })?;
    for process in &gathered.view.processes {
        let info = &process.info;
        let track = trace.track(TrackDescriptor {
            process: Some(message::ProcessDescriptor {
                pid: i32::try_from(info.pid.0).ok(),
                name: Some(escape::line(&info.command, 400)),
            }),
            ..TrackDescriptor::default()
        })?;
        for part in &gathered.selection.parts {
            if part.key.process == info.pid {
                selected(&mut trace, gathered, part, track)?;
            }
        }
        for device in &process.devices {
            curves(&mut trace, device, track)?;
        }
        marks(&mut trace, gathered, info.pid, track)?;
    }
    trace.out.flush()
}

struct Trace<W> {
    out: W,
    next_track: u64,
}

impl<W: Write> Trace<W> {
    /// A trace is a message whose field 1 is repeated: its encoding is that of the packets in a
    /// row.
    fn packet(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket {
            sequence: Some(SEQUENCE),
            ..packet
        };
        let bytes = packet.encode_to_vec();
        let mut head = vec![0x0a];
        prost::encoding::encode_varint(bytes.len() as u64, &mut head);
        self.out.write_all(&head)?;
        self.out.write_all(&bytes)
    }

    fn track(&mut self, descriptor: TrackDescriptor) -> io::Result<u64> {
        let uuid = self.next_track;
        self.next_track += 1;
        self.packet(TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(uuid),
                ..descriptor
            }),
            ..TracePacket::default()
        })?;
        Ok(uuid)
    }

    fn event(&mut self, time: u64, event: TrackEvent) -> io::Result<()> {
        self.packet(TracePacket {
            timestamp: Some(time),
            sequence_flags: Some(NEEDED),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }
}

/// Frames and stacks; ids are indices plus 1, since 0 means none.
fn interned(selection: &Selection) -> message::InternedData {
    let mut data = message::InternedData::default();
    let text = |id: u64, text: &str| message::InternedString {
        id: Some(id),
        text: Some(text.as_bytes().to_vec()),
    };
    // The importer wants a mapping for every frame.
    data.mapping_paths.push(text(1, "gpu"));
    data.mappings.push(message::Mapping {
        id: Some(1),
        path: vec![1],
    });
    for (index, frame) in selection.table.frames.iter().enumerate() {
        let id = index as u64 + 1;
        data.function_names.push(text(id, &frame.function));
        data.source_paths.push(text(id, &frame.file));
        data.frames.push(message::Frame {
            id: Some(id),
            function: Some(id),
            mapping: Some(1),
            source_path: Some(id),
            line: (frame.line > 0).then_some(frame.line),
        });
    }
    for (index, stack) in selection.table.stacks.iter().enumerate() {
        let outermost_first = stack.frames.iter().rev();
        data.callstacks.push(message::Callstack {
            id: Some(index as u64 + 1),
            frames: outermost_first
                .map(|frame| u64::from(frame.0) + 1)
                .collect(),
        });
    }
    data
}

/// One instant a stack and generation, at the selection's moment, with its bytes as weight: all on
/// one track, since a track's events must have a weight all or none.
fn selected(
    trace: &mut Trace<impl Write>,
    gathered: &Gathered,
    part: &Part,
    parent: u64,
) -> io::Result<()> {
    let selection = &gathered.selection;
    let track = trace.track(TrackDescriptor {
        name: Some(format!(
            "{} ({}), bytes by stack",
            selection.title,
            crate::selection::place(&part.key)
        )),
        parent: Some(parent),
        ..TrackDescriptor::default()
    })?;
    for row in &part.rows {
        let number = |name: &str, number: u64| message::DebugAnnotation {
            name: Some(name.into()),
            number: Some(number),
        };
        let mut annotations = vec![number("bytes", row.bytes), number("blocks", row.blocks)];
        annotations.extend(row.generation.map(|step| number("generation", step)));
        trace.event(
            selection.moment.0,
            TrackEvent {
                kind: Some(INSTANT),
                track: Some(track),
                categories: vec!["survivors".into()],
                name: Some(selection.table.own_frame(row.stack).label.clone()),
                callstack: Some(u64::from(row.stack.0) + 1),
                callstack_weight: Some(row.bytes as f64),
                annotations,
                ..TrackEvent::default()
            },
        )?;
    }
    Ok(())
}

fn curves(
    trace: &mut Trace<impl Write>,
    device: &vramscope_collector::view::DeviceView,
    parent: u64,
) -> io::Result<()> {
    let axis = format!("gpu {}", device.device);
    let mut tracks = Vec::new();
    for name in ["allocated", "floor", "reserved"] {
        tracks.push(trace.track(TrackDescriptor {
            name: Some(format!("GPU {} {name}", device.device)),
            parent: Some(parent),
            counter: Some(message::CounterDescriptor {
                unit: Some(BYTES),
                share_axis: Some(axis.clone()),
            }),
            ..TrackDescriptor::default()
        })?);
    }
    for point in &device.series.points {
        let values = [point.allocated, point.floor, point.reserved];
        for (track, value) in tracks.iter().zip(values) {
            let counter = TrackEvent {
                kind: Some(COUNTER),
                track: Some(*track),
                counter_value: i64::try_from(value).ok(),
                ..TrackEvent::default()
            };
            trace.event(point.time.0, counter)?;
        }
    }
    let marks = trace.track(TrackDescriptor {
        name: Some(format!("GPU {} marks", device.device)),
        parent: Some(parent),
        ..TrackDescriptor::default()
    })?;
    for mark in &device.series.marks {
        let name = match mark.kind {
            MarkKind::OutOfMemory => "out of memory",
            MarkKind::CacheEmptied => "cache emptied",
            MarkKind::Lost => "events lost",
            MarkKind::GrowthBegan => "growth began",
        };
        instant(trace, marks, mark.time.0, name)?;
    }
    Ok(())
}

/// Step marks of the tail.
fn marks(
    trace: &mut Trace<impl Write>,
    gathered: &Gathered,
    process: vramscope_events::Pid,
    parent: u64,
) -> io::Result<()> {
    let all: Vec<_> = (gathered.tail.events())
        .filter(|event| event.process == process && matches!(event.what, TailKind::Mark(_)))
        .collect();
    if all.is_empty() {
        return Ok(());
    }
    let track = trace.track(TrackDescriptor {
        name: Some("training loop".into()),
        parent: Some(parent),
        ..TrackDescriptor::default()
    })?;
    for event in &all[all.len().saturating_sub(MOST_MARKS)..] {
        let name = match event.what {
            TailKind::Mark(vramscope_events::StepMarkKind::User) => "step",
            _ => "backward()",
        };
        instant(trace, track, event.time.0, name)?;
    }
    Ok(())
}

fn instant(trace: &mut Trace<impl Write>, track: u64, time: u64, name: &str) -> io::Result<()> {
    trace.event(
        time,
        TrackEvent {
            kind: Some(INSTANT),
            track: Some(track),
            name: Some(name.into()),
            ..TrackEvent::default()
        },
    )
}

//! pprof's protocol buffer, gzipped: what `go tool pprof` and most profile viewers read.
//!
//! Sample types are those of a Go heap profile, so that every pprof front end knows them:
//! `alloc_objects`, `alloc_space`, `inuse_objects`, `inuse_space` (the default). Labels: `device`,
//! `layer`, `generation` (the step in which the blocks were made, a number) and `step` (a span of
//! such steps in words, for `-tagroot step`).

use std::io::{self, Write};

use flate2::{Compression, write::GzEncoder};
use prost::Message;
use rustc_hash::FxHashMap;

use crate::{
    frames::StackIndex,
    selection::{Kind, Part, Row, Selection, layer_name},
};

/// Spans of generations in the label `step`, at most.
const SPANS: u64 = 16;

/// The messages, as far as we write them; numbers as in pprof's `profile.proto`.
mod message {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub string_table: Vec<String>,
        #[prost(int64, tag = "9")]
        pub time_nanos: i64,
        #[prost(int64, tag = "10")]
        pub duration_nanos: i64,
        #[prost(int64, repeated, tag = "13")]
        pub comment: Vec<i64>,
        #[prost(int64, tag = "14")]
        pub default_sample_type: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ValueType {
        #[prost(int64, tag = "1")]
        pub kind: i64,
        #[prost(int64, tag = "2")]
        pub unit: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub label: Vec<Label>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Label {
        #[prost(int64, tag = "1")]
        pub key: i64,
        #[prost(int64, tag = "2")]
        pub text: i64,
        #[prost(int64, tag = "3")]
        pub number: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Mapping {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "5")]
        pub filename: i64,
        #[prost(bool, tag = "7")]
        pub has_functions: bool,
        #[prost(bool, tag = "8")]
        pub has_filenames: bool,
        #[prost(bool, tag = "9")]
        pub has_line_numbers: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Location {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub mapping_id: u64,
        #[prost(message, repeated, tag = "4")]
        pub line: Vec<Line>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Line {
        #[prost(uint64, tag = "1")]
        pub function_id: u64,
        #[prost(int64, tag = "2")]
        pub line: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Function {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "2")]
        pub name: i64,
        #[prost(int64, tag = "3")]
        pub system_name: i64,
        #[prost(int64, tag = "4")]
        pub filename: i64,
    }
}

#[derive(Default)]
struct Strings {
    all: Vec<String>,
    index: FxHashMap<String, i64>,
}

impl Strings {
    fn of(&mut self, text: &str) -> i64 {
        if let Some(known) = self.index.get(text) {
            return *known;
        }
        let index = self.all.len() as i64;
        self.all.push(text.to_owned());
        self.index.insert(text.to_owned(), index);
        index
    }
}

/// A whole selection.
///
/// # Errors
/// The writer's.
pub fn write(selection: &Selection, out: impl Write) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::default());
    out.write_all(&profile(selection).encode_to_vec())?;
    out.finish()?.flush()
}

fn profile(selection: &Selection) -> message::Profile {
    let mut strings = Strings::default();
    // By the format, string 0 is the empty one.
    strings.of("");
    let types = match selection.kind {
        Kind::Growth => vec![("growth_space", "bytes")],
        _ => vec![
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ],
    };
    let mut profile = message::Profile {
        sample_type: (types.iter())
            .map(|(kind, unit)| message::ValueType {
                kind: strings.of(kind),
                unit: strings.of(unit),
            })
            .collect(),
        default_sample_type: strings.of(match selection.kind {
            Kind::Growth => "growth_space",
            Kind::Allocated => "alloc_space",
            Kind::Alive => "inuse_space",
        }),
        time_nanos: selection.started_unix.saturating_mul(1_000_000_000) as i64,
        duration_nanos: selection.moment.0.saturating_sub(selection.started.0) as i64,
        ..message::Profile::default()
    };
    let name = selection.parts.first().map(|part| {
        let command = &part.process.command;
        vramscope_collector::escape::line(command.split(' ').next().unwrap_or_default(), 400)
    });
    profile.mapping.push(message::Mapping {
        id: 1,
        filename: strings.of(name.as_deref().unwrap_or_default()),
        has_functions: true,
        has_filenames: true,
        has_line_numbers: true,
    });
    let comments = std::iter::once(&selection.title).chain(&selection.notes);
    profile.comment = comments.map(|comment| strings.of(comment)).collect();
    places(selection, &mut profile, &mut strings);
    for part in &selection.parts {
        samples(selection, part, &mut profile, &mut strings);
    }
    profile.string_table = strings.all;
    profile
}

/// One location a frame; a function is what has name and file in common.
fn places(selection: &Selection, profile: &mut message::Profile, strings: &mut Strings) {
    let mut functions: FxHashMap<(i64, i64), u64> = FxHashMap::default();
    for (index, frame) in selection.table.frames.iter().enumerate() {
        let (name, filename) = (strings.of(&frame.function), strings.of(&frame.file));
        let next = functions.len() as u64 + 1;
        let function_id = *functions.entry((name, filename)).or_insert_with(|| {
            profile.function.push(message::Function {
                id: next,
                name,
                system_name: name,
                filename,
            });
            next
        });
        profile.location.push(message::Location {
            id: index as u64 + 1,
            mapping_id: 1,
            line: vec![message::Line {
                function_id,
                line: frame.line.into(),
            }],
        });
    }
}

fn samples(
    selection: &Selection,
    part: &Part,
    profile: &mut message::Profile,
    strings: &mut Strings,
) {
    let locations = |stack: StackIndex| {
        let frames = &selection.table.stack(stack).frames;
        frames.iter().map(|frame| u64::from(frame.0) + 1).collect()
    };
    let text = |key: &str, text: &str, strings: &mut Strings| message::Label {
        key: strings.of(key),
        text: strings.of(text),
        number: 0,
    };
    let labels = vec![
        text("device", &part.key.device.to_string(), strings),
        text("layer", layer_name(part.key.layer), strings),
        text("process", &part.key.process.to_string(), strings),
    ];
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let width = (part.steps + 1).div_ceil(SPANS).max(1);
    for row in part
        .rows
        .iter()
        .filter(|_| selection.kind != Kind::Allocated)
    {
        let Row { bytes, blocks, .. } = *row;
        let mut label = labels.clone();
        if let Some(generation) = row.generation {
            let first = generation / width * width;
            label.push(text("step", &span(first, width), strings));
            label.push(message::Label {
                key: strings.of("generation"),
                text: 0,
                number: number(generation),
            });
        }
        let value = match selection.kind {
            Kind::Growth => vec![number(bytes)],
            _ => vec![0, 0, number(blocks), number(bytes)],
        };
        profile.sample.push(message::Sample {
            location_id: locations(row.stack),
            value,
            label,
        });
    }
    if selection.kind == Kind::Growth {
        return;
    }
    for row in &part.totals {
        profile.sample.push(message::Sample {
            location_id: locations(row.stack),
            value: vec![number(row.blocks), number(row.bytes), 0, 0],
            label: labels.clone(),
        });
    }
}

/// `steps 96-127`: equally long names sort as numbers do.
fn span(first: u64, width: u64) -> String {
    match width {
        1 => format!("step {first:06}"),
        _ => format!("steps {first:06}-{:06}", first + width - 1),
    }
}

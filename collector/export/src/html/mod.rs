//! One page that holds everything: timeline, icicle, search, table. It loads nothing from
//! anywhere; its data are JSON in a block that no browser runs, and its script shows names as text
//! only.

use std::collections::BTreeMap;

use serde::Serialize;
use vramscope_collector::{
    escape,
    flamegraph::Origin,
    report::units,
    view::{DeviceView, MarkKind, View},
};
use vramscope_events::{Layer, Time};

use crate::{
    frames::StackIndex,
    gather::Gathered,
    selection::{Kind, Part, Selection},
};

/// Spans of time in which births are told apart.
const BUCKETS: u64 = 400;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    subtitle: String,
    notes: &'a [String],
    kind: &'static str,
    /// From the beginning to the selection's moment.
    seconds: f64,
    buckets: u64,
    origins: Vec<&'static str>,
    /// Label, origin, file, line.
    frames: Vec<(&'a str, usize, &'a str, u32)>,
    stacks: Vec<StackData>,
    parts: Vec<PartData>,
}

#[derive(Serialize)]
struct StackData {
    /// Outermost first.
    frames: Vec<u32>,
    /// The frame that names the site.
    own: u32,
}

#[derive(Serialize)]
struct PartData {
    name: String,
    /// Stack, bucket of birth (-1: unknown), bytes, blocks.
    rows: Vec<(u32, i64, u64, u64)>,
    series: SeriesData,
    /// Seconds, what.
    marks: Vec<(f64, &'static str)>,
}

#[derive(Serialize, Default)]
struct SeriesData {
    time: Vec<f64>,
    allocated: Vec<u64>,
    floor: Vec<u64>,
    reserved: Vec<u64>,
}

/// A selection as a page. Windows can be selected in it where its blocks were asked for
/// ([`crate::Choice::blocks`]).
pub fn write(gathered: &Gathered) -> String {
    page(&gathered.selection, &gathered.view)
}

/// The same from a selection and the view of its session.
pub fn page(selection: &Selection, view: &View) -> String {
    let seconds = selection.moment.seconds_since(selection.started);
    let process = selection.parts.first().map(|part| &part.process);
    let when = match selection.started_unix {
        0 => format!("{} after the attach", units::duration(seconds)),
        started => units::date(started.saturating_add(seconds as u64)),
    };
    let subtitle = match process {
        Some(process) => format!(
            "{} (pid {}), {when}",
            escape::line(&process.command, 200),
            process.pid
        ),
        None => when,
    };
    let table = &selection.table;
    let origin = |origin: Origin| {
        Origin::ALL
            .iter()
            .position(|one| *one == origin)
            .unwrap_or(0)
    };
    let data = Data {
        title: &selection.title,
        subtitle,
        notes: &selection.notes,
        kind: match selection.kind {
            Kind::Alive => "alive",
            Kind::Growth => "growth",
            Kind::Allocated => "allocated",
        },
        seconds,
        buckets: BUCKETS,
        origins: Origin::ALL.iter().map(|origin| origin.name()).collect(),
        frames: (table.frames.iter())
            .map(|frame| {
                (
                    &*frame.label,
                    origin(frame.origin),
                    &*frame.file,
                    frame.line,
                )
            })
            .collect(),
        stacks: (table.stacks.iter())
            .map(|stack| StackData {
                frames: stack.frames.iter().rev().map(|frame| frame.0).collect(),
                own: stack.user.unwrap_or(stack.frames[0]).0,
            })
            .collect(),
        parts: (selection.parts.iter())
            .map(|part| part_data(selection, part, view))
            .collect(),
    };
    let json = match serde_json::to_string(&data) {
        Ok(json) => json,
        Err(error) => unreachable!("strings and finite numbers are JSON: {error}"),
    };
    PAGE.replacen("/*CSS*/", STYLE, 1)
        .replacen("/*JS*/", SCRIPT, 1)
        .replacen("/*DATA*/", &inert(&json), 1)
}

/// JSON that ends no script block and begins none, whatever is in its strings: `<` occurs in
/// strings alone, where an escape means the same.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

fn part_data(selection: &Selection, part: &Part, view: &View) -> PartData {
    let device = (view.processes.iter())
        .filter(|process| process.info.pid == part.key.process)
        .flat_map(|process| &process.devices)
        .find(|device| device.device == part.key.device && part.key.layer != Layer::Host);
    let since = |time: Time| time.seconds_since(selection.started);
    PartData {
        name: part.name(),
        rows: rows(selection, part),
        series: device
            .map(|device| series(device, &since))
            .unwrap_or_default(),
        marks: device.map_or_else(Vec::new, |device| {
            let marks = device.series.marks.iter();
            marks
                .map(|mark| (since(mark.time), mark_name(mark.kind)))
                .collect()
        }),
    }
}

fn mark_name(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::OutOfMemory => "out of memory",
        MarkKind::CacheEmptied => "cache emptied",
        MarkKind::Lost => "events lost",
        MarkKind::GrowthBegan => "growth began",
    }
}

fn series(device: &DeviceView, since: &dyn Fn(Time) -> f64) -> SeriesData {
    let mut out = SeriesData::default();
    for point in &device.series.points {
        out.time.push(since(point.time));
        out.allocated.push(point.allocated);
        out.floor.push(point.floor);
        out.reserved.push(point.reserved);
    }
    out
}

/// By stack and span of birth where the blocks are known, else by stack.
fn rows(selection: &Selection, part: &Part) -> Vec<(u32, i64, u64, u64)> {
    if part.blocks.is_empty() {
        let rows = part.by_stack().into_iter();
        return rows
            .map(|row| (row.stack.0, -1, row.bytes, row.blocks))
            .collect();
    }
    let span = selection
        .moment
        .0
        .saturating_sub(selection.started.0)
        .max(1);
    let mut rows: BTreeMap<(StackIndex, u64), (u64, u64)> = BTreeMap::new();
    for block in &part.blocks {
        let since = block.born.0.saturating_sub(selection.started.0);
        let bucket = u128::from(since) * u128::from(BUCKETS) / u128::from(span);
        let bucket = (bucket as u64).min(BUCKETS - 1);
        let row = rows.entry((block.stack, bucket)).or_default();
        row.0 += block.size;
        row.1 += 1;
    }
    rows.into_iter()
        .map(|((stack, bucket), (bytes, blocks))| (stack.0, bucket as i64, bytes, blocks))
        .collect()
}

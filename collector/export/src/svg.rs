//! The flamegraph of a selection as a picture.

use std::collections::BTreeMap;

use vramscope_collector::{
    escape,
    flamegraph::{Error, Origin, Picture, draw},
    report::units,
};

use crate::{
    folded::fold,
    selection::{Kind, Part, Selection, Weight},
};

/// Room for the line below the title, in columns.
const COLUMNS: usize = 150;

/// One part of a selection as a self-contained SVG that zooms and searches in a browser.
///
/// # Errors
/// The library that draws refused.
pub fn write(selection: &Selection, part: &Part, weight: Weight) -> Result<String, Error> {
    let stacks = fold(selection, part, weight);
    let total = stacks.values().copied().fold(0u64, u64::saturating_add);
    draw(Picture {
        title: format!(
            "{}: {}",
            selection.title,
            amount(selection, weight, total as f64)
        ),
        subtitle: subtitle(selection, part),
        unit: unit(selection, weight),
        nothing: nothing(selection),
        stacks,
        before: None,
        origins: origins(selection),
    })
}

/// What became more and what less from one selection to another: widths are those of `after`.
///
/// # Errors
/// The library that draws refused.
pub fn write_difference(
    (before, before_part): (&Selection, &Part),
    (after, after_part): (&Selection, &Part),
    weight: Weight,
) -> Result<String, Error> {
    let was = fold(before, before_part, weight);
    let is = fold(after, after_part, weight);
    let sum = |stacks: &BTreeMap<String, u64>| stacks.values().map(|n| *n as f64).sum::<f64>();
    let change = sum(&is) - sum(&was);
    let sign = if change < 0.0 { "-" } else { "+" };
    draw(Picture {
        title: format!(
            "Change of {}: {sign}{}",
            after.title.to_lowercase(),
            amount(after, weight, change.abs())
        ),
        subtitle: subtitle(after, after_part),
        unit: unit(after, weight),
        nothing: nothing(after),
        stacks: is,
        before: Some(was),
        origins: origins(after),
    })
}

fn amount(selection: &Selection, weight: Weight, number: f64) -> String {
    match (selection.kind, weight) {
        (Kind::Growth, _) => units::growth(number),
        (_, Weight::Bytes) => units::bytes(number as u64),
        (_, Weight::Blocks) => format!("{} blocks", units::count(number as u64)),
    }
}

fn unit(selection: &Selection, weight: Weight) -> &'static str {
    match (selection.kind, weight) {
        (Kind::Growth, _) => "bytes a step",
        (_, Weight::Bytes) => "bytes",
        (_, Weight::Blocks) => "blocks",
    }
}

fn nothing(selection: &Selection) -> &'static str {
    match selection.kind {
        Kind::Alive => "Nothing to draw: no allocation made since the attach was alive.",
        Kind::Growth => "Nothing to draw: no survivors grow.",
        Kind::Allocated => "Nothing to draw: nothing was allocated.",
    }
}

fn origins(selection: &Selection) -> BTreeMap<String, Origin> {
    let frames = selection.table.frames.iter();
    frames
        .map(|frame| (frame.label.clone(), frame.origin))
        .collect()
}

/// What, where and when, at most as long as there is room for.
fn subtitle(selection: &Selection, part: &Part) -> String {
    let seconds = selection.moment.seconds_since(selection.started);
    let when = match selection.started_unix {
        0 => format!("{} after the attach", units::duration(seconds)),
        started => units::date(started.saturating_add(seconds as u64)),
    };
    let rest = format!(
        " ({}); step {}, {when}",
        part.name(),
        units::count(part.steps)
    );
    let room = COLUMNS.saturating_sub(escape::width(&rest));
    format!("{}{rest}", escape::line(&part.process.command, room))
}

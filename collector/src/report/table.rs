//! The table of sites, fitted to a width.

use vramscope_events::Time;

use super::{
    headline,
    layout::{left, right},
    paths, units,
};
use crate::{
    escape,
    grouping::Groups,
    view::{Grouping, ProcessView, SiteView},
};

/// Fewer columns than this are not tried: the caller's terminal will wrap.
pub const LEAST_WIDTH: usize = 60;

/// From this width on there is room for the function's name.
const FUNCTION_FROM: usize = 100;

/// A heading for a grouping: `line`, `function`.
pub fn grouping_word(grouping: Grouping) -> &'static str {
    match grouping {
        Grouping::Stack => "stack",
        Grouping::Line => "line",
        Grouping::Function => "function",
        Grouping::Module => "file",
    }
}

/// The groups that hold anything now, in their order.
pub fn holding(groups: &Groups<'_>) -> Vec<usize> {
    (0..groups.len())
        .filter(|&index| {
            let mut members = groups.members(index).iter();
            members.any(|site| site.live_blocks > 0)
        })
        .collect()
}

/// The table's head and one line a site, none wider than `width`.
pub fn lines(
    sites: &[SiteView],
    process: &ProcessView,
    grouping: Grouping,
    now: Time,
    width: usize,
) -> Vec<String> {
    let width = width.max(LEAST_WIDTH);
    let (gap, with_function) = match width {
        ..FUNCTION_FROM => (1, false),
        _ => (2, true),
    };
    let with_function = with_function || grouping == Grouping::Function;
    let with_source = matches!(grouping, Grouping::Line | Grouping::Stack);
    let rows: Vec<[String; 5]> = sites.iter().map(|site| numbers(site, now)).collect();
    let heads = ["GROWTH", "LIVE", "BLOCKS", "GENS", "AGE"];
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| {
            let cells = rows.iter().map(|row| escape::width(&row[column]));
            cells.max().unwrap_or(0).max(heads[column].len())
        })
        .collect();
    let used: usize = widths.iter().map(|width| width + gap).sum();
    let room = width.saturating_sub(used);

    let texts: Vec<[String; 3]> = sites
        .iter()
        .map(|site| words(site, process, grouping, room, with_function))
        .collect();
    let longest = |column: usize| {
        let cells = texts.iter().map(|row| escape::width(&row[column]));
        cells.max().unwrap_or(0)
    };
    // The place gets what it needs up to half of the room, the function up to a quarter.
    let place = match with_function || with_source {
        true => longest(0).clamp(4, (room / 2).max(4)),
        false => room,
    };
    let mut rest = room.saturating_sub(place + gap);
    let function = match (with_function, with_source) {
        (false, _) => 0,
        (true, true) => longest(1).clamp(8, (room / 4).max(8)),
        (true, false) => rest,
    };
    if with_function && with_source {
        rest = rest.saturating_sub(function + gap);
    }

    let line = |numbers: [&str; 5], words: [&str; 3]| {
        let space = " ".repeat(gap);
        let mut out = String::new();
        for (number, width) in numbers.iter().zip(&widths) {
            out.push_str(&right(number, *width));
            out.push_str(&space);
        }
        out.push_str(&left(&escape::line_end(words[0], place), place));
        if with_function {
            out.push_str(&space);
            out.push_str(&left(&escape::line(words[1], function), function));
        }
        if with_source {
            out.push_str(&space);
            out.push_str(&escape::line(words[2], rest));
        }
        out.truncate(out.trim_end().len());
        out
    };
    let head = match grouping {
        Grouping::Module => ["FILE", "", ""],
        _ => ["LINE", "FUNCTION", "SOURCE"],
    };
    let mut out = vec![line(heads, head)];
    for (numbers, words) in rows.iter().zip(&texts) {
        let numbers: [&str; 5] = std::array::from_fn(|column| numbers[column].as_str());
        let words: [&str; 3] = std::array::from_fn(|column| words[column].as_str());
        out.push(line(numbers, words));
    }
    out
}

fn numbers(site: &SiteView, now: Time) -> [String; 5] {
    [
        units::signed_bytes(site.growth_bytes_per_step),
        units::bytes(site.live_bytes),
        units::short_count(site.live_blocks),
        units::short_count(site.generations),
        headline::age_seconds(site, now).map_or_else(|| "-".into(), units::age),
    ]
}

fn words(
    site: &SiteView,
    process: &ProcessView,
    grouping: Grouping,
    room: usize,
    with_function: bool,
) -> [String; 3] {
    let Some(frame) = site.own_frame() else {
        return [
            "(no frames)".into(),
            String::new(),
            "a thread of which nothing is known".into(),
        ];
    };
    let place = match grouping {
        Grouping::Stack | Grouping::Line => paths::place(frame, &process.info, room),
        _ => escape::line_end(paths::short(&frame.file, &process.info), room),
    };
    let function = escape::line(&frame.function, room);
    let source = match (&frame.source, with_function) {
        // The function has a column of its own.
        (None, true) if site.backward() => "[backward]".into(),
        (None, true) => String::new(),
        _ => headline::source_or_function(site),
    };
    [place, function, source]
}

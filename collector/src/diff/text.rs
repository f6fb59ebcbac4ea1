//! A comparison as text.

use std::fmt::Write;

use super::{Change, DeviceDiff, Diff, SiteDiff};
use crate::{
    escape,
    report::{
        layout::{left, right},
        units,
    },
};

/// Columns of everything but the place.
const NUMBERS: usize = 60;

/// The comparison, `width` columns wide.
pub fn text(diff: &Diff, names: [&str; 2], width: usize) -> String {
    let mut out = String::new();
    let names = names.map(escape::text);
    for (name, at) in names.iter().zip(diff.at_seconds) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name}: {} after its start", units::age(at));
    }
    for line in &diff.only_in_one {
        let _ = writeln!(out, "{line}");
    }
    if diff.devices.is_empty() {
        out.push_str("no device is in both\n");
    }
    for device in &diff.devices {
        out.push('\n');
        draw_device(&mut out, diff, device, width.max(NUMBERS + 20));
    }
    out
}

fn draw_device(out: &mut String, diff: &Diff, device: &DeviceDiff, width: usize) {
    let rank = device.rank.map(|rank| format!(", rank {rank}"));
    let _ = writeln!(
        out,
        "GPU {} of process {}{}",
        device.device,
        device.pid,
        rank.unwrap_or_default()
    );
    let [before, after] = &device.sides;
    let row = |out: &mut String, name: &str, a: u64, b: u64| {
        let change = units::signed_bytes(b as f64 - a as f64);
        let _ = writeln!(
            out,
            "  {name:<10} {:>10} -> {:>10}  {change}",
            units::bytes(a),
            units::bytes(b)
        );
    };
    row(out, "allocated", before.allocated, after.allocated);
    row(out, "reserved", before.reserved, after.reserved);
    row(out, "survivors", before.live_bytes, after.live_bytes);
    let _ = writeln!(
        out,
        "  {:<10} {:>10} -> {:>10}",
        "steps",
        units::count(before.steps),
        units::count(after.steps)
    );
    let class = |side: &super::Side| {
        let words = side
            .class
            .map_or("no verdict".into(), |class| format!("{class:?}"));
        match side.growth_bytes_per_step {
            0.0 => words,
            growth => format!("{words} {}", units::growth(growth)),
        }
    };
    let _ = writeln!(
        out,
        "  {:<10} {} -> {}",
        "verdict",
        class(before),
        class(after)
    );
    if device.sites.is_empty() {
        let _ = writeln!(out, "  every site holds as much as before");
        return;
    }
    let a_step = match (diff.one_session, device.steps_between) {
        (true, Some(steps)) => format!("a step: over the {} between", units::count(steps)),
        (true, None) => "no whole step is between the two".into(),
        (false, _) => "a step: second's growth less the first's".into(),
    };
    let _ = writeln!(out, "  ({a_step})");
    let _ = writeln!(
        out,
        "  {} {} {} {} {} site",
        left("", 8),
        right("before", 10),
        right("after", 10),
        right("change", 11),
        right("a step", 13),
    );
    for site in &device.sites {
        let line = format!(
            "  {} {} {} {} {} {}",
            left(word(site.change), 8),
            right(&units::bytes(site.bytes[0]), 10),
            right(&units::bytes(site.bytes[1]), 10),
            right(&units::signed_bytes(site.delta_bytes as f64), 11),
            right(&units::growth(site.delta_bytes_per_step), 13),
            place(site, width - NUMBERS),
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if device.left_out > 0 {
        let _ = writeln!(out, "  and {} more that differ", device.left_out);
    }
    let what = if device.same == 1 {
        "site holds"
    } else {
        "sites hold"
    };
    let _ = writeln!(out, "  {} {what} as much as before", device.same);
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Appeared => "appeared",
        Change::Grew => "grew",
        Change::Shrank => "shrank",
        Change::Went => "went",
    }
}

fn place(site: &SiteDiff, columns: usize) -> String {
    let file = site.file.rsplit('/').next().unwrap_or_default();
    let mut words = match site.line {
        0 => file.to_owned(),
        line => format!("{file}:{line}"),
    };
    for more in [Some(&site.function), site.source.as_ref()]
        .into_iter()
        .flatten()
    {
        if !more.is_empty() {
            words.push(' ');
            words.push_str(more);
        }
    }
    escape::line(words.trim(), columns)
}

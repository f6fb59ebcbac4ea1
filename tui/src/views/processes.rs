//! All processes and devices, the one that is most unlike the others first.

use std::cmp::Ordering;

use ratatui::{buffer::Buffer, layout::Rect};
use vramscope_collector::{
    ranks::{self, Findings},
    report::{headline, layout::wrap, units},
    view::{DeviceView, ProcessView},
};
use vramscope_events::{DeviceId, Pid};

use crate::{
    app::{App, severity},
    layout::first_row,
    paint::Pen,
    theme::Role,
};

/// One line of the table.
struct Entry<'a> {
    process: &'a ProcessView,
    device: &'a DeviceView,
    /// Its floor against the median of all, as a share of the median.
    skew: f64,
}

/// Devices: the worst state first, then the farthest from the median floor.
fn entries(app: &App) -> Vec<Entry<'_>> {
    let mut floors: Vec<u64> = app.devices().map(|(_, device)| floor(device)).collect();
    floors.sort_unstable();
    // The lower one of two: with two ranks the larger stands out.
    let median = floors
        .get(floors.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0);
    let mut entries: Vec<Entry<'_>> = app
        .devices()
        .map(|(process, device)| Entry {
            process,
            device,
            skew: match median {
                0 => 0.0,
                median => (floor(device) as f64 - median as f64) / median as f64,
            },
        })
        .collect();
    entries.sort_by(|a, b| {
        let by_state = severity(b.device).cmp(&severity(a.device));
        let by_skew = b.skew.abs().total_cmp(&a.skew.abs());
        by_state.then(by_skew).then_with(|| by_rank(a, b))
    });
    entries
}

fn by_rank(a: &Entry<'_>, b: &Entry<'_>) -> Ordering {
    let key = |entry: &Entry<'_>| {
        let info = &entry.process.info;
        (info.rank, info.pid, entry.device.device)
    };
    key(a).cmp(&key(b))
}

/// The last floor: allocated itself swings within a step.
fn floor(device: &DeviceView) -> u64 {
    let last = device.series.points.last();
    last.map_or(device.allocated, |point| point.floor)
}

/// The process and device of the selected row.
pub fn chosen(app: &App) -> Option<(Pid, DeviceId)> {
    let entries = entries(app);
    let entry = entries.get(app.process_row)?;
    Some((entry.process.info.pid, entry.device.device))
}

/// Draws the table.
pub fn draw(app: &App, buffer: &mut Buffer, area: Rect) {
    if area.is_empty() {
        return;
    }
    let width = usize::from(area.width);
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    for (name, columns, least) in COLUMNS {
        if width >= least {
            pen.right(name, columns, Role::Quiet).skip(1);
        }
    }
    if width >= TREND_FROM {
        pen.skip(1).left("FLOOR", TREND, Role::Quiet);
    }
    pen.put(" STATE", Role::Quiet);
    let entries = entries(app);
    if entries.is_empty() {
        let inner = Rect {
            y: area.y + 1,
            height: area.height - 1,
            ..area
        };
        let waiting = match app.view.processes.len() {
            0 => "no process is traced yet",
            _ => "waiting for the first allocation on a GPU",
        };
        super::empty(
            app,
            buffer,
            inner,
            &[waiting, "each process that is watched has a line here"],
        );
        return;
    }
    let height = app.table_height();
    let row = app.process_row.min(entries.len() - 1);
    let first = first_row(0, row, entries.len(), height);
    for (index, entry) in entries.iter().enumerate().skip(first).take(height) {
        let line = (index - first) as u16 + 1;
        draw_row(app, buffer, area, line, entry);
        if index == row {
            Pen::new(buffer, app.theme, area, line).look(area, Role::Selected);
        }
    }
    let below = draw_together(app, buffer, area, entries.len() as u16 + 2);
    draw_gone(app, buffer, area, below);
}

/// What is to be said of all processes together; the line behind it.
fn draw_together(app: &App, buffer: &mut Buffer, area: Rect, first: u16) -> u16 {
    let Findings {
        summary,
        skewed,
        workers,
    } = ranks::findings(&app.view);
    let advice = workers.first().map(|finding| finding.advice.clone());
    let lines = summary
        .into_iter()
        .map(|text| (text, Role::Strong))
        .chain(skewed.into_iter().map(|finding| (finding.text, Role::Warn)))
        .chain(
            workers
                .into_iter()
                .map(|finding| (finding.text, Role::Warn)),
        )
        .chain(advice.map(|advice| (format!("→ {advice}"), Role::Text)));
    let mut line = first;
    for (text, role) in lines {
        for part in wrap(&text, usize::from(area.width).saturating_sub(2), 2) {
            Pen::new(buffer, app.theme, area, line)
                .put(" ", role)
                .put(&part, role);
            line += 1;
        }
    }
    if line > first { line + 1 } else { first }
}

/// Names, widths, and the width of the screen from which they are shown.
const COLUMNS: [(&str, usize, usize); 8] = [
    ("RANK", 5, 0),
    ("PID", 8, 0),
    ("GPU", 3, 0),
    ("STEP", 9, 66),
    ("ALLOCATED", 10, 50),
    ("RESERVED", 10, 92),
    ("SKEW", 8, 76),
    ("GROWTH/STEP", 12, 76),
];

/// Columns of the floor's curve, and the width of the screen from which it is shown.
const TREND: usize = 12;
const TREND_FROM: usize = 110;

fn draw_row(app: &App, buffer: &mut Buffer, area: Rect, line: u16, entry: &Entry<'_>) {
    let (process, device) = (entry.process, entry.device);
    let width = usize::from(area.width);
    let growth = device
        .verdict
        .as_ref()
        .map(|verdict| verdict.growth_bytes_per_step);
    let rank = process
        .info
        .rank
        .map_or("-".to_owned(), |rank| rank.to_string());
    let texts = [
        rank,
        process.info.pid.to_string(),
        device.device.to_string(),
        units::count(process.steps.count),
        units::bytes(device.allocated),
        units::bytes(device.reserved),
        skew_words(entry.skew),
        growth.map_or("-".to_owned(), units::signed_bytes),
    ];
    let mut pen = Pen::new(buffer, app.theme, area, line);
    for ((_, columns, least), text) in COLUMNS.into_iter().zip(&texts) {
        if width >= least {
            pen.right(text, columns, Role::Text).skip(1);
        }
    }
    if width >= TREND_FROM {
        let floors: Vec<u64> = device
            .series
            .points
            .iter()
            .map(|point| point.floor)
            .collect();
        pen.skip(1).sparkline(&floors, TREND, 1000, Role::Stays);
    }
    let (word, role, symbol) = match &device.verdict {
        None => ("no verdict yet", Role::Quiet, "·"),
        Some(verdict) => {
            let tone = headline::class_tone(verdict.class);
            let word = headline::class_word(verdict.class);
            (
                word,
                super::header::tone_role(tone),
                super::header::symbol(tone),
            )
        }
    };
    pen.put(" ", Role::Text)
        .put(symbol, role)
        .put(" ", role)
        .put(word, role);
    if process.exited.is_some() {
        pen.put(" (exited)", Role::Warn);
    }
    let room = pen.room().saturating_sub(2);
    let known = app.headlines.get(&(process.info.pid, device.device));
    let culprit = known.and_then(|headline| headline.culprit.as_deref());
    if room < 16 {
        return;
    }
    match (culprit, ranks::role_words(process)) {
        (Some(culprit), _) => pen.put("  ", Role::Text).foreign(culprit, room, Role::Code),
        (None, Some(role)) => pen.put("  ", Role::Text).put(&role, Role::Quiet),
        (None, None) => pen
            .put("  ", Role::Text)
            .foreign(&process.info.command, room, Role::Quiet),
    };
}

fn skew_words(skew: f64) -> String {
    match skew {
        s if s.abs() < 0.0005 => "0 %".into(),
        // Eight columns.
        s if s >= 1000.0 => "> 1000 x".into(),
        s if s >= 10.0 => format!("{:+.0} %", s * 100.0),
        s => format!("{:+.1} %", s * 100.0),
    }
}

/// Processes that have no device: launchers and data loaders.
fn draw_gone(app: &App, buffer: &mut Buffer, area: Rect, line: u16) {
    let without: Vec<&ProcessView> = app
        .view
        .processes
        .iter()
        .filter(|process| process.devices.is_empty())
        .collect();
    for (index, process) in without.iter().enumerate() {
        let mut pen = Pen::new(buffer, app.theme, area, line + index as u16);
        pen.skip(6)
            .right(&process.info.pid.to_string(), 8, Role::Quiet);
        let role = ranks::role_words(process).map(|role| format!("{role}, "));
        pen.put("  ", Role::Quiet)
            .put(&role.unwrap_or_default(), Role::Quiet)
            .put("no allocation on a GPU  ", Role::Quiet);
        let room = pen.room();
        pen.foreign(&process.info.command, room, Role::Quiet);
    }
}

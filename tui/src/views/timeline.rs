//! The curves in large: memory from zero, the floor on its own scale, marks and steps below.

use ratatui::{buffer::Buffer, layout::Rect};
use vramscope_collector::{
    report::units,
    view::{MarkKind, Series},
};
use vramscope_events::Time;

use crate::{
    app::App,
    chart::{self, Column},
    paint::Pen,
    theme::Role,
    views::strip,
};

/// Draws both charts, the axis and the legend.
pub fn draw(app: &App, buffer: &mut Buffer, area: Rect) {
    let Some(device) = app.device() else {
        super::empty(
            app,
            buffer,
            area,
            &[
                "waiting for the first allocation on a GPU",
                "then its memory is drawn over time",
            ],
        );
        return;
    };
    if area.height < 4 || area.width < 24 {
        super::empty(app, buffer, area, &["too small for a chart"]);
        return;
    }
    // Legend and axis keep three lines; the floor gets two fifths where both fit.
    let footing = if area.height >= 10 { 4 } else { 2 };
    let charts = area.height - footing;
    let lower = if charts >= 9 { charts * 2 / 5 } else { 0 };
    let upper = Rect {
        height: charts - lower,
        ..area
    };
    let floor = Rect {
        y: area.y + upper.height,
        height: lower,
        ..area
    };
    strip::draw_stacked(app, device, buffer, upper);
    if lower > 0 {
        strip::draw_floor(app, device, buffer, floor);
    }
    let below = Rect {
        y: area.y + charts,
        height: footing,
        ..area
    };
    let (from, to) = (app.window.from(&app.view), app.view.now);
    let inner = strip::inner(below, 9);
    draw_axis(app, buffer, inner, &device.series, from, to);
    if footing >= 4 {
        draw_legend(app, buffer, below);
        draw_marks(app, buffer, below, &device.series, from, to);
    } else {
        draw_marks(
            app,
            buffer,
            Rect {
                y: below.y.saturating_sub(2),
                ..below
            },
            &device.series,
            from,
            to,
        );
    }
}

/// Moments and steps under the chart.
fn draw_axis(app: &App, buffer: &mut Buffer, area: Rect, series: &Series, from: Time, to: Time) {
    let columns = chart::columns(series, from, to, usize::from(area.width));
    let line = Rect {
        y: area.y.saturating_sub(1),
        height: 1,
        ..area
    };
    let labels = (usize::from(area.width) / 24).max(1);
    for label in 0..=labels {
        let column = label * usize::from(area.width.saturating_sub(1)) / labels;
        let text = axis_label(app, &columns, column, from, to);
        let width = text.chars().count();
        let start = match label {
            0 => 0,
            last if last == labels => usize::from(area.width).saturating_sub(width),
            _ => column.saturating_sub(width / 2),
        };
        Pen::new(buffer, app.theme, line, 0)
            .skip(start)
            .put(&text, Role::Quiet);
    }
}

fn axis_label(
    app: &App,
    columns: &[Option<Column>],
    column: usize,
    from: Time,
    to: Time,
) -> String {
    let length = to.0.saturating_sub(from.0) as f64;
    let part = column as f64 / (columns.len().saturating_sub(1)).max(1) as f64;
    let moment = from.seconds_since(app.view.started) + part * length * 1e-9;
    let step = columns
        .get(column)
        .copied()
        .flatten()
        .map(|column| column.step);
    match step {
        Some(step) => format!("{} · {}", units::age(moment), units::count(step)),
        None => units::age(moment),
    }
}

fn draw_legend(app: &App, buffer: &mut Buffer, area: Rect) {
    let mut pen = Pen::new(buffer, app.theme, area, 1);
    pen.put(" ", Role::Text);
    for (role, words) in [
        (Role::Stays, "stays over a step"),
        (Role::Flows, "comes and goes"),
        (Role::Cached, "reserved, not allocated"),
    ] {
        pen.put(app.theme.fill(role), role).put(" ", role);
        pen.put(words, Role::Text).put("   ", Role::Text);
    }
    let words = "below the charts: time · step";
    if pen.room() > words.len() {
        pen.put(words, Role::Quiet);
    }
}

/// The marks that are in sight, in words.
fn draw_marks(app: &App, buffer: &mut Buffer, area: Rect, series: &Series, from: Time, to: Time) {
    let mut pen = Pen::new(buffer, app.theme, area, 2);
    pen.put(" ", Role::Text);
    let mut any = false;
    for kind in [
        MarkKind::GrowthBegan,
        MarkKind::OutOfMemory,
        MarkKind::Lost,
        MarkKind::CacheEmptied,
    ] {
        let mut times = series
            .marks
            .iter()
            .filter(|mark| mark.kind == kind && mark.time >= from && mark.time <= to);
        let count = times.clone().count();
        if let Some(last) = times.next_back() {
            any = true;
            let (sign, role) = chart::mark_symbol(kind, app.theme);
            let at = units::age(last.time.seconds_since(app.view.started));
            let words = match count {
                1 => format!(" {} at {at}   ", chart::mark_name(kind)),
                _ => format!(
                    " {} {} times, last at {at}   ",
                    chart::mark_name(kind),
                    units::count(count as u64)
                ),
            };
            pen.put(sign, role).put(&words, Role::Text);
        }
    }
    if !any {
        pen.put("no mark in this window; z changes the window", Role::Quiet);
    } else {
        pen.put("z changes the window", Role::Quiet);
    }
    if let Some((first, last)) = app.span {
        let at = units::age(app.view.now.seconds_since(first));
        let all = units::age(last.seconds_since(first));
        Pen::new(buffer, app.theme, area, 3)
            .put(" ", Role::Text)
            .put(
                &format!("recording: at {at} of {all}; [ and ] move it, space plays"),
                Role::Key,
            );
    }
}

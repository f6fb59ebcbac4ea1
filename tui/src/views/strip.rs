//! The curves in small, above a table.

use ratatui::{buffer::Buffer, layout::Rect};
use vramscope_collector::{report::units, view::DeviceView};
use vramscope_events::Bytes;

use crate::{app::App, chart, paint::Pen, theme::Role};

/// Two lines, or two charts side by side where there is room.
pub fn draw(app: &App, buffer: &mut Buffer, area: Rect) {
    let Some(device) = app.device() else { return };
    if area.is_empty() {
        return;
    }
    if area.height < 5 {
        draw_floor_line(app, device, buffer, area);
        draw_memory_line(app, device, buffer, area, 1);
        return;
    }
    let half = area.width / 2;
    let charts = Rect {
        height: area.height - 1,
        ..area
    };
    let left = Rect {
        width: half.saturating_sub(1),
        ..charts
    };
    let right = Rect {
        x: area.x + half,
        width: area.width - half,
        ..charts
    };
    draw_stacked(app, device, buffer, left);
    draw_floor(app, device, buffer, right);
    draw_memory_line(app, device, buffer, area, area.height - 1);
}

/// Allocated and reserved from zero, in a box of a title line and the chart.
pub fn draw_stacked(app: &App, device: &DeviceView, buffer: &mut Buffer, area: Rect) {
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    pen.put(" memory", Role::Title);
    pen.put(&format!(", {}", app.window.name()), Role::Quiet);
    let (from, to) = (app.window.from(&app.view), app.view.now);
    let chart_area = inner(area, 9);
    let columns = chart::columns(&device.series, from, to, usize::from(chart_area.width));
    let high = columns
        .iter()
        .flatten()
        .map(|column| column.reserved.max(column.allocated))
        .max();
    let Some(high) = high else {
        pen.put("  waiting for the first allocation", Role::Quiet);
        return;
    };
    chart::stacked(buffer, app.theme, chart_area, &columns, high);
    scale(
        app,
        buffer,
        area,
        &[(0, high), (chart_area.height.saturating_sub(1), 0)],
    );
    chart::marks(
        buffer,
        app.theme,
        chart_area,
        &device.series.marks,
        from,
        to,
    );
}

/// The floor on its own scale.
pub fn draw_floor(app: &App, device: &DeviceView, buffer: &mut Buffer, area: Rect) {
    let (from, to) = (app.window.from(&app.view), app.view.now);
    let chart_area = inner(area, 9);
    let columns = chart::columns(&device.series, from, to, usize::from(chart_area.width));
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    pen.put(" floor", Role::Title);
    pen.put(" (lowest allocated in a step)", Role::Quiet);
    let Some((low, high)) = chart::floor_range(&columns) else {
        return;
    };
    let first = columns
        .iter()
        .flatten()
        .next()
        .map_or(low, |column| column.floor);
    let last = columns
        .iter()
        .flatten()
        .last()
        .map_or(low, |column| column.floor);
    let change = units::signed_bytes(last as f64 - first as f64);
    pen.flush_right(&format!("{change} "), Role::Strong);
    chart::floor(buffer, app.theme, chart_area, &columns);
    scale(
        app,
        buffer,
        area,
        &[(0, high), (chart_area.height.saturating_sub(1), low)],
    );
    chart::marks(
        buffer,
        app.theme,
        chart_area,
        &device.series.marks,
        from,
        to,
    );
}

/// The area right of the scale and below the title.
pub fn inner(area: Rect, scale: u16) -> Rect {
    Rect {
        x: area.x + scale.min(area.width),
        y: area.y + 1.min(area.height),
        width: area.width.saturating_sub(scale + 1),
        height: area.height.saturating_sub(1),
    }
}

/// Numbers at the left of a chart, each at its line.
fn scale(app: &App, buffer: &mut Buffer, area: Rect, values: &[(u16, Bytes)]) {
    for &(row, value) in values {
        Pen::new(buffer, app.theme, area, row + 1).right(&units::bytes(value), 8, Role::Quiet);
    }
}

fn draw_floor_line(app: &App, device: &DeviceView, buffer: &mut Buffer, area: Rect) {
    let (from, to) = (app.window.from(&app.view), app.view.now);
    let columns = chart::columns(&device.series, from, to, 128);
    let floors: Vec<u64> = columns
        .iter()
        .flatten()
        .map(|column| column.floor)
        .collect();
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    pen.left(" floor", 8, Role::Quiet);
    let (Some(first), Some(last)) = (floors.first(), floors.last()) else {
        pen.put("waiting for the first allocation", Role::Quiet);
        return;
    };
    let change = units::signed_bytes(*last as f64 - *first as f64);
    let ends = format!(" {} ({change}, {})", units::bytes(*last), app.window.name());
    pen.put(&format!("{} ", units::bytes(*first)), Role::Text);
    let room = pen.room().saturating_sub(ends.len() + 1).min(48);
    pen.sparkline(&floors, room, 1000, Role::Stays);
    pen.put(&ends, Role::Text);
}

/// Shares of the device as one bar with their names.
fn draw_memory_line(app: &App, device: &DeviceView, buffer: &mut Buffer, area: Rect, row: u16) {
    let cached = device.reserved.saturating_sub(device.allocated);
    let mut shares = vec![
        ("allocated", device.allocated, Role::Stays),
        ("cached", cached, Role::Cached),
    ];
    shares.extend(
        device
            .outside
            .map(|bytes| ("outside", bytes, Role::Outside)),
    );
    let used = shares
        .iter()
        .fold(0, |sum: Bytes, (_, bytes, _)| sum.saturating_add(*bytes));
    let free = device.free;
    let whole = device
        .capacity
        .unwrap_or(used.saturating_add(free.unwrap_or(0)))
        .max(1);
    let mut pen = Pen::new(buffer, app.theme, area, row);
    pen.left(" memory", 8, Role::Quiet);
    let names: usize = shares.iter().map(|(name, ..)| name.len() + 12).sum();
    let columns = pen.room().saturating_sub(names + 16).clamp(0, 40);
    if columns >= 8 {
        bar(app, &mut pen, &shares, whole, columns);
        pen.put(" ", Role::Text);
    }
    for (name, bytes, role) in shares {
        pen.put(app.theme.fill(role), role);
        pen.put(&format!(" {name} {}  ", units::bytes(bytes)), Role::Text);
    }
    if let Some(free) = free {
        pen.put(&format!("free {}", units::bytes(free)), Role::Text);
    }
}

/// Shares next to each other, in whole columns; what is not nothing gets one.
pub fn bar(
    app: &App,
    pen: &mut Pen<'_>,
    shares: &[(&str, Bytes, Role)],
    whole: Bytes,
    columns: usize,
) {
    let mut used = 0;
    for &(_, bytes, role) in shares {
        let part = bytes as f64 / whole as f64 * columns as f64;
        let part = (part.round() as usize).max(usize::from(bytes > 0));
        let part = part.min(columns - used);
        used += part;
        pen.put(&app.theme.fill(role).repeat(part), role);
    }
    let rest = "·".repeat(columns - used);
    pen.put(&rest, Role::Quiet);
}

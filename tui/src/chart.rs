//! Curves as areas: what stays over a step, what comes and goes within one, what is cached. An
//! area reads in every terminal; where there is no colour the filling tells them apart.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};
use vramscope_collector::view::{MarkKind, Series, SeriesMark};
use vramscope_events::{Bytes, Time};

use crate::{
    text::Charset,
    theme::{Palette, Role, Theme},
};

/// One column of a chart: the extremes over its share of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Lowest allocated.
    pub floor: Bytes,
    /// Highest allocated.
    pub allocated: Bytes,
    /// Highest reserved.
    pub reserved: Bytes,
    /// The last step.
    pub step: u64,
}

/// `series` between two moments in `columns` columns. A column in which nothing was seen repeats
/// the one before; those before the first point are `None`.
pub fn columns(series: &Series, from: Time, to: Time, columns: usize) -> Vec<Option<Column>> {
    let mut out: Vec<Option<Column>> = vec![None; columns];
    if columns == 0 {
        return out;
    }
    let points = &series.points;
    let start = points.partition_point(|point| point.time < from);
    let mut last = start.checked_sub(1).map(|before| {
        let point = &points[before];
        Column {
            floor: point.floor,
            // The extremes of an earlier span say nothing about this one.
            allocated: point.floor,
            reserved: point.reserved,
            step: point.step,
        }
    });
    for point in &points[start..] {
        if point.time > to {
            break;
        }
        let column = position(point.time, from, to, columns);
        let cell = out[column].get_or_insert(Column {
            floor: Bytes::MAX,
            ..Column::default()
        });
        cell.floor = cell.floor.min(point.floor);
        cell.allocated = cell.allocated.max(point.allocated);
        cell.reserved = cell.reserved.max(point.reserved);
        cell.step = point.step;
    }
    for cell in &mut out {
        match cell {
            Some(_) => last = *cell,
            None => *cell = last,
        }
    }
    out
}

/// The column of a moment.
pub fn position(time: Time, from: Time, to: Time, columns: usize) -> usize {
    let length = u128::from(to.0.saturating_sub(from.0).max(1));
    let offset = u128::from(time.0.saturating_sub(from.0));
    let column = offset * columns as u128 / length;
    (column as usize).min(columns.saturating_sub(1))
}

/// Fills the rest of `area` under each column up to its values, each with its look, the lowest
/// first; the scale goes from `low` to `high`.
fn fill(
    buffer: &mut Buffer,
    theme: Theme,
    area: Rect,
    scale: (Bytes, Bytes),
    layers: impl Fn(usize) -> Option<[(Bytes, Role); 3]>,
) {
    let area = area.intersection(buffer.area);
    let (low, high) = scale;
    let height = f64::from(area.height) * 8.0;
    let eighths = |value: Bytes| {
        let part = value.saturating_sub(low) as f64 / high.saturating_sub(low).max(1) as f64;
        (part.min(1.0) * height).round() as u32
    };
    for x in 0..area.width {
        let Some(layers) = layers(usize::from(x)) else {
            continue;
        };
        let tops = layers.map(|(value, role)| (eighths(value), role));
        for row in 0..area.height {
            let bottom = u32::from(area.height - 1 - row) * 8;
            let position = (area.x + x, area.y + row);
            cell(buffer, theme, position, bottom, tops);
        }
    }
}

/// Draws one cell that reaches from `bottom` to `bottom + 8`.
fn cell(
    buffer: &mut Buffer,
    theme: Theme,
    position: (u16, u16),
    bottom: u32,
    tops: [(u32, Role); 3],
) {
    const BLOCKS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let Some(cell) = buffer.cell_mut(position) else {
        return;
    };
    let fine = theme.charset == Charset::Unicode && theme.palette != Palette::Mono;
    if !fine {
        // The filling of the layer at the middle of the cell.
        if let Some((_, role)) = tops.iter().find(|(top, _)| *top >= bottom + 4) {
            cell.set_symbol(theme.fill(*role));
            cell.set_style(theme.style(*role));
        }
        return;
    }
    let Some(below) = tops.iter().position(|(top, _)| *top > bottom) else {
        return;
    };
    let (top, role) = tops[below];
    let part = (top - bottom).min(8) as usize;
    let mut style = Style::new();
    style.fg = theme.colour(role);
    if part < 8 {
        // What begins within the cell is its ground.
        let above = tops[below + 1..]
            .iter()
            .find(|(next, _)| *next > top.max(bottom + 4));
        style.bg = above.and_then(|(_, role)| theme.colour(*role));
    }
    cell.set_symbol(BLOCKS[part]);
    cell.set_style(style);
}

/// Allocated, its floor and reserved, from 0 to `high`.
pub fn stacked(
    buffer: &mut Buffer,
    theme: Theme,
    area: Rect,
    columns: &[Option<Column>],
    high: Bytes,
) {
    fill(buffer, theme, area, (0, high), |x| {
        let column = (*columns.get(x)?)?;
        let allocated = column.allocated.max(column.floor);
        Some([
            (column.floor, Role::Stays),
            (allocated, Role::Flows),
            (column.reserved.max(allocated), Role::Cached),
        ])
    });
}

/// The floor alone, between its lowest and its highest value.
pub fn floor(buffer: &mut Buffer, theme: Theme, area: Rect, columns: &[Option<Column>]) {
    let Some((low, high)) = floor_range(columns) else {
        return;
    };
    // The lowest is a line, not nothing; and a ripple of less than a thousandth is flat.
    let range = (high - low).max(high / 1000).max(8);
    let low = low.saturating_sub(range / 8);
    let high = high.max(low.saturating_add(range));
    fill(buffer, theme, area, (low, high), |x| {
        let column = (*columns.get(x)?)?;
        Some([(column.floor, Role::Stays); 3])
    });
}

/// The lowest and the highest floor.
pub fn floor_range(columns: &[Option<Column>]) -> Option<(Bytes, Bytes)> {
    let floors = columns.iter().flatten().map(|column| column.floor);
    Some((floors.clone().min()?, floors.max()?))
}

/// The character and look of a mark.
pub fn mark_symbol(kind: MarkKind, theme: Theme) -> (&'static str, Role) {
    let ascii = theme.charset == Charset::Ascii;
    match kind {
        MarkKind::OutOfMemory => (if ascii { "X" } else { "✖" }, Role::Alarm),
        MarkKind::CacheEmptied => (if ascii { "o" } else { "○" }, Role::Strong),
        MarkKind::Lost => ("!", Role::Warn),
        MarkKind::GrowthBegan => (if ascii { "^" } else { "▲" }, Role::Alarm),
    }
}

/// What a mark means.
pub fn mark_name(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::OutOfMemory => "out of memory",
        MarkKind::CacheEmptied => "cache emptied",
        MarkKind::Lost => "events lost",
        MarkKind::GrowthBegan => "growth began",
    }
}

/// Puts marks on the first line of `area`; the gravest wins where several fall on one column.
pub fn marks(
    buffer: &mut Buffer,
    theme: Theme,
    area: Rect,
    marks: &[SeriesMark],
    from: Time,
    to: Time,
) {
    let area = area.intersection(buffer.area);
    if area.is_empty() {
        return;
    }
    for kind in [
        MarkKind::CacheEmptied,
        MarkKind::Lost,
        MarkKind::GrowthBegan,
        MarkKind::OutOfMemory,
    ] {
        let (symbol, role) = mark_symbol(kind, theme);
        for mark in marks.iter().filter(|mark| mark.kind == kind) {
            if mark.time >= from && mark.time <= to {
                let column = position(mark.time, from, to, usize::from(area.width));
                let cell = &mut buffer[(area.x + column as u16, area.y)];
                // On an area the mark must not look like a hole.
                let ground = if cell.symbol() == "█" {
                    cell.fg
                } else {
                    cell.bg
                };
                cell.set_symbol(symbol)
                    .set_style(theme.style(role))
                    .set_bg(ground);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use vramscope_collector::view::Point;

    use super::*;

    fn series(points: &[(u64, Bytes, Bytes)]) -> Series {
        Series {
            points: points
                .iter()
                .map(|&(time, floor, allocated)| Point {
                    time: Time(time),
                    step: time,
                    allocated,
                    floor,
                    reserved: 100,
                })
                .collect(),
            marks: Vec::new(),
        }
    }

    #[test]
    fn columns_keep_extremes() {
        let series = series(&[(1, 10, 20), (2, 5, 90), (8, 30, 40)]);
        let columns = columns(&series, Time(0), Time(10), 5);
        assert_eq!(columns[0].map(|c| (c.floor, c.allocated)), Some((10, 20)));
        assert_eq!(columns[1].map(|c| (c.floor, c.allocated)), Some((5, 90)));
        assert_eq!(columns[2], columns[1], "nothing new was seen");
        assert_eq!(columns[4].map(|c| (c.floor, c.allocated)), Some((30, 40)));
    }

    #[test]
    fn a_window_starts_with_what_was_before() {
        let series = series(&[(1, 10, 20), (9, 30, 40)]);
        let window = columns(&series, Time(5), Time(10), 5);
        assert_eq!(window[0].map(|c| c.floor), Some(10));
        assert_eq!(window[4].map(|c| c.floor), Some(30));
        let early = columns(&series, Time(0), Time(10), 10);
        assert_eq!(early[0], None);
        assert!(columns(&series, Time(3), Time(3), 0).is_empty());
    }

    #[test]
    fn areas_tell_apart_without_colour() {
        let theme = Theme {
            palette: Palette::Mono,
            charset: Charset::Ascii,
            ..Theme::default()
        };
        let area = Rect::new(0, 0, 2, 4);
        let mut buffer = Buffer::empty(area);
        let column = Some(Column {
            floor: 25,
            allocated: 50,
            reserved: 75,
            step: 0,
        });
        stacked(&mut buffer, theme, area, &[column, None], 100);
        let lines: Vec<&str> = (0..4).map(|y| buffer[(0, y)].symbol()).collect();
        assert_eq!(lines, [" ", "-", "=", "#"]);
        assert_eq!(buffer[(1, 3)].symbol(), " ");
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let area = Rect::new(0, 0, 1, 2);
        let mut buffer = Buffer::empty(area);
        let column = Some(Column {
            floor: u64::MAX,
            allocated: u64::MAX,
            reserved: u64::MAX,
            step: u64::MAX,
        });
        stacked(&mut buffer, Theme::default(), area, &[column], u64::MAX);
        floor(&mut buffer, Theme::default(), area, &[column]);
        stacked(&mut buffer, Theme::default(), area, &[column], 0);
    }
}

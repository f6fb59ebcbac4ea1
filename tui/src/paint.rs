//! Drawing text: one line at a time, clipped, foreign text made safe on the way.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};
use vramscope_collector::escape;

use crate::{
    text::Charset,
    theme::{Role, Theme},
};

/// Writes along one line of the screen, from left to right.
pub struct Pen<'a> {
    buffer: &'a mut Buffer,
    theme: Theme,
    x: u16,
    y: u16,
    end: u16,
}

impl<'a> Pen<'a> {
    /// At the start of line `row` of `area`; beyond the area it writes nothing.
    pub fn new(buffer: &'a mut Buffer, theme: Theme, area: Rect, row: u16) -> Pen<'a> {
        let area = area.intersection(buffer.area);
        let inside = row < area.height;
        Pen {
            x: area.x,
            y: area.y.saturating_add(row),
            end: if inside { area.right() } else { area.x },
            buffer,
            theme,
        }
    }

    /// Columns left.
    pub fn room(&self) -> usize {
        usize::from(self.end.saturating_sub(self.x))
    }

    /// Writes our own text.
    pub fn put(&mut self, text: &str, role: Role) -> &mut Self {
        self.styled(text, self.theme.style(role))
    }

    /// Writes with a style of its own.
    pub fn styled(&mut self, text: &str, style: Style) -> &mut Self {
        if self.room() > 0 {
            let room = self.room();
            (self.x, _) = self.buffer.set_stringn(self.x, self.y, text, room, style);
        }
        self
    }

    /// Writes foreign text in at most `columns`; what is too long loses its end.
    pub fn foreign(&mut self, text: &str, columns: usize, role: Role) -> &mut Self {
        let safe = escape::line(text, columns.min(self.room()));
        self.put(&safe, role)
    }

    /// Writes a foreign path in at most `columns`; what is too long loses its beginning.
    pub fn path(&mut self, text: &str, columns: usize, role: Role) -> &mut Self {
        let safe = escape::line_end(text, columns.min(self.room()));
        self.put(&safe, role)
    }

    /// Writes in exactly `columns`, to the left.
    pub fn left(&mut self, text: &str, columns: usize, role: Role) -> &mut Self {
        let from = self.x;
        let cut = escape::line(text, columns.min(self.room()));
        self.put(&cut, role);
        self.to(from, columns)
    }

    /// Writes in exactly `columns`, to the right. A number that does not fit is not shown cut,
    /// which would be another number, but as dots.
    pub fn right(&mut self, text: &str, columns: usize, role: Role) -> &mut Self {
        let from = self.x;
        let width = escape::width(text);
        if width > columns {
            self.skip(columns.saturating_sub(2)).put("··", role);
        } else {
            self.skip(columns - width).put(text, role);
        }
        self.to(from, columns)
    }

    /// Leaves `columns` as they are.
    pub fn skip(&mut self, columns: usize) -> &mut Self {
        let columns = u16::try_from(columns).unwrap_or(u16::MAX);
        self.x = self.x.saturating_add(columns).min(self.end);
        self
    }

    /// Moves on so that `columns` have been used since `from`.
    fn to(&mut self, from: u16, columns: usize) -> &mut Self {
        let columns = u16::try_from(columns).unwrap_or(u16::MAX);
        self.x = from.saturating_add(columns).min(self.end);
        self
    }

    /// Writes at the right end of the line what fits there whole, and takes its room away.
    pub fn flush_right(&mut self, text: &str, role: Role) -> &mut Self {
        let width = escape::width(text);
        if width < self.room() {
            let at = self.end - width as u16;
            self.buffer
                .set_stringn(at, self.y, text, width, self.theme.style(role));
            self.end = at - 1;
        }
        self
    }

    /// A bar of `filled` out of `columns`, in eighths where the terminal can.
    pub fn bar(&mut self, part: f64, columns: usize, role: Role) -> &mut Self {
        let from = self.x;
        let part = if part.is_finite() {
            part.clamp(0.0, 1.0)
        } else {
            0.0
        };
        let eighths = (part * columns as f64 * 8.0).round() as usize;
        // Something is never nothing.
        let eighths = if part > 0.0 { eighths.max(1) } else { 0 };
        let (full, rest) = (eighths / 8, eighths % 8);
        let style = self.theme.style(role);
        match self.theme.charset {
            Charset::Unicode => {
                self.styled(&"█".repeat(full), style);
                if rest > 0 {
                    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
                    self.styled(PARTS[rest], style);
                }
            }
            Charset::Ascii => {
                self.styled(&"#".repeat(full.max(usize::from(rest > 0))), style);
            }
        }
        self.to(from, columns)
    }

    /// A curve in `columns`, from 0 or, where it never comes near, from its lowest value. What
    /// changes by less than one part in `noise` is drawn flat.
    pub fn sparkline(
        &mut self,
        values: &[u64],
        columns: usize,
        noise: u64,
        role: Role,
    ) -> &mut Self {
        let from = self.x;
        let columns = columns.min(self.room());
        if !values.is_empty() && columns > 0 {
            let shown: Vec<u64> = resample(values, columns);
            let low = shown.iter().copied().min().unwrap_or(0);
            let high = shown.iter().copied().max().unwrap_or(0);
            let flat = high > 0 && high - low <= high / noise;
            let base = if low > high / 2 { low } else { 0 };
            let line: String = shown
                .iter()
                .map(|value| match flat {
                    true => level(1, 7, self.theme.charset),
                    false => level(value - base, high - base, self.theme.charset),
                })
                .collect();
            self.put(&line, role);
        }
        self.to(from, columns)
    }

    /// Gives the whole line a look, over what is written; not to bars, which reversed would be
    /// holes.
    pub fn look(&mut self, area: Rect, role: Role) {
        let style = self.theme.style(role);
        for x in area.left()..area.right() {
            if let Some(cell) = self.buffer.cell_mut((x, self.y))
                && !cell.symbol().starts_with(|char| matches!(char, '▀'..='▟'))
            {
                cell.set_style(style);
            }
        }
    }
}

/// `values` at `columns` points: the highest of each share, or repeated where there are too few.
pub fn resample(values: &[u64], columns: usize) -> Vec<u64> {
    let count = values.len();
    (0..columns)
        .filter_map(|column| {
            let from = column * count / columns;
            let to = ((column + 1) * count / columns).clamp(from + 1, count.max(from + 1));
            values.get(from..to)?.iter().copied().max()
        })
        .collect()
}

/// One of eight levels.
fn level(value: u64, high: u64, charset: Charset) -> char {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const MARKS: [char; 8] = ['_', '_', '.', '.', '-', '-', '=', '#'];
    let index = if high == 0 {
        0
    } else {
        (u128::from(value) * 7).div_ceil(u128::from(high)).min(7) as usize
    };
    match charset {
        Charset::Unicode => BLOCKS[index],
        Charset::Ascii => MARKS[index],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(charset: Charset, columns: u16, paint: impl FnOnce(&mut Pen<'_>)) -> String {
        let area = Rect::new(0, 0, columns, 1);
        let mut buffer = Buffer::empty(area);
        let theme = Theme {
            charset,
            ..Theme::default()
        };
        paint(&mut Pen::new(&mut buffer, theme, area, 0));
        buffer.content.iter().map(|cell| cell.symbol()).collect()
    }

    #[test]
    fn numbers_are_never_cut() {
        let text = draw(Charset::Unicode, 12, |pen| {
            pen.right("123456", 4, Role::Text)
                .right("12", 4, Role::Text);
        });
        assert_eq!(text, "  ··  12    ");
    }

    #[test]
    fn bars_show_a_little_as_something() {
        let bar = |part| {
            draw(Charset::Unicode, 4, |pen| {
                pen.bar(part, 4, Role::Text);
            })
        };
        assert_eq!(bar(0.0), "    ");
        assert_eq!(bar(1e-9), "▏   ");
        assert_eq!(bar(0.5), "██  ");
        assert_eq!(bar(f64::NAN), "    ");
        assert_eq!(bar(7.0), "████");
    }

    #[test]
    fn curves_keep_their_peaks() {
        assert_eq!(resample(&[1, 9, 1, 1], 2), [9, 1]);
        assert_eq!(resample(&[5], 3), [5, 5, 5]);
        assert_eq!(resample(&[], 3), Vec::<u64>::new());
        let line = |values: &[u64]| {
            draw(Charset::Unicode, 3, |pen| {
                pen.sparkline(values, 3, 1000, Role::Text);
            })
        };
        assert_eq!(line(&[0, 1, 2]), "▁▅█");
        assert_eq!(line(&[1000, 1005, 1010]), "▁▅█");
        assert_eq!(line(&[1000, 1000, 1001]), "▂▂▂", "noise");
        assert_eq!(line(&[7, 7, 7]), "▂▂▂");
        assert_eq!(line(&[0, 0, 0]), "▁▁▁");
    }

    #[test]
    fn outside_the_area_nothing_is_written() {
        let area = Rect::new(0, 0, 4, 1);
        let mut buffer = Buffer::empty(area);
        Pen::new(&mut buffer, Theme::default(), area, 3).put("xxxx", Role::Text);
        Pen::new(&mut buffer, Theme::default(), Rect::new(9, 9, 4, 4), 0).put("x", Role::Text);
        assert_eq!(buffer, Buffer::empty(area));
    }
}

//! A page of text: lines with looks, scrolled as a whole.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};
use vramscope_collector::{escape, report::layout::wrap};

use crate::{
    paint::Pen,
    theme::{Role, Theme},
};

/// Lines of a given width.
pub struct Page {
    /// Columns to fit into.
    pub width: usize,
    theme: Theme,
    lines: Vec<Line<'static>>,
}

impl Page {
    /// An empty page.
    pub fn new(theme: Theme, width: usize) -> Page {
        Page {
            width,
            theme,
            lines: Vec::new(),
        }
    }

    /// An empty line, but never first and never two.
    pub fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| line.width() > 0) {
            self.lines.push(Line::default());
        }
    }

    /// A heading, after a gap.
    pub fn heading(&mut self, text: &str) {
        self.gap();
        self.line([(text.to_owned(), Role::Title)]);
    }

    /// One line of pieces, cut where the page ends. Foreign text must be safe already.
    pub fn line(&mut self, pieces: impl IntoIterator<Item = (String, Role)>) {
        let mut room = self.width;
        let mut spans = Vec::new();
        for (text, role) in pieces {
            let text = if escape::width(&text) > room {
                escape::line(&text, room)
            } else {
                text
            };
            room -= escape::width(&text).min(room);
            spans.push(Span::styled(text, self.theme.style(role)));
        }
        self.lines.push(Line::from(spans));
    }

    /// Text after `lead` in as many lines as it takes, the later ones below the first's text.
    pub fn text(&mut self, lead: &str, text: &str, role: Role) {
        let indent = escape::width(lead);
        let room = self.width.saturating_sub(indent);
        for (index, line) in wrap(text, room, 0).into_iter().enumerate() {
            let lead = if index == 0 {
                lead.to_owned()
            } else {
                " ".repeat(indent)
            };
            self.line([(lead, role), (line, role)]);
        }
    }

    /// Pieces in front of a text that takes as many lines as it needs, all to the right of them.
    pub fn hanging(&mut self, pieces: Vec<(String, Role)>, text: &str, role: Role) {
        let indent: usize = pieces.iter().map(|(text, _)| escape::width(text)).sum();
        let room = self.width.saturating_sub(indent);
        let mut lines = wrap(text, room, 0).into_iter();
        let first = (lines.next().unwrap_or_default(), role);
        self.line(pieces.into_iter().chain([first]));
        for line in lines {
            self.line([(" ".repeat(indent), role), (line, role)]);
        }
    }

    /// A name and what belongs to it, the latter wrapped in its column.
    pub fn pair(&mut self, name: &str, value: &str, role: Role) {
        const COLUMN: usize = 14;
        let room = self.width.saturating_sub(COLUMN);
        for (index, line) in wrap(value, room, 0).into_iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            self.line([(format!("{name:<COLUMN$}"), Role::Quiet), (line, role)]);
        }
    }

    /// Draws into lines with a pen, for bars and curves.
    pub fn drawn(&mut self, draw: impl FnOnce(&mut Pen<'_>)) {
        let area = Rect::new(0, 0, u16::try_from(self.width).unwrap_or(u16::MAX), 1);
        let mut buffer = Buffer::empty(area);
        draw(&mut Pen::new(&mut buffer, self.theme, area, 0));
        self.copied(&buffer);
    }

    /// Takes over what was drawn elsewhere.
    pub fn copied(&mut self, buffer: &Buffer) {
        let width = usize::from(buffer.area.width.max(1));
        for row in buffer.content.chunks(width) {
            let spans = row.iter().map(|cell| {
                let style = cell.style();
                Span::styled(cell.symbol().to_owned(), style)
            });
            self.lines.push(Line::from_iter(spans));
        }
    }

    /// How far the page can be scrolled in `height` lines.
    pub fn most_scrolled(&self, height: usize) -> usize {
        self.lines.len().saturating_sub(height)
    }

    /// Shows the page from line `scrolled` on and says how much is below.
    pub fn show(&self, buffer: &mut Buffer, area: Rect, scrolled: usize) {
        let area = area.intersection(buffer.area);
        let height = usize::from(area.height);
        let from = scrolled.min(self.most_scrolled(height));
        let more = self.lines.len() > from + height && height > 2;
        let shown = if more { height - 1 } else { height };
        for (row, line) in self.lines.iter().skip(from).take(shown).enumerate() {
            buffer.set_line(area.x, area.y + row as u16, line, area.width);
        }
        if more {
            let below = self.lines.len() - from - shown;
            Pen::new(buffer, self.theme, area, shown as u16)
                .put(&format!(" ▾ {below} more lines"), Role::Quiet);
        }
    }

    /// This page at the left and `other` at its right, as one.
    pub fn beside(self, other: Page, gap: usize) -> Page {
        let (theme, width) = (self.theme, self.width + gap + other.width);
        let column = self.width + gap;
        let count = self.lines.len().max(other.lines.len());
        let mut left = self.lines.into_iter();
        let mut right = other.lines.into_iter();
        let lines = (0..count)
            .map(|_| {
                let mut line = left.next().unwrap_or_default();
                let missing = column.saturating_sub(line.width());
                line.spans.push(Span::raw(" ".repeat(missing)));
                line.spans.extend(right.next().unwrap_or_default().spans);
                line
            })
            .collect();
        Page {
            width,
            theme,
            lines,
        }
    }

    /// Puts `other` below.
    pub fn append(&mut self, other: Page) {
        self.gap();
        self.lines.extend(other.lines);
    }
}

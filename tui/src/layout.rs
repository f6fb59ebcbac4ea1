//! Who gets which lines of the screen. What matters most goes last when there is little room:
//! the verdict stays even on five lines.

use ratatui::layout::Rect;

use crate::keys::Screen;

/// The parts of the screen; those that got no room are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Areas {
    /// Who is looked at.
    pub header: Rect,
    /// What to think of it.
    pub verdict: Rect,
    /// Curves in small.
    pub strip: Rect,
    /// The names of the views.
    pub tabs: Rect,
    /// The view.
    pub body: Rect,
    /// The equivalent command.
    pub command: Rect,
    /// Messages, the filter line, or what keys do.
    pub footer: Rect,
}

/// Shares out `screen` for a view; `strip`: whether the view wants the curves in small; `verdict`:
/// how many lines the verdict would like.
pub fn areas(screen: Rect, strip: bool, verdict: u16) -> Areas {
    let height = screen.height;
    let wide = screen.width >= 60;
    let most = match height {
        0..=7 => 1,
        8..=13 => 2,
        14..=23 => 4,
        _ => 6,
    };
    let verdict = verdict.clamp(1, most);
    let header = u16::from(height >= 6);
    let footer = u16::from(height >= 5);
    let tabs = u16::from(height >= 9);
    let command = u16::from(height >= 16);
    let fixed = header + verdict + footer + tabs + command;
    let strip = match height {
        _ if !strip || !wide => 0,
        0..=19 => 0,
        20..=29 => 2,
        30..=39 => 7,
        _ => 8,
    };
    let mut rest = screen;
    let mut take = |lines: u16| {
        let lines = lines.min(rest.height);
        let area = Rect {
            height: lines,
            ..rest
        };
        rest.y += lines;
        rest.height -= lines;
        area
    };
    let header = take(header);
    let verdict = take(verdict);
    let strip_area = take(strip);
    let tabs = take(tabs);
    let body = take(height.saturating_sub(fixed + strip));
    let command = take(command);
    let footer = take(footer);
    Areas {
        header,
        verdict,
        strip: strip_area,
        tabs,
        body,
        command,
        footer,
    }
}

/// Whether a view wants the curves in small: those that do not draw them in large, unless they are
/// covered by a site or the help.
pub fn wants_strip(screen: Screen, covered: bool) -> bool {
    !covered && matches!(screen, Screen::Sites | Screen::Tree | Screen::Log)
}

/// The first row to show so that `selected` is seen, the last screenful being full.
pub fn first_row(first: usize, selected: usize, rows: usize, height: usize) -> usize {
    let first = if selected < first {
        selected
    } else if height > 0 && selected >= first + height {
        selected + 1 - height
    } else {
        first
    };
    first.min(rows.saturating_sub(height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_given_once_at_any_size() {
        for height in 0..60 {
            for width in [0, 1, 40, 80, 200] {
                for strip in [false, true] {
                    let screen = Rect::new(0, 0, width, height);
                    let areas = areas(screen, strip, 9);
                    let all = [
                        areas.header,
                        areas.verdict,
                        areas.strip,
                        areas.tabs,
                        areas.body,
                        areas.command,
                        areas.footer,
                    ];
                    let mut next = 0;
                    for area in all {
                        assert_eq!(area.y, next, "{screen:?}");
                        next = area.bottom();
                    }
                    assert_eq!(next, height, "{screen:?}");
                    assert!(height < 2 || areas.verdict.height > 0);
                    assert!(height < 4 || areas.body.height >= 2, "{screen:?}");
                }
            }
        }
    }

    #[test]
    fn scrolls_no_more_than_needed() {
        assert_eq!(first_row(0, 3, 100, 10), 0);
        assert_eq!(first_row(0, 10, 100, 10), 1);
        assert_eq!(first_row(50, 20, 100, 10), 20);
        assert_eq!(first_row(95, 99, 100, 10), 90);
        assert_eq!(first_row(5, 0, 3, 10), 0);
        assert_eq!(first_row(5, 7, 100, 0), 5);
    }
}

//! The state on the screen. Drawing changes nothing and asks nobody: the same state gives the same
//! picture.

pub mod footer;
pub mod header;
pub mod help;
pub mod log;
pub mod memory;
pub mod processes;
pub mod site;
pub mod sites;
pub mod strip;
pub mod timeline;
pub mod tree;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{app::App, keys::Screen, page::Page, paint::Pen, text, theme::Role};

/// Draws everything.
pub fn draw(app: &App, buffer: &mut Buffer) {
    let areas = app.areas();
    header::draw(app, buffer, areas.header);
    header::draw_verdict(app, buffer, areas.verdict);
    strip::draw(app, buffer, areas.strip);
    footer::draw_tabs(app, buffer, areas.tabs);
    draw_body(app, buffer, areas.body);
    footer::draw_command(app, buffer, areas.command);
    footer::draw(app, buffer, areas.footer);
    text::gate(buffer, app.theme.charset);
}

fn draw_body(app: &App, buffer: &mut Buffer, area: Rect) {
    if app.help {
        help::page(app, usize::from(area.width)).show(buffer, area, app.help_scroll);
        return;
    }
    if let Some(page) = page(app, area) {
        page.show(buffer, area, app.scrolled());
        return;
    }
    match app.screen {
        Screen::Sites => sites::draw(app, buffer, area),
        Screen::Tree => tree::draw(app, buffer, area),
        Screen::Processes => processes::draw(app, buffer, area),
        Screen::Timeline => timeline::draw(app, buffer, area),
        Screen::Memory | Screen::Log => {}
    }
}

/// The present view, where it is a page of text.
fn page(app: &App, area: Rect) -> Option<Page> {
    let width = usize::from(area.width);
    if let Some(open) = &app.site {
        return Some(site::page(app, open, width));
    }
    match app.screen {
        Screen::Memory => Some(memory::page(app, width)),
        Screen::Log => Some(log::page(app, width)),
        _ => None,
    }
}

/// How far the present view can be scrolled.
pub fn most_scrolled(app: &App) -> usize {
    let area = app.areas().body;
    page(app, area).map_or(0, |page| page.most_scrolled(usize::from(area.height)))
}

/// Says in the middle of an empty view what is being waited for.
fn empty(app: &App, buffer: &mut Buffer, area: Rect, lines: &[&str]) {
    let top = area.height.saturating_sub(lines.len() as u16) / 2;
    for (row, line) in lines.iter().enumerate() {
        let indent = usize::from(area.width).saturating_sub(line.chars().count()) / 2;
        let role = if row == 0 { Role::Strong } else { Role::Quiet };
        let room = usize::from(area.width);
        Pen::new(buffer, app.theme, area, top + row as u16)
            .skip(indent)
            .foreign(line, room, role);
    }
}

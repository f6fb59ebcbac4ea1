//! The last lines: names of views, the equivalent command, messages, what keys do.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    widgets::{Clear, Widget},
};
use vramscope_collector::{
    escape,
    report::{layout::wrap, units},
};

use crate::{
    app::{App, Note},
    command,
    keys::{self, Screen},
    paint::Pen,
    theme::Role,
};

/// Columns for the numbers of the views and the name of one.
const SHORT_NAMES: usize = 28;

/// The names of the views, and at the right what is special about the state.
pub fn draw_tabs(app: &App, buffer: &mut Buffer, area: Rect) {
    if area.is_empty() {
        return;
    }
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    let (state, role) = state(app);
    let room = usize::from(area.width);
    let names: usize = Screen::ALL
        .iter()
        .map(|screen| screen.name().len() + 5)
        .sum();
    let wanted = if state.is_empty() {
        0
    } else {
        escape::width(&state) + 2
    };
    let short = names + wanted > room;
    if !state.is_empty() {
        let state = escape::line(&state, room.saturating_sub(SHORT_NAMES));
        pen.flush_right(&format!("{state} "), role);
    }
    for (index, screen) in Screen::ALL.into_iter().enumerate() {
        let here = screen == app.screen && !app.help;
        let text = match (short, here) {
            (true, false) => format!(" {}", index + 1),
            _ => format!(" {} {} ", index + 1, screen.name()),
        };
        let role = if here { Role::Selected } else { Role::Quiet };
        pen.put(&text, role);
        if screen == Screen::Processes && super::header::others(app).is_some() {
            pen.put("!", Role::Warn);
        }
        pen.put(if short { "" } else { " " }, Role::Text);
    }
    if short {
        pen.put(" ?", Role::Quiet);
    }
}

/// Why what is on the screen may not be what one expects.
fn state(app: &App) -> (String, Role) {
    let mut parts = Vec::new();
    let mut role = Role::Text;
    if app.frozen {
        let behind = app.latest.now.seconds_since(app.view.now);
        parts.push(match behind {
            seconds if seconds < 1.0 => "FROZEN".into(),
            seconds => format!("FROZEN {} ago", units::age(seconds)),
        });
        role = Role::Warn;
    }
    if let Some(why) = &app.ended {
        parts.push(format!("{why}: q leaves"));
        role = Role::Warn;
    }
    if let Some((first, last)) = app.span {
        let at = units::age(app.view.now.seconds_since(first));
        let playing = app.playback.filter(|playback| playback.playing);
        let speed = playing.map(|playback| format!("playing {}x, ", playback.speed));
        parts.push(format!(
            "{}at {at} of {}",
            speed.unwrap_or_default(),
            units::age(last.seconds_since(first))
        ));
    }
    if app.layer != vramscope_events::Layer::Tensor {
        parts.push("driver layer".into());
    }
    if let Some(filter) = &app.query.filter {
        parts.push(format!("/{}", filter.text()));
    }
    if let Some(mark) = &app.mark {
        parts.push(format!("mark at step {}", units::count(mark.step)));
    }
    (parts.join(" · "), role)
}

/// The headless command for what is shown.
pub fn draw_command(app: &App, buffer: &mut Buffer, area: Rect) {
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    pen.put(" $ ", Role::Quiet);
    let room = pen.room();
    pen.foreign(&command::equivalent(app, room), room, Role::Quiet);
}

/// The filter being typed, or a message, or what keys do.
pub fn draw(app: &App, buffer: &mut Buffer, area: Rect) {
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    if let Some(prompt) = &app.prompt {
        let (before, after) = prompt.parts();
        if let Some(error) = &prompt.error {
            let room = usize::from(area.width) / 2;
            pen.flush_right(&format!(" {} ", escape::line(error, room)), Role::Warn);
        } else {
            pen.flush_right("regex, !regex  enter keeps, esc leaves it ", Role::Quiet);
        }
        pen.put(" /", Role::Key);
        // The cursor stays in sight.
        let room = pen.room().saturating_sub(1);
        pen.path(before, room, Role::Text);
        let mut rest = after.chars();
        let under = rest.next().map_or_else(|| " ".to_owned(), String::from);
        pen.foreign(&under, 1, Role::Selected);
        let room = pen.room();
        pen.foreign(rest.as_str(), room, Role::Text);
        return;
    }
    match &app.note {
        Some(note) => draw_note(app, buffer, area, note),
        None => draw_hints(app, &mut pen),
    }
}

/// A message; a long one takes the line above too, so that its path is read to the end.
fn draw_note(app: &App, buffer: &mut Buffer, area: Rect, note: &Note) {
    let role = if note.failed { Role::Alarm } else { Role::Good };
    let width = usize::from(area.width).saturating_sub(2);
    let lines = wrap(&escape::text(&note.text), width, 0);
    let above = app.areas().command;
    let (area, lines) = match lines.len() {
        0 | 1 => (area, &lines[..]),
        _ if above.is_empty() => (area, &lines[lines.len() - 1..]),
        _ => {
            Clear.render(above, buffer);
            let both = Rect {
                y: above.y,
                height: 2,
                ..area
            };
            (both, &lines[..2])
        }
    };
    for (row, line) in lines.iter().enumerate() {
        Pen::new(buffer, app.theme, area, row as u16)
            .put(" ", Role::Text)
            .put(line, role);
    }
}

fn draw_hints(app: &App, pen: &mut Pen<'_>) {
    if app.help {
        pen.put(" esc", Role::Key).put(" back  ", Role::Quiet);
        pen.put("↑↓", Role::Key).put(" scroll", Role::Quiet);
        return;
    }
    // The way out is always in sight.
    pen.flush_right("? help  q quit ", Role::Quiet);
    pen.put(" ", Role::Text);
    if app.site.is_some() {
        pen.put("esc", Role::Key).put(" back  ", Role::Quiet);
    }
    for (key, word) in keys::hints(app.scope()) {
        if matches!(word, "help" | "quit") {
            continue;
        }
        if pen.room() < key.len() + word.len() + 3 {
            break;
        }
        pen.put(&key, Role::Key).put(" ", Role::Text);
        pen.put(word, Role::Quiet).put("  ", Role::Text);
    }
}

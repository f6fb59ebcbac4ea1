//! Who is looked at, and what to think of it.

use std::borrow::Cow;

use ratatui::{buffer::Buffer, layout::Rect};
use vramscope_collector::{
    escape,
    report::{layout::Tone, layout::wrap, units},
    view::{Backend, OutOfMemoryIn},
};

use crate::{
    app::{App, Severity, severity},
    paint::Pen,
    theme::Role,
};

/// One line: process, device, backend, step, losses, time since the attach.
pub fn draw(app: &App, buffer: &mut Buffer, area: Rect) {
    if area.is_empty() {
        return;
    }
    let view = &app.view;
    let mut facts: Vec<(u8, String, Role)> = Vec::new();
    if let Some(device) = app.device() {
        facts.push((4, format!("  GPU {}", device.device), Role::Text));
        let capacity = device.capacity.map(units::bytes);
        facts.extend(capacity.map(|capacity| (8, format!(" {capacity}"), Role::Text)));
    }
    facts.push((6, format!("  {}", backend_name(view.backend)), Role::Text));
    if let Some(process) = app.process() {
        let step = units::count(process.steps.count);
        facts.push((2, format!("  step {step}"), Role::Strong));
        let rate = units::rate(process.steps.rate);
        facts.extend(rate.map(|rate| (5, format!(" ({rate})"), Role::Text)));
    }
    facts.push(match view.lost.events {
        0 => (7, "  lost 0".into(), Role::Text),
        lost => (1, format!("  LOST {}", units::count(lost)), Role::Alarm),
    });
    let elapsed = units::duration(view.now.seconds_since(view.started));
    facts.push((3, format!("  {elapsed}"), Role::Text));

    let room = usize::from(area.width);
    let width = |facts: &[(u8, String, Role)]| {
        let widths = facts.iter().map(|(_, text, _)| escape::width(text));
        widths.sum::<usize>()
    };
    // The process keeps a quarter of the line; what matters least makes room.
    while facts.len() > 1 && width(&facts) + 1 + room / 4 > room {
        let least = facts.iter().map(|(rank, ..)| *rank).max();
        facts.retain(|(rank, ..)| Some(*rank) != least);
    }
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    let left = room.saturating_sub(width(&facts) + 2);
    let before = pen.room();
    if room >= 100 {
        pen.put(" vramscope ", Role::Title);
    }
    pen.put(" ", Role::Text);
    match app.process() {
        None => {
            pen.put("no process yet", Role::Quiet);
        }
        Some(process) => {
            let info = &process.info;
            pen.put(&format!("pid {}", info.pid), Role::Strong);
            if let Some(rank) = info.rank {
                pen.put(&format!(" rank {rank}"), Role::Strong);
            }
            if process.exited.is_some() {
                pen.put(" (exited)", Role::Warn);
            }
            pen.put(" ", Role::Text);
            let used = before - pen.room();
            let room = left.saturating_sub(used);
            pen.foreign(&short_command(&info.command, room), room, Role::Quiet);
        }
    }
    let used = before - pen.room();
    pen.skip((left + 1).saturating_sub(used));
    for (_, text, role) in &facts {
        pen.put(text, *role);
    }
}

/// A command line without the folders of its programs and files, if it is longer than `columns`.
fn short_command(command: &str, columns: usize) -> Cow<'_, str> {
    // What nobody will see need not be taken apart.
    let start = command.char_indices().nth(LONGEST_COMMAND);
    let command = start.map_or(command, |(end, _)| &command[..end]);
    if escape::width(command) <= columns {
        return Cow::Borrowed(command);
    }
    let words = command.split(' ').map(|word| match word.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() => name,
        _ => word,
    });
    Cow::Owned(words.collect::<Vec<_>>().join(" "))
}

/// Characters of a command line that are looked at.
const LONGEST_COMMAND: usize = 2000;

/// The verdict: class and growth; the line that explains most; what to do.
pub fn draw_verdict(app: &App, buffer: &mut Buffer, area: Rect) {
    let lines = verdict_lines(app, usize::from(area.width));
    for (row, pieces) in lines.iter().take(usize::from(area.height)).enumerate() {
        let mut pen = Pen::new(buffer, app.theme, area, row as u16);
        if row == 0
            && let Some(other) = others(app)
        {
            let used: usize = pieces.iter().map(|(text, _)| escape::width(text)).sum();
            // Where it does not fit the tab of the processes says it.
            if used + escape::width(&other) + 3 <= pen.room() {
                pen.flush_right(&format!("{other} "), Role::Warn);
            }
        }
        for (text, role) in pieces {
            let room = pen.room();
            pen.foreign(text, room, *role);
        }
    }
}

/// Columns before the later lines of the verdict.
const INDENT: usize = 3;

/// The lines of the verdict, the most important first; as many as it takes.
pub fn verdict_lines(app: &App, width: usize) -> Vec<Vec<(String, Role)>> {
    let headline = app.headline();
    let role = tone_role(headline.tone);
    let first = format!(" {} {}  ", symbol(headline.tone), headline.word);
    let room = width.saturating_sub(INDENT);
    let mut lines = Vec::new();
    // The first line is shorter than the others by the class.
    let used = escape::width(&first).saturating_sub(INDENT);
    let facts = match short_facts(app).filter(|_| width < 60) {
        Some(short) => vec![short],
        None => wrap(
            &format!("{}{}", "\u{a0}".repeat(used), headline.facts),
            room,
            0,
        ),
    };
    for (row, text) in facts.into_iter().enumerate() {
        let text = text.replace('\u{a0}', "");
        lines.push(match row {
            0 => vec![(first.clone(), role), (text, Role::Strong)],
            _ => vec![(" ".repeat(INDENT), role), (text, Role::Strong)],
        });
    }
    if let Some(culprit) = &headline.culprit {
        let share = headline.share.clone().unwrap_or_default();
        let culprit_width = escape::width(culprit);
        let mut line = vec![
            (" ".repeat(INDENT), Role::Text),
            (culprit.clone(), Role::Code),
        ];
        if culprit_width + escape::width(&share) + 2 <= room {
            line.push((format!("  {share}"), Role::Text));
            lines.push(line);
        } else {
            lines.push(line);
            // Its end says who holds the memory.
            lines.extend(
                wrap(&share, room, 0)
                    .into_iter()
                    .map(|text| vec![(" ".repeat(INDENT), Role::Text), (text, Role::Text)]),
            );
        }
    }
    if !headline.advice.is_empty() {
        let advice = wrap(&headline.advice, room.saturating_sub(2), 0);
        for (row, text) in advice.into_iter().enumerate() {
            let lead = if row == 0 { "→ " } else { "  " };
            lines.push(vec![
                (format!("{:INDENT$}{lead}", ""), Role::Text),
                (text, Role::Text),
            ]);
        }
    }
    lines
}

/// Growth and time left, for little room.
fn short_facts(app: &App) -> Option<String> {
    let verdict = app.device()?.verdict.as_ref()?;
    let growth = units::growth(verdict.growth_bytes_per_step);
    let left = match &verdict.out_of_memory {
        Some(OutOfMemoryIn {
            seconds: Some(seconds),
            ..
        }) => format!(", OOM {}", units::duration(*seconds)),
        _ => String::new(),
    };
    (verdict.growth_bytes_per_step.abs() >= 0.5).then(|| format!("{growth}{left}"))
}

/// How many other devices need a look.
pub fn others(app: &App) -> Option<String> {
    let own = app.device().map(severity);
    let bad = app
        .devices()
        .filter(|(_, device)| severity(device) >= Severity::Watch)
        .count();
    let own = usize::from(own.is_some_and(|own| own >= Severity::Watch));
    let all = app.devices().count();
    (bad > own).then(|| format!("{bad} of {all} devices need a look: press 5"))
}

/// A sign that tells a tone without colour.
pub fn symbol(tone: Tone) -> &'static str {
    match tone {
        Tone::Bad => "▲",
        Tone::Watch => "!",
        Tone::Good => "✓",
        Tone::Strong | Tone::Faint | Tone::Plain => "·",
    }
}

/// The look of a tone.
pub fn tone_role(tone: Tone) -> Role {
    match tone {
        Tone::Bad => Role::Alarm,
        Tone::Watch => Role::Warn,
        Tone::Good => Role::Good,
        Tone::Strong => Role::Strong,
        Tone::Faint => Role::Quiet,
        Tone::Plain => Role::Text,
    }
}

fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Ebpf => "eBPF",
        Backend::Injection => "injected",
        Backend::Recording => "recording",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_lose_their_folders() {
        let command = "/opt/venv/bin/python -u /home/mira/run/train.py --lr 0.1";
        assert_eq!(short_command(command, 80), command);
        assert_eq!(short_command(command, 40), "python -u train.py --lr 0.1");
        assert_eq!(short_command("/a/b/", 2), "/a/b/");
    }
}

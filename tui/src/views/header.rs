//! Who is looked at, and what to think of it.

use ratatui::{buffer::Buffer, layout::Rect};
use vramscope_collector::{
    escape,
    report::{headline::Headline, layout::Tone, layout::wrap, units},
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
        let capacity = device.capacity.map(|bytes| format!(" {}", units::bytes(bytes)));
        facts.push((4, format!("GPU {}{}", device.device, capacity.unwrap_or_default()), Role::Text));
    }
    facts.push((6, backend_name(view.backend).into(), Role::Text));
    if let Some(process) = app.process() {
        let rate = units::rate(process.steps.rate).map(|rate| format!(" ({rate})"));
        let step = units::count(process.steps.count);
        facts.push((2, format!("step {step}"), Role::Strong));
        if let Some(rate) = rate {
            facts.push((5, rate.trim_start().to_owned(), Role::Text));
        }
    }
    facts.push(match view.lost.events {
        0 => (7, "lost 0".into(), Role::Text),
        lost => (1, format!("LOST {}", units::count(lost)), Role::Alarm),
    });
    let elapsed = units::duration(view.now.seconds_since(view.started));
    facts.push((3, elapsed, Role::Text));

    let room = usize::from(area.width);
    let width = |facts: &[(u8, String, Role)]| {
        let widths = facts.iter().map(|(_, text, _)| escape::width(text) + 2);
        widths.sum::<usize>()
    };
    // The process keeps a third of the line; what matters least makes room.
    while facts.len() > 1 && width(&facts) + room / 3 > room {
        let least = facts.iter().map(|(rank, ..)| *rank).max();
        facts.retain(|(rank, ..)| Some(*rank) != least);
    }
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    let left = room.saturating_sub(width(&facts) + 1);
    let before = pen.room();
    if room >= 70 {
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
            pen.foreign(&info.command, left.saturating_sub(used), Role::Quiet);
        }
    }
    let used = before - pen.room();
    pen.skip((left + 1).saturating_sub(used));
    for (_, text, role) in &facts {
        pen.put("  ", Role::Text).put(text, *role);
    }
}

/// The verdict: class and growth; the line that explains most; what to do.
pub fn draw_verdict(app: &App, buffer: &mut Buffer, area: Rect) {
    if area.is_empty() {
        return;
    }
    let headline = app.headline();
    let mut pen = Pen::new(buffer, app.theme, area, 0);
    let role = tone_role(headline.tone);
    pen.put(" ", role).put(symbol(headline.tone), role).put(" ", role);
    pen.put(headline.word, role);
    if let Some(other) = others(app).filter(|_| area.width >= 100) {
        pen.flush_right(&format!("{other} "), Role::Warn);
    }
    pen.put("  ", Role::Text);
    let room = pen.room();
    let mut rest = Vec::new();
    if escape::width(&headline.facts) <= room {
        pen.put(&headline.facts, Role::Strong);
    } else if let Some(short) = short_facts(app).filter(|_| area.width < 60) {
        pen.foreign(&short, room, Role::Strong);
    } else {
        // The first line is shorter than the others by the class.
        let lines = wrap(&headline.facts, room, 0);
        pen.put(lines.first().map_or("", String::as_str), Role::Strong);
        let after = lines.get(1..).unwrap_or_default().join(" ");
        rest = wrap(&after, usize::from(area.width).saturating_sub(3), 0);
    }
    let mut row = 1;
    // At most one more line of facts: the culprit must stay.
    if let Some(line) = rest.first().filter(|_| area.height > 2) {
        Pen::new(buffer, app.theme, area, row).skip(3).put(line, Role::Strong);
        row += 1;
    }
    for (text, note, role) in below(headline) {
        if row >= area.height {
            break;
        }
        let mut pen = Pen::new(buffer, app.theme, area, row);
        pen.skip(3);
        let room = pen.room();
        pen.foreign(&text, room, role);
        if let Some(note) = note
            && pen.room() > 12
        {
            let room = pen.room() - 2;
            pen.put("  ", Role::Text).foreign(&note, room, Role::Text);
        }
        row += 1;
    }
}

/// What follows the first line.
fn below(headline: &Headline) -> Vec<(String, Option<String>, Role)> {
    let mut out = Vec::new();
    if let Some(culprit) = &headline.culprit {
        out.push((culprit.clone(), headline.share.clone(), Role::Code));
    }
    if !headline.advice.is_empty() {
        out.push((format!("→ {}", headline.advice), None, Role::Text));
    }
    out
}

/// Growth and time left, for little room.
fn short_facts(app: &App) -> Option<String> {
    let verdict = app.device()?.verdict.as_ref()?;
    let growth = units::growth(verdict.growth_bytes_per_step);
    let left = match &verdict.out_of_memory {
        Some(OutOfMemoryIn {
            seconds: Some(seconds),
            ..
        }) => format!(" OOM {}", units::duration(*seconds)),
        _ => String::new(),
    };
    (verdict.growth_bytes_per_step.abs() >= 0.5).then(|| format!("{growth}{left}"))
}

/// How many other devices need a look.
fn others(app: &App) -> Option<String> {
    let own = app.device().map(severity);
    let bad = app
        .devices()
        .filter(|(_, device)| severity(device) >= Severity::Watch)
        .count();
    let own = usize::from(own.is_some_and(|own| own >= Severity::Watch));
    let all = app.devices().count();
    (all > 1 && bad > own).then(|| format!("{} of {all} devices need a look: press 5", bad))
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

//! What happened, the newest first, and which probes are in place.

use vramscope_collector::{
    escape,
    report::units,
    view::{LogLevel, ProbeState},
};

use crate::{app::App, page::Page, theme::Role};

/// Columns of a message that are shown; more is a joke of somebody's.
const LONGEST: usize = 1000;

/// Both as one page.
pub fn page(app: &App, width: usize) -> Page {
    let mut page = Page::new(app.theme, width);
    let view = &app.view;
    let many = view.processes.len() > 1;
    if view.log.is_empty() {
        page.text(
            " ",
            "Nothing to report yet: out-of-memory errors, emptied caches, losses and exits will \
             be here.",
            Role::Quiet,
        );
    }
    for entry in view.log.iter().rev() {
        let (sign, role) = match entry.level {
            LogLevel::Info => ("·", Role::Text),
            LogLevel::Warning => ("!", Role::Warn),
            LogLevel::Error => ("✖", Role::Alarm),
        };
        let time = match entry.time.seconds_since(view.started) {
            seconds if seconds < 1.0 => "0 s".into(),
            seconds => units::duration(seconds),
        };
        let step = entry
            .step
            .map(|step| format!("step {}", units::count(step)));
        let mut pieces = vec![
            (format!(" {sign} "), role),
            (format!("{time:>12}  "), Role::Quiet),
        ];
        if width >= 60 {
            pieces.push((format!("{:<12}", step.unwrap_or_default()), Role::Quiet));
        }
        if many {
            pieces.push((format!("{:<8}", entry.process.0), Role::Quiet));
        }
        page.hanging(pieces, &escape::line(&entry.text, LONGEST), role);
    }
    page.heading(" Losses");
    for note in vramscope_collector::report::notes::of_view(view)
        .iter()
        .take(1)
    {
        let role = if view.lost.events == 0 {
            Role::Text
        } else {
            Role::Alarm
        };
        page.text(" ", note, role);
    }
    page.heading(" Probes");
    for probe in &view.probes {
        let name = escape::line(&probe.name, 60);
        let (sign, role, words) = match &probe.state {
            ProbeState::Attached => ("✓", Role::Good, escape::line(&probe.cost_note, 300)),
            ProbeState::Absent { consequence } => {
                let words = format!("absent: {}", escape::line(consequence, 300));
                ("·", Role::Warn, words)
            }
            ProbeState::Failed { reason } => {
                let words = format!("FAILED: {}", escape::line(reason, 300));
                ("✖", Role::Alarm, words)
            }
        };
        let pieces = vec![(format!(" {sign} "), role)];
        page.hanging(pieces, &format!("{name}: {words}"), Role::Text);
    }
    page
}

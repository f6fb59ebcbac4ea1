//! The command line that tells what is on the screen, for scripts and for bug reports.

use std::borrow::Cow;

use vramscope_collector::{
    escape,
    view::{FrameView, Grouping},
};

use vramscope_events::Layer;

use crate::{
    app::{App, Source},
    ask,
    keys::Screen,
};

/// The headless command for what is shown; the most exact one that fits `columns`.
pub fn equivalent(app: &App, columns: usize) -> String {
    let subject = subject(&app.source);
    let report = format!("vramscope report {subject}");
    let by = grouping_name(app.query.grouping);
    if let Some(open) = &app.site {
        let asked = open.site.retained.is_some() || ask::state(app).is_some();
        return match (asked, &app.source, place(open.site.own_frame())) {
            (true, Source::Process(pid), Some((file, line))) => {
                format!("vramscope holders {pid} --line {file}:{line}")
            }
            _ => site(&report, open.site.own_frame(), columns),
        };
    }
    match (app.screen, &app.source) {
        (Screen::Sites, _) if app.layer == Layer::Driver => {
            format!("{report} --format json | jq '.devices[].driver'")
        }
        (Screen::Sites, _) => {
            let unfiltered = app.query.filter.as_ref().map(|_| "  # without the filter");
            let top = top(app);
            format!(
                "{report} --group {by} --top {top}{}",
                unfiltered.unwrap_or_default()
            )
        }
        (Screen::Tree, _) => format!("vramscope flamegraph {subject}"),
        (Screen::Memory, _) => format!("{report} --format json | jq '.devices[].buckets'"),
        (Screen::Timeline, Source::Process(_)) => format!("vramscope attach {subject} --headless"),
        (Screen::Timeline, Source::File(_)) => format!("{report} --format json"),
        (Screen::Processes, _) => report,
        (Screen::Log, _) => format!("{report} --format json | jq '.log, .probes'"),
    }
}

/// A frame's file and line, where a shell reads them as they are.
fn place(frame: Option<&FrameView>) -> Option<(&str, u32)> {
    let frame = frame?;
    let file = frame.file.rsplit('/').next()?;
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    let clear = frame.line > 0 && file.len() <= 60 && file.chars().all(plain);
    clear.then_some((file, frame.line))
}

/// One site. Its number means nothing in another session, its place does.
fn site(report: &str, frame: Option<&FrameView>, columns: usize) -> String {
    let Some((file, line)) = place(frame) else {
        return format!("{report} --group stack");
    };
    let json = format!("{report} --format json");
    let filter = format!("{json} | jq '.devices[].sites[]|select(.line=={line}");
    let commands = [
        format!("{filter} and (.file|endswith(\"{file}\")))'"),
        format!("{filter})'"),
        json,
    ];
    // A command that is cut is none.
    let fits = |command: &String| command.len() <= columns;
    commands.into_iter().find(fits).unwrap_or_default()
}

/// The process or file as a shell reads it; safe to print.
fn subject(source: &Source) -> String {
    match source {
        Source::Process(pid) => pid.to_string(),
        Source::File(path) => {
            let text = path.to_string_lossy();
            quoted(&escape::text(&text)).into_owned()
        }
    }
}

fn quoted(text: &str) -> Cow<'_, str> {
    let plain = |char: char| char.is_alphanumeric() || "-_./:@%+=,".contains(char);
    if !text.is_empty() && text.chars().all(plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

/// A grouping as `--group` names it.
pub fn grouping_name(grouping: Grouping) -> &'static str {
    match grouping {
        Grouping::Stack => "stack",
        Grouping::Line => "line",
        Grouping::Function => "function",
        Grouping::Module => "module",
    }
}

/// As many rows as the user has seen, in tens.
fn top(app: &App) -> usize {
    (app.first + app.table_height())
        .max(10)
        .next_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_the_shell() {
        let file = |path: &str| subject(&Source::File(path.into()));
        assert_eq!(file("run.vrs"), "run.vrs");
        assert_eq!(file("my run.vrs"), "'my run.vrs'");
        assert_eq!(file("it's"), r"'it'\''s'");
        assert_eq!(file("$(x)\x1b[0m"), r"'$(x)\x1b[0m'");
    }
}

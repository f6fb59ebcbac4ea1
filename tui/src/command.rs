//! The command line that tells what is on the screen, for scripts and for bug reports.

use std::borrow::Cow;

use vramscope_collector::{escape, view::Grouping};

use crate::{
    app::{App, Source},
    keys::Screen,
};

/// The headless command for what is shown.
pub fn equivalent(app: &App) -> String {
    let subject = subject(&app.source);
    let by = grouping_name(app.query.grouping);
    if let Some(open) = &app.site {
        return format!("vramscope report {subject} --json | jq '.. | select(.id? == {})'", open.site.id.0);
    }
    match app.screen {
        Screen::Sites => format!("vramscope report {subject} --by {by} --top {}", top(app)),
        Screen::Tree => format!("vramscope flamegraph {subject}"),
        Screen::Memory | Screen::Processes | Screen::Log => format!("vramscope report {subject}"),
        Screen::Timeline => format!("vramscope report {subject} --json"),
    }
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

/// A grouping as `--by` names it.
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
    (app.first + app.table_height()).max(10).next_multiple_of(10)
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

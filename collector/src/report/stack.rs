//! The calls that lead to an allocation, outermost first, as Python prints a traceback.

use vramscope_events::FrameKind;

use super::{
    layout::{Color, Tone, left},
    paths,
};
use crate::{
    escape,
    view::{FrameView, ProcessView, SiteView},
};

/// Frames shown at the outer and at the inner end of a long stack.
const OUTER: usize = 16;
const INNER: usize = 24;
/// Of the machine code between the innermost line of Python and the allocation, the outermost
/// frames: they name the operator. The rest is the way through the allocator.
const OPERATOR: usize = 4;

/// One row of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row<'a> {
    /// A frame.
    Frame {
        /// It.
        frame: &'a FrameView,
        /// Whether it names the site.
        own: bool,
    },
    /// So many frames are not shown.
    Gap(usize),
}

/// The frames of a site, outermost first. Of a stack that is very deep (a recursion) both ends,
/// and always the frame that names the site; of the machine code below Python its beginning.
pub fn rows(site: &SiteView) -> Vec<Row<'_>> {
    let depth = site.stack.len();
    let native = site
        .stack
        .iter()
        .take_while(|frame| frame.kind == FrameKind::Native)
        .count();
    let hidden = if native < depth {
        native.saturating_sub(OPERATOR)
    } else {
        0
    };
    let shown = |index: usize| {
        if index < hidden {
            return false;
        }
        depth - hidden <= OUTER + INNER + 1
            || index < hidden + INNER
            || index >= depth - OUTER
            || site.user_frame == Some(index)
    };
    let mut out = Vec::new();
    for (index, frame) in site.stack.iter().enumerate().rev() {
        if shown(index) {
            out.push(Row::Frame {
                frame,
                own: site.user_frame == Some(index),
            });
        } else if let Some(Row::Gap(frames)) = out.last_mut() {
            *frames += 1;
        } else {
            out.push(Row::Gap(1));
        }
    }
    out
}

/// Where a frame is and what it is called: safe, each at most `columns` wide.
pub fn cells(frame: &FrameView, process: &ProcessView, columns: usize) -> (String, String) {
    let function = escape::line(&frame.function, columns);
    match frame.kind {
        FrameKind::Backward => ("[backward]".into(), String::new()),
        _ => (paths::place(frame, &process.info, columns), function),
    }
}

/// The rows as text: the user's frames with their source, the one that names the site marked and
/// underlined. None is wider than `width`.
pub fn lines(site: &SiteView, process: &ProcessView, width: usize, color: Color) -> Vec<String> {
    let rows = rows(site);
    let texts: Vec<(String, String)> = rows
        .iter()
        .map(|row| match row {
            Row::Frame { frame, .. } => cells(frame, process, width / 2),
            Row::Gap(frames) => (format!("... {frames} more calls"), String::new()),
        })
        .collect();
    let column = texts.iter().map(|(place, _)| escape::width(place)).max();
    let column = column.unwrap_or(0);
    let mut out = Vec::new();
    for (row, (place, function)) in rows.iter().zip(&texts) {
        let (own, frame) = match row {
            Row::Frame { frame, own } => (*own, Some(*frame)),
            Row::Gap(_) => (false, None),
        };
        let mark = if own { "> " } else { "  " };
        let function = escape::line(function, width.saturating_sub(column + 4));
        let line = format!("{mark}{}  {function}", left(place, column));
        let user = frame.filter(|frame| frame.user);
        let tone = match (own, user) {
            (true, _) => Tone::Strong,
            (false, Some(_)) => Tone::Plain,
            (false, None) => Tone::Faint,
        };
        out.push(color.paint(tone, line.trim_end()));
        if let Some(source) = user.and_then(|frame| frame.source.as_ref()) {
            let source = escape::line(source, width - 6);
            out.push(format!("      {source}"));
            if own {
                let carets = "^".repeat(escape::width(&source));
                out.push(format!("      {}", color.paint(Tone::Bad, &carets)));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fixture;

    #[test]
    fn of_machine_code_the_operator_is_shown() {
        let view = fixture::leak();
        let mut site = view.processes[0].devices[0].sites[0].clone();
        let python = site.stack.to_vec();
        let native = FrameView {
            kind: FrameKind::Native,
            ..(*python[0]).clone()
        };
        let native = Arc::new(native);
        let mut stack: Vec<_> = std::iter::repeat_n(native, 20).collect();
        stack.extend(python.iter().cloned());
        site.stack = stack.into();
        site.user_frame = site.user_frame.map(|index| index + 20);
        let rows = rows(&site);
        assert_eq!(rows.len(), python.len() + OPERATOR + 1);
        assert_eq!(rows.last(), Some(&Row::Gap(20 - OPERATOR)));
    }

    #[test]
    fn a_deep_recursion_shows_its_ends_and_the_users_frame() {
        let view = fixture::leak();
        let process = &view.processes[0];
        let mut site = process.devices[0].sites[0].clone();
        let own = site.user_frame.expect("a user frame");
        let mut stack = vec![Arc::clone(&site.stack[0]); 1000];
        stack[500] = Arc::clone(&site.stack[own]);
        site.stack = stack.into();
        site.user_frame = Some(500);
        let rows = rows(&site);
        assert_eq!(rows.len(), OUTER + INNER + 1 + 2);
        assert_eq!(rows[OUTER], Row::Gap(1000 - OUTER - 501));
        assert!(matches!(rows[OUTER + 1], Row::Frame { own: true, .. }));
        assert_eq!(rows[OUTER + 2], Row::Gap(500 - INNER));
        let lines = lines(&site, process, 80, Color::Never);
        assert!(lines.iter().any(|line| line.starts_with("> train.py:27")));
        assert!(lines.iter().any(|line| line.contains("^^^^")));
        assert!(lines.contains(&"  ... 483 more calls".to_owned()));
    }
}

//! Snapshots of the reports on the fixed views, and what must hold for hostile ones.

use super::{
    Options,
    layout::Color,
    text::{self, Layout},
};
use crate::{escape, fixture, view::View};

fn views() -> Vec<(&'static str, View)> {
    vec![
        ("leak", fixture::leak()),
        ("healthy", fixture::healthy()),
        ("growing", fixture::growing()),
        ("no_verdict_yet", fixture::no_verdict_yet()),
        ("nothing_yet", fixture::nothing_yet()),
        ("lost_events", fixture::lost_events()),
        ("four_ranks", fixture::four_ranks()),
        ("hostile", fixture::hostile()),
    ]
}

fn plain(view: &View, width: usize) -> String {
    let layout = Layout {
        width,
        color: Color::Never,
    };
    text::report(view, Options::default(), layout)
}

#[test]
fn text_snapshots() {
    for (name, view) in views() {
        for width in [80, 120] {
            insta::assert_snapshot!(format!("text_{name}_{width}"), plain(&view, width));
        }
    }
}

#[test]
fn text_fits_and_is_printable() {
    for (name, view) in views() {
        for width in [60, 80, 97, 120, 200] {
            for line in plain(&view, width).lines() {
                assert!(
                    escape::width(line) <= width,
                    "{name} at {width}: {} columns: {line}",
                    escape::width(line)
                );
                assert!(line.chars().all(escape::printable), "{name}: {line:?}");
            }
        }
    }
}

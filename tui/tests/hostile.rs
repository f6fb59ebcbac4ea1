//! Whoever runs code in the traced process chooses names; none may reach the terminal as anything
//! but what is seen, and none may break the picture.

mod common;

use std::sync::Arc;

use common::{screen, text};
use ratatui::buffer::Buffer;
use vramscope_collector::{
    escape, fixture,
    view::{LogEntry, LogLevel, ProcessInfo, View},
};
use vramscope_events::{Pid, Time};
use vramscope_tui::{Charset, Depth, Palette, Theme};

const EVERY_VIEW: [&str; 12] = [
    "1",
    "2",
    "2b",
    "3",
    "4",
    "5",
    "6",
    "<enter>",
    "?",
    "g",
    "ggg",
    "/\u{202e}x\u{200b}",
];

fn themes() -> impl Iterator<Item = Theme> {
    [Charset::Unicode, Charset::Ascii]
        .into_iter()
        .map(|charset| Theme {
            palette: Palette::Dark,
            depth: Depth::Many,
            charset,
        })
}

fn assert_harmless(buffer: &Buffer, charset: Charset) {
    for cell in &buffer.content {
        let symbol = cell.symbol();
        assert!(symbol.chars().all(escape::printable), "{symbol:?}");
        assert!(
            charset == Charset::Unicode || symbol.is_ascii(),
            "{symbol:?}"
        );
    }
}

/// A view in which every foreign text is `name`.
fn all_named(name: &str) -> View {
    let mut view = fixture::four_ranks();
    view.log.push(LogEntry {
        time: Time(view.now.0),
        step: Some(7),
        process: Pid(5202),
        level: LogLevel::Error,
        text: name.to_owned(),
    });
    view.probes[0].name = name.to_owned();
    view.probes[0].cost_note = name.to_owned();
    for process in &mut view.processes {
        process.info = Arc::new(ProcessInfo {
            command: name.to_owned(),
            python: Some(name.to_owned()),
            torch: Some(name.to_owned()),
            directory: Some(name.into()),
            ..(*process.info).clone()
        });
        let device = &mut process.devices[0];
        for bucket in &mut device.buckets {
            bucket.name = name.to_owned();
        }
        if let Some(verdict) = &mut device.verdict {
            verdict.summary = name.to_owned();
            verdict.advice = name.to_owned();
            verdict.evidence = vec![name.to_owned()];
        }
        let mut sites = device.sites.to_vec();
        for site in &mut sites {
            let stack = site.stack.iter().map(|frame| {
                let mut frame = (**frame).clone();
                frame.file = name.into();
                frame.function = name.into();
                frame.source = Some(name.into());
                Arc::new(frame)
            });
            site.stack = stack.collect();
        }
        device.sites = sites.into();
    }
    view
}

#[test]
fn nothing_foreign_is_obeyed() {
    for theme in themes() {
        for keys in EVERY_VIEW {
            let buffer = screen(fixture::hostile(), keys, (100, 30), theme);
            assert_harmless(&buffer, theme.charset);
        }
    }
    let long = "长".repeat(3500);
    let names = [
        "\x1b]0;owned\x07\x1b[2J",
        "\u{202e}\u{2066}\u{200f}",
        "a\u{200b}\u{200d}\u{feff}b",
        "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
        "👩\u{200d}👩\u{200d}👧\u{200d}👦",
        "\r\n\t\0\u{7f}\u{85}\u{9b}",
        "",
        " ",
        &long,
    ];
    for name in names {
        for theme in themes() {
            for keys in EVERY_VIEW {
                let buffer = screen(all_named(name), keys, (80, 24), theme);
                assert_harmless(&buffer, theme.charset);
            }
        }
    }
}

/// What is drawn stays in its own line: the frame of the screen is where it is without the names.
#[test]
fn names_do_not_move_the_frame() {
    let theme = themes().next().expect("there are themes");
    for name in ["\n\n\n", "长长长长长长长长长长长长长长长", "\u{202e}abc"] {
        let picture = text(&screen(all_named(name), "", (80, 24), theme));
        let lines: Vec<&str> = picture.lines().collect();
        assert_eq!(lines.len(), 24);
        assert!(lines[23].ends_with("? help  q quit"), "{picture}");
        assert!(lines[22].starts_with(" $ vramscope report"), "{picture}");
        assert!(picture.contains(" 1 sites "), "{picture}");
    }
}

#[test]
fn the_text_is_still_readable() {
    let theme = themes().next().expect("there are themes");
    insta::assert_snapshot!(
        "hostile_sites",
        text(&screen(fixture::hostile(), "", (120, 40), theme))
    );
    insta::assert_snapshot!(
        "hostile_site",
        text(&screen(fixture::hostile(), "jj<enter>", (120, 40), theme))
    );
}

/// Any size, any view, any story: no panic, nothing outside the screen.
#[test]
fn any_size_will_do() {
    let theme = themes().next().expect("there are themes");
    let stories = [
        fixture::leak(),
        fixture::nothing_yet(),
        fixture::four_ranks(),
        fixture::hostile(),
    ];
    for story in stories {
        for columns in [0, 1, 2, 9, 24, 40, 61, 110, 300] {
            for lines in [0, 1, 2, 3, 4, 6, 9, 15, 20, 31, 60] {
                for keys in [
                    "", "2", "2b", "3", "4", "5", "6", "<enter>", "?", "m", "/x(",
                ] {
                    let buffer = screen(story.clone(), keys, (columns, lines), theme);
                    assert_harmless(&buffer, theme.charset);
                }
            }
        }
    }
}

#[test]
fn moving_about_never_leaves_the_rows() {
    let theme = themes().next().expect("there are themes");
    let keys = "<end>jjjj<pgdn>g<pgdn>s<up><home>kk/27<enter>jj<enter>nnNN<pgdn><end><esc><esc>\
                2jjje<right><right>l<end><pgdn>h<left>h<left>b<end>e3jj<end>k4zzz5jjjj<enter>\
                6<end>kkk?<end><pgup>?tt<enter><esc>mMppPd  ]}[{rrq";
    for size in [(120, 40), (80, 24), (40, 10), (20, 5)] {
        for story in [fixture::leak, fixture::nothing_yet, fixture::four_ranks] {
            let buffer = screen(story(), keys, size, theme);
            assert_harmless(&buffer, theme.charset);
        }
    }
}

//! Every view from fixed state, at three sizes, with and without colour.

mod common;

use common::{screen, text, with_looks};
use vramscope_collector::{fixture, view::View};
use vramscope_tui::{Charset, Depth, Palette, Theme};

const SIZES: [(u16, u16); 3] = [(120, 40), (80, 24), (40, 10)];

const COLOUR: Theme = Theme {
    palette: Palette::Dark,
    depth: Depth::Many,
    charset: Charset::Unicode,
};
const MONO: Theme = Theme {
    palette: Palette::Mono,
    depth: Depth::Many,
    charset: Charset::Unicode,
};
const PLAIN: Theme = Theme {
    palette: Palette::Mono,
    depth: Depth::Sixteen,
    charset: Charset::Ascii,
};

/// Pictures of one view at every size in both looks.
fn pictures(name: &str, view: fn() -> View, keys: &str) {
    for size in SIZES {
        let (columns, lines) = size;
        for (look, theme) in [("colour", COLOUR), ("mono", MONO)] {
            let picture = with_looks(&screen(view(), keys, size, theme));
            insta::assert_snapshot!(format!("{name}_{columns}x{lines}_{look}"), picture);
        }
    }
}

#[test]
fn sites() {
    pictures("sites", fixture::leak, "j");
}

#[test]
fn tree() {
    pictures("tree", fixture::leak, "2j");
}

#[test]
fn one_site() {
    pictures("site", fixture::leak, "<enter>");
}

#[test]
fn who_holds_a_site() {
    pictures("holders", fixture::asked, "<enter>");
}

#[test]
fn memory() {
    pictures("memory", fixture::leak, "3");
}

#[test]
fn timeline() {
    pictures("timeline", fixture::leak, "4");
}

#[test]
fn processes() {
    pictures("processes", fixture::four_ranks, "5");
}

#[test]
fn log() {
    pictures("log", fixture::lost_events, "6");
}

#[test]
fn help() {
    pictures("help", fixture::leak, "?");
}

/// States other than a leak, as text.
#[test]
fn other_states() {
    type Story = (&'static str, fn() -> View);
    let stories: [Story; 6] = [
        ("healthy", fixture::healthy),
        ("growing", fixture::growing),
        ("no_verdict_yet", fixture::no_verdict_yet),
        ("nothing_yet", fixture::nothing_yet),
        ("lost_events", fixture::lost_events),
        ("four_ranks", fixture::four_ranks),
    ];
    for (name, view) in stories {
        let picture = text(&screen(view(), "", (80, 24), COLOUR));
        insta::assert_snapshot!(format!("state_{name}"), picture);
    }
}

/// Rank 2 leaks while the user looks at rank 0: the screen says so.
#[test]
fn other_ranks_are_not_forgotten() {
    let healthy = "5j<enter>";
    let wide = text(&screen(fixture::four_ranks(), healthy, (120, 40), COLOUR));
    assert!(
        wide.contains("1 of 4 devices need a look: press 5"),
        "{wide}"
    );
    let narrow = text(&screen(fixture::four_ranks(), healthy, (80, 24), COLOUR));
    assert!(narrow.contains("HEALTHY"), "{narrow}");
    assert!(narrow.contains("5 processes !"), "{narrow}");
}

/// The verdict's line is as long as the holder's name, which stands at its end.
#[test]
fn a_long_holder_is_named_to_its_end() {
    let mut view = fixture::asked();
    let verdict = view.processes[0].devices[0].verdict.as_mut().expect("one");
    verdict.retained_by = Some(
        "the autograd graph behind `__main__.trainer.callbacks['validation'].smoothed_loss`".into(),
    );
    for size in [(120, 40), (80, 24)] {
        let picture = text(&screen(view.clone(), "", size, COLOUR));
        assert!(picture.contains(".smoothed_loss`"), "{picture}");
    }
}

/// Before anything has come every view says what it waits for.
#[test]
fn empty_views_say_what_they_wait_for() {
    for (key, words) in [
        ("1", "waiting for the first allocation"),
        ("2", "stacks appear when the process allocates"),
        ("3", "Waiting for the first allocation"),
        ("4", "waiting for the first allocation"),
        ("5", "waiting for the first allocation"),
        ("6", "Nothing to report yet"),
    ] {
        let picture = text(&screen(fixture::nothing_yet(), key, (80, 24), COLOUR));
        assert!(picture.contains(words), "view {key}:\n{picture}");
    }
}

/// Sorting, grouping, filter, mark, freeze and turning the tree, as text.
#[test]
fn what_keys_do() {
    for (name, keys) in [
        ("sorted_by_live", "s"),
        ("by_function", "g"),
        ("by_module", "gg"),
        ("by_stack", "ggg"),
        ("filtered", "/probe_loss<enter>"),
        ("filtered_out", "/!.*<enter>"),
        ("typing_a_wrong_filter", "/loss("),
        ("marked", "m"),
        ("frozen", " "),
        ("driver_layer", "t"),
        ("tree_from_below", "2b"),
        ("tree_folded", "2<home><left>"),
        ("site_of_weights", "jj<enter>"),
        ("last_minute", "4z"),
        ("not_written", "w"),
    ] {
        let picture = text(&screen(fixture::leak(), keys, (100, 28), COLOUR));
        insta::assert_snapshot!(format!("keys_{name}"), picture);
    }
}

#[test]
fn seven_bits_and_no_colour() {
    for (name, keys) in [
        ("sites", ""),
        ("tree", "2"),
        ("site", "<enter>"),
        ("timeline", "4"),
    ] {
        let buffer = screen(fixture::leak(), keys, (80, 24), PLAIN);
        assert!(buffer.content.iter().all(|cell| cell.symbol().is_ascii()));
        insta::assert_snapshot!(format!("ascii_{name}"), text(&buffer));
    }
}

#[test]
fn light_ground_and_sixteen_colours() {
    let light = Theme {
        palette: Palette::Light,
        ..COLOUR
    };
    let sixteen = Theme {
        depth: Depth::Sixteen,
        ..COLOUR
    };
    for (name, theme) in [("light", light), ("sixteen", sixteen)] {
        for (view, keys) in [("sites", ""), ("timeline", "4")] {
            let picture = with_looks(&screen(fixture::leak(), keys, (80, 24), theme));
            insta::assert_snapshot!(format!("{name}_{view}"), picture);
        }
    }
}

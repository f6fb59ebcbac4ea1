//! The folded text parses back, the picture is XML and adds up, whatever the names.

use std::sync::Arc;

use proptest::prelude::*;
use roxmltree::{Document, ParsingOptions};
use vramscope_events::FrameKind;

use super::*;
use crate::{
    fixture,
    view::{DeviceView, FrameView, View},
};

fn first(view: &View) -> (&ProcessView, &DeviceView) {
    let process = &view.processes[0];
    (process, &process.devices[0])
}

fn draw(view: &View, weight: Weight) -> String {
    let (process, device) = first(view);
    svg(view, process, device, weight).expect("a picture")
}

fn parse(svg: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(svg, options).expect("well-formed XML")
}

/// Width in weight and label of every frame in the picture.
fn frames(document: &Document<'_>) -> Vec<(u64, u64, String)> {
    let container = document
        .descendants()
        .find(|node| node.attribute("id") == Some("frames"))
        .expect("the frames");
    let fg = "http://github.com/jonhoo/inferno";
    (container.children())
        .filter(|node| node.has_tag_name("g") || node.tag_name().name() == "g")
        .map(|group| {
            let title = group
                .descendants()
                .find(|node| node.tag_name().name() == "title")
                .and_then(|node| node.text())
                .expect("a title");
            let rect = group
                .descendants()
                .find(|node| node.tag_name().name() == "rect")
                .expect("a rectangle");
            let number = |name| -> u64 {
                let text = rect.attribute((fg, name)).expect("samples");
                text.parse().expect("a number")
            };
            let y = rect.attribute("y").expect("y").parse().expect("a number");
            (y, number("w"), title.to_owned())
        })
        .collect()
}

/// The weights of the frames nearest the root, the one that holds all excepted.
fn roots(frames: &[(u64, u64, String)]) -> Vec<u64> {
    let mut rows: Vec<u64> = frames.iter().map(|(y, _, _)| *y).collect();
    rows.sort_unstable();
    rows.dedup();
    (frames.iter())
        .filter(|(y, _, _)| Some(y) == rows.get(1))
        .map(|(_, weight, _)| *weight)
        .collect()
}

#[test]
fn folded_snapshot() {
    let view = fixture::leak();
    let (process, device) = first(&view);
    insta::assert_snapshot!("folded_leak", folded(&device.sites, process, Weight::Bytes));
    insta::assert_snapshot!(
        "folded_leak_growth",
        folded(&device.sites, process, Weight::Growth)
    );
}

#[test]
fn root_frames_add_up_to_the_live_bytes() {
    for view in [fixture::leak(), fixture::hostile()] {
        let (_, device) = first(&view);
        let svg = draw(&view, Weight::Bytes);
        let document = parse(&svg);
        let frames = frames(&document);
        let total: u64 = roots(&frames).iter().sum();
        assert_eq!(total, device.live_bytes);
        let svg = draw(&view, Weight::Growth);
        let document = parse(&svg);
        let total: u64 = roots(&self::frames(&document)).iter().sum();
        assert_eq!(total, 164_352);
    }
}

#[test]
fn the_picture_says_what_it_shows() {
    let mut view = fixture::leak();
    let info = Arc::make_mut(&mut view.processes[0].info);
    info.command = "python train.py --name '<b>&\"x\"' \x1b[2J".into();
    let svg = draw(&view, Weight::Bytes);
    let document = parse(&svg);
    let text = |id: &str| {
        let node = document
            .descendants()
            .find(|node| node.attribute("id") == Some(id));
        node.and_then(|node| node.text())
            .expect("a text")
            .to_owned()
    };
    assert_eq!(text("title"), "Survivors by bytes: 64.5 GB");
    assert_eq!(
        text("subtitle"),
        "python train.py --name '<b>&\"x\"' \\x1b[2J (pid 4121), device 0; step 1,482, \
         2025-11-30 11:01:18 UTC; 1.2 GB from before the attach not shown"
    );
    assert!(svg.contains("id=\"legend\""));
}

#[test]
fn the_same_view_gives_the_same_picture() {
    let view = fixture::leak();
    assert_eq!(draw(&view, Weight::Bytes), draw(&view, Weight::Bytes));
}

#[test]
fn nothing_to_draw_is_a_picture_that_says_so() {
    let mut view = fixture::healthy();
    let svg = draw(&view, Weight::Growth);
    assert!(svg.contains("no survivors grow"));
    parse(&svg);
    view.processes[0].devices[0].sites = Arc::new([]);
    let svg = draw(&view, Weight::Bytes);
    assert!(svg.contains("no allocation made since the attach is still there"));
    parse(&svg);
}

#[test]
fn a_huge_picture_stays_drawable_and_says_what_is_missing() {
    let view = fixture::many(5_000);
    let svg = draw(&view, Weight::Blocks);
    parse(&svg);
    assert!(svg.contains("frames below 0.01 % are left out"));
    assert!(svg.len() < 20_000_000, "{} bytes", svg.len());
}

#[test]
fn hostile_names_do_not_act() {
    let view = fixture::hostile();
    for weight in [Weight::Bytes, Weight::Blocks, Weight::Growth] {
        let svg = draw(&view, weight);
        let document = parse(&svg);
        let scripts = document
            .descendants()
            .filter(|node| node.tag_name().name() == "script");
        assert_eq!(scripts.count(), 1, "the library's own");
        for (_, _, title) in frames(&document) {
            assert!(title.chars().all(crate::escape::printable), "{title:?}");
        }
        assert!(svg.len() < 200_000, "{} bytes", svg.len());
    }
}

proptest! {
    /// Any names: the text folds back into as many frames, and the weight is the last word.
    #[test]
    fn folding_can_be_undone(
        names in prop::collection::vec((any::<String>(), any::<String>(), 0u32..99), 1..6),
        bytes in 1u64..1 << 40,
        native in any::<bool>(),
    ) {
        let mut view = fixture::leak();
        let device = &mut view.processes[0].devices[0];
        let mut site = device.sites[0].clone();
        site.live_bytes = bytes;
        site.stack = names
            .iter()
            .map(|(file, function, line)| {
                Arc::new(FrameView {
                    kind: if native { FrameKind::Native } else { FrameKind::Python },
                    file: file.as_str().into(),
                    function: function.as_str().into(),
                    line: *line,
                    user: false,
                    source: None,
                })
            })
            .collect();
        device.sites = Arc::new([site]);
        let (process, device) = first(&view);
        let text = folded(&device.sites, process, Weight::Bytes);
        let lines: Vec<&str> = text.lines().collect();
        prop_assert_eq!(lines.len(), 1);
        let (stack, weight) = lines[0].rsplit_once(' ').expect("a weight");
        prop_assert_eq!(weight.parse::<u64>(), Ok(bytes));
        prop_assert_eq!(stack.split(';').count(), names.len());
        prop_assert!(!stack.starts_with('#'));
        prop_assert!(stack.split(';').all(|frame| frame.ends_with(')') && frame.trim() == frame));
        let svg = draw(&view, Weight::Bytes);
        let document = parse(&svg);
        let drawn = frames(&document);
        prop_assert_eq!(drawn.len(), names.len() + 1);
        prop_assert_eq!(roots(&drawn), vec![bytes]);
    }
}

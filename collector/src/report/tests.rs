//! Snapshots of the reports on the fixed views, and what must hold for hostile ones.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Options, json,
    layout::Color,
    markdown,
    text::{self, Layout},
};
use crate::{
    escape, fixture,
    view::{Grouping, View},
};

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

#[test]
fn markdown_snapshots() {
    for (name, view) in views() {
        let text = markdown::report(&view, Options::default());
        assert!(
            text.chars().all(|c| c == '\n' || escape::printable(c)),
            "{name}"
        );
        insta::assert_snapshot!(format!("markdown_{name}"), text);
    }
}

#[test]
fn json_snapshots() {
    let short = Options {
        top: Some(2),
        ..Options::default()
    };
    for (name, view) in views() {
        insta::assert_snapshot!(format!("json_{name}"), json::report(&view, short));
    }
}

fn parsed(view: &View, options: Options) -> Value {
    serde_json::from_str(&json::report(view, options)).expect("valid JSON")
}

/// The shape that others rely on.
#[test]
fn json_keeps_its_interface() {
    let all = parsed(&fixture::leak(), Options::all(Grouping::Line));
    let has = |value: &Value, keys: &[&str]| {
        for key in keys {
            assert!(value.get(key).is_some(), "{key} is missing");
        }
    };
    has(
        &all,
        &[
            "schema", "process", "backend", "devices", "steps", "lost", "probes",
        ],
    );
    assert_eq!(all["schema"], 1);
    assert_eq!(all["backend"], "ebpf");
    has(&all["process"], &["pid", "command", "python", "torch"]);
    has(&all["steps"], &["count", "source"]);
    has(&all["lost"], &["events"]);
    has(&all["probes"][0], &["name", "state", "cost_note"]);
    let device = &all["devices"][0];
    has(
        device,
        &[
            "device",
            "allocated",
            "reserved",
            "baseline",
            "verdict",
            "sites",
        ],
    );
    has(
        &device["sites"][0],
        &[
            "file",
            "line",
            "function",
            "source",
            "live_bytes",
            "live_blocks",
            "total_bytes",
            "total_blocks",
            "generations",
            "growth_bytes_per_step",
            "stack",
        ],
    );
    has(
        &device["sites"][0]["stack"][0],
        &["file", "line", "function", "source", "kind"],
    );
    has(
        &device["verdict"],
        &[
            "class",
            "rhythm",
            "period_steps",
            "growth_bytes_per_step",
            "interval",
            "since_step",
            "share_explained",
            "oom_in_steps",
            "oom_in_seconds",
            "kind",
            "advice",
        ],
    );
    let culprit = &device["verdict"]["culprits"][0];
    let site = &device["sites"][culprit["site"].as_u64().expect("an index") as usize];
    assert_eq!(site["line"], 27);
    assert_eq!(site["growth_bytes_per_step"], 152_064.0);
    assert_eq!(culprit["line"], site["line"]);
    assert!(
        parsed(&fixture::no_verdict_yet(), Options::default())["devices"][0]["verdict"].is_null()
    );
}

#[test]
fn json_sites_add_up_at_every_grouping() {
    let view = fixture::leak();
    let live = view.processes[0].devices[0].live_bytes;
    for grouping in [
        Grouping::Stack,
        Grouping::Line,
        Grouping::Function,
        Grouping::Module,
    ] {
        let all = parsed(&view, Options::all(grouping));
        let sites = all["devices"][0]["sites"].as_array().expect("an array");
        let sum: u64 = sites
            .iter()
            .map(|site| site["live_bytes"].as_u64().expect("bytes"))
            .sum();
        assert_eq!(sum, live);
        assert_eq!(all["devices"][0]["sites_total"], sites.len());
    }
}

/// Names come back as they were, and nothing that a terminal obeys is in the text.
#[test]
fn json_of_hostile_names_is_safe_and_true() {
    let view = fixture::hostile();
    let text = json::report(&view, Options::all(Grouping::Stack));
    assert!(text.chars().all(|c| c == '\n' || escape::printable(c)));
    let all: Value = serde_json::from_str(&text).expect("valid JSON");
    let sites = &view.processes[0].devices[0].sites;
    for (site, json) in sites
        .iter()
        .zip(all["devices"][0]["sites"].as_array().expect("sites"))
    {
        let function = site.own_frame().map(|frame| &*frame.function);
        assert_eq!(json["function"].as_str(), function);
    }
}

#[test]
fn json_has_null_for_what_is_not_finite() {
    let mut view = fixture::leak();
    let device = &mut view.processes[0].devices[0];
    if let Some(verdict) = &mut device.verdict {
        verdict.growth_bytes_per_step = f64::NAN;
        verdict.interval.high = f64::INFINITY;
        if let Some(oom) = &mut verdict.out_of_memory {
            oom.steps = f64::INFINITY;
            oom.steps_interval.high = f64::INFINITY;
            oom.seconds = Some(f64::NEG_INFINITY);
        }
    }
    view.processes[0].steps.rate = f64::NAN;
    let all = parsed(&view, Options::default());
    let verdict = &all["devices"][0]["verdict"];
    for value in [
        &verdict["growth_bytes_per_step"],
        &verdict["interval"][1],
        &verdict["oom_in_steps"],
        &verdict["oom_in_steps_interval"][1],
        &verdict["oom_in_seconds"],
        &all["steps"]["per_second"],
    ] {
        assert!(value.is_null(), "{value}");
    }
    // People get a report, too.
    let text = plain(&view, 80);
    assert!(
        text.starts_with("LEAK  ?/step since step 40, OOM in about ?"),
        "{text}"
    );
}

fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                into.insert(key.clone());
                keys(value, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
        _ => {}
    }
}

#[test]
fn json_fields_are_documented() {
    let docs = include_str!("../../../docs/report-json.md");
    let mut found = BTreeSet::new();
    for (_, view) in views() {
        keys(&parsed(&view, Options::all(Grouping::Line)), &mut found);
    }
    assert!(found.contains("processes") && found.contains("by_cause"));
    for key in found {
        assert!(
            docs.contains(&format!("`{key}`")),
            "{key} is not in docs/report-json.md"
        );
    }
}

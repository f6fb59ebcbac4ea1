//! Snapshots of the reports on the fixed views, and what must hold for hostile ones.

use std::{collections::BTreeSet, sync::Arc};

use proptest::prelude::*;
use serde_json::Value;
use vramscope_events::{Address, Pid};

use super::{
    Options, json,
    layout::Color,
    markdown,
    text::{self, Layout},
};
use crate::{
    escape, fixture,
    view::{Class, Confidence, FrameView, Grouping, LeakKind, Rhythm, Verdict, View},
};

fn views() -> Vec<(&'static str, View)> {
    vec![
        ("leak", fixture::leak()),
        ("asked", fixture::asked()),
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any names at any width.
    #[test]
    fn any_name_fits_and_is_printable(
        names in prop::collection::vec(any::<String>(), 15),
        width in 60usize..160,
    ) {
        let mut view = fixture::leak();
        let device = &mut view.processes[0].devices[0];
        let mut sites = device.sites.to_vec();
        for (site, name) in sites.iter_mut().zip(&names) {
            site.stack = (site.stack.iter())
                .map(|frame| {
                    Arc::new(FrameView {
                        file: name.as_str().into(),
                        function: name.as_str().into(),
                        source: frame.user.then(|| name.as_str().into()),
                        ..(**frame).clone()
                    })
                })
                .collect();
        }
        device.sites = sites.into();
        if let Some(verdict) = &mut device.verdict {
            verdict.advice.clone_from(&names[0]);
            verdict.summary.clone_from(&names[1]);
            verdict.evidence = names.clone();
        }
        view.probes[0].name.clone_from(&names[2]);
        for line in plain(&view, width).lines() {
            prop_assert!(escape::width(line) <= width, "{}", line);
            prop_assert!(line.chars().all(escape::printable), "{:?}", line);
        }
        let markdown = markdown::report(&view, Options::default());
        prop_assert!(markdown.chars().all(|c| c == '\n' || escape::printable(c)));
        let json = json::report(&view, Options::default());
        prop_assert!(json.chars().all(|c| c == '\n' || escape::printable(c)));
        prop_assert!(serde_json::from_str::<Value>(&json).is_ok());
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

/// The opening lines for every class, rhythm and kind.
#[test]
fn headline_snapshots() {
    let classes = [
        Class::Leak,
        Class::Growing,
        Class::WarmUp,
        Class::Capacity,
        Class::CacheGrowth,
        Class::Fragmentation,
        Class::OutsideFramework,
        Class::Healthy,
    ];
    let kinds = [
        LeakKind::GraphKept,
        LeakKind::Scalars,
        LeakKind::Evaluation,
        LeakKind::OutputsKept,
        LeakKind::Hook,
        LeakKind::ParameterCopies,
        LeakKind::Exception,
        LeakKind::Cache,
        LeakKind::DoubleBackward,
    ];
    let opening = |change: &dyn Fn(&mut Verdict)| {
        let mut view = fixture::leak();
        view.processes[0].devices[0].verdict.as_mut().map(change);
        let text = plain(&view, 80);
        let (opening, _) = text.split_once("\n\n").expect("a paragraph");
        format!("{opening}\n\n")
    };
    let mut all = String::new();
    for class in classes {
        all += &opening(&|verdict| verdict.class = class);
    }
    for kind in kinds {
        all += &opening(&|verdict| verdict.kind = Some(kind));
    }
    all += &opening(&|verdict| {
        verdict.rhythm = Rhythm::PerPeriod;
        verdict.period_steps = Some(50);
    });
    all += &opening(&|verdict| {
        if let Some(oom) = &mut verdict.out_of_memory {
            oom.seconds = None;
        }
    });
    all += &opening(&|verdict| {
        verdict.out_of_memory = None;
        verdict.confidence = Confidence::Low;
        verdict.culprits.clear();
    });
    insta::assert_snapshot!(all);
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

#[test]
fn json_lists_survivors_when_asked() {
    let view = fixture::leak();
    let device = &view.processes[0].devices[0];
    assert!(
        parsed(&view, Options::default())["devices"][0]
            .get("survivors")
            .is_none()
    );
    // One block a site, its address falling with the site's number.
    let survivors = |pid, asked| {
        assert_eq!((pid, asked), (Pid(4121), device.device));
        let blocks = device.sites.iter().map(|site| json::Survivor {
            address: Address(0x7f00_0000_0000 - u64::from(site.id.0) * 512),
            size: 512,
            born_step: 7,
            site: site.id,
        });
        blocks.collect()
    };
    let text = json::report_with_survivors(&view, Options::all(Grouping::Line), &survivors);
    let all: Value = serde_json::from_str(&text).expect("valid JSON");
    let device_json = &all["devices"][0];
    let blocks = device_json["survivors"].as_array().expect("blocks");
    assert_eq!(blocks.len(), device.sites.len());
    assert!(blocks.is_sorted_by_key(|block| block["address"].as_u64()));
    let last = blocks.last().expect("the block of site 0");
    let site = &device_json["sites"][last["site"].as_u64().expect("an index") as usize];
    assert_eq!((&site["id"], &site["line"]), (&0.into(), &27.into()));

    let docs = include_str!("../../../docs/report-json.md");
    let mut found = BTreeSet::new();
    keys(&all, &mut found);
    assert!(found.iter().all(|key| docs.contains(&format!("`{key}`"))));
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

/// The report that the user guide explains is one that is really written.
#[test]
fn the_user_guide_shows_a_real_report() {
    let guide = include_str!("../../../docs/user-guide.md");
    let text = plain(&fixture::leak(), 80);
    let (shown, _) = text.split_once("\nNot known:").expect("an end");
    assert!(
        guide.contains(&format!("```text\n{}\n```", shown.trim_end())),
        "docs/user-guide.md should show:\n{shown}"
    );
}

/// To a Markdown reader, foreign names are code or words: no markup, no link, no new cell.
#[test]
fn markdown_of_hostile_names_is_inert() {
    use pulldown_cmark::{Event, Options as Flags, Parser, Tag, TagEnd};
    let text = markdown::report(&fixture::hostile(), Options::all(Grouping::Line));
    let mut cells = 0;
    let mut rows = Vec::new();
    for event in Parser::new_ext(&text, Flags::ENABLE_TABLES | Flags::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Html(html) => assert!(
                ["<details>", "</details>"]
                    .iter()
                    .any(|ours| html.starts_with(ours)),
                "{html}"
            ),
            Event::InlineHtml(html) => {
                assert!(
                    html.contains("summary>") || html.contains("details>"),
                    "{html}"
                );
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                panic!("a link to {dest_url}")
            }
            Event::Start(Tag::TableRow | Tag::TableHead) => cells = 0,
            Event::Start(Tag::TableCell) => cells += 1,
            Event::End(TagEnd::TableRow | TagEnd::TableHead) => rows.push(cells),
            _ => {}
        }
    }
    // Head and one row of the device, head and 8 shares, head and 13 lines of survivors.
    assert_eq!(rows, [&[7; 2][..], &[3; 9], &[7; 14]].concat());
}

/// Names that try hardest: to Markdown they are the code span they stand in.
#[test]
fn markdown_code_spans_hold() {
    use pulldown_cmark::{Event, Options as Flags, Parser};
    let mut view = fixture::leak();
    let names = [
        "`", "``` x", " ` ", "a\\", "\\`", "<!--", "]]>", "$x$", "\\|`|",
    ];
    let device = &mut view.processes[0].devices[0];
    let mut sites = device.sites.to_vec();
    sites.truncate(names.len());
    for (site, name) in sites.iter_mut().zip(names) {
        site.stack = Arc::new([Arc::new(FrameView {
            source: Some(name.into()),
            user: true,
            file: format!("{}.py", site.id.0).into(),
            ..(*site.stack[0]).clone()
        })]);
        site.user_frame = Some(0);
        site.live_blocks = 1;
    }
    device.sites = sites.into();
    let text = markdown::report(&view, Options::all(Grouping::Line));
    let code: Vec<String> = Parser::new_ext(&text, Flags::ENABLE_TABLES)
        .filter_map(|event| match event {
            Event::Code(code) => Some(code.into_string()),
            _ => None,
        })
        .collect();
    for name in names {
        assert!(
            code.iter().any(|code| {
                let code = code.strip_prefix("[backward] ").unwrap_or(code);
                code.trim() == name.trim()
            }),
            "{name:?} is not in {code:?}"
        );
    }
}

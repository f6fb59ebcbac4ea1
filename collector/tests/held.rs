//! What the process answers when it is asked decides what generations alone cannot.

mod synthetic;

use std::sync::Arc;

use synthetic::Program;
use vramscope_collector::{
    report::{Options, json},
    view::{Class, Confidence},
};
use vramscope_events::{DeviceId, Event, Holder, Holders, StackId};

const MB: u64 = 1 << 20;

/// Steps in which one more block of a megabyte is kept.
fn keep(program: &mut Program, steps: u32) {
    for _ in 0..steps {
        program.step(MB);
        program.alloc(5, MB);
    }
}

/// The process answers that `blocks` blocks are in a container.
fn answer(program: &mut Program, path: &str, blocks: u64, length: u64, bound: Option<u64>) {
    program.emit(Event::Holders(Arc::new(Holders {
        device: DeviceId(0),
        stacks: vec![StackId(5)],
        survivors: blocks,
        asked: blocks,
        holders: vec![Holder {
            kind: "tensor".into(),
            words: format!("`{path}[*]` (a container)"),
            short: format!("`{path}`"),
            path: format!("{path}[*]"),
            blocks,
            bytes: blocks * MB,
            length: Some(length),
            bound,
        }],
        ..Holders::default()
    })));
}

fn capacity(program: &mut Program, free: u64) {
    program.emit(Event::DeviceMemory {
        device: DeviceId(0),
        total: 80 << 30,
        free,
        used_by_process: None,
    });
}

#[test]
fn the_sentence_names_the_holder() {
    let mut program = Program::new();
    keep(&mut program, 150);
    assert_eq!(program.verdict().class, Class::Leak);
    answer(&mut program, "__main__.history", 149, 149, None);
    let verdict = program.verdict();
    assert_eq!(verdict.class, Class::Leak);
    assert_eq!(verdict.retained_by.as_deref(), Some("`__main__.history`"));
    assert!(
        verdict.summary.ends_with("; held by `__main__.history`"),
        "{}",
        verdict.summary
    );
    program.time += 30_000_000_000;
    keep(&mut program, 20);
    answer(&mut program, "__main__.history", 169, 169, None);
    let summary = program.verdict().summary;
    assert!(
        summary.ends_with("which grew from 149 to 169 since it was asked 30 s before"),
        "{summary}"
    );
}

#[test]
fn a_container_that_fills_is_no_leak() {
    for steps in [60, 150] {
        let mut program = Program::new();
        keep(&mut program, steps);
        let before = program.verdict().class;
        assert!(matches!(before, Class::Growing | Class::Leak), "{before:?}");
        let kept = u64::from(steps);
        answer(&mut program, "__main__.replay", kept, kept, Some(400));
        let verdict = program.verdict();
        assert_eq!(verdict.class, Class::WarmUp, "{verdict:?}");
        assert!(verdict.out_of_memory.is_none());
        let words =
            format!("no leak: a bounded container fills, {kept} of at most 400: `__main__.replay`");
        assert_eq!(verdict.summary, words);
        // Beyond what it can hold, the answer is of the past.
        keep(&mut program, 400);
        assert_eq!(program.verdict().class, Class::Leak);
    }
}

#[test]
fn a_bound_that_the_device_cannot_hold_is_none() {
    let mut program = Program::new();
    capacity(&mut program, 100 * MB);
    keep(&mut program, 150);
    answer(&mut program, "__main__.replay", 149, 149, Some(10_000));
    let verdict = program.verdict();
    assert_eq!(verdict.class, Class::Leak);
    assert!(
        verdict
            .summary
            .contains("149 of at most 10,000: full it needs 10.3 GB more"),
        "{}",
        verdict.summary
    );
}

#[test]
fn a_container_without_a_bound_that_grew_is_a_leak() {
    let mut program = Program::new();
    keep(&mut program, 40);
    assert_eq!(program.verdict().class, Class::Growing);
    answer(&mut program, "__main__.history", 39, 39, None);
    assert_eq!(program.verdict().class, Class::Growing, "once says nothing");
    keep(&mut program, 15);
    // Another one is not the same one grown.
    answer(&mut program, "__main__.other", 54, 54, None);
    assert_eq!(program.verdict().class, Class::Growing);
    answer(&mut program, "__main__.other", 54, 54, None);
    assert_eq!(program.verdict().class, Class::Growing, "it did not grow");
    keep(&mut program, 5);
    answer(&mut program, "__main__.other", 59, 59, None);
    let verdict = program.verdict();
    assert_eq!(verdict.class, Class::Leak, "{verdict:?}");
    assert_eq!(verdict.confidence, Confidence::Medium);
}

#[test]
fn an_answer_about_a_part_does_not_decide() {
    let mut program = Program::new();
    for _ in 0..60 {
        program.step(MB);
        program.alloc(5, MB);
        program.alloc(6, 4 * MB);
    }
    let before = program.verdict().class;
    answer(&mut program, "__main__.replay", 60, 60, Some(400));
    assert_eq!(program.verdict().class, before);
    // Nor does one about blocks of which most are elsewhere.
    let mut program = Program::new();
    keep(&mut program, 60);
    let holder = |path: &str, blocks, bound| Holder {
        kind: "tensor".into(),
        path: path.into(),
        blocks,
        bytes: blocks * MB,
        length: Some(blocks),
        bound,
        ..Holder::default()
    };
    program.emit(Event::Holders(Arc::new(Holders {
        stacks: vec![StackId(5)],
        survivors: 60,
        asked: 60,
        holders: vec![holder("a[*]", 35, Some(400)), holder("b[*]", 25, None)],
        ..Holders::default()
    })));
    assert_ne!(program.verdict().class, Class::WarmUp);
}

#[test]
fn reports_show_the_answer_at_every_grouping() {
    let mut program = Program::new();
    program.define(5, &[("/home/me/train.py", "step", 27)]);
    keep(&mut program, 60);
    answer(&mut program, "__main__.history", 59, 59, None);
    // A newer stack on the same line names the group.
    program.define(
        6,
        &[
            ("/home/me/train.py", "step", 27),
            ("/home/me/train.py", "main", 90),
        ],
    );
    for _ in 0..40 {
        program.step(MB);
        program.alloc(6, 8 * MB);
    }
    let report: serde_json::Value =
        serde_json::from_str(&json::report(&program.view(), Options::default())).unwrap();
    let sites = report["devices"][0]["sites"].as_array().unwrap();
    let line = sites.iter().find(|site| site["line"] == 27).unwrap();
    let retained = &line["retained_by"];
    assert_eq!(
        retained["holders"][0]["path"], "__main__.history[*]",
        "{line}"
    );
    assert_eq!(retained["asked"], 59);
    let others = sites.iter().filter(|site| site["line"] != 27);
    assert!(others.into_iter().all(|site| site["retained_by"].is_null()));
}

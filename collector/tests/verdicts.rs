//! Verdicts on recorded streams of real programs: attached at many moments, watched 150 steps.
//!
//! streams/record.py makes the streams; see collector/README.md.

mod streams_reader;

use std::path::{Path, PathBuf};

use streams_reader::{Stream, device, line, view_of};
use vramscope_collector::view::{Class, Rhythm, Verdict, View};

/// What a right verdict is.
struct Expected {
    name: &'static str,
    /// `None` for what does not leak.
    leak: Option<Leak>,
    /// Calls of backward() to a step; 0 where there are none.
    marks: usize,
}

struct Leak {
    /// Lines any of which is right to be named first.
    lines: &'static [u32],
    period: Option<u64>,
    bytes_per_step: f64,
}

const fn leak(
    name: &'static str,
    marks: usize,
    lines: &'static [u32],
    period: Option<u64>,
    bytes_per_step: f64,
) -> Expected {
    Expected {
        name,
        leak: Some(Leak {
            lines,
            period,
            bytes_per_step,
        }),
        marks,
    }
}

const fn fine(name: &'static str, marks: usize) -> Expected {
    Expected {
        name,
        leak: None,
        marks,
    }
}

const CASES: &[Expected] = &[
    leak("01_running_loss_keeps_graph", 1, &[26, 25], None, 164_352.0),
    leak("02_scalar_losses_on_device", 1, &[35], None, 512.0),
    leak("03_eval_without_no_grad", 1, &[24, 23], Some(20), 22_630.0),
    leak("05_metric_never_reset", 1, &[38, 36], None, 65_536.0),
    leak("08_create_graph_leaf_cycle", 2, &[23], None, 65_536.0),
    leak("10_lru_cache_keeps_models", 1, &[24], Some(15), 140_220.0),
    leak("12_view_pins_whole_tensor", 1, &[21], None, 262_144.0),
    leak("14_hook_registered_every_step", 1, &[25], None, 65_536.0),
    fine("31_neg_variable_lengths_cached", 1),
    fine("33_neg_adam_state_staged_unfreeze", 1),
    fine("35_neg_workspace_warmup", 1),
    fine("38_neg_fragmentation", 1),
    leak("leak_accumulation_keeps_logits", 8, &[17], None, 8_192.0),
    leak("leak_gan_keeps_fakes", 2, &[27], None, 26_624.0),
    leak("leak_server_keeps_answers", 0, &[17], None, 731.4),
    leak("leak_snapshots_every_ten", 1, &[22], Some(10), 26_368.0),
    leak("leak_errors_keep_frames", 1, &[20, 21], None, 10_500.0),
    leak("leak_autocast_cache", 1, &[17, 18], None, 40_960.0),
    leak("leak_param_groups", 1, &[17], Some(4), 6_144.0),
    leak("leak_optimizer_rebuilt", 1, &[21], Some(15), 4_505.6),
    leak("leak_hidden_chain", 1, &[20], None, 51_200.0),
    leak("leak_gradients_logged", 1, &[17], None, 33_792.0),
    leak("leak_every_fourth", 1, &[15, 17], Some(4), 1_152.0),
    fine("fine_epoch_outputs", 1),
    fine("fine_deque", 1),
    fine("fine_window_and_averages", 1),
    fine("fine_collected_cycles", 1),
    fine("fine_replay_buffer", 1),
    fine("fine_growing_batches", 1),
    fine("fine_accumulation", 8),
    fine("fine_gan", 2),
    fine("fine_server", 0),
];

fn directory() -> PathBuf {
    match std::env::var_os("VRAMSCOPE_STREAMS") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams"),
    }
}

/// Checks a verdict; what is wrong with it.
fn wrong(expected: &Expected, view: &View) -> Option<String> {
    let device = device(view);
    let Some(verdict) = &device.verdict else {
        return Some("no verdict".to_owned());
    };
    let about = |what: String| Some(format!("{what}: {}", describe(view, verdict)));
    let Some(leak) = &expected.leak else {
        return match verdict.class {
            Class::Leak | Class::OutsideFramework => about("false alarm".to_owned()),
            _ => None,
        };
    };
    if verdict.class != Class::Leak {
        return about("missed".to_owned());
    }
    let first = verdict
        .culprits
        .first()
        .and_then(|culprit| device.sites.iter().find(|site| site.id == culprit.site));
    let named = first.map_or(0, line);
    if !leak.lines.contains(&named) || line(&device.sites[0]) != named {
        return about(format!("line {named} named first"));
    }
    let off = (verdict.growth_bytes_per_step / leak.bytes_per_step - 1.0).abs();
    // How many batches are rejected in 150 steps is chance.
    let allowed = if expected.name.contains("errors") {
        0.2
    } else {
        0.1
    };
    if off > allowed {
        return about(format!("growth is off by {:.0} %", off * 100.0));
    }
    let rhythm = match leak.period {
        None => Rhythm::PerStep,
        Some(_) => Rhythm::PerPeriod,
    };
    if (verdict.rhythm, verdict.period_steps) != (rhythm, leak.period) {
        return about("wrong rhythm".to_owned());
    }
    None
}

fn describe(view: &View, verdict: &Verdict) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {}; {:?} {:?}",
        verdict.class,
        verdict.confidence,
        verdict.kind,
        verdict.rhythm,
        verdict.summary,
        verdict.evidence,
        view.processes[0].steps,
    )
}

/// Attaches at many moments of the first 50 steps and asks after 150 more.
fn attaches(stream: &Stream, marks: usize) -> Vec<(usize, usize)> {
    let every = if std::env::var_os("VRAMSCOPE_ALL_ATTACHES").is_some() {
        1
    } else {
        7
    };
    (0..=50)
        .step_by(every)
        .map(|step| match marks {
            0 => {
                let events = stream.len();
                (events * step / 210, events * (step + 150) / 210)
            }
            _ => {
                // Somewhere within the step.
                let (start, end) = (stream.mark(step * marks), stream.mark((step + 1) * marks));
                let from = if step == 0 {
                    0
                } else {
                    start + (end - start) * (step * 37 % 100) / 100
                };
                (from, stream.mark((step + 150) * marks) + 1)
            }
        })
        .collect()
}

#[test]
fn recorded_programs_are_judged_right_whenever_attached() {
    let mut failures = Vec::new();
    for expected in CASES {
        let path = directory().join(format!("{}.json.gz", expected.name));
        let stream = Stream::read(&path);
        for (from, to) in attaches(&stream, expected.marks) {
            let view = view_of(&stream.records(from, to));
            if from == 0 && std::env::var_os("VRAMSCOPE_SHOW").is_some() {
                let verdict = device(&view).verdict.as_ref();
                let shown = verdict.map(|verdict| describe(&view, verdict));
                println!("{}: {}", expected.name, shown.unwrap_or_default());
            }
            if let Some(what) = wrong(expected, &view) {
                failures.push(format!(
                    "{} attached at event {from}: {what}",
                    expected.name
                ));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} wrong:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

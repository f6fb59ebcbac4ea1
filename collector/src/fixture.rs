//! Fixed views for snapshot tests and benchmarks of whatever shows them: no clock, no I/O, the
//! same numbers every time.
//!
//! The story is always the same training run: a probe batch whose loss is kept with its graph,
//! 164,352 bytes a step. In each view the books balance: a device's `live_bytes` are the sum of
//! its sites, and with `baseline` they make `allocated`.

mod asked;
mod run;
mod stacks;

use std::sync::Arc;

use vramscope_events::{Bytes, FrameKind, LostCause, Pid, Time};

use crate::view::{
    Backend, Class, Confidence, Culprit, FrameView, Interval, LeakKind, LedgerCheck, LogEntry,
    LogLevel, LostView, MarkKind, ProbeState, ProbeView, Rhythm, SeriesMark, SiteView, StepSource,
    Verdict, View,
};

use run::{GROWTH, Run, SECOND, STARTED, STEP_RATE};
use stacks::{frame, py};

pub use asked::asked;

/// A leak of 164,352 B a step since step 40, seen for 1,482 steps.
pub fn leak() -> View {
    let run = Run {
        steps: 1482,
        since: 40,
        leaking: true,
        pid: 4121,
        rank: None,
    };
    let mut view = run.view();
    let device = &mut view.processes[0].devices[0];
    device.verdict = Some(leak_verdict(&run, &device.sites, device.free));
    let mut series = (*device.series).clone();
    series.marks = vec![
        SeriesMark {
            time: run.time_of(40),
            kind: MarkKind::GrowthBegan,
        },
        SeriesMark {
            time: run.time_of(900),
            kind: MarkKind::CacheEmptied,
        },
    ];
    device.series = Arc::new(series);
    view.log = vec![
        run.log(0, LogLevel::Info, "attached to pid 4121 (5 of 6 probes)"),
        run.log(
            0,
            LogLevel::Warning,
            "cuMemCreate is absent: mappings made by hand are not seen",
        ),
        run.log(112, LogLevel::Warning, "leak: +164.4 KB/step since step 40"),
        run.log(
            900,
            LogLevel::Info,
            "the cache was given back to the driver (empty_cache)",
        ),
    ];
    view
}

/// The same run without the leak.
pub fn healthy() -> View {
    let run = Run {
        steps: 1482,
        since: 40,
        leaking: false,
        pid: 4121,
        rank: None,
    };
    let mut view = run.view();
    view.processes[0].devices[0].verdict = Some(healthy_verdict());
    view.log = vec![run.log(0, LogLevel::Info, "attached to pid 4121 (5 of 6 probes)")];
    view
}

/// The leak, but only 31 steps in: it grows, and nobody can say yet whether it goes on.
pub fn growing() -> View {
    let run = Run {
        steps: 31,
        since: 2,
        leaking: true,
        pid: 4121,
        rank: None,
    };
    let mut view = run.view();
    let device = &mut view.processes[0].devices[0];
    device.verdict = Some(Verdict {
        class: Class::Growing,
        confidence: Confidence::Low,
        rhythm: Rhythm::PerStep,
        growth_bytes_per_step: GROWTH as f64,
        interval: Interval {
            low: 98_304.0,
            high: 221_184.0,
        },
        since_step: 2,
        share_explained: 1.0,
        culprits: culprits(&device.sites),
        kind: None,
        retained_by: None,
        summary: "allocated rises by 164.4 KB/step over 29 steps; about 20 more steps decide \
                  whether it is a leak"
            .into(),
        evidence: vec!["the floor rose in 27 of 29 steps".into()],
        advice: "Let it run: about 20 more steps decide.".into(),
        ..healthy_verdict()
    });
    view.log = vec![run.log(0, LogLevel::Info, "attached to pid 4121 (5 of 6 probes)")];
    view
}

/// Just attached: the process is known, no event has come.
pub fn nothing_yet() -> View {
    let run = Run {
        steps: 0,
        since: 0,
        leaking: false,
        pid: 4121,
        rank: None,
    };
    let mut view = run.view();
    view.processes[0].devices.clear();
    view.processes[0].steps.source = StepSource::None;
    view.processes[0].steps.rate = 0.0;
    view.now = Time(STARTED.0 + 2 * SECOND);
    view
}

/// The leak before the first verdict: two steps in.
pub fn no_verdict_yet() -> View {
    let run = Run {
        steps: 2,
        since: 0,
        leaking: true,
        pid: 4121,
        rank: None,
    };
    run.view()
}

/// The leak, with events lost on the way: every number is a bound.
pub fn lost_events() -> View {
    let mut view = leak();
    view.lost = LostView {
        events: 18_204,
        by_cause: vec![
            (LostCause::RingFull, 18_201),
            (LostCause::StackUnreadable, 3),
        ],
    };
    let device = &mut view.processes[0].devices[0];
    device.check = LedgerCheck {
        agreed: 70_311,
        corrected: 12,
        corrected_bytes: 9_437_184,
        double_allocs: 4,
        unknown_frees: 37,
    };
    if let Some(verdict) = &mut device.verdict {
        verdict.confidence = Confidence::Low;
        verdict
            .evidence
            .push("18,204 events were lost: growth and shares are bounds".into());
    }
    let mut series = (*device.series).clone();
    let time = Time(STARTED.0 + 311 * SECOND);
    series.marks.push(SeriesMark {
        time,
        kind: MarkKind::Lost,
    });
    series.marks.sort_by_key(|mark| mark.time);
    device.series = Arc::new(series);
    view.log.push(LogEntry {
        time,
        step: Some(964),
        process: Pid(4121),
        level: LogLevel::Error,
        text: "18,204 events were lost (ring full): numbers are bounds from here on".into(),
    });
    view
}

/// Four ranks on a device each; rank 2 leaks.
pub fn four_ranks() -> View {
    let mut view = leak();
    view.processes.clear();
    for rank in 0..4 {
        let leaking = rank == 2;
        let pid = 5200 + rank;
        let run = Run {
            steps: 1482,
            since: 40,
            leaking,
            pid,
            rank: Some(rank),
        };
        let mut process = run.process();
        let device = &mut process.devices[0];
        device.verdict = Some(if leaking {
            leak_verdict(&run, &device.sites, device.free)
        } else {
            healthy_verdict()
        });
        view.processes.push(process);
    }
    for entry in &mut view.log {
        entry.process = Pid(5202);
        entry.text = entry.text.replace("4121", "5202");
    }
    view
}

/// The leak in a process that means ill: names with escape sequences, bidirectional controls,
/// invisible characters, line breaks, markup, and ten kilobytes.
pub fn hostile() -> View {
    let mut view = leak();
    let names = [
        "\x1b]0;owned\x07\x1b[2J\x1b[31mred",
        "safe\u{202e}yp.tnemyap",
        "zero\u{200b}width\u{200d}\u{feff}",
        "two\nlines\r\nand\ttab",
        "<script>alert('x')</script> & \"quotes\"",
        "a;b;c 12345",
        "| cell | `code` ](http://example.invalid)",
        "\u{9b}31mC1 \u{e000}\u{378}",
    ];
    let long = "very_long_name_".repeat(683);
    let device = &mut view.processes[0].devices[0];
    let mut sites = device.sites.to_vec();
    for (index, site) in sites.iter_mut().enumerate() {
        let name = names.get(index).copied().unwrap_or(&long);
        let mut stack = site.stack.to_vec();
        let own = site.user_frame.unwrap_or(0);
        if let Some(own) = stack.get_mut(own) {
            *own = Arc::new(FrameView {
                file: format!("/tmp/{name}.py").into(),
                function: name.into(),
                source: Some(name.into()),
                ..(**own).clone()
            });
        }
        site.stack = stack.into();
    }
    device.sites = sites.into();
    let mut info = (*view.processes[0].info).clone();
    info.command = format!("python {} {}", names[0], names[3]);
    info.python = Some("3.12\x1b[5m".into());
    view.processes[0].info = Arc::new(info);
    for (entry, name) in view.log.iter_mut().zip(names) {
        entry.text = name.into();
    }
    view.probes[0].name = names[0].into();
    view
}

/// The leak with `sites` sites: for benchmarks.
pub fn many(sites: usize) -> View {
    let mut view = leak();
    let device = &mut view.processes[0].devices[0];
    let pattern = device.sites.to_vec();
    let mut out = Vec::with_capacity(sites);
    for index in 0..sites {
        let mut site = pattern[index % pattern.len()].clone();
        site.id.0 = index as u32;
        // 977 is prime: lines, functions and files repeat at different rhythms.
        let line = 1 + (index % 977) as u32;
        let mut stack = site.stack.to_vec();
        let file = format!(
            "/home/mira/probe/package_{}/module_{}.py",
            index % 31,
            index % 211
        );
        let mut own = frame(py(&file, &format!("function_{}", index % 499), line));
        Arc::make_mut(&mut own).user = true;
        match site.user_frame {
            Some(user) => stack[user] = own,
            None => {
                stack.push(own);
                site.user_frame = Some(stack.len() - 1);
            }
        }
        site.stack = stack.into();
        site.growth_bytes_per_step /= 1.0 + (index / pattern.len()) as f64;
        out.push(site);
    }
    out.sort_by(crate::grouping::order);
    device.live_bytes = out.iter().map(|site| site.live_bytes).sum();
    device.live_blocks = out.iter().map(|site| site.live_blocks).sum();
    device.baseline = 0;
    device.allocated = device.live_bytes;
    device.peak_allocated = device.live_bytes;
    device.reserved = device.live_bytes;
    device.sites = out.into();
    view
}

fn culprits(sites: &[SiteView]) -> Vec<Culprit> {
    (sites.iter())
        .filter(|site| site.growth_bytes_per_step > 0.0)
        .map(|site| Culprit {
            site: site.id,
            growth_bytes_per_step: site.growth_bytes_per_step,
            share: site.growth_share,
        })
        .collect()
}

fn leak_verdict(run: &Run, sites: &[SiteView], free: Option<Bytes>) -> Verdict {
    use crate::view::OutOfMemoryIn;
    let growth = GROWTH as f64;
    let interval = Interval {
        low: growth - 300.0,
        high: growth + 300.0,
    };
    let room = free.unwrap_or(0) as f64;
    Verdict {
        class: Class::Leak,
        confidence: Confidence::High,
        rhythm: Rhythm::PerStep,
        period_steps: None,
        growth_bytes_per_step: growth,
        interval,
        since_step: run.since,
        share_explained: 1.0,
        culprits: culprits(sites),
        out_of_memory: Some(OutOfMemoryIn {
            steps: room / growth,
            steps_interval: Interval {
                low: room / interval.high,
                high: room / interval.low,
            },
            seconds: Some(room / growth / STEP_RATE),
        }),
        kind: Some(LeakKind::GraphKept),
        retained_by: None,
        summary: "blocks of 1,442 steps survive; the floor rises by 164.4 KB/step since step 40"
            .into(),
        evidence: vec![
            "the floor rose in 1,441 of 1,442 steps (Mann-Kendall p < 0.001)".into(),
            "train.py:27 holds survivors of 1,442 different steps".into(),
            "5 forward sites of one step survive together".into(),
        ],
        advice: "Something keeps a loss or an output with its graph: detach it, or keep \
                 probe_loss.item() instead."
            .into(),
    }
}

fn healthy_verdict() -> Verdict {
    Verdict {
        class: Class::Healthy,
        confidence: Confidence::High,
        rhythm: Rhythm::None,
        period_steps: None,
        growth_bytes_per_step: 0.0,
        interval: Interval {
            low: -12.0,
            high: 12.0,
        },
        since_step: 40,
        share_explained: 0.0,
        culprits: Vec::new(),
        out_of_memory: None,
        kind: None,
        retained_by: None,
        summary: "no leak: the floor is flat over 1,442 steps".into(),
        evidence: vec!["no site holds survivors of more than 3 steps".into()],
        advice: "Nothing to do.".into(),
    }
}

fn probes() -> Vec<ProbeView> {
    let attached = |name: &str, cost_note: &str| ProbeView {
        name: name.into(),
        state: ProbeState::Attached,
        cost_note: cost_note.into(),
    };
    vec![
        attached(
            "c10::reportMemoryUsageToProfiler",
            "push at +7, emulated: 1.6 us an event",
        ),
        attached("c10::reportOutOfMemoryToProfiler", "at entry, rare"),
        attached(
            "torch::autograd::Engine::execute",
            "push at +4, emulated: once a backward",
        ),
        attached("cuMemAlloc_v2", "at entry with return probe, rare"),
        attached("cuMemFree_v2", "at entry, rare"),
        ProbeView {
            name: "cuMemCreate".into(),
            state: ProbeState::Absent {
                consequence: "driver memory mapped by hand (VMM) is not seen".into(),
            },
            cost_note: String::new(),
        },
    ]
}

/// A view without processes.
fn empty_view(now: Time) -> View {
    View {
        now,
        started: STARTED,
        started_unix: 1_764_500_000,
        backend: Backend::Ebpf,
        processes: Vec::new(),
        lost: LostView::default(),
        probes: probes(),
        log: Vec::new(),
    }
}

/// Whether a frame's file belongs to the user, by its path: enough for the fixture's own paths.
fn is_user(kind: FrameKind, file: &str) -> bool {
    kind == FrameKind::Python && !file.contains("site-packages") && !file.contains("/lib/python")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_balance() {
        let views = [
            leak(),
            healthy(),
            growing(),
            no_verdict_yet(),
            lost_events(),
            four_ranks(),
            hostile(),
            many(500),
        ];
        for device in views
            .iter()
            .flat_map(|view| &view.processes)
            .flat_map(|p| &p.devices)
        {
            let live: Bytes = device.sites.iter().map(|site| site.live_bytes).sum();
            assert_eq!(live, device.live_bytes);
            assert_eq!(device.live_bytes + device.baseline, device.allocated);
            assert!(
                device
                    .sites
                    .is_sorted_by(|a, b| crate::grouping::order(a, b).is_lt())
            );
            for site in device.sites.iter() {
                let spans = site.spans.iter();
                assert_eq!(spans.clone().map(|s| s.bytes).sum::<u64>(), site.live_bytes);
                assert_eq!(
                    spans.clone().map(|s| s.blocks).sum::<u64>(),
                    site.live_blocks
                );
                assert_eq!(spans.map(|s| s.generations).sum::<u64>(), site.generations);
            }
        }
    }

    #[test]
    fn many_has_as_many_as_asked_for() {
        assert_eq!(many(1234).processes[0].devices[0].sites.len(), 1234);
    }
}

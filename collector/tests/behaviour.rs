//! The collector on made-up programs: classes that recorded programs do not show, bad input, and
//! the numbers behind a verdict.

mod synthetic;

use std::collections::VecDeque;

use synthetic::{Program, Random};
use vramscope_collector::view::{Class, Confidence, LeakKind, Rhythm, StepSource};
use vramscope_events::{DeviceId, Event, Layer};

const MB: u64 = 1 << 20;

#[test]
fn nothing_at_all_is_no_verdict() {
    let mut program = Program::new();
    assert!(program.view().processes.is_empty());
    program.step(4096);
    let device = program.device();
    assert!(device.verdict.is_none(), "no whole step yet");
    assert_eq!(device.live_blocks, 0);
}

#[test]
fn one_step_is_a_warm_up() {
    let mut program = Program::new();
    for _ in 0..3 {
        program.step(4096);
    }
    let verdict = program.verdict();
    assert_eq!(verdict.class, Class::WarmUp);
    assert_eq!(verdict.confidence, Confidence::Low);
}

#[test]
fn only_frees_are_the_baseline_going_away() {
    let mut program = Program::new();
    program.attached = false;
    let blocks: Vec<_> = (0..100).map(|_| program.alloc(1, MB)).collect();
    program.attached = true;
    for block in &blocks {
        program.free(*block);
        program.backward(9);
    }
    let device = program.device();
    assert_eq!(device.baseline_at_attach, 100 * MB);
    assert_eq!(
        (device.allocated, device.baseline, device.live_bytes),
        (0, 0, 0)
    );
    assert_eq!(device.check.unknown_frees, 100);
    assert_eq!(device.check.corrected, 0);
    let class = device.verdict.expect("a verdict").class;
    assert!(matches!(class, Class::Healthy | Class::WarmUp), "{class:?}");
}

#[test]
fn a_tiny_leak_in_much_noise_is_found_exactly() {
    let mut program = Program::new();
    let mut random = Random(5);
    let mut buffers: VecDeque<_> = VecDeque::new();
    for _ in 0..200 {
        program.step(random.below(64) * MB);
        // Noise that outlives steps: of changing size, in a window.
        let size = (1 + random.below(40)) * MB;
        buffers.push_back(program.alloc(4, size));
        if buffers.len() > 7 {
            let old = buffers.pop_front().unwrap();
            program.free(old);
        }
        program.alloc(5, 512);
    }
    let device = program.device();
    let verdict = device.verdict.unwrap();
    assert_eq!(verdict.class, Class::Leak, "{verdict:?}");
    assert_eq!(verdict.rhythm, Rhythm::PerStep);
    assert!(
        (verdict.growth_bytes_per_step - 512.0).abs() < 1.0,
        "{verdict:?}"
    );
    assert_eq!(verdict.culprits.len(), 1);
    let site = &device.sites[0];
    assert_eq!(site.id, verdict.culprits[0].site);
    assert_eq!((site.generations, site.live_bytes), (200, 200 * 512));
}

#[test]
fn a_container_that_was_full_at_the_attach_is_no_leak() {
    for bound in [200, 1000] {
        let mut program = Program::new();
        program.attached = false;
        let mut window = VecDeque::new();
        for step in 0..bound + 450 {
            program.attached = step >= bound + 50;
            program.step(MB);
            window.push_back(program.alloc(4, 100 * 512));
            if window.len() > bound {
                let old = window.pop_front().unwrap();
                program.free(old);
            }
            if step > bound + 100 && step % 25 == 0 {
                let verdict = program.verdict();
                assert_ne!(
                    verdict.class,
                    Class::Leak,
                    "bound {bound} step {step}: {verdict:?}"
                );
            }
        }
        assert_eq!(program.verdict().class, Class::Healthy, "bound {bound}");
    }
}

#[test]
fn a_leak_is_growing_first_and_says_what_would_decide() {
    let mut program = Program::new();
    let mut classes = Vec::new();
    for _ in 0..160 {
        program.step(MB);
        program.alloc(5, 4096);
        if let Some(verdict) = program.device().verdict
            && classes.last() != Some(&verdict.class)
        {
            classes.push(verdict.class);
        }
    }
    assert_eq!(classes, [Class::WarmUp, Class::Growing, Class::Leak]);
}

#[test]
fn the_end_of_a_program_changes_no_verdict() {
    let mut program = Program::new();
    let mut kept = Vec::new();
    for _ in 0..200 {
        program.step(MB);
        kept.push(program.alloc(5, 4096));
    }
    for block in kept {
        program.free(block);
    }
    program.emit(Event::ProcessExited);
    let view = program.view();
    let device = &view.processes[0].devices[0];
    assert_eq!(device.live_bytes, 0);
    assert_eq!(device.verdict.as_ref().unwrap().class, Class::Leak);
    assert!(view.processes[0].exited.is_some());
}

#[test]
fn time_to_out_of_memory_is_headroom_over_growth() {
    let mut program = Program::new();
    program.pace = 1_000_000;
    for _ in 0..200 {
        program.step(MB);
        program.alloc(5, MB);
    }
    let reserved = program.totals.reserved;
    let peak = program.device().peak_allocated;
    program.emit(Event::DeviceMemory {
        device: DeviceId(0),
        total: 4096 * MB,
        free: 1000 * MB,
        used_by_process: None,
    });
    program.step(MB);
    let device = program.device();
    let oom = device
        .verdict
        .unwrap()
        .out_of_memory
        .expect("capacity is known");
    let headroom = (1000 * MB + reserved.saturating_sub(peak)) as f64;
    assert!(
        (oom.steps / (headroom / MB as f64) - 1.0).abs() < 0.01,
        "{oom:?}"
    );
    assert!(oom.steps_interval.low <= oom.steps && oom.steps <= oom.steps_interval.high);
    let seconds = oom.seconds.expect("the rate is known");
    // Eight events a step, one a millisecond.
    assert!(
        (seconds / (oom.steps * 0.009) - 1.0).abs() < 0.15,
        "{oom:?}"
    );
}

#[test]
fn a_step_that_needs_nearly_all_is_capacity() {
    let mut program = Program::new();
    program.emit(Event::DeviceMemory {
        device: DeviceId(0),
        total: 1000 * MB,
        free: 50 * MB,
        used_by_process: Some(950 * MB),
    });
    program.alloc(3, 100 * MB);
    for _ in 0..200 {
        program.step(800 * MB);
    }
    let verdict = program.verdict();
    assert_eq!(verdict.class, Class::Capacity, "{verdict:?}");
}

#[test]
fn a_cache_that_grows_while_tensors_do_not_is_by_design() {
    let mut program = Program::new();
    program.alloc(3, 100 * MB);
    for step in 0..200u64 {
        if step % 20 == 0 {
            program.totals.reserved += 20 * MB;
        }
        program.step(MB);
    }
    let verdict = program.verdict();
    assert_eq!(verdict.class, Class::CacheGrowth, "{verdict:?}");
}

#[test]
fn driver_memory_beside_the_cache_is_told_apart() {
    let mut program = Program::new();
    program.define(6, &[("/home/me/ring.py", "gather", 12)]);
    for step in 0..200u64 {
        program.step(MB);
        if step % 3 == 0 {
            // A library takes memory from the driver itself.
            let event = vramscope_events::Alloc {
                layer: Layer::Driver,
                device: DeviceId(0),
                address: vramscope_events::Address(0x7000_0000_0000 + step * 2 * MB),
                size: 2 * MB,
                stack: vramscope_events::StackId(6),
                totals: None,
            };
            program.emit(Event::Alloc(event));
        }
    }
    let device = program.device();
    let verdict = device.verdict.unwrap();
    assert_eq!(verdict.class, Class::OutsideFramework, "{verdict:?}");
    let growth = 2.0 * MB as f64 / 3.0;
    assert!(
        (verdict.growth_bytes_per_step / growth - 1.0).abs() < 0.1,
        "{verdict:?}"
    );
    let named = device
        .driver_sites
        .iter()
        .find(|s| s.id == verdict.culprits[0].site);
    assert_eq!(named.unwrap().own_frame().unwrap().line, 12);
}

#[test]
fn without_a_tensor_layer_the_drivers_blocks_are_judged() {
    let mut program = Program::new();
    program.layer = Layer::Driver;
    for _ in 0..200 {
        program.step(MB);
        program.alloc(5, 4096);
    }
    let device = program.device();
    assert!(!device.tensor_layer);
    assert_eq!(device.allocated, device.live_bytes + device.baseline);
    assert_eq!(device.verdict.unwrap().class, Class::Leak);
    assert_eq!(device.sites.len(), device.driver_sites.len());
}

#[test]
fn a_users_mark_takes_precedence() {
    let mut program = Program::new();
    for step in 0..160 {
        for _ in 0..3 {
            program.step(MB);
        }
        program.alloc(5, 4096);
        if step >= 10 {
            program.user_mark();
        }
    }
    let view = program.view();
    assert_eq!(view.processes[0].steps.source, StepSource::User);
    assert_eq!(view.processes[0].steps.count, 150);
    let verdict = view.processes[0].devices[0].verdict.clone().unwrap();
    assert_eq!(verdict.class, Class::Leak);
    assert!((verdict.growth_bytes_per_step - 4096.0).abs() < 1.0);
}

#[test]
fn millions_of_steps_stay_small_and_are_still_told_right() {
    let mut program = Program::new();
    for step in 0..300_000u64 {
        program.step(4096);
        if step % 1000 == 500 {
            program.alloc(5, 4096);
        }
    }
    let device = program.device();
    let verdict = device.verdict.unwrap();
    assert_eq!(verdict.class, Class::Leak, "{verdict:?}");
    assert!(
        (verdict.growth_bytes_per_step / 4.096 - 1.0).abs() < 0.05,
        "{verdict:?}"
    );
    let period = verdict.period_steps.expect("a period");
    assert!(period.abs_diff(1000) <= 30, "{period}");
    assert!(device.series.points.len() <= 513);
    assert_eq!(device.sites[0].generations, 300);
    assert!(device.sites[0].spans.len() <= 64);
}

#[test]
fn lost_events_make_bounds_and_the_verdict_says_so() {
    let mut program = Program::new();
    let mut random = Random(11);
    for step in 0..200 {
        program.step(MB);
        program.alloc(5, 4096);
        if step % 20 == 10 {
            // The ring was full for a while.
            program.attached = false;
            program.step(random.below(9) * MB);
            let held = program.alloc(2, MB);
            program.attached = true;
            program.lost(7);
            program.free(held);
        }
    }
    let view = program.view();
    assert_eq!(view.lost.events, 70);
    let device = &view.processes[0].devices[0];
    assert!(device.check.corrected > 0);
    let verdict = device.verdict.as_ref().unwrap();
    assert_eq!(verdict.class, Class::Leak);
    assert_eq!(verdict.confidence, Confidence::Low);
    assert!(
        verdict
            .evidence
            .iter()
            .any(|line| line.contains("events are missing"))
    );
}

#[test]
fn blocks_whose_frees_were_lost_go_when_their_place_is_used_again() {
    let mut program = Program::new();
    program.step(MB);
    // Three neighbours, freed while the ring was full; PyTorch joins their places and hands out
    // one block that begins inside the first and ends inside the last.
    let neighbours: Vec<_> = (0..3).map(|_| program.alloc_behind(5, 4096)).collect();
    let stays = program.alloc_behind(6, 4096);
    program.attached = false;
    for block in &neighbours {
        program.free(*block);
    }
    program.attached = true;
    program.lost(3);
    let before = program.device();
    assert_eq!(before.live_bytes, 4 * 4096, "nothing shows yet");
    let joined = program.alloc_in(7, neighbours[0].address + 512, 2 * 4096);
    let after = program.device();
    assert_eq!(after.live_blocks, 2);
    assert_eq!(after.live_bytes, joined.size + stays.size);
    assert_eq!(after.check.double_allocs, 3);
    assert_eq!(after.allocated, after.live_bytes);
    program.free(joined);
    program.free(stays);
    program.step(MB);
    assert_eq!(program.device().live_blocks, 0);
}

#[test]
fn a_device_that_is_only_seen_is_shown_while_there_is_nothing_else() {
    let mut program = Program::new();
    let memory = |device, used| Event::DeviceMemory {
        device: DeviceId(device),
        total: 64 * MB,
        free: 32 * MB,
        used_by_process: used,
    };
    program.emit(memory(0, None));
    program.emit(memory(1, None));
    let shown = |program: &mut Program| -> Vec<u16> {
        let view = program.view();
        let devices = view.processes.iter().flat_map(|process| &process.devices);
        devices.map(|device| device.device.0).collect()
    };
    assert_eq!(shown(&mut program), [0, 1]);
    program.emit(memory(1, Some(MB)));
    assert_eq!(shown(&mut program), [1], "a context is there");
    program.step(MB);
    assert_eq!(shown(&mut program), [0, 1]);
}

/// The kind that is suggested where `kept` blocks of `size` bytes from each of `stacks` stay every
/// `every` steps.
fn kind(stacks: &[&[(&str, &str, u32)]], size: u64, every: u64) -> Option<LeakKind> {
    let mut program = Program::new();
    for (index, frames) in stacks.iter().enumerate() {
        program.define(20 + index as u32, frames);
    }
    for step in 0..200 {
        program.step(MB);
        if step % every == 0 {
            for index in 0..stacks.len() {
                program.alloc(20 + index as u32, size);
            }
        }
    }
    let verdict = program.verdict();
    assert_eq!(verdict.class, Class::Leak, "{stacks:?} {verdict:?}");
    verdict.kind
}

#[test]
fn the_stacks_suggest_what_kind_of_leak_it_is() {
    const TRAIN: (&str, &str, u32) = ("/home/me/train.py", "train", 27);
    const RELU: (&str, &str, u32) = ("/v/site-packages/torch/nn/functional.py", "relu", 9);
    const LINEAR: (&str, &str, u32) = ("/v/site-packages/torch/nn/modules/linear.py", "forward", 5);
    const EVAL: (&str, &str, u32) = ("/home/me/train.py", "evaluate", 51);
    const COPY: (&str, &str, u32) = ("/usr/lib/python3.12/copy.py", "deepcopy", 7);
    const HOOK: (&str, &str, u32) = ("/home/me/probe.py", "save_hook", 3);
    const ADAM: (&str, &str, u32) = ("/v/site-packages/torch/optim/adam.py", "_init_group", 1);
    assert_eq!(
        kind(&[&[RELU, TRAIN], &[TRAIN]], 4096, 1),
        Some(LeakKind::GraphKept)
    );
    assert_eq!(
        kind(&[&[LINEAR, TRAIN]], 4096, 1),
        Some(LeakKind::OutputsKept)
    );
    assert_eq!(kind(&[&[TRAIN]], 512, 1), Some(LeakKind::Scalars));
    assert_eq!(
        kind(&[&[LINEAR, EVAL, TRAIN]], 4096, 20),
        Some(LeakKind::Evaluation)
    );
    assert_eq!(
        kind(&[&[COPY, TRAIN]], 4096, 10),
        Some(LeakKind::ParameterCopies)
    );
    assert_eq!(
        kind(&[&[ADAM, TRAIN], &[TRAIN]], 4096, 10),
        Some(LeakKind::ParameterCopies)
    );
    assert_eq!(
        kind(&[&[HOOK, LINEAR, TRAIN]], 4096, 1),
        Some(LeakKind::Hook)
    );
}

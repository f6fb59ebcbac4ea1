//! What drawing costs with 100,000 sites: one frame, one new view, and a whole second of both at
//! the live view's pace (a new view and ten frames), which is the share of a core to hold against
//! the budget of 3 %: 30 ms.

use std::{hint::black_box, io::Sink, sync::Arc, time::Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{Terminal, TerminalOptions, Viewport, backend::CrosstermBackend, layout::Rect};
use vramscope_collector::{fixture, view::View};
use vramscope_events::Pid;
use vramscope_tui::{LiveView, Source, Theme};

const SITES: usize = 100_000;
const SIZE: (u16, u16) = (120, 40);
const FRAMES_A_SECOND: usize = 10;

/// Down to the bytes for the terminal, which nobody reads.
fn terminal() -> Terminal<CrosstermBackend<Sink>> {
    let viewport = Viewport::Fixed(Rect::new(0, 0, SIZE.0, SIZE.1));
    let backend = CrosstermBackend::new(std::io::sink());
    Terminal::with_options(backend, TerminalOptions { viewport }).expect("a sink takes all")
}

fn press(live: &mut LiveView, code: KeyCode) {
    live.press(KeyEvent::new(code, KeyModifiers::NONE));
}

/// Two views between which every number moves.
fn views(sites: usize) -> [Arc<View>; 2] {
    let first = fixture::many(sites);
    let mut second = first.clone();
    second.now.0 += 1_000_000_000;
    let device = &mut second.processes[0].devices[0];
    let mut sites = device.sites.to_vec();
    for site in &mut sites {
        site.live_bytes += 4096;
        site.live_blocks += 1;
        site.growth_bytes_per_step *= 1.01;
    }
    device.sites = sites.into();
    [Arc::new(first), Arc::new(second)]
}

fn frame(terminal: &mut Terminal<CrosstermBackend<Sink>>, live: &LiveView) {
    let drawn = terminal.draw(|frame| live.draw(frame.buffer_mut()));
    black_box(drawn.expect("a sink takes all"));
}

fn drawing(criterion: &mut Criterion) {
    let views = views(SITES);
    // What is being looked at, by the keys that lead there.
    for (name, keys) in [
        ("sites by line", ""),
        ("sites by stack", "ggg"),
        ("sites by stack and live bytes", "gggs"),
        ("tree", "2"),
        ("one site", "\n"),
        ("timeline", "4"),
    ] {
        let mut live = LiveView::new(
            Theme::default(),
            Source::Process(Pid(4121)),
            SIZE,
            Arc::clone(&views[0]),
        );
        for key in keys.chars() {
            let code = if key == '\n' {
                KeyCode::Enter
            } else {
                KeyCode::Char(key)
            };
            press(&mut live, code);
        }
        let mut terminal = terminal();
        let mut group = criterion.benchmark_group(format!("100,000 {name}"));
        group.bench_function("frame", |bencher| {
            bencher.iter(|| {
                // Another row each time, so that there is something to draw.
                press(&mut live, KeyCode::Down);
                frame(&mut terminal, &live);
            });
        });
        let mut next = 0;
        group.bench_function("new view", |bencher| {
            bencher.iter_custom(|times| {
                let start = Instant::now();
                for _ in 0..times {
                    next = 1 - next;
                    live.show(Arc::clone(&views[next]));
                }
                start.elapsed()
            });
        });
        group.bench_function("second (a view, ten frames)", |bencher| {
            bencher.iter(|| {
                next = 1 - next;
                live.show(Arc::clone(&views[next]));
                for _ in 0..FRAMES_A_SECOND {
                    press(&mut live, KeyCode::Down);
                    frame(&mut terminal, &live);
                }
            });
        });
        group.finish();
    }
}

/// A target that makes a new site with every allocation: a new view costs what it costs (it is then
/// taken in more rarely), a frame must cost what it always does.
fn a_million(criterion: &mut Criterion) {
    let views = views(1_000_000);
    let mut live = LiveView::new(
        Theme::default(),
        Source::Process(Pid(4121)),
        SIZE,
        Arc::clone(&views[0]),
    );
    let mut terminal = terminal();
    let mut group = criterion.benchmark_group("1,000,000 sites by line");
    group.sample_size(10);
    group.bench_function("frame", |bencher| {
        bencher.iter(|| {
            press(&mut live, KeyCode::Down);
            frame(&mut terminal, &live);
        });
    });
    let mut next = 0;
    group.bench_function("new view", |bencher| {
        bencher.iter(|| {
            next = 1 - next;
            live.show(Arc::clone(&views[next]));
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = drawing, a_million
}
criterion_main!(benches);

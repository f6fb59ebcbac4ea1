//! What a screen or a report costs with 100,000 sites.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use vramscope_collector::{
    fixture,
    flamegraph::{Weight, folded, svg},
    grouping::group,
    report::{Options, json, text},
    view::Grouping,
};

fn outputs(criterion: &mut Criterion) {
    let view = fixture::many(100_000);
    let process = &view.processes[0];
    let device = &process.devices[0];
    let mut bench = criterion.benchmark_group("100,000 sites");
    bench.sample_size(10);
    for grouping in [
        Grouping::Stack,
        Grouping::Line,
        Grouping::Function,
        Grouping::Module,
    ] {
        bench.bench_function(format!("group by {grouping:?}"), |b| {
            b.iter(|| group(black_box(&device.sites), grouping));
        });
    }
    bench.bench_function("text report, 10 lines", |b| {
        b.iter(|| text::report(&view, Options::default(), text::Layout::default()));
    });
    bench.bench_function("JSON report, all lines", |b| {
        b.iter(|| json::report(&view, Options::all(Grouping::Line)));
    });
    bench.bench_function("folded stacks", |b| {
        b.iter(|| folded(&device.sites, process, Weight::Bytes));
    });
    bench.bench_function("flame graph", |b| {
        b.iter(|| svg(&view, process, device, Weight::Bytes));
    });
    bench.finish();
}

criterion_group!(benches, outputs);
criterion_main!(benches);

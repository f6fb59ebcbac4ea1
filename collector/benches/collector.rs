//! Events a second, verdicts and views: the budgets of the collector.
//!
//! - `ingest`: at least a million events a second, verdicts included;
//! - `verdict`: at most 5 ms at 100,000 sites;
//! - `view`: what a frame costs at 100,000 sites.

use std::{hint::black_box, sync::Arc};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use vramscope_collector::{Collector, Config, view::Backend};
use vramscope_events::{
    Address, Alloc, DeviceId, Event, Frame, FrameId, FrameKind, Free, Layer, Pid, Record, StackId,
    StepMark, StepMarkKind, Tid, Time, Totals,
};

/// Writes a stream with right totals.
#[derive(Default)]
struct Stream {
    records: Vec<Record>,
    allocated: u64,
    next: u64,
}

impl Stream {
    fn push(&mut self, event: Event) {
        self.records.push(Record {
            time: Time(self.records.len() as u64 * 10_000),
            process: Pid(1),
            thread: Tid(1),
            event,
        });
    }

    fn totals(&self) -> Option<Totals> {
        Some(Totals {
            allocated: self.allocated,
            reserved: 1 << 34,
        })
    }

    fn alloc(&mut self, stack: u32, size: u64) -> (u64, u64) {
        self.next += 1;
        self.allocated += size;
        let alloc = Alloc {
            layer: Layer::Tensor,
            device: DeviceId(0),
            address: Address(self.next * 512),
            size,
            stack: StackId(stack),
            totals: self.totals(),
        };
        self.push(Event::Alloc(alloc));
        (self.next * 512, size)
    }

    fn free(&mut self, (address, size): (u64, u64)) {
        self.allocated -= size;
        let free = Free {
            layer: Layer::Tensor,
            device: Some(DeviceId(0)),
            address: Address(address),
            size: Some(size),
            totals: self.totals(),
        };
        self.push(Event::Free(free));
    }

    fn mark(&mut self) {
        self.push(Event::StepMark(StepMark {
            kind: StepMarkKind::Backward,
            stack: StackId(1),
        }));
    }

    fn define(&mut self, stacks: u32) {
        for id in 0..stacks {
            let frame = Frame {
                kind: FrameKind::Python,
                file: "/home/user/train.py".into(),
                function: "step".into(),
                line: id,
            };
            self.push(Event::Frame {
                id: FrameId(id),
                frame: Arc::new(frame),
            });
            let frames: Arc<[FrameId]> = (0..20.min(id + 1)).map(|up| FrameId(id - up)).collect();
            self.push(Event::Stack {
                id: StackId(id),
                frames,
            });
        }
    }
}

/// Training steps of 54 events over `sites` stacks, one of which leaks.
fn training(steps: u64, sites: u32) -> Vec<Record> {
    let mut stream = Stream::default();
    stream.define(sites);
    let weights: Vec<_> = (0..200)
        .map(|i| stream.alloc(2 + i % 20, 1 << 20))
        .collect();
    black_box(&weights);
    for step in 0..steps {
        let mut live = Vec::new();
        for i in 0..26 {
            let stack = (step as u32 * 26 + i) % (sites - 30) + 30;
            live.push(stream.alloc(stack, 4096 << (i % 8)));
        }
        stream.mark();
        while let Some(block) = live.pop() {
            stream.free(block);
        }
        stream.alloc(1, 512);
    }
    stream.records
}

fn collector() -> Collector {
    Collector::new(Config::new(Backend::Ebpf, Time(0), 0))
}

fn ingest(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ingest");
    for (name, records) in [
        ("training, 60 sites", training(5_000, 60)),
        ("training, 20,000 sites", training(5_000, 20_000)),
    ] {
        group.throughput(Throughput::Elements(records.len() as u64));
        group.bench_function(name, |bench| {
            bench.iter_batched(
                collector,
                |mut collector| {
                    for batch in records.chunks(1024) {
                        collector.ingest(batch);
                    }
                    collector
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();

    // Frees and allocations in random order among a million live blocks.
    let mut stream = Stream::default();
    let mut live: Vec<_> = (0..1_000_000)
        .map(|i| stream.alloc(i % 1000, 512))
        .collect();
    let fill = std::mem::take(&mut stream.records);
    let mut state = 1u64;
    for i in 0..250_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let at = (state >> 33) as usize % live.len();
        stream.free(live[at]);
        live[at] = stream.alloc(i % 1000, 512);
        if i % 50 == 0 {
            stream.mark();
        }
    }
    let mut full = collector();
    full.ingest(&fill);
    let mut group = criterion.benchmark_group("ingest");
    group.sample_size(10);
    group.throughput(Throughput::Elements(stream.records.len() as u64));
    group.bench_function("a million live blocks", |bench| {
        // The stream ends as it began but for the addresses, so it can be fed once only.
        bench.iter_batched(
            || {
                let mut full = collector();
                full.ingest(&fill);
                full
            },
            |mut full| {
                full.ingest(&stream.records);
                full
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// A collector with 100,000 sites that hold something, `growing` of which keep more every step.
fn crowded(growing: u32) -> (Collector, Stream) {
    let mut stream = Stream::default();
    stream.define(100_000);
    for stack in 0..100_000 {
        stream.alloc(stack, 4096);
    }
    for _ in 0..200 {
        for stack in 0..growing {
            stream.alloc(stack * 7, 512);
        }
        stream.mark();
    }
    let mut collector = collector();
    collector.ingest(&stream.records);
    stream.records.clear();
    (collector, stream)
}

fn crowd(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("100,000 sites");
    group.sample_size(20);
    for growing in [100, 1_000] {
        let (mut collector, mut stream) = crowded(growing);
        group.bench_function(
            format!("view after a step, {growing} sites grow"),
            |bench| {
                bench.iter(|| {
                    stream.mark();
                    collector.ingest(&stream.records);
                    stream.records.clear();
                    black_box(collector.view(Time(1)));
                });
            },
        );
        group.bench_function(format!("view, {growing} sites grow"), |bench| {
            bench.iter(|| {
                stream.alloc(5, 512);
                collector.ingest(&stream.records);
                stream.records.clear();
                black_box(collector.view(Time(1)))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, ingest, crowd);
criterion_main!(benches);

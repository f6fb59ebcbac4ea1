//! How fast a stream is selected from, and each format written: two million events of a training
//! with a thousand sites that keeps 100,000 blocks. Figures, no verdicts.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

use support::{Stream, Writer, blocks};
use vramscope_events::{FrameKind, Layer};
use vramscope_export::{
    Gathered, PeakFinder, Weight, What, csv, firefox, folded, html, parquet, perfetto, pprof,
    speedscope, svg, torch_snapshot,
};

const SITES: usize = 1000;
const STEPS: u64 = 1000;
const BLOCKS_A_STEP: u64 = 1000;
const KEPT_A_STEP: u64 = 100;

fn stream() -> Stream {
    let mut writer = Writer::new();
    let stacks: Vec<_> = (0..SITES)
        .map(|site| {
            let line = site as u32;
            let mut frames = vec![(FrameKind::Native, "libtorch.so", "at::empty", line)];
            let depth = 8 + site % 20;
            let path = "/opt/lib/python3.12/site-packages/torch/nn/modules/module.py";
            for level in 0..depth {
                frames.push((
                    FrameKind::Python,
                    path,
                    "forward",
                    (site / 7 + level) as u32,
                ));
            }
            frames.push((FrameKind::Python, "/home/mira/train.py", "step", line % 50));
            writer.stack(&frames)
        })
        .collect();
    for step in 0..STEPS {
        let base = 0x7000_0000_0000 + step * BLOCKS_A_STEP * 2048;
        for block in 0..BLOCKS_A_STEP {
            let stack = stacks[(step * 31 + block * 7) as usize % SITES];
            writer.alloc(Layer::Tensor, 0, base + block * 2048, 512 + block, stack);
        }
        writer.backward(stacks[0]);
        for block in KEPT_A_STEP..BLOCKS_A_STEP {
            writer.free(Layer::Tensor, 0, base + block * 2048, 512 + block);
        }
    }
    writer.finish("bench", "python train.py")
}

fn main() {
    let stream = stream();
    let events = stream.records.len() as f64;
    println!(
        "{events} events, {SITES} sites, {} live blocks",
        STEPS * KEPT_A_STEP
    );
    let start = Instant::now();
    let mut finder = PeakFinder::default();
    finder.push(&stream.records);
    let peaks = finder.finish();
    println!(
        "peak: {:.2} M events/s ({} books)",
        events / start.elapsed().as_secs_f64() / 1e6,
        peaks.iter().count()
    );
    let start = Instant::now();
    let gathered = stream.gather(blocks(What::Survivors));
    println!(
        "select, last 600,000 events kept: {:.2} M events/s",
        events / start.elapsed().as_secs_f64() / 1e6
    );
    for (name, write) in formats(&stream) {
        let start = Instant::now();
        let bytes = write(&gathered);
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{name:16} {:8.1} ms  {:8.2} MB",
            seconds * 1e3,
            bytes as f64 / 1e6
        );
    }
}

type Write<'a> = Box<dyn Fn(&Gathered) -> usize + 'a>;

fn formats(stream: &Stream) -> Vec<(&'static str, Write<'_>)> {
    fn into(write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let mut out = Vec::new();
        write(&mut out);
        out.len()
    }
    vec![
        (
            "folded",
            Box::new(|all| folded::write(&all.selection, Weight::Bytes).len()),
        ),
        (
            "svg",
            Box::new(|all| {
                svg::write(&all.selection, &all.selection.parts[0], Weight::Bytes)
                    .expect("a picture")
                    .len()
            }),
        ),
        ("html", Box::new(|all| html::write(all).len())),
        (
            "csv",
            Box::new(|all| into(|out| csv::write(&all.selection, out).expect("a table"))),
        ),
        (
            "speedscope",
            Box::new(|all| into(|out| speedscope::write(&all.selection, out).expect("a file"))),
        ),
        (
            "pprof",
            Box::new(|all| into(|out| pprof::write(&all.selection, out).expect("a profile"))),
        ),
        (
            "firefox",
            Box::new(|all| into(|out| firefox::write(all, out).expect("a profile"))),
        ),
        (
            "perfetto",
            Box::new(|all| into(|out| perfetto::write(all, out).expect("a trace"))),
        ),
        (
            "torch-snapshot",
            Box::new(|all| {
                into(|out| {
                    torch_snapshot::write(all, out).expect("a snapshot");
                })
            }),
        ),
        (
            "parquet events",
            Box::new(|_| {
                into(|out| {
                    let mut events = parquet::Events::new(out).expect("a table");
                    events.push(&stream.records).expect("rows");
                    events.finish().expect("an end");
                })
            }),
        ),
        (
            "parquet sites",
            Box::new(|all| into(|out| parquet::sites(&all.selection, out).expect("a table"))),
        ),
    ]
}

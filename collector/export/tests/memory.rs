//! Memory goes by sites and live blocks, not by events.

mod support;

use cap::Cap;
use support::{PID, Writer};
use vramscope_collector::{Collector, Config, view::Backend};
use vramscope_events::{FrameKind, Layer, Record, Time};
use vramscope_export::{Choice, Gather, What};

#[global_allocator]
static MEMORY: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// Bytes in use after a stream of so many steps with a hundred live blocks.
fn after(steps: u64) -> usize {
    let before = MEMORY.allocated();
    let collector = Collector::new(Config::new(Backend::Recording, Time(0), 0));
    let mut gather = Gather::new(collector, Choice::default(), 1000);
    let mut writer = Writer::new();
    let stack = writer.stack(&[(FrameKind::Python, "/a/train.py", "step", 3)]);
    for step in 0..steps {
        for block in 0..100 {
            writer.alloc(Layer::Tensor, 0, 0x1000 + block * 512, 512, stack);
        }
        writer.backward(stack);
        if step + 1 < steps {
            for block in 0..100 {
                writer.free(Layer::Tensor, 0, 0x1000 + block * 512, 512);
            }
        }
        let batch: Vec<Record> = std::mem::take(&mut writer.records);
        gather.push(&batch);
    }
    drop(writer);
    let used = MEMORY.allocated() - before;
    let gathered = gather.finish().unwrap();
    assert_eq!(gathered.selection.bytes(), 51_200);
    assert_eq!(gathered.selection.parts[0].key.process, PID);
    assert!(matches!(Choice::default().what, What::Survivors));
    used
}

#[test]
fn a_stream_ten_times_as_long_needs_no_more() {
    let short = after(1000);
    let long = after(10_000);
    assert!(
        long < short + short / 4,
        "{short} B for 1,000 steps, {long} B for 10,000"
    );
}

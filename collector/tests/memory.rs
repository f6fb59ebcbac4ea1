//! What a live block costs, everything included. A process of its own: it counts all allocations.

use std::alloc::System;

use cap::Cap;
use vramscope_collector::{Collector, Config, view::Backend};
use vramscope_events::{
    Address, Alloc, DeviceId, Event, Layer, Pid, Record, StackId, StepMark, StepMarkKind, Tid,
    Time, Totals,
};

#[global_allocator]
static COUNTED: Cap<System> = Cap::new(System, usize::MAX);

const BLOCKS: u64 = 1_000_000;
/// Budget of a live block at a million of them.
const MOST_BYTES: u64 = 100;

#[test]
fn a_million_live_blocks_cost_at_most_a_hundred_bytes_each() {
    let mut collector = Collector::new(Config::new(Backend::Ebpf, Time(0), 0));
    let before = COUNTED.allocated();
    let mut allocated = 0;
    for block in 0..BLOCKS {
        // A leak of 40 blocks a step from 40 sites.
        let stack = StackId(1 + (block % 40) as u32);
        allocated += 512;
        let event = if block % 40 == 0 {
            Event::StepMark(StepMark {
                kind: StepMarkKind::Backward,
                stack: StackId(99),
            })
        } else {
            Event::Alloc(Alloc {
                layer: Layer::Tensor,
                device: DeviceId(0),
                address: Address(block * 512),
                size: 512,
                stack,
                totals: Some(Totals {
                    allocated,
                    reserved: allocated,
                }),
            })
        };
        collector.ingest(&[Record {
            time: Time(block * 1000),
            process: Pid(1),
            thread: Tid(1),
            event,
        }]);
    }
    let live = collector.survivors(Pid(1), DeviceId(0)).count() as u64;
    let cost = (COUNTED.allocated() - before) as u64;
    println!("{} bytes a live block at {live}", cost / live);
    assert!(live > BLOCKS * 9 / 10);
    assert!(cost <= MOST_BYTES * live, "{cost} bytes for {live} blocks");
}

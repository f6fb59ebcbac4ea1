//! When memory runs out.

use vramscope_events::Bytes;

use super::growth::Growth;
use crate::{
    device::Device,
    view::{Interval, OutOfMemoryIn},
};

/// Bytes that growth can still take: what is free on the device and what of the cache a step does
/// not need at its peak. `None` where the device's capacity is unknown.
pub(crate) fn headroom(device: &Device, recent_peak: Bytes) -> Option<Bytes> {
    let memory = device.memory?;
    let reusable = device.totals.reserved.saturating_sub(recent_peak);
    Some(memory.free + reusable)
}

/// When `growth` has taken `headroom`, at `rate` steps a second (0 while unknown). A leak in
/// stairs runs out at a stair, so this is right to a period.
pub(crate) fn out_of_memory(growth: &Growth, headroom: Bytes, rate: f64) -> Option<OutOfMemoryIn> {
    if growth.per_step <= 0.0 {
        return None;
    }
    let steps_at = |per_step: f64| {
        if per_step > 0.0 {
            headroom as f64 / per_step
        } else {
            f64::INFINITY
        }
    };
    let steps = steps_at(growth.per_step);
    Some(OutOfMemoryIn {
        steps,
        steps_interval: Interval {
            low: steps_at(growth.interval.high),
            high: steps_at(growth.interval.low),
        },
        seconds: (rate > 0.0).then(|| steps / rate),
    })
}

//! A damaged recording may hold any number; the screen shows what it can and never panics.

mod common;

use std::sync::Arc;

use common::screen;
use vramscope_collector::{
    fixture,
    view::{GenerationSpan, Point, View},
};
use vramscope_events::Time;
use vramscope_tui::Theme;

fn wild(number: u64, float: f64) -> View {
    let mut view = fixture::leak();
    view.now = Time(number);
    view.lost.events = number;
    let process = &mut view.processes[0];
    process.steps.count = number;
    process.steps.rate = float;
    let device = &mut process.devices[0];
    for bytes in [
        &mut device.allocated,
        &mut device.reserved,
        &mut device.peak_allocated,
        &mut device.baseline,
        &mut device.live_bytes,
        &mut device.live_blocks,
        &mut device.check.double_allocs,
        &mut device.check.unknown_frees,
        &mut device.check.corrected,
    ] {
        *bytes = number;
    }
    device.free = Some(number);
    device.outside = Some(number);
    device.capacity = Some(number / 2);
    for bucket in &mut device.buckets {
        bucket.bytes = number;
    }
    let mut series = (*device.series).clone();
    for (index, point) in series.points.iter_mut().enumerate() {
        *point = Point {
            time: Time(number.wrapping_add(index as u64)),
            step: number,
            allocated: number,
            floor: number,
            reserved: number / 3,
        };
    }
    device.series = Arc::new(series);
    if let Some(verdict) = &mut device.verdict {
        verdict.growth_bytes_per_step = float;
        verdict.interval.low = float;
        verdict.share_explained = float;
        verdict.since_step = number;
    }
    let mut sites = device.sites.to_vec();
    for site in &mut sites {
        site.live_bytes = number;
        site.live_blocks = number;
        site.total_bytes = number;
        site.generations = number;
        site.growth_bytes_per_step = float;
        site.growth_share = float;
        site.oldest_survivor = Some(Time(number));
        site.first_seen = Time(number);
        site.trend = Arc::from([0, number, 1]);
        site.user_frame = Some(7_000);
        // The wrong way round.
        let span = GenerationSpan {
            first: number,
            last: number / 2,
            blocks: 1,
            bytes: number,
            generations: 1,
        };
        site.spans = Arc::from([span]);
    }
    device.sites = sites.into();
    view
}

#[test]
fn any_number_is_shown() {
    for number in [0, 1, u64::MAX / 3, u64::MAX] {
        for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e300] {
            // One stack a row: sums of groups are the collector's.
            for keys in [
                "",
                "2",
                "2b",
                "3",
                "4",
                "4z",
                "5",
                "6",
                "m",
                "sss",
                "ggg<enter>",
            ] {
                screen(wild(number, float), keys, (120, 40), Theme::default());
            }
        }
    }
}

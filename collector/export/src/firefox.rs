//! JSON for profiler.firefox.com: allocation samples ("Retained memory" in a selected range) and
//! counters of what is allocated and reserved.
//!
//! The format attaches allocation samples to a process's first thread, so each device and layer is
//! a process of its own there.

use std::collections::BTreeMap;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile,
    ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};
use rustc_hash::FxHashMap;
use vramscope_collector::{escape, flamegraph::Origin, view::DeviceView};
use vramscope_events::{FrameKind, Layer, Time};

use crate::{
    events::block_events,
    frames::{self, StackIndex},
    gather::Gathered,
    selection::{Kind, Part},
};

/// Writing the profile failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The selection is not one of blocks.
    #[error("the Firefox profiler shows blocks: it has no place for growth or for all allocations")]
    NotBlocks,
    /// The writer's.
    #[error("the profile could not be written")]
    Write(#[from] serde_json::Error),
}

/// A selection with the last events. Its blocks must have been asked for
/// ([`crate::Choice::blocks`]).
///
/// # Errors
/// [`Error`].
pub fn write(gathered: &Gathered, out: impl std::io::Write) -> Result<(), Error> {
    if gathered.selection.kind != Kind::Alive {
        return Err(Error::NotBlocks);
    }
    let selection = &gathered.selection;
    let start = ReferenceTimestamp::from_millis_since_unix_epoch(
        selection.started_unix.saturating_mul(1000) as f64,
    );
    let mut title = selection.title.clone();
    for note in &selection.notes {
        title.push_str("; ");
        title.push_str(note);
    }
    let mut profile = Profile::new(
        &format!("vramscope: {title}"),
        start,
        SamplingInterval::from_millis(1),
    );
    profile.set_symbolicated(true);
    let mut writer = Writer {
        categories: categories(&mut profile),
        profile,
        gathered,
    };
    for part in &selection.parts {
        writer.part(part);
    }
    serde_json::to_writer(out, &writer.profile)?;
    Ok(())
}

fn categories(profile: &mut Profile) -> BTreeMap<&'static str, CategoryHandle> {
    let color = |origin| match origin {
        Origin::Own => CategoryColor::Orange,
        Origin::Torch => CategoryColor::LightBlue,
        Origin::Library => CategoryColor::Gray,
        Origin::Native => CategoryColor::Green,
        Origin::Backward => CategoryColor::Purple,
    };
    let all = Origin::ALL.into_iter();
    all.map(|origin| {
        (
            origin.name(),
            profile.add_category(origin.name(), color(origin)),
        )
    })
    .collect()
}

struct Writer<'a> {
    profile: Profile,
    categories: BTreeMap<&'static str, CategoryHandle>,
    gathered: &'a Gathered,
}

impl Writer<'_> {
    fn time(&self, time: Time) -> Timestamp {
        let since = time.0.saturating_sub(self.gathered.selection.started.0);
        Timestamp::from_nanos_since_reference(since)
    }

    fn part(&mut self, part: &Part) {
        let pid = part.key.process.0;
        let command = escape::line(&part.process.command, 100);
        let name = format!("{} ({command})", part.name());
        let start = self.time(self.gathered.selection.started);
        let end = self.time(self.gathered.selection.moment);
        let process = self.profile.add_process(&name, pid, start);
        self.profile.set_process_end_time(process, end);
        let thread = self.profile.add_thread(process, pid, start, true);
        self.profile.set_thread_name(thread, &part.name());
        // A thread without samples has no graph to select a range in.
        for time in [start, end] {
            self.profile
                .add_sample(thread, time, None, CpuDelta::ZERO, 0);
        }
        let mut stacks: FxHashMap<StackIndex, Option<StackHandle>> = FxHashMap::default();
        for event in block_events(self.gathered, part) {
            let known = stacks.get(&event.stack).copied();
            let stack = known.unwrap_or_else(|| self.stack(thread, event.stack));
            stacks.insert(event.stack, stack);
            let size = i64::try_from(event.size).unwrap_or(i64::MAX);
            self.profile.add_allocation_sample(
                thread,
                self.time(event.time),
                stack,
                event.address.0,
                if event.comes { size } else { -size },
            );
        }
        let view = &self.gathered.view;
        let device = (view.processes.iter())
            .filter(|process| process.info.pid == part.key.process)
            .flat_map(|process| &process.devices)
            .find(|device| device.device == part.key.device);
        if let (Some(device), Layer::Tensor | Layer::Driver) = (device, part.key.layer) {
            self.counters(process, device);
        }
    }

    fn stack(&mut self, thread: ThreadHandle, stack: StackIndex) -> Option<StackHandle> {
        let frames: Vec<FrameInfo> = (self.gathered.selection.table.frames_of(stack).rev())
            .map(|frame| FrameInfo {
                frame: Frame::Label(self.profile.intern_string(&name(frame))),
                category_pair: self.categories[frame.origin.name()].into(),
                flags: FrameFlags::empty(),
            })
            .collect();
        self.profile.intern_stack_frames(thread, frames.into_iter())
    }

    fn counters(&mut self, process: fxprof_processed_profile::ProcessHandle, device: &DeviceView) {
        let words = format!("GPU {}", device.device);
        for (name, get) in [
            (
                "allocated",
                (|point| point.allocated) as fn(&vramscope_collector::view::Point) -> u64,
            ),
            ("floor", |point| point.floor),
            ("reserved", |point| point.reserved),
        ] {
            let name = format!("{words} {name}");
            let counter = self.profile.add_counter(process, &name, "Memory", &name);
            let mut before = 0.0;
            for point in &device.series.points {
                let value = get(point) as f64;
                let time = self.time(point.time);
                self.profile
                    .add_counter_sample(counter, time, value - before, 0);
                before = value;
            }
        }
    }
}

/// The function, and the place where it is one.
fn name(frame: &frames::Frame) -> String {
    match (frame.kind, frame.line) {
        (FrameKind::Backward, _) => frame.function.clone(),
        _ => frame.label.clone(),
    }
}

//! Two views compared: which sites grew, shrank, came and went.

mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use vramscope_events::{Bytes, DeviceId, FrameKind, Pid};

use crate::{
    grouping::group,
    view::{Class, DeviceView, Grouping, ProcessView, SiteView, View},
};

pub use text::text;

/// What to compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What makes one site.
    pub grouping: Grouping,
    /// Only this device.
    pub device: Option<DeviceId>,
    /// At most so many sites a device.
    pub top: Option<usize>,
}

/// Two views compared.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// Whether both are moments of one session. Then the steps between them are known, and a
    /// change a step is the change over them; otherwise it is the difference of the two growths.
    pub one_session: bool,
    /// Seconds from the start of each session to its moment.
    pub at_seconds: [f64; 2],
    /// The devices of both, in order.
    pub devices: Vec<DeviceDiff>,
    /// Devices that only one of them has, in words.
    pub only_in_one: Vec<String>,
}

/// One device compared.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceDiff {
    /// The process in the second view.
    pub pid: Pid,
    /// Its rank, where it has one.
    pub rank: Option<u32>,
    /// The device.
    pub device: DeviceId,
    /// What each of them says of it.
    pub sides: [Side; 2],
    /// Steps between the two moments; only of one session.
    pub steps_between: Option<u64>,
    /// Every site that differs, the largest change first.
    pub sites: Vec<SiteDiff>,
    /// Sites that differ and were left out for `top`.
    pub left_out: usize,
    /// Sites that hold as much as before.
    pub same: usize,
}

/// One device in one view.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Side {
    /// Whole steps since the attach.
    pub steps: u64,
    /// What the framework says is in live blocks.
    pub allocated: Bytes,
    /// What it holds from the driver.
    pub reserved: Bytes,
    /// Bytes in blocks that were allocated since the attach and not freed.
    pub live_bytes: Bytes,
    /// Such blocks.
    pub live_blocks: u64,
    /// What the verdict is.
    pub class: Option<Class>,
    /// Growth of the floor, bytes a step.
    pub growth_bytes_per_step: f64,
}

/// What became of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It holds something and did not.
    Appeared,
    /// It holds more.
    Grew,
    /// It holds less.
    Shrank,
    /// It holds nothing and did.
    Went,
}

/// One site compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteDiff {
    /// What became of it.
    pub change: Change,
    /// Source file or module of the frame that names it. Foreign text.
    pub file: String,
    /// Its function. Foreign text.
    pub function: String,
    /// Its line, from 1; 0 where unknown or not part of the grouping.
    pub line: u32,
    /// The source line. Foreign text.
    pub source: Option<String>,
    /// Live bytes in each.
    pub bytes: [Bytes; 2],
    /// Live blocks in each.
    pub blocks: [u64; 2],
    /// The change of the live bytes.
    pub delta_bytes: i64,
    /// The change a step; see [`Diff::one_session`].
    pub delta_bytes_per_step: f64,
}

/// What makes two sites the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(Vec<(FrameKind, String, String, u32)>);

impl Key {
    fn of(site: &SiteView, grouping: Grouping) -> Key {
        let frames = match grouping {
            Grouping::Stack => site.stack.iter().map(AsRef::as_ref).collect(),
            _ => site.own_frame().into_iter().collect::<Vec<_>>(),
        };
        let name = |frame: &crate::view::FrameView| {
            let (function, line) = match grouping {
                Grouping::Stack | Grouping::Line => (&*frame.function, frame.line),
                Grouping::Function => (&*frame.function, 0),
                Grouping::Module => ("", 0),
            };
            (
                frame.kind,
                frame.file.to_string(),
                function.to_owned(),
                line,
            )
        };
        Key(frames.into_iter().map(name).collect())
    }
}

/// Compares two views.
pub fn compare(before: &View, after: &View, options: Options) -> Diff {
    let one_session = before.started == after.started
        && before.started_unix == after.started_unix
        && first_pid(before) == first_pid(after);
    let mut devices = Vec::new();
    let mut only_in_one = Vec::new();
    for (index, process) in after.processes.iter().enumerate() {
        let other = partner(before, process, index, one_session);
        for device in &process.devices {
            if options.device.is_some_and(|wanted| wanted != device.device) {
                continue;
            }
            let found = other.and_then(|other| {
                let mut devices = other.devices.iter();
                let same = devices.find(|other| other.device == device.device)?;
                Some((other, same))
            });
            match found {
                Some((other, old)) => devices.push(compare_devices(
                    (other, old),
                    (process, device),
                    one_session,
                    options,
                )),
                None => only_in_one.push(format!(
                    "GPU {} of process {} is only in the second",
                    device.device, process.info.pid
                )),
            }
        }
    }
    for (index, process) in before.processes.iter().enumerate() {
        let other = partner(after, process, index, one_session);
        for device in &process.devices {
            let wanted = options.device.is_none_or(|wanted| wanted == device.device);
            let there = other.is_some_and(|other| {
                let mut devices = other.devices.iter();
                devices.any(|other| other.device == device.device)
            });
            if wanted && !there {
                only_in_one.push(format!(
                    "GPU {} of process {} is only in the first",
                    device.device, process.info.pid
                ));
            }
        }
    }
    let at = |view: &View| view.now.seconds_since(view.started);
    Diff {
        one_session,
        at_seconds: [at(before), at(after)],
        devices,
        only_in_one,
    }
}

fn first_pid(view: &View) -> Option<Pid> {
    view.processes.first().map(|process| process.info.pid)
}

/// The process of `view` that stands for `process`: of one session by number, otherwise by rank,
/// otherwise by place.
fn partner<'a>(
    view: &'a View,
    process: &ProcessView,
    index: usize,
    one_session: bool,
) -> Option<&'a ProcessView> {
    let mut all = view.processes.iter();
    if one_session {
        return all.find(|other| other.info.pid == process.info.pid);
    }
    match process.info.rank {
        Some(rank) => all.find(|other| other.info.rank == Some(rank)),
        None => view.processes.get(index),
    }
}

fn compare_devices(
    (old_process, old): (&ProcessView, &DeviceView),
    (process, device): (&ProcessView, &DeviceView),
    one_session: bool,
    options: Options,
) -> DeviceDiff {
    let sides = [side(old_process, old), side(process, device)];
    let between = sides[1].steps.checked_sub(sides[0].steps);
    let steps_between = between.filter(|steps| one_session && *steps > 0);
    let mut pairs: BTreeMap<Key, [Option<SiteView>; 2]> = BTreeMap::new();
    for (place, sites) in [&old.sites, &device.sites].into_iter().enumerate() {
        for site in group(sites, options.grouping) {
            let key = Key::of(&site, options.grouping);
            pairs.entry(key).or_default()[place] = Some(site);
        }
    }
    let count = pairs.len();
    let mut sites: Vec<SiteDiff> = pairs
        .into_iter()
        .filter_map(|(key, pair)| compare_sites(&key, &pair, steps_between, one_session))
        .collect();
    let same = count - sites.len();
    sites.sort_by(|a, b| {
        let weight = |site: &SiteDiff| site.delta_bytes_per_step.abs();
        (weight(b).total_cmp(&weight(a))).then(
            b.delta_bytes
                .unsigned_abs()
                .cmp(&a.delta_bytes.unsigned_abs()),
        )
    });
    let left_out = options.top.map_or(0, |top| sites.len().saturating_sub(top));
    sites.truncate(sites.len() - left_out);
    DeviceDiff {
        pid: process.info.pid,
        rank: process.info.rank,
        device: device.device,
        sides,
        steps_between,
        sites,
        left_out,
        same,
    }
}

fn side(process: &ProcessView, device: &DeviceView) -> Side {
    let verdict = device.verdict.as_ref();
    Side {
        steps: process.steps.count,
        allocated: device.allocated,
        reserved: device.reserved,
        live_bytes: device.live_bytes,
        live_blocks: device.live_blocks,
        class: verdict.map(|verdict| verdict.class),
        growth_bytes_per_step: verdict.map_or(0.0, |verdict| verdict.growth_bytes_per_step),
    }
}

fn compare_sites(
    key: &Key,
    pair: &[Option<SiteView>; 2],
    steps_between: Option<u64>,
    one_session: bool,
) -> Option<SiteDiff> {
    let of = |get: fn(&SiteView) -> u64| [0, 1].map(|i| pair[i].as_ref().map_or(0, get));
    let bytes = of(|site| site.live_bytes);
    let blocks = of(|site| site.live_blocks);
    let change = match (bytes[0], bytes[1]) {
        (before, after) if before == after => return None,
        (0, _) => Change::Appeared,
        (_, 0) => Change::Went,
        (before, after) if after > before => Change::Grew,
        _ => Change::Shrank,
    };
    let delta = i128::from(bytes[1]) - i128::from(bytes[0]);
    let delta_bytes_per_step = match steps_between {
        Some(steps) => delta as f64 / steps as f64,
        None if one_session => 0.0,
        None => {
            let growth = |i: usize| pair[i].as_ref().map_or(0.0, |s| s.growth_bytes_per_step);
            growth(1) - growth(0)
        }
    };
    let site = pair[1].as_ref().or(pair[0].as_ref())?;
    let frame = key.0.iter().find(|(kind, ..)| *kind == FrameKind::Python);
    let own = site.own_frame();
    let (_, file, function, line) = match own {
        // Of a stack, the frame that names it.
        Some(own) if key.0.len() != 1 => (
            own.kind,
            own.file.to_string(),
            own.function.to_string(),
            own.line,
        ),
        _ => frame.or(key.0.first()).cloned().unwrap_or((
            FrameKind::Native,
            String::new(),
            "(unknown)".into(),
            0,
        )),
    };
    let source = own
        .filter(|own| own.line == line)
        .and_then(|own| own.source.as_deref());
    Some(SiteDiff {
        change,
        file,
        function,
        line,
        source: source.map(str::to_owned),
        bytes,
        blocks,
        delta_bytes: i64::try_from(delta).unwrap_or(i64::MAX),
        delta_bytes_per_step,
    })
}

#[cfg(test)]
mod tests;

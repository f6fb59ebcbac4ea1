//! The report as JSON, for programs: `docs/report-json.md` says what every field means.

mod schema;
mod site;
mod verdict;

use std::collections::HashMap;

use vramscope_events::{Address, Bytes, DeviceId, LostCause, Pid};

use self::{
    schema as json,
    site::{Stacks, site},
    verdict::verdict,
};
use super::Options;
use crate::{
    escape,
    grouping::Groups,
    ranks::{self, Findings},
    view::{
        Backend, DeviceView, Grouping, LogLevel, ProbeState, ProcessView, Role, SiteId, SiteView,
        StepSource, View,
    },
};

/// Raised when a field changes its meaning or goes. New fields do not raise it.
pub const SCHEMA: u32 = 1;

/// A block that is still there, for [`report_with_survivors`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Where it lies.
    pub address: Address,
    /// Its size in bytes.
    pub size: Bytes,
    /// The step in which it was allocated, from the attach.
    pub born_step: u64,
    /// Its site, by full stack.
    pub site: SiteId,
}

/// The whole view as one JSON object, indented, with a line break at its end.
///
/// Names keep their true characters; whatever a terminal might obey is written as `\uXXXX`, so
/// that the text can be looked at safely and parses to the same string. Numbers that are not
/// finite become `null`.
pub fn report(view: &View, options: Options) -> String {
    write(&document(view, options, None))
}

/// Like [`report`], and each device lists its surviving blocks by address.
pub fn report_with_survivors(
    view: &View,
    options: Options,
    survivors: &dyn Fn(Pid, DeviceId) -> Vec<Survivor>,
) -> String {
    write(&document(view, options, Some(survivors)))
}

/// Where the surviving blocks come from, if they are wanted.
type Survivors<'f> = Option<&'f dyn Fn(Pid, DeviceId) -> Vec<Survivor>>;

fn write(document: &json::Report<'_>) -> String {
    // Strings, numbers and arrays in plain structs: nothing that can fail to be written.
    let text = serde_json::to_string_pretty(document).unwrap_or_else(|error| {
        unreachable!("a report of plain structs cannot fail to be JSON: {error}")
    });
    let mut out = String::with_capacity(text.len() + 1);
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|char| char != '\n' && !escape::printable(char)) {
        let (safe, from) = rest.split_at(at);
        out.push_str(safe);
        let mut chars = from.chars();
        let mut units = [0; 2];
        for unit in (chars.next()).map_or(&mut [][..], |char| char.encode_utf16(&mut units)) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('\n');
    out
}

fn document<'a>(view: &'a View, options: Options, survivors: Survivors<'_>) -> json::Report<'a> {
    let first = view.processes.first();
    json::Report {
        schema: SCHEMA,
        grouping: grouping_name(options.grouping),
        backend: match view.backend {
            Backend::Ebpf => "ebpf",
            Backend::Injection => "injection",
            Backend::Recording => "recording",
        },
        started_unix: (view.started_unix > 0).then_some(view.started_unix),
        duration_seconds: view.now.seconds_since(view.started),
        process: first.map(process),
        steps: first.map_or_else(no_steps, steps),
        devices: first
            .map(|first| devices(view, first, options, survivors))
            .unwrap_or_default(),
        processes: match view.processes.len() {
            0 | 1 => Vec::new(),
            _ => (view.processes.iter())
                .map(|one| json::ProcessAndDevices {
                    process: process(one),
                    steps: steps(one),
                    devices: devices(view, one, options, survivors),
                })
                .collect(),
        },
        together: together(view),
        lost: json::Lost {
            events: view.lost.events,
            by_cause: (view.lost.by_cause.iter())
                .map(|(cause, events)| json::LostBy {
                    cause: match cause {
                        LostCause::RingFull => "ring_full",
                        LostCause::StackUnreadable => "stack_unreadable",
                        LostCause::TableFull => "table_full",
                        LostCause::Undecodable => "undecodable",
                    },
                    events: *events,
                })
                .collect(),
        },
        probes: (view.probes.iter())
            .map(|probe| {
                let (state, consequence) = match &probe.state {
                    ProbeState::Attached => ("attached", None),
                    ProbeState::Absent { consequence } => ("absent", Some(consequence.as_str())),
                    ProbeState::Failed { reason } => ("failed", Some(reason.as_str())),
                };
                json::Probe {
                    name: &probe.name,
                    state,
                    consequence,
                    cost_note: &probe.cost_note,
                }
            })
            .collect(),
        log: (view.log.iter())
            .map(|entry| json::LogLine {
                seconds: entry.time.seconds_since(view.started),
                step: entry.step,
                pid: entry.process.0,
                level: match entry.level {
                    LogLevel::Info => "info",
                    LogLevel::Warning => "warning",
                    LogLevel::Error => "error",
                },
                text: &entry.text,
            })
            .collect(),
    }
}

fn grouping_name(grouping: Grouping) -> &'static str {
    match grouping {
        Grouping::Stack => "stack",
        Grouping::Line => "line",
        Grouping::Function => "function",
        Grouping::Module => "module",
    }
}

fn process(process: &ProcessView) -> json::Process<'_> {
    let info = &*process.info;
    json::Process {
        pid: info.pid.0,
        command: &info.command,
        python: info.python.as_deref(),
        torch: info.torch.as_deref(),
        rank: info.rank,
        role: match info.role {
            Role::Program => "program",
            Role::Launcher => "launcher",
            Role::Loader => "loader",
            Role::Child => "child",
        },
        exited: process.exited.is_some(),
        host_bytes: process.host_bytes,
    }
}

fn together(view: &View) -> Option<json::Together> {
    let findings = ranks::findings(view);
    if findings == Findings::default() {
        return None;
    }
    let list = |findings: Vec<ranks::Finding>| {
        let findings = findings.into_iter().map(|finding| json::Finding {
            pid: finding.process.0,
            bytes: finding.bytes,
            text: finding.text,
            advice: finding.advice,
        });
        findings.collect()
    };
    Some(json::Together {
        summary: findings.summary,
        skewed: list(findings.skewed),
        workers: list(findings.workers),
    })
}

fn no_steps() -> json::Steps {
    json::Steps {
        count: 0,
        source: "none",
        per_second: None,
        marks_per_step: 1,
    }
}

fn steps(process: &ProcessView) -> json::Steps {
    json::Steps {
        count: process.steps.count,
        source: match process.steps.source {
            StepSource::User => "user",
            StepSource::Backward => "backward",
            StepSource::Heartbeat => "heartbeat",
            StepSource::Time => "time",
            StepSource::None => "none",
        },
        per_second: finite(process.steps.rate).filter(|rate| *rate > 0.0),
        marks_per_step: process.steps.marks_per_step,
    }
}

fn devices<'a>(
    view: &View,
    process: &'a ProcessView,
    options: Options,
    survivors: Survivors<'_>,
) -> Vec<json::Device<'a>> {
    (process.devices.iter())
        .map(|one| {
            let survivors = survivors.map(|survivors| survivors(process.info.pid, one.device));
            device(view, one, options, survivors)
        })
        .collect()
}

fn device<'a>(
    view: &View,
    device: &'a DeviceView,
    options: Options,
    survivors: Option<Vec<Survivor>>,
) -> json::Device<'a> {
    let made = Groups::new(&device.sites, options.grouping);
    let groups = top(&made, options);
    let driver = top(
        &Groups::new(&device.driver_sites, options.grouping),
        options,
    );
    let stacks = Stacks::of(device);
    let site = |group: &SiteView| site(view, group, &stacks);
    json::Device {
        device: device.device.0,
        allocated: device.allocated,
        reserved: device.reserved,
        peak_allocated: device.peak_allocated,
        baseline: device.baseline,
        baseline_at_attach: device.baseline_at_attach,
        live_bytes: device.live_bytes,
        live_blocks: device.live_blocks,
        capacity: device.capacity,
        free: device.free,
        outside: device.outside,
        used: device.used,
        excess: device.excess,
        largest_request: device.largest_request,
        tensor_layer: device.tensor_layer,
        ledger: json::Ledger {
            agreed: device.check.agreed,
            corrected: device.check.corrected,
            corrected_bytes: device.check.corrected_bytes,
            double_allocs: device.check.double_allocs,
            unknown_frees: device.check.unknown_frees,
        },
        buckets: (device.buckets.iter())
            .map(|bucket| json::Bucket {
                kind: bucket.kind,
                name: &bucket.name,
                bytes: bucket.bytes,
            })
            .collect(),
        others: (device.others.iter())
            .map(|user| json::Other {
                pid: user.pid.0,
                command: Some(&*user.command).filter(|command| !command.is_empty()),
                bytes: user.bytes,
            })
            .collect(),
        verdict: (device.verdict.as_ref())
            .map(|found| verdict(found, device, &groups, options.grouping)),
        sites_total: made.len() as u64,
        sites: groups.iter().map(site).collect(),
        survivors: survivors.map(|survivors| blocks(&made, groups.len(), survivors)),
        driver: json::Driver {
            live_bytes: device.driver_live_bytes,
            sites: driver.iter().map(site).collect(),
        },
    }
}

/// The groups to show.
fn top(groups: &Groups<'_>, options: Options) -> Vec<SiteView> {
    let shown = options.top.unwrap_or(usize::MAX).min(groups.len());
    (0..shown).map(|index| groups.site(index)).collect()
}

/// The surviving blocks by address, each with the index of its group.
fn blocks(groups: &Groups<'_>, shown: usize, mut survivors: Vec<Survivor>) -> Vec<json::Block> {
    let index: HashMap<SiteId, u64> = (0..shown)
        .flat_map(|index| {
            groups
                .members(index)
                .iter()
                .map(move |site| (site.id, index))
        })
        .map(|(id, index)| (id, index as u64))
        .collect();
    survivors.sort_by_key(|block| block.address);
    (survivors.into_iter())
        .map(|block| json::Block {
            address: block.address.0,
            size: block.size,
            born_step: block.born_step,
            site: index.get(&block.site).copied(),
        })
        .collect()
}

fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

//! From the books to a view.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vramscope_events::{Pid, Time};

use super::{Collector, is_gap, news_of};
use crate::{
    device::Device,
    escape,
    log::Log,
    shares,
    snapshot::{BookSnapshot, Names},
    view::{
        DeviceUser, DeviceView, LostView, ProcessInfo, ProcessView, Series, SiteId, SiteView,
        Verdict, View,
    },
};

impl Collector {
    /// Everything known at `now`. Depends on the events and on `now`, not on earlier views.
    pub fn view(&mut self, now: Time) -> View {
        let mut log = self.log.clone();
        let mut processes = Vec::with_capacity(self.processes.len());
        let mut devices = self.processes.iter().flat_map(|process| &process.devices);
        let idle = devices.all(Device::is_untouched);
        for index in 0..self.processes.len() {
            if index > 0 && self.processes[index].left_nothing() {
                continue;
            }
            let verdicts = self.current_verdicts(index, now);
            self.log_changes(index, &verdicts, now, &mut log);
            processes.push(self.show_process(index, &verdicts, idle, now));
        }
        let mut by_cause: Vec<_> = self.lost.iter().map(|(cause, n)| (*cause, *n)).collect();
        by_cause.sort();
        View {
            processes,
            now,
            started: self.config.started,
            started_unix: self.config.started_unix,
            backend: self.config.backend,
            lost: LostView {
                events: by_cause
                    .iter()
                    .filter(|(cause, _)| is_gap(*cause))
                    .map(|(_, count)| count)
                    .sum(),
                by_cause,
            },
            probes: self.probes.clone(),
            log: log.entries(),
        }
    }

    /// The verdicts at this moment; while steps are provisional, those that were kept.
    fn current_verdicts(&mut self, index: usize, now: Time) -> Vec<Option<Verdict>> {
        let process = &self.processes[index];
        if process.steps.is_provisional() {
            let devices = process.devices.iter();
            return devices.map(|device| device.verdict.clone()).collect();
        }
        self.verdicts_of(index, process.exited.unwrap_or(now))
    }

    /// What changed since the verdicts that were kept, as of when the running step began.
    fn log_changes(&self, index: usize, verdicts: &[Option<Verdict>], now: Time, log: &mut Log) {
        let process = &self.processes[index];
        let time = process.steps.running_since().unwrap_or(now);
        for (device, verdict) in process.devices.iter().zip(verdicts) {
            if let Some((level, text)) = news_of(device, verdict.as_ref()) {
                let step = Some(process.steps.now().into());
                log.add(time, process.info.pid, step, level, text);
            }
        }
    }

    /// `idle`: no process has anything on any device, so that devices are shown that are only seen.
    fn show_process(
        &mut self,
        index: usize,
        verdicts: &[Option<Verdict>],
        idle: bool,
        now: Time,
    ) -> ProcessView {
        self.apply_capacity(index);
        let process = &self.processes[index];
        let mut names = Names {
            stacks: &mut self.stacks,
            user_code: &self.config.user_code,
            sources: &mut self.sources,
        };
        let step = process.steps.now();
        let info = &process.info;
        let by_pid = &self.by_pid;
        let devices = process
            .devices
            .iter()
            .zip(verdicts)
            .filter(|(device, _)| idle || !device.is_untouched())
            .map(|(device, verdict)| {
                let key = (info.pid, device.id);
                let snapshot = self.snapshots.entry(key).or_default();
                let mut view =
                    show_device(device, verdict.as_ref(), step, info, snapshot, &mut names);
                let shares = shares::show(device, &process.mappings, info, &mut names);
                view.buckets = shares.buckets;
                view.used = shares.used;
                view.excess = shares.excess;
                view.largest_request = shares.largest_request;
                view.others = strangers(&device.shares.users, by_pid);
                view
            });
        ProcessView {
            devices: devices.collect(),
            host_bytes: process.host.ledger.bytes(),
            info: Arc::clone(info),
            exited: process.exited,
            steps: process.steps.view(process.exited.unwrap_or(now)),
        }
    }
}

fn show_device(
    device: &Device,
    verdict: Option<&Verdict>,
    step: u32,
    process: &ProcessInfo,
    [tensor, driver]: &mut [BookSnapshot; 2],
    names: &mut Names<'_>,
) -> DeviceView {
    let (main, beside) = if device.tensor_layer {
        (verdict, None)
    } else {
        (None, verdict)
    };
    let driver_sites = driver.sites(
        &device.driver,
        &device.answers,
        step,
        beside,
        process,
        names,
    );
    let sites = if device.tensor_layer {
        tensor.sites(&device.tensor, &device.answers, step, main, process, names)
    } else {
        Arc::clone(&driver_sites)
    };
    let book = device.main_book();
    DeviceView {
        device: device.id,
        allocated: device.totals.allocated,
        reserved: device.reserved(),
        peak_allocated: device.peak,
        baseline: device.baseline().max(0) as u64,
        baseline_at_attach: device.totals_at_attach.allocated,
        live_blocks: book.ledger.blocks(),
        live_bytes: book.ledger.bytes(),
        driver_live_bytes: device.driver.ledger.bytes(),
        tensor_layer: device.tensor_layer,
        capacity: device.memory.map(|memory| memory.total),
        free: device.memory.map(|memory| memory.free),
        outside: device.outside(),
        check: device.check,
        verdict: verdict.cloned().map(|verdict| with_places(verdict, &sites)),
        sites,
        driver_sites,
        series: Arc::new(Series {
            points: device.floor.all_points(),
            marks: device.marks.clone(),
        }),
        buckets: Vec::new(),
        used: None,
        excess: 0,
        largest_request: 0,
        others: Arc::default(),
    }
}

/// The users of a device that are not traced themselves, largest first.
fn strangers(users: &Arc<[DeviceUser]>, traced: &FxHashMap<Pid, usize>) -> Arc<[DeviceUser]> {
    if users.is_empty() {
        return Arc::clone(users);
    }
    let strangers = users.iter().filter(|user| !traced.contains_key(&user.pid));
    let mut strangers: Vec<_> = strangers.cloned().collect();
    strangers.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.pid.cmp(&b.pid)));
    strangers.into()
}

/// Evidence names sites by number, since it is found before names are looked up; a person wants
/// the line.
fn with_places(mut verdict: Verdict, sites: &[SiteView]) -> Verdict {
    for line in &mut verdict.evidence {
        let Some(rest) = line.strip_prefix("site ") else {
            continue;
        };
        let digits = rest.find(|c: char| !c.is_ascii_digit());
        let (number, rest) = rest.split_at(digits.unwrap_or(rest.len()));
        let frame = number.parse().ok().and_then(|id| {
            let site = sites.iter().find(|site| site.id == SiteId(id))?;
            site.own_frame()
        });
        if let Some(frame) = frame {
            let file = frame.file.rsplit('/').next().unwrap_or_default();
            *line = format!("{}:{}{rest}", escape::line(file, 60), frame.line);
        }
    }
    verdict
}

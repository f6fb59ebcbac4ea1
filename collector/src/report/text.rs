//! The report as text for a terminal or a log.

mod sites;

use super::{
    Options,
    headline::{self, Headline},
    layout::{Color, Tone, left, right, wrap},
    notes,
    shares::{self, Row},
    table, units,
};
use crate::{
    escape,
    ranks::{self, Findings},
    view::{Backend, DeviceView, ProbeState, ProcessView, View},
};

/// How the text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Columns to fit into, [`table::LEAST_WIDTH`] at least.
    pub width: usize,
    /// Whether to colour.
    pub color: Color,
}

impl Default for Layout {
    fn default() -> Self {
        Layout {
            width: 80,
            color: Color::Never,
        }
    }
}

/// The whole report: the gravest verdict first, a table of processes where there are several, then
/// each device that needs attention (or the first, if none does) with its sites and the stack of
/// the first culprit, then what is missing.
pub fn report(view: &View, options: Options, layout: Layout) -> String {
    let mut out = Writer {
        layout: Layout {
            width: layout.width.max(table::LEAST_WIDTH),
            ..layout
        },
        text: String::new(),
    };
    let all = headline::by_gravity(view);
    match all.first() {
        None => {
            out.headline(&headline::nothing_seen(view), None);
            for process in &view.processes {
                out.blank();
                out.process(view, process);
            }
        }
        Some((process, device)) => {
            let whose = (all.len() > 1).then(|| whose(process, device));
            out.headline(&headline::of_device(process, device), whose);
            out.together(&ranks::findings(view));
            if all.len() > 1 {
                out.overview(view);
            }
            for (index, (process, device)) in all.iter().enumerate() {
                if index == 0 || headline::needs_attention(device) {
                    out.blank();
                    out.process(view, process);
                    out.device(view, process, device, options);
                }
            }
        }
    }
    out.blank();
    out.session(view);
    out.text
}

/// `rank 2`, or `pid 5202` without ranks; with the device where the process has several.
pub(super) fn whose(process: &ProcessView, device: &DeviceView) -> String {
    let who = match process.info.rank {
        Some(rank) => format!("rank {rank}"),
        None => format!("pid {}", process.info.pid),
    };
    match process.devices.len() {
        0 | 1 => who,
        _ => format!("{who}, device {}", device.device),
    }
}

/// Where a view's events come from, in words.
pub(super) fn backend_word(backend: Backend) -> &'static str {
    match backend {
        Backend::Ebpf => "eBPF",
        Backend::Injection => "injection",
        Backend::Recording => "recording",
    }
}

struct Writer {
    layout: Layout,
    text: String,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn blank(&mut self) {
        self.line("");
    }

    /// A label in a column of its own, the rest wrapped beside it.
    fn labelled(&mut self, label: &str, text: &str) {
        const COLUMN: usize = 10;
        let lines = wrap(text, self.layout.width - COLUMN, 0);
        for (index, line) in lines.iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            self.line(&format!("{}{line}", left(label, COLUMN)));
        }
    }

    fn headline(&mut self, headline: &Headline, whose: Option<String>) {
        let color = self.layout.color;
        let width = self.layout.width;
        let whose = whose.map(|whose| format!("{whose}: ")).unwrap_or_default();
        let first = format!("{}  {whose}{}", headline.word, headline.facts);
        for (index, line) in wrap(&first, width - 1, 4).into_iter().enumerate() {
            match line.strip_prefix(headline.word) {
                // `wrap` keeps one space of two.
                Some(rest) if index == 0 => {
                    let word = color.paint(headline.tone, headline.word);
                    self.line(&format!("{word} {rest}"));
                }
                _ => self.line(&line),
            }
        }
        if let Some(culprit) = &headline.culprit {
            let share = headline.share.as_deref().unwrap_or_default();
            let room = width.saturating_sub(escape::width(share) + 2);
            // Room for a place and the beginning of its source.
            if room >= escape::width(culprit).min(30) {
                let culprit = color.paint(Tone::Strong, &escape::line(culprit, room));
                self.line(&format!("{culprit}  {share}"));
            } else {
                self.line(&color.paint(Tone::Strong, &escape::line(culprit, width)));
                for line in wrap(share, width - 4, 0) {
                    self.line(&format!("    {line}"));
                }
            }
        }
        if !headline.advice.is_empty() {
            for line in wrap(&format!("-> {}", headline.advice), width, 3) {
                self.line(&line);
            }
        }
    }

    /// What is to be said of all processes together.
    fn together(&mut self, findings: &Findings) {
        let width = self.layout.width;
        let sentence = findings.summary.iter();
        let skewed = findings.skewed.iter().map(|finding| &finding.text);
        let workers = findings.workers.iter().map(|finding| &finding.text);
        let texts: Vec<&String> = sentence.chain(skewed).chain(workers).collect();
        if texts.is_empty() {
            return;
        }
        self.blank();
        for text in texts {
            for line in wrap(text, width, 2) {
                self.line(&line);
            }
        }
        // The same for all of a kind.
        if let Some(finding) = findings.workers.first() {
            for line in wrap(&format!("-> {}", finding.advice), width, 3) {
                self.line(&line);
            }
        }
    }

    /// One line a device of every process.
    fn overview(&mut self, view: &View) {
        self.blank();
        let head = [
            "RANK",
            "PID",
            "DEV",
            "ALLOCATED",
            "RESERVED",
            "GROWTH",
            "VERDICT",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        for process in &view.processes {
            for device in &process.devices {
                let verdict = device.verdict.as_ref();
                let word = verdict.map_or("no verdict yet", |v| headline::class_word(v.class));
                let role = ranks::role_words(process).map(|role| format!(", {role}"));
                rows.push([
                    process
                        .info
                        .rank
                        .map_or("-".into(), |rank| rank.to_string()),
                    process.info.pid.to_string(),
                    device.device.to_string(),
                    units::bytes(device.allocated),
                    units::bytes(device.reserved),
                    verdict.map_or("-".into(), |v| units::growth(v.growth_bytes_per_step)),
                    format!("{word}{}", role.unwrap_or_default()),
                ]);
            }
        }
        let widths: [usize; 7] = std::array::from_fn(|column| {
            let cells = rows.iter().map(|row| escape::width(&row[column]));
            cells.max().unwrap_or(0)
        });
        for row in rows {
            let cells: Vec<String> = row[..6]
                .iter()
                .zip(widths)
                .map(|(cell, width)| right(cell, width))
                .collect();
            let gap = if self.layout.width < 80 { " " } else { "  " };
            self.line(&format!("{}{gap}{}", cells.join(gap), row[6]));
        }
    }

    fn process(&mut self, view: &View, process: &ProcessView) {
        let info = &process.info;
        let rank = info.rank.map(|rank| format!(", rank {rank}"));
        let versions = [("Python", &info.python), ("PyTorch", &info.torch)].map(
            |(name, version)| match version {
                Some(version) => format!("{name} {}", escape::line(version, 20)),
                None => format!("{name} unknown"),
            },
        );
        let command = escape::line(&info.command, self.layout.width.max(40) - 20);
        let pid = info.pid;
        self.labelled(
            "process",
            &format!("{pid}, {command}{}", rank.unwrap_or_default()),
        );
        let backend = backend_word(view.backend);
        let time = units::duration(view.now.seconds_since(view.started));
        let versions = versions.join(", ");
        self.labelled("", &format!("{versions}; seen for {time} by {backend}"));
        self.labelled("steps", &headline::steps_words(process));
    }

    fn device(
        &mut self,
        view: &View,
        process: &ProcessView,
        device: &DeviceView,
        options: Options,
    ) {
        self.memory(device);
        self.verdict(device);
        self.sites(view, process, device, options);
        self.culprit(process, device);
        self.holders(view, process, device, options);
        let notes = notes::of_device(process, device);
        if !notes.is_empty() {
            self.blank();
            self.line("Not known:");
            self.bullets(&notes);
        }
    }

    fn memory(&mut self, device: &DeviceView) {
        let label = format!("device {}", device.device);
        let mut text = format!(
            "allocated {} (peak {}, before the attach {}), reserved {}",
            units::bytes(device.allocated),
            units::bytes(device.peak_allocated),
            units::bytes(device.baseline),
            units::bytes(device.reserved),
        );
        let more = [
            ("beyond PyTorch", device.outside),
            ("free", device.free),
            ("capacity", device.capacity),
        ];
        for (name, bytes) in more {
            if let Some(bytes) = bytes {
                text.push_str(&format!(", {name} {}", units::bytes(bytes)));
            }
        }
        self.labelled(&label, &text);
        self.table("shares", &shares::rows(device));
        self.table("others", &shares::others(device));
    }

    /// Sizes and parts beside a label, then what they are of.
    fn table(&mut self, label: &str, rows: &[Row]) {
        for (index, row) in rows.iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let bytes = right(&shares::bytes(row.bytes), 9);
            let part = row
                .part
                .map_or(String::new(), |part| right(&units::percent(part), 8));
            let beside = format!("{}{bytes}{part}  ", left(label, 10));
            let room = self.layout.width.saturating_sub(escape::width(&beside));
            let name = escape::line(&row.name, room.max(12));
            self.line(&format!("{beside}{name}"));
        }
    }

    fn verdict(&mut self, device: &DeviceView) {
        let Some(verdict) = &device.verdict else {
            return;
        };
        let mut why = Vec::new();
        if !headline::opens_with_summary(verdict.class) {
            why.push(escape::line(&verdict.summary, headline::SENTENCE));
        }
        why.extend(
            verdict
                .evidence
                .iter()
                .map(|fact| escape::line(fact, headline::SENTENCE)),
        );
        if let Some(oom) = &verdict.out_of_memory {
            let steps = headline::steps(oom.steps);
            let soonest = headline::steps(oom.steps_interval.low);
            let latest = match oom.steps_interval.high.is_finite() {
                true => format!("{soonest} to {}", headline::steps(oom.steps_interval.high)),
                false => format!("{soonest} at the soonest"),
            };
            why.push(format!("out of memory in about {steps} steps ({latest})"));
        }
        if !why.is_empty() {
            self.blank();
            self.line("Why:");
            self.bullets(&why);
        }
    }

    fn bullets(&mut self, texts: &[String]) {
        for text in texts {
            for line in wrap(&format!("- {text}"), self.layout.width - 2, 2) {
                self.line(&format!("  {line}"));
            }
        }
    }

    /// Losses and probes.
    fn session(&mut self, view: &View) {
        self.line("Session:");
        let mut lines = notes::of_view(view);
        lines.extend(probes(view));
        self.bullets(&lines);
    }
}

/// The probes in place, in one line each for their number and for the one that every block passes.
fn probes(view: &View) -> Vec<String> {
    let attached: Vec<_> = view
        .probes
        .iter()
        .filter(|probe| probe.state == ProbeState::Attached)
        .collect();
    let mut lines = Vec::new();
    if let Some(process) = view.processes.first()
        && !attached.is_empty()
    {
        lines.push(format!(
            "{} probes are in place; `vramscope doctor {}` lists them.",
            attached.len(),
            process.info.pid
        ));
    }
    for probe in attached {
        if probe.name.contains("reportMemoryUsage") {
            let name = escape::line(&probe.name, 80);
            let note = escape::line(&probe.cost_note, 160);
            lines.push(format!("Every block passes {name}: {note}."));
        }
    }
    lines
}

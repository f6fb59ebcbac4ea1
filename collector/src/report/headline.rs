//! The verdict on one device in two lines and an advice: what every output opens with.

use vramscope_events::Time;

use super::{layout::Tone, paths, units};
use crate::{
    escape, grouping,
    view::{
        Class, Confidence, DeviceView, FrameView, Grouping, LeakKind, OutOfMemoryIn, ProcessView,
        Rhythm, SiteView, StepSource, Verdict, View,
    },
};

/// Columns that a sentence of a verdict may take: it may quote foreign names.
pub(super) const SENTENCE: usize = 400;

/// The first lines of a report. All texts are safe to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// One word or two in capitals: `LEAK`, `HEALTHY`.
    pub word: &'static str,
    /// How it looks.
    pub tone: Tone,
    /// Growth, since when, time to out of memory; or the class in a sentence.
    pub facts: String,
    /// The line that explains most of the growth: `train.py:27 probe_loss = model(probe)`.
    pub culprit: Option<String>,
    /// Its share and what holds it, or what it likely is: `93 % of the growth; likely …`.
    pub share: Option<String>,
    /// What to do; empty where nothing can be said.
    pub advice: String,
}

/// Sites that a verdict names, put together by line.
#[derive(Clone, Debug)]
pub struct CulpritLine<'a> {
    /// The site on the line that grows most.
    pub site: &'a SiteView,
    /// Growth of the named sites on the line, bytes a step.
    pub growth_bytes_per_step: f64,
    /// Their share of the device's growth, 0 to 1.
    pub share: f64,
    /// How many stacks on the line the verdict names.
    pub stacks: u32,
}

impl CulpritLine<'_> {
    /// The frame that names the line.
    pub fn frame(&self) -> Option<&FrameView> {
        self.site.own_frame()
    }
}

/// The lines that a device's verdict names, most growth first.
pub fn culprit_lines(device: &DeviceView) -> Vec<CulpritLine<'_>> {
    let Some(verdict) = &device.verdict else {
        return Vec::new();
    };
    let mut lines: Vec<CulpritLine<'_>> = Vec::new();
    for culprit in &verdict.culprits {
        let found = (device.sites.iter())
            .chain(device.driver_sites.iter())
            .find(|site| site.id == culprit.site);
        let Some(site) = found else {
            continue;
        };
        let known = lines
            .iter_mut()
            .find(|line| grouping::holds(line.site, site, Grouping::Line));
        match known {
            Some(line) => {
                line.growth_bytes_per_step += culprit.growth_bytes_per_step;
                line.share += culprit.share;
                line.stacks += 1;
                if grouping::order(site, line.site).is_lt() {
                    line.site = site;
                }
            }
            None => lines.push(CulpritLine {
                site,
                growth_bytes_per_step: culprit.growth_bytes_per_step,
                share: culprit.share,
                stacks: 1,
            }),
        }
    }
    lines.sort_by(|a, b| b.growth_bytes_per_step.total_cmp(&a.growth_bytes_per_step));
    lines
}

/// The headline for one device.
pub fn of_device(process: &ProcessView, device: &DeviceView) -> Headline {
    let Some(verdict) = &device.verdict else {
        return without_verdict(process, device);
    };
    let lines = culprit_lines(device);
    let first = lines.first();
    // What the process said goes before what the stacks suggest.
    let likely = match (&verdict.retained_by, verdict.kind) {
        (Some(holder), _) => Some(format!("; held by {}", escape::line(holder, SENTENCE))),
        (None, kind) => kind.map(|kind| format!("; likely {}", kind_words(kind))),
    };
    Headline {
        word: class_word(verdict.class),
        tone: class_tone(verdict.class),
        facts: facts(verdict),
        culprit: first.map(|line| site_words(line.site, process, 200)),
        share: first.map(|line| {
            let share = units::percent(line.share);
            let caller = caller_words(line.site, process).unwrap_or_default();
            format!(
                "{share} of the growth{caller}{}",
                likely.unwrap_or_default()
            )
        }),
        advice: escape::line(&verdict.advice, SENTENCE),
    }
}

/// The headline for a view of which no device is known yet.
pub fn nothing_seen(view: &View) -> Headline {
    let since = units::duration(view.now.seconds_since(view.started));
    Headline {
        word: "NOTHING SEEN YET",
        tone: Tone::Watch,
        facts: format!("no allocation since the attach {since} ago"),
        culprit: None,
        share: None,
        advice: "Wait for a step of training; if the process works on the GPU already, see the \
                 probes below."
            .into(),
    }
}

fn without_verdict(process: &ProcessView, device: &DeviceView) -> Headline {
    let steps = process.steps.count;
    let seen = match steps {
        0 => "no whole step was seen yet".to_owned(),
        1 => "1 step was seen so far".into(),
        n => format!("{} steps were seen so far", units::count(n)),
    };
    let most = (device.sites.iter())
        .find(|site| site.live_blocks > 0)
        .filter(|site| site.growth_bytes_per_step > 0.0);
    // The line's growth, not that of one of its stacks.
    let growth: f64 = (device.sites.iter())
        .filter(|site| most.is_some_and(|most| grouping::holds(most, site, Grouping::Line)))
        .map(|site| site.growth_bytes_per_step)
        .sum();
    Headline {
        word: "NO VERDICT YET",
        tone: Tone::Watch,
        facts: format!("{seen}: too early to tell growth from start-up"),
        culprit: most.map(|site| site_words(site, process, 200)),
        share: most.map(|_| format!("grows most so far: {}", units::growth(growth))),
        advice: match process.steps.source {
            StepSource::None => "Below: who holds what now.",
            _ => "Below: the survivors by growth per step. Let it run.",
        }
        .into(),
    }
}

/// Who called a module: `, called from train.py:22 in validate`. The line of a `forward` alone does
/// not tell which of its callers is meant.
fn caller_words(site: &SiteView, process: &ProcessView) -> Option<String> {
    let own = site.user_frame?;
    let function = &site.stack.get(own)?.function;
    let name = function.rsplit('.').next()?;
    if name != "forward" && name != "__call__" {
        return None;
    }
    let caller = site.stack[own + 1..].iter().find(|frame| {
        frame.user && !frame.function.ends_with("forward") && !frame.function.ends_with("__call__")
    })?;
    let place = paths::place(caller, &process.info, 30);
    let function = escape::line(&caller.function, 60);
    Some(format!(", called from {place} in {function}"))
}

/// A site in words: place and source text (or function). Safe, at most `columns` wide.
pub fn site_words(site: &SiteView, process: &ProcessView, columns: usize) -> String {
    let Some(frame) = site.own_frame() else {
        return escape::line("(a thread without known frames)", columns);
    };
    let place = paths::place(frame, &process.info, columns.min(60));
    let what = source_or_function(site);
    escape::line(format!("{place} {what}").trim_end(), columns)
}

/// The source text of a site's own frame, else its function; safe. Allocations that autograd made
/// for the line are marked.
pub fn source_or_function(site: &SiteView) -> String {
    let Some(frame) = site.own_frame() else {
        return String::new();
    };
    let what = match &frame.source {
        Some(source) => escape::line(source, 200),
        None if frame.function.is_empty() => String::new(),
        None => format!("in {}", escape::line(&frame.function, 200)),
    };
    match site.backward() {
        true => format!("[backward] {what}"),
        false => what,
    }
}

fn facts(verdict: &Verdict) -> String {
    let mut out = match opens_with_summary(verdict.class) {
        false => growth_words(verdict),
        true => escape::line(&verdict.summary, SENTENCE),
    };
    match verdict.class {
        Class::Growing => out.push_str("; too early to tell why"),
        _ => {
            if let Some(oom) = &verdict.out_of_memory {
                out.push_str(", ");
                out.push_str(&oom_words(oom));
            }
        }
    }
    if verdict.confidence == Confidence::Low {
        out.push_str(" (low confidence)");
    }
    out
}

/// Whether a headline states the summary itself, because growth is not the point.
pub(super) fn opens_with_summary(class: Class) -> bool {
    !matches!(
        class,
        Class::Leak | Class::Growing | Class::OutsideFramework
    )
}

/// `+164.4 KB/step since step 40 (±0.3)`, `+8.2 MB every 50 steps since step 40`.
fn growth_words(verdict: &Verdict) -> String {
    let growth = verdict.growth_bytes_per_step;
    let around = units::plus_minus(growth, verdict.interval);
    let since = units::count(verdict.since_step);
    match (verdict.rhythm, verdict.period_steps) {
        (Rhythm::PerPeriod, Some(period)) => {
            let stair = units::signed_bytes(growth * period as f64);
            let period = units::count(period);
            let a_step = units::growth(growth);
            format!("{stair} every {period} steps since step {since} ({a_step})")
        }
        _ => {
            let around = around.map(|around| format!(" ({around})"));
            let growth = units::growth(growth);
            format!("{growth} since step {since}{}", around.unwrap_or_default())
        }
    }
}

/// `OOM in about 9 h 20 min`.
fn oom_words(oom: &OutOfMemoryIn) -> String {
    match oom.seconds {
        Some(seconds) => format!("OOM in about {}", units::duration(seconds)),
        None => format!("OOM in about {} steps", steps(oom.steps)),
    }
}

/// A number of steps that is an estimate.
pub(super) fn steps(steps: f64) -> String {
    match steps {
        s if s.is_finite() && s >= 0.0 => units::count(s.round() as u64),
        _ => "?".into(),
    }
}

/// The class in capitals.
pub fn class_word(class: Class) -> &'static str {
    match class {
        Class::Leak => "LEAK",
        Class::Growing => "GROWING",
        Class::WarmUp => "WARMING UP",
        Class::Capacity => "CAPACITY",
        Class::CacheGrowth => "CACHE GROWS",
        Class::Fragmentation => "FRAGMENTED",
        Class::OutsideFramework => "GROWS OUTSIDE PYTORCH",
        Class::Healthy => "HEALTHY",
    }
}

/// How a class looks.
pub fn class_tone(class: Class) -> Tone {
    match class {
        Class::Leak | Class::OutsideFramework => Tone::Bad,
        Class::Growing | Class::Capacity | Class::Fragmentation | Class::WarmUp => Tone::Watch,
        Class::CacheGrowth | Class::Healthy => Tone::Good,
    }
}

/// What a kind of leak is called; goes after "likely".
pub fn kind_words(kind: LeakKind) -> &'static str {
    match kind {
        LeakKind::GraphKept => "a kept graph",
        LeakKind::Scalars => "kept scalars",
        LeakKind::Evaluation => "eval without no_grad",
        LeakKind::OutputsKept => "kept outputs",
        LeakKind::Hook => "a hook",
        LeakKind::ParameterCopies => "parameter copies",
        LeakKind::Exception => "a kept traceback",
        LeakKind::Cache => "a growing cache",
        LeakKind::DoubleBackward => "a retained graph",
    }
}

/// How grave a device's state is, gravest first: what a report opens with.
pub fn rank(device: &DeviceView) -> u8 {
    match device.verdict.as_ref().map(|verdict| verdict.class) {
        Some(Class::Leak) => 0,
        Some(Class::OutsideFramework) => 1,
        Some(Class::Growing) => 2,
        Some(Class::Capacity) => 3,
        Some(Class::Fragmentation) => 4,
        None => 5,
        Some(Class::WarmUp) => 6,
        Some(Class::CacheGrowth) => 7,
        Some(Class::Healthy) => 8,
    }
}

/// Every device of every process, the gravest first; among equals the fastest growing, then in
/// the order of the view.
pub fn by_gravity(view: &View) -> Vec<(&ProcessView, &DeviceView)> {
    let growth = |device: &DeviceView| {
        (device.verdict.as_ref()).map_or(0.0, |verdict| verdict.growth_bytes_per_step)
    };
    let mut all: Vec<(&ProcessView, &DeviceView)> = (view.processes.iter())
        .flat_map(|process| process.devices.iter().map(move |device| (process, device)))
        .collect();
    all.sort_by(|(_, a), (_, b)| rank(a).cmp(&rank(b)).then(growth(b).total_cmp(&growth(a))));
    all
}

/// What a reader should care about: more than a clean bill.
pub fn needs_attention(device: &DeviceView) -> bool {
    rank(device) < 6
}

/// `1,482 steps (3.1/s), counted by backward() calls`.
pub fn steps_words(process: &ProcessView) -> String {
    let steps = &process.steps;
    let rate = units::rate(steps.rate).map(|rate| format!(" ({rate})"));
    let how = match steps.source {
        StepSource::User => "counted at the place you named",
        StepSource::Backward => "counted by calls of backward()",
        StepSource::Heartbeat => "counted by a rhythm in the allocations",
        StepSource::Time => "one second taken as one step",
        StepSource::None => return "no step seen yet".into(),
    };
    let calls = match steps.marks_per_step {
        0 | 1 => String::new(),
        calls => format!(", {calls} calls a step"),
    };
    let count = units::count(steps.count);
    format!("{count}{}, {how}{calls}", rate.unwrap_or_default())
}

/// Seconds since the oldest survivor of a site was born.
pub fn age_seconds(site: &SiteView, now: Time) -> Option<f64> {
    site.oldest_survivor.map(|born| now.seconds_since(born))
}

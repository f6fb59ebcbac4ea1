//! A verdict as JSON.

use super::{finite, schema as json};
use crate::{
    grouping,
    report::headline,
    view::{Class, Confidence, DeviceView, Grouping, LeakKind, Rhythm, SiteView, Verdict},
};

/// What was found; its culprit is one of the groups that are shown.
pub fn verdict<'a>(
    verdict: &'a Verdict,
    device: &'a DeviceView,
    groups: &[SiteView],
    grouping: Grouping,
) -> json::Verdict<'a> {
    let oom = verdict.out_of_memory.as_ref();
    json::Verdict {
        class: class_name(verdict.class),
        confidence: match verdict.confidence {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        },
        rhythm: match verdict.rhythm {
            Rhythm::PerStep => "per_step",
            Rhythm::PerPeriod => "per_period",
            Rhythm::None => "none",
        },
        period_steps: verdict.period_steps,
        growth_bytes_per_step: finite(verdict.growth_bytes_per_step),
        interval: [finite(verdict.interval.low), finite(verdict.interval.high)],
        since_step: verdict.since_step,
        share_explained: finite(verdict.share_explained),
        oom_in_steps: oom.and_then(|oom| finite(oom.steps)),
        oom_in_steps_interval: oom.map(|oom| {
            let interval = oom.steps_interval;
            [finite(interval.low), finite(interval.high)]
        }),
        oom_in_seconds: oom.and_then(|oom| oom.seconds).and_then(finite),
        kind: verdict.kind.map(kind_name),
        retained_by: verdict.retained_by.as_deref(),
        summary: &verdict.summary,
        evidence: verdict.evidence.iter().map(String::as_str).collect(),
        advice: &verdict.advice,
        culprits: headline::culprit_lines(device)
            .into_iter()
            .map(|line| {
                // The place in the list that is shown; by stack it is the fastest growing one.
                let index =
                    (groups.iter()).position(|group| grouping::holds(group, line.site, grouping));
                let own = line.site.own_frame();
                json::Culprit {
                    site: index.map(|index| index as u64),
                    file: own.map(|frame| &*frame.file),
                    line: own.map(|frame| frame.line).filter(|line| *line > 0),
                    function: own.map(|frame| &*frame.function),
                    source: own.and_then(|frame| frame.source.as_deref()),
                    stacks: line.stacks,
                    growth_bytes_per_step: finite(line.growth_bytes_per_step),
                    share: finite(line.share),
                }
            })
            .collect(),
    }
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Leak => "leak",
        Class::Growing => "growing",
        Class::WarmUp => "warm_up",
        Class::Capacity => "capacity",
        Class::CacheGrowth => "cache_growth",
        Class::Fragmentation => "fragmentation",
        Class::OutsideFramework => "outside_framework",
        Class::Healthy => "healthy",
    }
}

fn kind_name(kind: LeakKind) -> &'static str {
    match kind {
        LeakKind::GraphKept => "graph_kept",
        LeakKind::Scalars => "scalars",
        LeakKind::Evaluation => "evaluation",
        LeakKind::OutputsKept => "outputs_kept",
        LeakKind::Hook => "hook",
        LeakKind::ParameterCopies => "parameter_copies",
        LeakKind::Exception => "exception",
        LeakKind::Cache => "cache",
        LeakKind::DoubleBackward => "double_backward",
    }
}

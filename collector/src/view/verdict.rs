//! What to think of a device's memory: class, evidence, advice.

use serde::{Deserialize, Serialize};

use crate::view::SiteId;

/// The verdict on one device of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What it is.
    pub class: Class,
    /// How sure.
    pub confidence: Confidence,
    /// At what rhythm it grows.
    pub rhythm: Rhythm,
    /// The period of [`Rhythm::PerPeriod`] in steps.
    pub period_steps: Option<u64>,
    /// Growth of the floor, bytes a step.
    pub growth_bytes_per_step: f64,
    /// 95 % confidence interval of the growth.
    pub interval: Interval,
    /// The step since which it grows (or since which it is as it is), from the attach.
    pub since_step: u64,
    /// Share of the growth that the named sites explain, 0 to 1.
    pub share_explained: f64,
    /// The sites that explain it, most first.
    pub culprits: Vec<Culprit>,
    /// When memory runs out at this pace; `None` where it does not grow or capacity is unknown.
    pub out_of_memory: Option<OutOfMemoryIn>,
    /// What kind of leak the stacks suggest.
    pub kind: Option<LeakKind>,
    /// What holds the blocks that make the growth, in a few words, once the process was asked:
    /// `` the autograd graph behind `__main__.smoothed` ``. Foreign text.
    pub retained_by: Option<String>,
    /// The class in one sentence with its evidence in numbers.
    pub summary: String,
    /// Facts that led here, one a line.
    pub evidence: Vec<String>,
    /// What to do, in one sentence.
    pub advice: String,
}

/// Classes of memory behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Blocks of ever more steps survive.
    Leak,
    /// It grows, and it is too early to tell why.
    Growing,
    /// Still settling after the start.
    WarmUp,
    /// No block outlives its step, yet a step needs more and more (or nearly all there is).
    Capacity,
    /// The framework's cache grows, the tensors do not: by design.
    CacheGrowth,
    /// Much is cached that cannot be used.
    Fragmentation,
    /// Memory grows that the framework does not manage.
    OutsideFramework,
    /// All is well.
    Healthy,
}

/// How sure a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// A guess from little data, or events were lost.
    Low,
    /// The rules agree, but the window is short.
    Medium,
    /// The rules agree over a long window.
    High,
}

/// The rhythm of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rhythm {
    /// Every step.
    PerStep,
    /// In stairs: once an evaluation, once an epoch.
    PerPeriod,
    /// It does not grow.
    None,
}

/// An interval, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A site named by a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Culprit {
    /// Which.
    pub site: SiteId,
    /// Its own growth, bytes a step.
    pub growth_bytes_per_step: f64,
    /// Its share of the device's growth, 0 to 1.
    pub share: f64,
}

/// When memory runs out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutOfMemoryIn {
    /// In how many steps.
    pub steps: f64,
    /// The same from the growth's interval: soonest and latest (infinite when it may not grow).
    pub steps_interval: Interval,
    /// In how many seconds at the present rate; `None` while the rate is unknown.
    pub seconds: Option<f64>,
}

/// What the shape of the surviving stacks suggests. Always an inference: say "likely".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeakKind {
    /// Many forward sites of one step survive together: something keeps a loss or an output
    /// with its graph.
    GraphKept,
    /// One small block a step: scalars kept on the device.
    Scalars,
    /// Survivors only from evaluations: evaluation without `no_grad`, or its outputs are kept.
    Evaluation,
    /// Whole outputs or batches are kept.
    OutputsKept,
    /// Made under a hook.
    Hook,
    /// Copies of parameters or optimizer state.
    ParameterCopies,
    /// Made while an exception was handled, or kept by its traceback.
    Exception,
    /// A cache keyed by shape or object that never forgets.
    Cache,
    /// Blocks that a backward with `create_graph` or `retain_graph` leaves.
    DoubleBackward,
}

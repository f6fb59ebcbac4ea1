//! What the collector knows, frozen at one moment: the only thing that outputs read.
//!
//! A view is cheap to clone (names and stacks are shared) and never changes. Bytes are bytes,
//! times are nanoseconds of `CLOCK_MONOTONIC`, steps are counted from the attach.

mod retained;
mod series;
mod site;
mod verdict;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
pub use vramscope_events::{Backend, DeviceUser, ProbeState, ProbeView, ProcessInfo, Role};
use vramscope_events::{Bytes, DeviceId, LostCause, Pid, Time};

pub use retained::Retained;
pub use series::{MarkKind, Point, Series, SeriesMark};
pub(crate) use site::{FOLLOWER_WEIGHT, is_optimizer_file};
pub use site::{
    FrameView, GenerationSpan, Grouping, LOG2_BUCKETS, Log2Histogram, SiteId, SiteView,
};
pub use verdict::{Class, Confidence, Culprit, Interval, LeakKind, OutOfMemoryIn, Rhythm, Verdict};

/// Everything known at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// The moment.
    pub now: Time,
    /// When the session began.
    pub started: Time,
    /// Wall clock at [`View::started`], seconds since the Unix epoch.
    pub started_unix: u64,
    /// How the events are got.
    pub backend: Backend,
    /// One entry a traced process, the attached one first.
    pub processes: Vec<ProcessView>,
    /// What is missing.
    pub lost: LostView,
    /// Every probe that was planned, present or not.
    pub probes: Vec<ProbeView>,
    /// What happened, oldest first, bounded.
    pub log: Vec<LogEntry>,
}

/// One process.
#[derive(Clone, Debug)]
pub struct ProcessView {
    /// Who it is.
    pub info: Arc<ProcessInfo>,
    /// When it ended, if it did.
    pub exited: Option<Time>,
    /// How its steps are counted.
    pub steps: StepsView,
    /// Its devices that had any event, by number.
    pub devices: Vec<DeviceView>,
    /// Page-locked host memory that it took through the driver since the attach. No device's.
    pub host_bytes: Bytes,
}

/// How steps are counted and how fast they pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepsView {
    /// Whole steps seen since the attach.
    pub count: u64,
    /// What tells them apart.
    pub source: StepSource,
    /// Steps a second over the recent window; 0 while unknown.
    pub rate: f64,
    /// Backward calls that make up one step (gradient accumulation, GANs); 1 for most.
    pub marks_per_step: u32,
}

/// What tells steps apart, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSource {
    /// A place that the user named.
    User,
    /// Calls of `backward()`.
    Backward,
    /// A rhythm found in the sequence of allocations.
    Heartbeat,
    /// One second is one step: nothing better was found.
    Time,
    /// Nothing was seen yet.
    None,
}

/// One device of one process.
#[derive(Clone, Debug)]
pub struct DeviceView {
    /// Its number in the process.
    pub device: DeviceId,
    /// What the framework says is in live blocks now.
    pub allocated: Bytes,
    /// What the framework holds from the driver now.
    pub reserved: Bytes,
    /// The highest `allocated` seen.
    pub peak_allocated: Bytes,
    /// Of `allocated`, what existed before the attach and is still there: of unknown origin.
    pub baseline: Bytes,
    /// `allocated` at the attach.
    pub baseline_at_attach: Bytes,
    /// Live blocks that were allocated since the attach.
    pub live_blocks: u64,
    /// Bytes in them. `live_bytes + baseline == allocated` unless events were lost.
    pub live_bytes: Bytes,
    /// Driver-layer bytes taken since the attach and not given back.
    pub driver_live_bytes: Bytes,
    /// Whether the framework reports its blocks at all (not with cudaMallocAsync).
    pub tensor_layer: bool,
    /// Capacity of the device, where known.
    pub capacity: Option<Bytes>,
    /// Free on the device, where known.
    pub free: Option<Bytes>,
    /// What this process has on the device beyond `reserved`, where known.
    pub outside: Option<Bytes>,
    /// How often ledger and framework disagreed, and by how much.
    pub check: LedgerCheck,
    /// What to think of it; `None` before the first whole step.
    pub verdict: Option<Verdict>,
    /// Tensor-layer sites by full stack, by growth per step, then live bytes, both falling.
    pub sites: Arc<[SiteView]>,
    /// Driver-layer sites, likewise.
    pub driver_sites: Arc<[SiteView]>,
    /// Curves since the attach.
    pub series: Arc<Series>,
    /// Named shares of the device's memory, in the order to show; those that are empty are left
    /// out. Their sum, less [`DeviceView::excess`], is [`DeviceView::used`].
    pub buckets: Vec<Bucket>,
    /// What the driver says that this process uses of the device, and what the process took and
    /// gave back since the driver was asked; `None` where it does not tell.
    pub used: Option<Bytes>,
    /// By how much the shares exceed `used`: more was seen to be taken than the driver counts.
    pub excess: Bytes,
    /// The largest block that the framework was asked for in the running step and the one before:
    /// what tells reusable from fragmented cache.
    pub largest_request: Bytes,
    /// The other processes on the device that are not traced, largest first.
    pub others: Arc<[DeviceUser]>,
}

/// The ledger against the framework's own totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerCheck {
    /// Events that carried totals and agreed with the ledger.
    pub agreed: u64,
    /// Events after which the ledger had to be put right.
    pub corrected: u64,
    /// Bytes by which it was put right, in all, without sign.
    pub corrected_bytes: Bytes,
    /// Blocks in whose place another one was handed out: their frees were missed.
    pub double_allocs: u64,
    /// Frees of blocks that the ledger did not know: from before the attach, or their allocation
    /// was missed.
    pub unknown_frees: u64,
}

/// A named share of a device's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// What it is.
    pub kind: BucketKind,
    /// Its name. Foreign text where it is that of a library.
    pub name: String,
    /// Its size.
    pub bytes: Bytes,
}

/// What a [`Bucket`] holds, in the order in which they are shown. They do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BucketKind {
    /// Live blocks of the framework, allocated since the attach.
    Live,
    /// Live blocks from before the attach.
    LiveBefore,
    /// Cached by the framework, in gaps that the largest recent request fits into.
    Reusable,
    /// Cached by the framework, in smaller gaps.
    Fragmented,
    /// Cached by the framework in segments whose blocks are not all known: they are from before
    /// the attach.
    Cached,
    /// Cached by the framework for CUDA graphs alone, beyond the live blocks there.
    GraphPools,
    /// Taken from the driver by one library, beside the framework's segments.
    Library,
    /// Freed, and kept by the driver's memory pools; at least so much.
    Pools,
    /// All else that the driver counts: contexts, code, and what was taken unseen.
    Rest,
}

/// What is missing from the numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostView {
    /// Events lost in all.
    pub events: u64,
    /// The same by cause.
    pub by_cause: Vec<(LostCause, u64)>,
}

/// One line of the event log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// When.
    pub time: Time,
    /// In which step, where steps are known.
    pub step: Option<u64>,
    /// In which process.
    pub process: Pid,
    /// How grave.
    pub level: LogLevel,
    /// What, in one line.
    pub text: String,
}

/// How grave a [`LogEntry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Good to know.
    Info,
    /// Numbers may be off, or trouble is near.
    Warning,
    /// Something failed.
    Error,
}

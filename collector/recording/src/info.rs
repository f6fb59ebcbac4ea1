//! What is told once, as JSON: readers ignore fields that they do not know.

use serde::{Deserialize, Serialize};
use vramscope_events::{Backend, ProbeView, ProcessInfo, Time};

/// The format that this crate writes. A reader refuses a higher major number, and reads any minor
/// one: it skips chunks and fields that it does not know.
pub const FORMAT: Format = Format { major: 1, minor: 1 };

/// A version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// Changes when an older reader would read something wrong.
    pub major: u32,
    /// Changes when something is added that an older reader may skip.
    pub minor: u32,
}

/// Who was recorded, when and how: the first chunk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// The version of the format.
    pub format: Format,
    /// The program that wrote it, such as `vramscope 0.1.0`.
    pub program: String,
    /// When the session began, nanoseconds of `CLOCK_MONOTONIC`.
    pub started: Time,
    /// Wall clock at that moment, seconds since the Unix epoch; 0 where unknown.
    pub started_unix: u64,
    /// How the events were got.
    pub backend: Backend,
    /// The processes at the start, the attached one first.
    #[serde(default)]
    pub processes: Vec<ProcessInfo>,
    /// What became of the probes, at the start.
    #[serde(default)]
    pub probes: Vec<ProbeView>,
    /// How the collector was set.
    #[serde(default)]
    pub settings: Settings,
}

/// How the live collector was set: replaying with the same gives the same answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Globs of the user's own code; none for the default rule.
    pub user_code: Vec<String>,
    /// A line of Python at which steps begin: file and line.
    pub step_on: Option<(String, u32)>,
    /// Bytes of every device, where the user said so.
    pub capacity: Option<u64>,
    /// Growth over the settled floor that alarms, as a share of it.
    pub alarm_growth: f64,
    /// Use of the device that alarms, as a share.
    pub alarm_capacity: f64,
    /// Steps through which growth must go on to be called a leak.
    pub steps_to_decide: u32,
    /// Whether several `backward()` calls may be one step.
    pub fold: bool,
    /// Whether a rhythm in the allocations may mark steps.
    pub heartbeat: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            user_code: Vec::new(),
            step_on: None,
            capacity: None,
            alarm_growth: 0.25,
            alarm_capacity: 0.85,
            steps_to_decide: 128,
            fold: true,
            heartbeat: true,
        }
    }
}

/// Something that became known on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// A process, new or better known.
    Process(ProcessInfo),
    /// What became of the probes: all of them.
    Probes(Vec<ProbeView>),
    /// Of a later version.
    Unknown,
}

/// The last chunk of a recording that was closed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// The moment up to which the session watched.
    pub until: Time,
    /// Events in the file, definitions not counted.
    pub events: u64,
    /// Why it ended, in words.
    pub reason: String,
    /// Where the checkpoints are.
    pub checkpoints: Vec<CheckpointAt>,
}

/// Where a checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointAt {
    /// Of its chunk, from the start of the file.
    pub offset: u64,
    /// Number of its chunk.
    pub sequence: u64,
    /// Its moment: nothing before it comes after it.
    pub time: Time,
}

//! What a user can set.

use serde::{Deserialize, Serialize};
use vramscope_events::{Bytes, Time};

use crate::{step_line::StepLine, usercode::UserCode, view::Backend};

/// How a [`crate::Collector`] works.
#[derive(Clone, Debug)]
pub struct Config {
    /// How the events are got.
    pub backend: Backend,
    /// When the session began.
    pub started: Time,
    /// Wall clock at that moment, seconds since the Unix epoch; 0 where unknown.
    pub started_unix: u64,
    /// Which frames are the user's own code.
    pub user_code: UserCode,
    /// How steps are told apart.
    pub steps: StepOptions,
    /// A line of Python at which steps begin; marks of this kind take precedence over `backward()`.
    pub step_on: Option<StepLine>,
    /// When a verdict alarms.
    pub alarms: Alarms,
    /// Bytes of every device, where the user said so: nothing else tells it then.
    pub capacity: Option<Bytes>,
    /// Whether source lines that the stream does not bring are read from the files. A recording
    /// brings them: the files may be others by then.
    pub read_sources: bool,
}

impl Config {
    /// The defaults for a session of `backend` that began at `started`.
    pub fn new(backend: Backend, started: Time, started_unix: u64) -> Config {
        Config {
            backend,
            started,
            started_unix,
            user_code: UserCode::default(),
            steps: StepOptions::default(),
            step_on: None,
            alarms: Alarms::default(),
            capacity: None,
            read_sources: true,
        }
    }
}

/// How steps are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepOptions {
    /// Fold several `backward()` calls into one step where their rhythm shows it (GANs, gradient
    /// accumulation). Default: yes.
    pub fold: bool,
    /// Look for a rhythm in the allocations while nothing marks a step. Default: yes.
    pub heartbeat: bool,
}

impl Default for StepOptions {
    fn default() -> Self {
        StepOptions {
            fold: true,
            heartbeat: true,
        }
    }
}

/// Thresholds of alarms, as people in the field use them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alarms {
    /// Growth of the floor over its settled level that alarms, as a share of that level: where
    /// people compare the first hundreds of steps with the present, 20–30 % is their alarm.
    /// Default 0.25.
    pub growth_over_baseline: f64,
    /// Use of the device's capacity at which to save a checkpoint and leave in order. Default
    /// 0.85.
    pub capacity_use: f64,
    /// Steps through which growth must go on before it is called a leak and not just growth: a
    /// container that is still filling looks the same until it is full, and the windows in common
    /// use hold up to 100 steps. Default 128.
    pub steps_to_decide: u32,
}

impl Default for Alarms {
    fn default() -> Self {
        Alarms {
            growth_over_baseline: 0.25,
            capacity_use: 0.85,
            steps_to_decide: 128,
        }
    }
}

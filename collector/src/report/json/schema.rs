//! The shape of the JSON report. `docs/report-json.md` explains every field; a test compares.

use serde::Serialize;

use crate::view::BucketKind;

/// The document.
#[derive(Serialize)]
pub struct Report<'a> {
    pub schema: u32,
    pub grouping: &'static str,
    pub backend: &'static str,
    pub started_unix: Option<u64>,
    pub duration_seconds: f64,
    pub process: Option<Process<'a>>,
    pub steps: Steps,
    pub devices: Vec<Device<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessAndDevices<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
    pub lost: Lost,
    pub probes: Vec<Probe<'a>>,
    pub log: Vec<LogLine<'a>>,
}

/// What is to be said of several processes together.
#[derive(Serialize)]
pub struct Together {
    pub summary: Option<String>,
    pub skewed: Vec<Finding>,
    pub workers: Vec<Finding>,
}

#[derive(Serialize)]
pub struct Finding {
    pub pid: u32,
    pub bytes: u64,
    pub text: String,
    pub advice: String,
}

#[derive(Serialize)]
pub struct Process<'a> {
    pub pid: u32,
    pub command: &'a str,
    pub python: Option<&'a str>,
    pub torch: Option<&'a str>,
    pub rank: Option<u32>,
    pub role: &'static str,
    pub exited: bool,
    pub host_bytes: u64,
}

#[derive(Serialize)]
pub struct ProcessAndDevices<'a> {
    #[serde(flatten)]
    pub process: Process<'a>,
    pub steps: Steps,
    pub devices: Vec<Device<'a>>,
}

#[derive(Serialize)]
pub struct Steps {
    pub count: u64,
    pub source: &'static str,
    pub per_second: Option<f64>,
    pub marks_per_step: u32,
}

#[derive(Serialize)]
pub struct Device<'a> {
    pub device: u16,
    pub allocated: u64,
    pub reserved: u64,
    pub peak_allocated: u64,
    pub baseline: u64,
    pub baseline_at_attach: u64,
    pub live_bytes: u64,
    pub live_blocks: u64,
    pub capacity: Option<u64>,
    pub free: Option<u64>,
    pub outside: Option<u64>,
    pub used: Option<u64>,
    pub excess: u64,
    pub largest_request: u64,
    pub tensor_layer: bool,
    pub ledger: Ledger,
    pub buckets: Vec<Bucket<'a>>,
    pub others: Vec<Other<'a>>,
    pub verdict: Option<Verdict<'a>>,
    pub sites_total: u64,
    pub sites: Vec<Site<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survivors: Option<Vec<Block>>,
    pub driver: Driver<'a>,
}

#[derive(Serialize)]
pub struct Ledger {
    pub agreed: u64,
    pub corrected: u64,
    pub corrected_bytes: u64,
    pub double_allocs: u64,
    pub unknown_frees: u64,
}

#[derive(Serialize)]
pub struct Bucket<'a> {
    pub kind: BucketKind,
    pub name: &'a str,
    pub bytes: u64,
}

#[derive(Serialize)]
pub struct Other<'a> {
    pub pid: u32,
    pub command: Option<&'a str>,
    pub bytes: Option<u64>,
}

#[derive(Serialize)]
pub struct Driver<'a> {
    pub live_bytes: u64,
    pub sites: Vec<Site<'a>>,
}

#[derive(Serialize)]
pub struct Verdict<'a> {
    pub class: &'static str,
    pub confidence: &'static str,
    pub rhythm: &'static str,
    pub period_steps: Option<u64>,
    pub growth_bytes_per_step: Option<f64>,
    pub interval: [Option<f64>; 2],
    pub since_step: u64,
    pub share_explained: Option<f64>,
    pub oom_in_steps: Option<f64>,
    pub oom_in_steps_interval: Option<[Option<f64>; 2]>,
    pub oom_in_seconds: Option<f64>,
    pub kind: Option<&'static str>,
    pub retained_by: Option<&'a str>,
    pub summary: &'a str,
    pub evidence: Vec<&'a str>,
    pub advice: &'a str,
    pub culprits: Vec<Culprit<'a>>,
}

#[derive(Serialize)]
pub struct Culprit<'a> {
    pub site: Option<u64>,
    pub file: Option<&'a str>,
    pub line: Option<u32>,
    pub function: Option<&'a str>,
    pub source: Option<&'a str>,
    pub stacks: u32,
    pub growth_bytes_per_step: Option<f64>,
    pub share: Option<f64>,
}

#[derive(Serialize)]
pub struct Site<'a> {
    pub id: u32,
    pub file: Option<&'a str>,
    pub line: Option<u32>,
    pub function: Option<&'a str>,
    pub source: Option<&'a str>,
    pub backward: bool,
    pub stacks: u32,
    pub live_bytes: u64,
    pub live_blocks: u64,
    pub total_bytes: u64,
    pub total_blocks: u64,
    pub generations: u64,
    pub growth_bytes_per_step: Option<f64>,
    pub growth_share: Option<f64>,
    pub first_seen_seconds: f64,
    pub last_seen_seconds: f64,
    pub oldest_survivor_seconds: Option<f64>,
    pub born: Vec<Born>,
    pub retained_by: Option<Retained<'a>>,
    pub stack: Vec<Frame<'a>>,
}

#[derive(Serialize)]
pub struct Retained<'a> {
    pub asked_seconds: f64,
    pub seconds_since_asked_before: Option<f64>,
    pub survivors: u64,
    pub asked: u64,
    pub holders: Vec<Holder<'a>>,
    pub partial: Option<&'a str>,
    pub notes: Vec<&'a str>,
    pub cost: &'a str,
}

#[derive(Serialize)]
pub struct Holder<'a> {
    pub words: &'a str,
    pub kind: &'a str,
    pub path: &'a str,
    pub blocks: u64,
    pub bytes: u64,
    pub length: Option<u64>,
    pub bound: Option<u64>,
    pub length_before: Option<u64>,
}

#[derive(Serialize)]
pub struct Block {
    pub address: u64,
    pub size: u64,
    pub born_step: u64,
    pub site: Option<u64>,
}

#[derive(Serialize)]
pub struct Born {
    pub first_step: u64,
    pub last_step: u64,
    pub blocks: u64,
    pub bytes: u64,
    pub generations: u64,
}

#[derive(Serialize)]
pub struct Frame<'a> {
    pub kind: &'static str,
    pub file: &'a str,
    pub line: Option<u32>,
    pub function: &'a str,
    pub source: Option<&'a str>,
    pub user: bool,
}

#[derive(Serialize)]
pub struct Lost {
    pub events: u64,
    pub by_cause: Vec<LostBy>,
}

#[derive(Serialize)]
pub struct LostBy {
    pub cause: &'static str,
    pub events: u64,
}

#[derive(Serialize)]
pub struct Probe<'a> {
    pub name: &'a str,
    pub state: &'static str,
    pub consequence: Option<&'a str>,
    pub cost_note: &'a str,
}

#[derive(Serialize)]
pub struct LogLine<'a> {
    pub seconds: f64,
    pub step: Option<u64>,
    pub pid: u32,
    pub level: &'static str,
    pub text: &'a str,
}

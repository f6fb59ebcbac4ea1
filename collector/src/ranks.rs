//! Several processes in one view: what they have in common, which one differs, and who holds GPU
//! memory without need.

use vramscope_events::{Bytes, Pid, Role};

use crate::{
    report::{headline, units},
    view::{Class, DeviceView, ProcessView, View},
};

/// What is to be said of the processes of a session together. All texts are safe to print.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// All of them in one sentence; `None` where there is but one.
    pub summary: Option<String>,
    /// Those that hold more than the others, the most first.
    pub skewed: Vec<Finding>,
    /// Workers and other children that hold GPU memory, the most first.
    pub workers: Vec<Finding>,
}

/// Something to be said of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub process: Pid,
    /// By how many bytes: held, or held more than others.
    pub bytes: Bytes,
    /// What.
    pub text: String,
    /// What to do about it; empty where its own verdict says that.
    pub advice: String,
}

/// A difference that is worth a word: this share of what the others hold ...
const SKEW_SHARE: f64 = 0.1;
/// ... and so many bytes. PyTorch's large segments are 20 MiB: below, it is rounding.
const SKEW_BYTES: Bytes = 20 << 20;
/// Processes that are named one by one.
const NAMED: usize = 8;

const LOADER_ADVICE: &str = "Let the dataset and its collate_fn give tensors of the CPU, and move the batch in the \
     training loop (pin_memory=True and non_blocking=True keep that cheap): each worker that \
     touches the GPU takes a context and a cache of its own there.";
const CHILD_ADVICE: &str = "Each process that touches the GPU takes a context and a cache of its own there: let one do \
     the work, or let this one end when its work is done.";

/// Looks at the processes of a view beside each other.
pub fn findings(view: &View) -> Findings {
    let holding = view.processes.iter().filter(|one| held(one) > 0);
    let (workers, others): (Vec<_>, Vec<_>) = holding.partition(|one| is_worker(one));
    let mut skewed = skewed(&others);
    skewed.sort_by_key(|finding| std::cmp::Reverse(finding.bytes));
    let mut workers: Vec<Finding> = workers.into_iter().map(worker).collect();
    workers.sort_by_key(|finding| std::cmp::Reverse(finding.bytes));
    Findings {
        summary: (others.len() > 1).then(|| summary(&others)),
        skewed,
        workers,
    }
}

/// Whether a process works for another one: a worker of a `DataLoader`, or a child of the program.
pub fn is_worker(process: &ProcessView) -> bool {
    match process.info.role {
        Role::Loader | Role::Child => true,
        Role::Program | Role::Launcher => runs_loader(process),
    }
}

/// What a process is called: `rank 2`, or `pid 4121` without ranks.
pub fn name(process: &ProcessView) -> String {
    match (process.info.rank, is_worker(process)) {
        (Some(rank), false) => format!("rank {rank}"),
        _ => format!("pid {}", process.info.pid),
    }
}

/// What a process is among the others, in words; `None` for one that is what it seems.
pub fn role_words(process: &ProcessView) -> Option<String> {
    let of = match process.info.rank {
        Some(rank) => format!(" of rank {rank}"),
        None => String::new(),
    };
    match process.info.role {
        Role::Launcher => Some("launcher".into()),
        Role::Loader => Some(format!("DataLoader worker{of}")),
        _ if runs_loader(process) => Some(format!("DataLoader worker{of}")),
        Role::Child => Some(format!("child process{of}")),
        Role::Program => None,
    }
}

/// PyTorch before 2.5 does not name its workers, but its code is in their stacks.
fn runs_loader(process: &ProcessView) -> bool {
    let sites = process
        .devices
        .iter()
        .flat_map(|device| device.sites.iter());
    let mut frames = sites.flat_map(|site| site.stack.iter());
    frames.any(|frame| frame.file.ends_with("torch/utils/data/_utils/worker.py"))
}

/// GPU memory of a process, in bytes, as far as it is known.
fn held(process: &ProcessView) -> Bytes {
    let devices = process.devices.iter();
    devices
        .map(|device| {
            device
                .reserved
                .max(device.allocated)
                .max(device.driver_live_bytes)
        })
        .sum()
}

/// The level that a process comes back to: allocated itself swings within a step.
fn floor(process: &ProcessView) -> Bytes {
    let of = |device: &DeviceView| {
        let last = device.series.points.last();
        last.map_or(device.allocated, |point| point.floor)
    };
    process.devices.iter().map(of).sum()
}

/// The worst of a process's devices; of equals that on which PyTorch has its blocks.
fn gravest(process: &ProcessView) -> Option<&DeviceView> {
    let devices = process.devices.iter();
    devices.min_by_key(|device| (!device.tensor_layer, headline::rank(device)))
}

fn class(process: &ProcessView) -> Option<Class> {
    let verdict = gravest(process)?.verdict.as_ref()?;
    Some(verdict.class)
}

/// `4 ranks: rank 2 leaks (+131.4 KB/step); the other 3 are healthy`.
fn summary(processes: &[&ProcessView]) -> String {
    let all = processes.len();
    let what = match processes.iter().all(|one| one.info.rank.is_some()) {
        true => "ranks",
        false => "processes",
    };
    let mut parts: Vec<String> = Vec::new();
    let mut rest = processes.to_vec();
    for (wanted, one, many) in [
        (Class::Leak, "leaks", "leak"),
        (
            Class::OutsideFramework,
            "grows outside PyTorch",
            "grow outside PyTorch",
        ),
        (Class::Growing, "grows", "grow"),
        (
            Class::Capacity,
            "needs nearly all there is",
            "need nearly all there is",
        ),
        (Class::Fragmentation, "is fragmented", "are fragmented"),
    ] {
        let (these, others): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|process| class(process) == Some(wanted));
        rest = others;
        if these.is_empty() {
            continue;
        }
        let verb = if these.len() == 1 { one } else { many };
        if these.len() == all && all > 1 {
            parts.push(format!("all {verb}"));
            continue;
        }
        let more = match these.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        parts.push(match these[..] {
            [one] => match growth(one) {
                Some(growth) => format!("{} {verb} ({growth})", name(one)),
                None => format!("{} {verb}", name(one)),
            },
            _ => {
                let names = these.iter().take(NAMED).map(|one| match growth(one) {
                    Some(growth) => format!("{} ({growth})", name(one)),
                    None => name(one),
                });
                format!("{}{more} {verb}", names.collect::<Vec<_>>().join(", "))
            }
        });
    }
    if !rest.is_empty() {
        let healthy = rest
            .iter()
            .all(|process| matches!(class(process), Some(Class::Healthy | Class::CacheGrowth)));
        let state = match healthy {
            true => "healthy",
            false => "without a finding so far",
        };
        parts.push(match (parts.is_empty(), rest.len()) {
            (true, _) => format!("all are {state}"),
            (false, 1) => format!("the other one is {state}"),
            (false, others) => format!("the other {others} are {state}"),
        });
    }
    format!("{all} {what}: {}", parts.join("; "))
}

fn growth(process: &ProcessView) -> Option<String> {
    let verdict = gravest(process)?.verdict.as_ref()?;
    let growth = verdict.growth_bytes_per_step;
    (growth > 0.0).then(|| units::growth(growth))
}

/// Who holds more than the median of the others.
fn skewed(processes: &[&ProcessView]) -> Vec<Finding> {
    let skew = |process: &&&ProcessView| {
        let mut others: Vec<Bytes> = processes
            .iter()
            .filter(|other| !std::ptr::eq(**other, **process))
            .map(|other| floor(other))
            .collect();
        others.sort_unstable();
        let median = *others.get(others.len().saturating_sub(1) / 2)?;
        let bytes = floor(process).checked_sub(median)?;
        // What goes on growing is worth a word while it is small.
        let grows = matches!(class(process), Some(Class::Leak | Class::Growing));
        let large = grows || bytes as f64 >= median as f64 * SKEW_SHARE;
        (large && bytes >= SKEW_BYTES).then(|| finding(process, bytes, others.len()))
    };
    processes.iter().filter_map(|one| skew(&one)).collect()
}

fn finding(process: &ProcessView, bytes: Bytes, others: usize) -> Finding {
    let than = match others {
        1 => "than the other one".to_owned(),
        others => format!("than the median of the other {others}"),
    };
    let mut text = format!(
        "{} holds {} more {than}",
        name(process),
        units::bytes(bytes)
    );
    if let Some(device) = gravest(process)
        && let Some(verdict) = &device.verdict
    {
        if verdict.growth_bytes_per_step > 0.0 {
            let growth = units::growth(verdict.growth_bytes_per_step);
            text.push_str(&format!(" and grows by {}", growth.trim_start_matches('+')));
        }
        let lines = headline::culprit_lines(device);
        if let Some(line) = lines.first()
            && matches!(verdict.class, Class::Leak | Class::Growing)
        {
            let does = match verdict.class {
                Class::Leak => "leaks",
                _ => "grows",
            };
            let place = headline::site_words(line.site, process, 120);
            text.push_str(&format!("; it {does} at {place}"));
        }
    }
    Finding {
        process: process.info.pid,
        bytes,
        text,
        advice: String::new(),
    }
}

fn worker(process: &ProcessView) -> Finding {
    let bytes = held(process);
    let words = role_words(process).unwrap_or_default();
    let loads = process.info.role == Role::Loader || runs_loader(process);
    let mut text = format!(
        "{words} (pid {}) holds {} of GPU memory",
        process.info.pid,
        units::bytes(bytes)
    );
    let most = process
        .devices
        .iter()
        .flat_map(|device| device.sites.iter())
        .max_by_key(|site| site.live_bytes)
        .filter(|site| site.live_bytes > 0);
    if let Some(site) = most {
        let place = headline::site_words(site, process, 120);
        text.push_str(&format!(", most of it from {place}"));
    }
    Finding {
        process: process.info.pid,
        bytes,
        text,
        advice: match loads {
            true => LOADER_ADVICE.into(),
            false => CHILD_ADVICE.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{fixture, view::ProcessInfo};

    fn change(view: &mut View, index: usize, with: impl FnOnce(&mut ProcessInfo)) {
        with(Arc::make_mut(&mut view.processes[index].info));
    }

    #[test]
    fn one_process_alone_is_no_news() {
        assert_eq!(findings(&fixture::leak()), Findings::default());
    }

    #[test]
    fn the_rank_that_leaks_is_named_with_its_line() {
        let view = fixture::four_ranks();
        let found = findings(&view);
        insta::assert_debug_snapshot!(found);
    }

    #[test]
    fn a_worker_that_holds_memory_is_no_rank_and_gets_advice() {
        let mut view = fixture::four_ranks();
        change(&mut view, 3, |info| info.role = Role::Loader);
        let found = findings(&view);
        assert!(found.summary.unwrap().starts_with("3 ranks: "));
        let [worker] = &found.workers[..] else {
            panic!("{:?}", found.workers);
        };
        assert_eq!(worker.process, view.processes[3].info.pid);
        assert!(worker.text.starts_with("DataLoader worker of rank"));
        assert!(worker.advice.contains("pin_memory"));
        change(&mut view, 3, |info| info.role = Role::Child);
        let found = findings(&view);
        assert!(found.workers[0].text.starts_with("child process of rank"));
    }
}

//! Asking a process what holds the survivors of a site, while the session goes on.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use vramscope_collector::{
    Collector, escape,
    grouping::{self, Groups},
    report::{headline, units},
    view::{Class, DeviceView, Grouping, ProcessView, SiteId, SiteView, View},
};
use vramscope_events::{DeviceId, Event, Holders, Pid, StackId};
use vramscope_holders::{Answer, Asker, Cost, Holder, Kind, Request, words};

use crate::{cli::LineOf, engine::Handle};

/// Blocks that are asked for at most; of more, every so many-th.
const MOST_BLOCKS: usize = 100_000;
/// Memory that the search may take in the process.
const MEMORY: u64 = 160 << 20;
/// How far the events may be behind on a busy machine.
const LAG: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long whoever ends waits for an answer that is under way: the library is to be taken out.
const PATIENCE: Duration = Duration::from_secs(5);
/// One question at a time: two would take the library away from each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// Columns of a name in the text.
const COLUMNS: usize = 300;

/// How much of the process's time the search may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// With the GIL, in all.
    pub budget: Duration,
    /// With the GIL, at once.
    pub slice: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            budget: Duration::from_secs(2),
            slice: Duration::from_millis(10),
        }
    }
}

/// Which site is meant.
#[derive(Clone, Debug)]
pub enum Choice {
    /// The line that the verdict names first, else the one that grows most.
    Named,
    /// By its place in the report, from 1.
    Place(usize),
    /// By the line of its own frame.
    Line(LineOf),
    /// These sites of a device of a process.
    Sites(Pid, DeviceId, Vec<SiteId>),
}

/// A surviving block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first byte.
    pub address: u64,
    /// In bytes.
    pub size: u64,
    /// The step in which it was allocated.
    pub born: u64,
}

/// A site and its survivors.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The process.
    pub process: Pid,
    device: DeviceId,
    /// The line.
    pub name: String,
    sites: HashSet<SiteId>,
    stacks: Vec<StackId>,
    /// Survivors in all but those of the step that was under way.
    pub survivors: usize,
    /// Those that are asked about.
    pub blocks: Vec<Block>,
}

/// What came back.
pub struct Asked {
    /// The holders, of the blocks that are still there.
    pub answer: Answer,
    /// Whether the library is gone again.
    pub unloaded: bool,
}

/// Finds the survivors of a site.
///
/// # Errors
/// There is no such site, or nothing of it survives.
pub fn find(handle: &Handle, choice: &Choice) -> anyhow::Result<Subject> {
    let choice = choice.clone();
    handle.with_collector(move |collector, view| chosen(collector, view, &choice))?
}

/// The same for whoever has just watched: what was allocated last may not have been counted yet.
///
/// # Errors
/// As [`find`], when nothing is found for a while.
pub fn find_soon(handle: &Handle, choice: &Choice) -> anyhow::Result<Subject> {
    let start = Instant::now();
    loop {
        match find(handle, choice) {
            Err(_) if start.elapsed() < LAG => thread::sleep(LOOK_AGAIN),
            found => return found,
        }
    }
}

/// The survivors of the line that the verdict names first; `None` while no verdict speaks of growth.
///
/// # Errors
/// The session has ended, or nothing survives.
pub fn find_growing(handle: &Handle) -> anyhow::Result<Option<Subject>> {
    let found = handle.with_collector(|collector, view| {
        let grows = device_of(view, &Choice::Named).is_ok_and(|(_, device)| {
            let class = device.verdict.as_ref().map(|verdict| verdict.class);
            matches!(class, Some(Class::Leak | Class::Growing))
        });
        grows.then(|| chosen(collector, view, &Choice::Named))
    })?;
    found.transpose()
}

/// What is said before somebody is asked who did not expect it.
pub fn announcement(subject: &Subject) -> String {
    format!(
        "asking process {} about {} survivors of {}: this runs code in it",
        subject.process,
        subject.blocks.len(),
        subject.name,
    )
}

/// Waits a while for a thread that asks; whether it has ended.
pub fn wait_for<T>(thread: &JoinHandle<T>) -> bool {
    let start = Instant::now();
    while !thread.is_finished() {
        if start.elapsed() > PATIENCE {
            eprintln!(
                "note: the question what holds the survivors has no answer yet; the library in the \
                 process ends by itself, and stays loaded and idle"
            );
            return false;
        }
        thread::sleep(LOOK_AGAIN);
    }
    true
}

/// Asks the process, and tells the session of the answer.
///
/// # Errors
/// It cannot be asked, or does not answer.
pub fn ask(handle: &Handle, subject: &Subject, limits: Limits) -> anyhow::Result<Asked> {
    let mut asked = ask_about(subject.process, &subject.blocks, limits)?;
    // What was freed while we asked has no holder.
    let (process, device, sites) = (subject.process, subject.device, subject.sites.clone());
    let after: HashSet<(u64, u64)> = handle.with_collector(move |collector, _| {
        (survivors(collector, process, device, &sites).0.into_iter())
            .map(|block| (block.address, block.born))
            .collect()
    })?;
    only_those_alive(&mut asked.answer, &subject.blocks, &after);
    let holders = event(subject, &asked);
    handle.tell(subject.process, Event::Holders(holders.into()));
    Ok(asked)
}

/// Asks the process about blocks.
///
/// # Errors
/// It cannot be asked, or does not answer.
pub fn ask_about(process: Pid, blocks: &[Block], limits: Limits) -> anyhow::Result<Asked> {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let request = Request {
        addresses: blocks.iter().map(|block| block.address).collect(),
        sizes: blocks.iter().map(|block| block.size).collect(),
        budget_ms: milliseconds(limits.budget),
        slice_ms: milliseconds(limits.slice),
        memory: MEMORY,
    };
    let mut asker = Asker::attach(process.0)?;
    let mut answer = asker.ask(&request);
    if let Ok(answer) = &mut answer
        && asker.strangers() > 0
    {
        answer.notes.push(format!(
            "libraries of other builds of vramscope that stay in the process, idle: {}",
            asker.strangers()
        ));
    }
    let unloaded = asker.leave();
    Ok(Asked {
        answer: answer?,
        unloaded,
    })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The site, and its survivors but the youngest: what the step under way has made may be gone
/// before it is asked about.
fn chosen(collector: &Collector, view: &View, choice: &Choice) -> anyhow::Result<Subject> {
    let (process, device) = device_of(view, choice)?;
    let groups = Groups::new(&device.sites, Grouping::Line);
    let (name, sites) = match choice {
        Choice::Sites(_, _, sites) => {
            let known = (device.sites.iter()).find(|site| sites.contains(&site.id));
            (known.map(name_of), sites.iter().copied().collect())
        }
        _ => {
            let place = place(device, &groups, choice).with_context(|| {
                let seen: Vec<String> = (0..groups.len().min(8))
                    .map(|at| format!("{}. {}", at + 1, name_of(groups.head(at))))
                    .collect();
                format!(
                    "no such site among the {} seen; the first are:\n  {}",
                    groups.len(),
                    seen.join("\n  ")
                )
            })?;
            let members = groups.members(place).iter();
            let sites: HashSet<SiteId> = members.map(|site| site.id).collect();
            (Some(name_of(groups.head(place))), sites)
        }
    };
    let name = name.context("the site is gone")?;
    let (all, stacks) = survivors(collector, process.info.pid, device.device, &sites);
    let newest = all.iter().map(|block| block.born).max().unwrap_or(0);
    let is_old = |block: &&Block| block.born < newest;
    let mut old: Vec<Block> = all.iter().filter(is_old).copied().collect();
    if old.is_empty() {
        old = all;
    }
    anyhow::ensure!(
        !old.is_empty(),
        "{name}: no block that was allocated while we watched survives\n  watch longer: \
         --duration 2m"
    );
    old.sort_unstable_by_key(|block| (block.born, block.address));
    let every = old.len().div_ceil(MOST_BLOCKS).max(1);
    Ok(Subject {
        process: process.info.pid,
        device: device.device,
        name,
        sites,
        stacks,
        survivors: old.len(),
        blocks: old.into_iter().step_by(every).collect(),
    })
}

fn device_of<'a>(
    view: &'a View,
    choice: &Choice,
) -> anyhow::Result<(&'a ProcessView, &'a DeviceView)> {
    let found = match choice {
        Choice::Sites(pid, id, _) => (view.processes.iter())
            .filter(|process| process.info.pid == *pid)
            .flat_map(|process| process.devices.iter().map(move |device| (process, device)))
            .find(|(_, device)| device.device == *id),
        Choice::Named => {
            (headline::by_gravity(view).into_iter()).find(|(process, _)| process.exited.is_none())
        }
        Choice::Place(_) | Choice::Line(_) => view.processes.first().and_then(|process| {
            let devices = process.devices.iter();
            let largest = devices.max_by_key(|device| device.live_bytes);
            largest.map(|device| (process, device))
        }),
    };
    found.context("nothing was allocated while it was watched\n  watch longer: --duration 2m")
}

fn place(device: &DeviceView, groups: &Groups<'_>, choice: &Choice) -> Option<usize> {
    match choice {
        Choice::Place(place) => place.checked_sub(1).filter(|place| *place < groups.len()),
        Choice::Line(line) => (0..groups.len()).find(|at| {
            groups.head(*at).own_frame().is_some_and(|frame| {
                frame.line == line.line
                    && (frame.file.as_ref() == line.file
                        || frame.file.ends_with(&format!("/{}", line.file)))
            })
        }),
        Choice::Named | Choice::Sites(..) => {
            let named = headline::culprit_lines(device);
            let first = named.first().and_then(|line| {
                let holds =
                    |at: &usize| grouping::holds(groups.head(*at), line.site, Grouping::Line);
                (0..groups.len()).find(holds)
            });
            first.or((!groups.is_empty()).then_some(0))
        }
    }
}

/// The surviving blocks of some sites, and the stacks of the sites.
fn survivors(
    collector: &Collector,
    process: Pid,
    device: DeviceId,
    sites: &HashSet<SiteId>,
) -> (Vec<Block>, Vec<StackId>) {
    let mut stacks = HashMap::new();
    let mut blocks = Vec::new();
    for block in collector.survivors(process, device) {
        if sites.contains(&block.site) {
            stacks.insert(block.site, block.stack);
            blocks.push(Block {
                address: block.address.0,
                size: block.size,
                born: block.born_step,
            });
        }
    }
    let mut stacks: Vec<StackId> = stacks.into_values().collect();
    stacks.sort_unstable();
    (blocks, stacks)
}

fn name_of(site: &SiteView) -> String {
    match site.own_frame() {
        Some(frame) => {
            let file = frame.file.rsplit('/').next().unwrap_or_default();
            let source = frame.source.as_deref().unwrap_or_default();
            let line = format!("{file}:{} {source}", frame.line);
            escape::line(line.trim_end(), COLUMNS)
        }
        None => "a thread without Python".into(),
    }
}

/// Leaves out what was freed meanwhile.
fn only_those_alive(answer: &mut Answer, blocks: &[Block], after: &HashSet<(u64, u64)>) {
    for holder in &mut answer.holders {
        holder.members.retain(|member| {
            let block = blocks.get(*member as usize);
            block.is_some_and(|block| after.contains(&(block.address, block.born)))
        });
    }
    (answer.holders).retain(|holder| !holder.members.is_empty());
    (answer.holders).sort_by_key(|holder| std::cmp::Reverse(holder.members.len()));
}

/// The answer as the collector and recordings keep it.
fn event(subject: &Subject, asked: &Asked) -> Holders {
    let mut notes = asked.answer.notes.clone();
    notes.extend((!asked.unloaded).then(|| STAYS.to_owned()));
    let holders = asked.answer.holders.iter();
    Holders {
        device: subject.device,
        stacks: subject.stacks.clone(),
        survivors: subject.survivors as u64,
        asked: subject.blocks.len() as u64,
        holders: holders
            .map(|holder| vramscope_events::Holder {
                kind: words::kind(holder.kind).into(),
                words: words::holder(holder),
                short: words::short(holder),
                path: holder.path.clone(),
                blocks: holder.members.len() as u64,
                bytes: bytes_of(holder, &subject.blocks),
                length: match holder.kind {
                    Kind::Graph => Some(holder.graph_length),
                    _ => holder.container_length,
                },
                bound: holder.container_bound,
            })
            .collect(),
        partial: asked.answer.partial.clone(),
        notes,
        cost: cost_words(&asked.answer.cost),
    }
}

/// What is said of a library that did not go.
pub const STAYS: &str = "the agent's library could not be taken out yet and stays, idle";

/// Bytes of the blocks of a holder.
pub fn bytes_of(holder: &Holder, blocks: &[Block]) -> u64 {
    (holder.members.iter())
        .filter_map(|member| blocks.get(*member as usize))
        .map(|block| block.size)
        .sum()
}

/// What it cost, in a sentence.
pub fn cost_words(cost: &Cost) -> String {
    format!(
        "the GIL {} times, {:.0} ms in all, {:.1} ms at most; {} objects, {} graph nodes, {} of \
         memory, {:.2} s",
        cost.slices,
        cost.held_us as f64 / 1e3,
        cost.longest_us as f64 / 1e3,
        units::count(cost.objects),
        units::count(cost.graph_nodes),
        units::bytes(cost.memory),
        cost.wall_us as f64 / 1e6,
    )
}

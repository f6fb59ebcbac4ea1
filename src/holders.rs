//! `holders`: what keeps the surviving blocks of a site alive.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use serde::Serialize;
use vramscope_collector::{
    Collector, escape,
    grouping::Groups,
    report::units,
    view::{Grouping, SiteId, SiteView, View},
};
use vramscope_holders::{Answer, Asker, Holder, Request, words};

use crate::{
    attach::{Show, watch_then},
    cli::{Format, HoldersArgs, LineOf},
    engine::Engine,
    output,
};

/// Blocks that are asked for at most; of more, every so many-th.
const MOST_BLOCKS: usize = 100_000;
/// Memory that the search may take in the process.
const MEMORY: u64 = 160 << 20;
/// Addresses of a holder's blocks that the JSON lists.
const MOST_ADDRESSES: usize = 100;
/// Columns of a name in the text.
const COLUMNS: usize = 300;

/// A surviving block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    address: u64,
    size: u64,
    born: u64,
}

/// What is asked and what came back.
struct Asked {
    site: Option<String>,
    /// Survivors of the site in all.
    survivors: usize,
    blocks: Vec<Block>,
    answer: Answer,
    unloaded: bool,
}

/// `vramscope holders PID`.
pub fn holders(options: &HoldersArgs) -> anyhow::Result<ExitCode> {
    let asked = if options.address.is_empty() {
        let choose = Choice::of(options);
        watch_then(
            &options.target,
            Some(options.duration),
            Show::Nothing,
            |engine| ask_about_a_site(engine, options, &choose),
        )??
    } else {
        let blocks = (options.address.iter())
            .map(|address| Block {
                address: *address,
                size: 0,
                born: 0,
            })
            .collect();
        ask(options, None, options.address.len(), blocks)?
    };
    let text = match options.format {
        Format::Json => json(&asked)?,
        Format::Text | Format::Markdown => text(&asked),
    };
    output::stdout(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Which site is meant.
#[derive(Clone, Debug)]
enum Choice {
    /// By its place in the report, from 1.
    Place(usize),
    /// By the line of its own frame.
    Line(LineOf),
}

impl Choice {
    fn of(options: &HoldersArgs) -> Choice {
        match &options.line {
            Some(line) => Choice::Line(line.clone()),
            None => Choice::Place(options.site.unwrap_or(1)),
        }
    }
}

fn ask_about_a_site(
    engine: &Engine,
    options: &HoldersArgs,
    choice: &Choice,
) -> anyhow::Result<Asked> {
    let pid = options.target.pid()?;
    let found = {
        let choice = choice.clone();
        engine.with_collector(move |collector, view| find(collector, view, &choice))??
    };
    let (name, ids, survivors) = found;
    let total = survivors.len();
    let every = total.div_ceil(MOST_BLOCKS).max(1);
    let blocks: Vec<Block> = survivors.into_iter().step_by(every).collect();
    eprintln!(
        "asking process {pid} about {} of {total} survivors: this runs code in it",
        blocks.len()
    );
    let asked = ask(options, Some(name), total, blocks)?;
    // What was freed while we asked has no holder.
    let after: HashSet<(u64, u64)> = engine.with_collector(move |collector, view| {
        survivors_of(collector, view, &ids)
            .into_iter()
            .map(|block| (block.address, block.born))
            .collect()
    })?;
    Ok(only_those_alive(asked, &after))
}

/// The site's name, its members, and its survivors but the youngest: what the step under way has
/// made may be gone before it is asked about.
fn find(
    collector: &Collector,
    view: &View,
    choice: &Choice,
) -> anyhow::Result<(String, HashSet<SiteId>, Vec<Block>)> {
    let process = view.processes.first().context("no process was seen")?;
    let device = (process.devices.iter())
        .max_by_key(|device| device.live_bytes)
        .context("nothing was allocated while it was watched\n  watch longer: --duration 2m")?;
    let groups = Groups::new(&device.sites, Grouping::Line);
    let place = match choice {
        Choice::Place(place) => place.checked_sub(1).filter(|place| *place < groups.len()),
        Choice::Line(line) => (0..groups.len()).find(|at| {
            groups.head(*at).own_frame().is_some_and(|frame| {
                frame.line == line.line
                    && (frame.file.as_ref() == line.file
                        || frame.file.ends_with(&format!("/{}", line.file)))
            })
        }),
    };
    let place = place.with_context(|| {
        let seen: Vec<String> = (0..groups.len().min(8))
            .map(|at| format!("{}. {}", at + 1, name_of(groups.head(at))))
            .collect();
        format!(
            "no such site among the {} seen; the first are:\n  {}",
            groups.len(),
            seen.join("\n  ")
        )
    })?;
    let ids: HashSet<SiteId> = groups.members(place).iter().map(|site| site.id).collect();
    let all = survivors_of(collector, view, &ids);
    let newest = all.iter().map(|block| block.born).max().unwrap_or(0);
    let mut old: Vec<Block> = (all.iter())
        .filter(|block| block.born < newest)
        .copied()
        .collect();
    if old.is_empty() {
        old = all;
    }
    anyhow::ensure!(
        !old.is_empty(),
        "{}: no block that was allocated while we watched survives\n  watch longer: --duration 2m",
        name_of(groups.head(place))
    );
    old.sort_unstable_by_key(|block| (block.born, block.address));
    Ok((name_of(groups.head(place)), ids, old))
}

fn survivors_of(collector: &Collector, view: &View, ids: &HashSet<SiteId>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for process in &view.processes {
        for device in &process.devices {
            let survivors = collector.survivors(process.info.pid, device.device);
            blocks.extend(
                survivors
                    .filter(|block| ids.contains(&block.site))
                    .map(|block| Block {
                        address: block.address.0,
                        size: block.size,
                        born: block.born_step,
                    }),
            );
        }
    }
    blocks
}

fn name_of(site: &SiteView) -> String {
    match site.own_frame() {
        Some(frame) => {
            let file = frame.file.rsplit('/').next().unwrap_or_default();
            let source = frame.source.as_deref().unwrap_or_default();
            escape::line(&format!("{file}:{} {source}", frame.line), COLUMNS)
        }
        None => "a thread without Python".into(),
    }
}

fn ask(
    options: &HoldersArgs,
    site: Option<String>,
    survivors: usize,
    blocks: Vec<Block>,
) -> anyhow::Result<Asked> {
    let request = Request {
        addresses: blocks.iter().map(|block| block.address).collect(),
        sizes: blocks.iter().map(|block| block.size).collect(),
        budget_ms: milliseconds(options.budget),
        slice_ms: milliseconds(options.slice),
        memory: MEMORY,
    };
    let mut asker = Asker::attach(options.target.pid()?)?;
    let answer = asker.ask(&request);
    let unloaded = asker.leave();
    Ok(Asked {
        site,
        survivors,
        blocks,
        answer: answer?,
        unloaded,
    })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Leaves out what was freed meanwhile.
fn only_those_alive(mut asked: Asked, after: &HashSet<(u64, u64)>) -> Asked {
    let blocks = &asked.blocks;
    for holder in &mut asked.answer.holders {
        holder.members.retain(|member| {
            blocks
                .get(*member as usize)
                .is_some_and(|block| after.contains(&(block.address, block.born)))
        });
    }
    asked
        .answer
        .holders
        .retain(|holder| !holder.members.is_empty());
    asked
        .answer
        .holders
        .sort_by_key(|holder| std::cmp::Reverse(holder.members.len()));
    asked
}

fn text(asked: &Asked) -> String {
    let mut out = String::new();
    let answer = &asked.answer;
    let total: usize = answer.holders.iter().map(|one| one.members.len()).sum();
    if let Some(site) = &asked.site {
        let _ = writeln!(out, "{site}");
    }
    let _ = writeln!(
        out,
        "{} survivors{}, held by:",
        units::count(total as u64),
        if asked.blocks.len() < asked.survivors {
            format!(" (a sample of {})", units::count(asked.survivors as u64))
        } else {
            String::new()
        }
    );
    for holder in &answer.holders {
        let bytes = bytes_of(holder, &asked.blocks);
        let size = match bytes {
            0 => String::new(),
            bytes => format!("  {}", units::bytes(bytes)),
        };
        let _ = writeln!(
            out,
            "  {:>7}{size}  {}",
            units::count(holder.members.len() as u64),
            escape::line(&words::holder(holder), COLUMNS)
        );
        if holder.example != holder.path {
            let _ = writeln!(
                out,
                "           such as {}",
                escape::line(&holder.example, COLUMNS)
            );
        }
    }
    for note in &answer.notes {
        let _ = writeln!(out, "note: {}", escape::line(note, COLUMNS));
    }
    if let Some(partial) = &answer.partial {
        let _ = writeln!(out, "partial: {}", escape::line(partial, COLUMNS));
    }
    let cost = &answer.cost;
    let _ = writeln!(
        out,
        "cost: the GIL {} times, {:.0} ms in all, {:.1} ms at most; {} objects, {} graph nodes, \
         {} of memory, {:.2} s",
        cost.slices,
        cost.held_us as f64 / 1e3,
        cost.longest_us as f64 / 1e3,
        units::count(cost.objects),
        units::count(cost.graph_nodes),
        units::bytes(cost.memory),
        cost.wall_us as f64 / 1e6,
    );
    if !asked.unloaded {
        out.push_str("note: the agent's library could not be taken out yet and stays, idle\n");
    }
    out
}

fn bytes_of(holder: &Holder, blocks: &[Block]) -> u64 {
    (holder.members.iter())
        .filter_map(|member| blocks.get(*member as usize))
        .map(|block| block.size)
        .sum()
}

/// As it is printed: docs/holders.md describes it.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    site: Option<&'a str>,
    survivors: usize,
    asked: usize,
    retained_by: Option<String>,
    holders: Vec<HolderOut<'a>>,
    partial: Option<&'a str>,
    notes: &'a [String],
    cost: &'a vramscope_holders::Cost,
    library_unloaded: bool,
}

#[derive(Serialize)]
struct HolderOut<'a> {
    words: String,
    kind: vramscope_holders::Kind,
    path: &'a str,
    example: &'a str,
    graph: &'a [String],
    graph_length: u64,
    container_length: Option<u64>,
    container_bound: Option<u64>,
    notes: &'a [String],
    blocks: usize,
    /// Of the first blocks.
    addresses: Vec<String>,
    bytes: u64,
    births: HashMap<&'static str, u64>,
}

fn json(asked: &Asked) -> anyhow::Result<String> {
    let answer = &asked.answer;
    let births = |holder: &Holder| {
        let born = || {
            (holder.members.iter())
                .filter_map(|member| asked.blocks.get(*member as usize))
                .map(|block| block.born)
        };
        let mut births = HashMap::new();
        if let (Some(first), Some(last)) = (born().min(), born().max()) {
            births.insert("first_step", first);
            births.insert("last_step", last);
        }
        births
    };
    let document = Document {
        schema: "vramscope-holders/1",
        site: asked.site.as_deref(),
        survivors: asked.survivors,
        asked: asked.blocks.len(),
        retained_by: words::summary(answer),
        holders: (answer.holders.iter())
            .map(|holder| HolderOut {
                words: words::holder(holder),
                kind: holder.kind,
                path: &holder.path,
                example: &holder.example,
                graph: &holder.graph,
                graph_length: holder.graph_length,
                container_length: holder.container_length,
                container_bound: holder.container_bound,
                notes: &holder.notes,
                blocks: holder.members.len(),
                addresses: (holder.members.iter().take(MOST_ADDRESSES))
                    .filter_map(|member| asked.blocks.get(*member as usize))
                    .map(|block| format!("{:#x}", block.address))
                    .collect(),
                bytes: bytes_of(holder, &asked.blocks),
                births: births(holder),
            })
            .collect(),
        partial: answer.partial.as_deref(),
        notes: &answer.notes,
        cost: &answer.cost,
        library_unloaded: asked.unloaded,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

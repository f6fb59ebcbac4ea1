//! `holders`: what keeps the surviving blocks of a site alive.

use std::{collections::HashMap, fmt::Write as _, process::ExitCode};

use serde::Serialize;
use vramscope_collector::{escape, report::units};
use vramscope_events::Pid;
use vramscope_holders::{Answer, Holder, words};

use crate::{
    asking::{self, Block, Choice, Limits},
    attach::{Show, watch_then},
    cli::{Format, HoldersArgs},
    engine::Engine,
    output,
};

/// Addresses of a holder's blocks that the JSON lists.
const MOST_ADDRESSES: usize = 100;
/// Columns of a name in the text.
const COLUMNS: usize = 300;

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
        watch_then(
            &options.target,
            Some(options.duration),
            Show::Nothing,
            |engine| ask_about_a_site(engine, options),
        )??
    } else {
        let blocks: Vec<Block> = (options.address.iter())
            .map(|address| Block {
                address: *address,
                size: 0,
                born: 0,
            })
            .collect();
        let asked = asking::ask_about(Pid(options.target.pid()?), &blocks, limits(options))?;
        Asked {
            site: None,
            survivors: blocks.len(),
            blocks,
            answer: asked.answer,
            unloaded: asked.unloaded,
        }
    };
    let text = match options.format {
        Format::Json => json(&asked)?,
        Format::Text | Format::Markdown => text(&asked),
    };
    output::stdout(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn limits(options: &HoldersArgs) -> Limits {
    Limits {
        budget: options.budget,
        slice: options.slice,
    }
}

fn ask_about_a_site(engine: &Engine, options: &HoldersArgs) -> anyhow::Result<Asked> {
    let choice = match &options.line {
        Some(line) => Choice::Line(line.clone()),
        None => Choice::Place(options.site.unwrap_or(1)),
    };
    let subject = asking::find_soon(engine.handle(), &choice)?;
    eprintln!(
        "asking process {} about {} of {} survivors: this runs code in it",
        subject.process,
        subject.blocks.len(),
        subject.survivors,
    );
    let asked = asking::ask(engine.handle(), &subject, limits(options))?;
    Ok(Asked {
        site: Some(subject.name),
        survivors: subject.survivors,
        blocks: subject.blocks,
        answer: asked.answer,
        unloaded: asked.unloaded,
    })
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
        let bytes = asking::bytes_of(holder, &asked.blocks);
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
    let _ = writeln!(out, "cost: {}", asking::cost_words(&answer.cost));
    if !asked.unloaded {
        let _ = writeln!(out, "note: {}", asking::STAYS);
    }
    out
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
                bytes: asking::bytes_of(holder, &asked.blocks),
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

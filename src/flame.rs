//! `flamegraph`: what a recording or a process holds, as a picture or a page.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use vramscope_events::DeviceId;
use vramscope_export::{Choice, Part, SelectError, Selection, What, folded, html, select, svg};

use crate::{
    attach,
    cli::{FlamegraphArgs, parse_duration},
    output,
    selecting::{self, Recorded},
    subject::{Place, Subject, parse_place},
};

/// `vramscope flamegraph FILE|PID`.
pub fn flamegraph(options: &FlamegraphArgs) -> anyhow::Result<ExitCode> {
    let path = options.output.clone().unwrap_or_else(|| {
        let name = match (options.html, options.folded) {
            (true, _) => "vramscope.html",
            (_, true) => "vramscope.folded",
            _ => "vramscope.svg",
        };
        PathBuf::from(name)
    });
    output::check_free(&path, options.force)?;
    let (text, code) = match &options.target.subject {
        Subject::Process(pid) => (of_process(*pid, options)?, ExitCode::SUCCESS),
        Subject::Recording(place) => of_recording(place, options)?,
    };
    output::file(&path, text.as_bytes(), options.force)?;
    if path != Path::new("-") {
        let how = if options.folded {
            "open it with inferno, flamegraph.pl or at https://www.speedscope.app"
        } else {
            "open it in a browser"
        };
        eprintln!("written: {} ({how})", path.display());
    }
    Ok(code)
}

fn of_process(pid: u32, options: &FlamegraphArgs) -> anyhow::Result<String> {
    let needs = |what| {
        let error = SelectError::NeedsStream(what);
        Err(anyhow::Error::from(error).context(format!(
            "process {pid} is not recorded\n  record it: vramscope attach {pid} -o run.vrs; then \
             vramscope flamegraph run.vrs"
        )))
    };
    if options.select.at.is_some() {
        return needs("--at");
    }
    if options.select.peak {
        return needs("--peak");
    }
    if options.diff.is_some() {
        return needs("--diff");
    }
    // Said before the watching, not after it.
    selecting::choice(&options.select, vramscope_events::Time(0), options.html)?;
    let mut finished = attach::watch_quietly(&options.target, options.duration)?;
    let view = &finished.view;
    let choice = selecting::choice(&options.select, view.started, options.html)?;
    let selection = select(&mut finished.collector, view, &choice)?;
    if options.html {
        return Ok(html::page(&selection, view));
    }
    draw(&selection, options)
}

fn of_recording(place: &Place, options: &FlamegraphArgs) -> anyhow::Result<(String, ExitCode)> {
    let recorded = Recorded::open(place, Some(&options.target))?;
    let choice = recorded.choice(&options.select, options.html)?;
    let gathered = recorded.gather(choice.clone(), 0)?;
    let text = match &options.diff {
        _ if options.html => html::write(&gathered),
        None => draw(&gathered.selection, options)?,
        Some(other) => difference(&recorded, choice, &gathered.selection, other, options)?,
    };
    Ok((text, recorded.exit_code()))
}

/// What changed in `after` since `other`, a recording or a time of this one.
fn difference(
    recorded: &Recorded,
    choice: Choice,
    after: &Selection,
    other: &str,
    options: &FlamegraphArgs,
) -> anyhow::Result<String> {
    let place = parse_place(other).ok();
    let before = if let Some(place) = place.filter(|place| place.path.exists()) {
        let other = Recorded::open(&place, Some(&options.target))?;
        let choice = other.choice(&options.select, false)?;
        other.gather(choice, 0)?
    } else {
        let time = parse_duration(other).map_err(|error| {
            anyhow::anyhow!("--diff {other} is neither a recording nor a time ({error})")
        })?;
        let mut choice = choice;
        choice.what = What::At(selecting::after(recorded.started(), time));
        recorded.gather(choice, 0)?
    };
    let before = &before.selection;
    let weight = selecting::weight(&options.select);
    if options.folded {
        return Ok(folded::write_difference(before, after, weight));
    }
    let part = part(after)?;
    // The same device of the other run; its process has another number there.
    let same = |one: &&Part| one.key.device == part.key.device && one.key.layer == part.key.layer;
    let empty;
    let was = match before.parts.iter().find(same) {
        Some(was) => was,
        None => {
            empty = Part {
                rows: Vec::new(),
                blocks: Vec::new(),
                ..part.clone()
            };
            &empty
        }
    };
    Ok(svg::write_difference((before, was), (after, part), weight)?)
}

fn draw(selection: &Selection, options: &FlamegraphArgs) -> anyhow::Result<String> {
    let weight = selecting::weight(&options.select);
    if options.folded {
        return Ok(folded::write(selection, weight));
    }
    let part = part(selection)?;
    let others: Vec<DeviceId> = (selection.parts.iter())
        .map(|other| other.key.device)
        .filter(|device| *device != part.key.device)
        .collect();
    if !others.is_empty() {
        eprintln!("note: drawn is {}; choose with --device", part.name());
    }
    Ok(svg::write(selection, part, weight)?)
}

/// A picture is of one device: the one with the most bytes, where none was chosen.
fn part(selection: &Selection) -> anyhow::Result<&Part> {
    selection.largest().context(attach::NOTHING_SEEN)
}

//! Makes selections of what a collector knows.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vramscope_collector::{BookKey, Collector, Survivor, report::units, view::View};
use vramscope_events::{Bytes, Layer, Pid, ProcessInfo, StackId, Time};

use crate::{
    frames::{StackIndex, Table},
    selection::{BlockRow, Choice, Part, Row, SelectError, Selection, What, layer_name, place},
};

/// The books that `choice` asks for.
///
/// # Errors
/// There is none, though others are there.
pub(crate) fn books(collector: &Collector, choice: &Choice) -> Result<Vec<BookKey>, SelectError> {
    let all = collector.books();
    let chosen: Vec<BookKey> = all
        .iter()
        .copied()
        .filter(|key| {
            let layer = match choice.layer {
                Some(layer) => layer,
                None => collector.main_layer(key.process, key.device),
            };
            key.layer == layer
                && choice.process.is_none_or(|pid| pid == key.process)
                && (choice.device)
                    .is_none_or(|device| device == key.device || key.layer == Layer::Host)
        })
        .collect();
    if chosen.is_empty() && (!all.is_empty() || choice.device.is_some()) {
        let mut wanted = Vec::new();
        wanted.extend(choice.process.map(|pid| format!("pid {pid}")));
        wanted.extend(choice.device.map(|device| format!("GPU {device}")));
        wanted.extend(
            choice
                .layer
                .map(|layer| format!("layer {}", layer_name(layer))),
        );
        let seen: Vec<String> = all
            .iter()
            .map(|key| format!("pid {} {}", key.process, place(key)))
            .collect();
        return Err(SelectError::NoBook {
            wanted: wanted.join(", "),
            seen: if seen.is_empty() {
                "nothing".into()
            } else {
                seen.join("; ")
            },
        });
    }
    Ok(chosen)
}

/// Selects from what a collector knows now.
///
/// # Errors
/// [`SelectError`]: the device or layer is not there, or the choice needs the past
/// ([`crate::Gather`] replays it).
pub fn select(
    collector: &mut Collector,
    view: &View,
    choice: &Choice,
) -> Result<Selection, SelectError> {
    match choice.what {
        What::At(_) => return Err(SelectError::NeedsStream("a moment of the past")),
        What::Peak(_) => return Err(SelectError::NeedsStream("the peak")),
        _ => {}
    }
    let keys = books(collector, choice)?;
    let mut maker = Maker::new(collector, view);
    for key in keys {
        let taken = Taken::from(maker.collector, key, choice);
        maker.part(view, key, taken, choice);
    }
    Ok(maker.finish(view, choice, view.now))
}

/// What was counted of one book at the moment that counts, before names are looked up.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    rows: FxHashMap<(StackId, Option<u64>), (Bytes, u64)>,
    blocks: Vec<Survivor>,
    segments: Vec<Survivor>,
}

impl Taken {
    pub fn from(collector: &Collector, key: BookKey, choice: &Choice) -> Taken {
        let mut taken = Taken::default();
        match choice.what {
            // Growth is in the view's sites.
            What::Growth => {}
            What::Allocated => {
                for site in collector.site_totals(key) {
                    let row = taken.rows.entry((site.stack, None)).or_default();
                    row.0 += site.total_bytes;
                    row.1 += site.total_blocks;
                }
            }
            _ => {
                for block in collector.live_blocks(key) {
                    if !choice.what.takes(&block) {
                        continue;
                    }
                    let row = taken
                        .rows
                        .entry((block.stack, Some(block.born_step)))
                        .or_default();
                    row.0 += block.size;
                    row.1 += 1;
                    if choice.blocks {
                        taken.blocks.push(block);
                    }
                }
                taken
                    .blocks
                    .sort_unstable_by_key(|block| (block.born, block.address));
                if choice.blocks && key.layer == Layer::Tensor {
                    let driver = BookKey {
                        layer: Layer::Driver,
                        ..key
                    };
                    taken.segments = collector.live_blocks(driver).collect();
                    taken.segments.sort_unstable_by_key(|block| block.address);
                }
            }
        }
        taken
    }
}

/// Puts a selection together.
pub(crate) struct Maker<'a> {
    pub collector: &'a mut Collector,
    pub table: Table,
    infos: FxHashMap<Pid, (Arc<ProcessInfo>, u64)>,
    parts: Vec<Part>,
}

impl<'a> Maker<'a> {
    pub fn new(collector: &'a mut Collector, view: &View) -> Maker<'a> {
        let infos = view.processes.iter().map(|process| {
            let known = (Arc::clone(&process.info), process.steps.count);
            (process.info.pid, known)
        });
        Maker {
            collector,
            table: Table::default(),
            infos: infos.collect(),
            parts: Vec::new(),
        }
    }

    /// The index of a stack.
    pub fn stack(&mut self, process: Pid, id: StackId) -> StackIndex {
        let info = match self.infos.get(&process) {
            Some((info, _)) => Arc::clone(info),
            None => Arc::new(ProcessInfo {
                pid: process,
                ..ProcessInfo::default()
            }),
        };
        self.table.intern(self.collector, &info, id)
    }

    pub fn part(&mut self, view: &View, key: BookKey, taken: Taken, choice: &Choice) {
        let (info, steps) = self.infos.get(&key.process).cloned().unwrap_or_default();
        // In a fixed order: stacks are numbered as they come.
        let mut counted: Vec<_> = taken.rows.iter().collect();
        counted.sort_unstable();
        let mut rows: Vec<Row> = counted
            .into_iter()
            .map(|((stack, generation), (bytes, blocks))| Row {
                stack: self.stack(key.process, *stack),
                generation: *generation,
                bytes: *bytes,
                blocks: *blocks,
            })
            .collect();
        if matches!(choice.what, What::Growth) {
            rows = self.growth(view, key);
        }
        let totals: Vec<_> = self.collector.site_totals(key).collect();
        let mut totals: Vec<Row> = totals
            .iter()
            .map(|site| Row {
                stack: self.stack(key.process, site.stack),
                generation: None,
                bytes: site.total_bytes,
                blocks: site.total_blocks,
            })
            .collect();
        let blocks = self.blocks(key, &taken.blocks);
        let segments = self.blocks(key, &taken.segments);
        rows.sort_unstable();
        totals.sort_unstable();
        self.parts.push(Part {
            key,
            process: info,
            steps,
            rows,
            totals,
            blocks,
            segments,
            baseline: baseline(view, key),
        });
    }

    fn blocks(&mut self, key: BookKey, blocks: &[Survivor]) -> Vec<BlockRow> {
        blocks
            .iter()
            .map(|block| BlockRow {
                born: block.born,
                address: block.address,
                size: block.size,
                generation: block.born_step,
                stack: self.stack(key.process, block.stack),
            })
            .collect()
    }

    fn growth(&mut self, view: &View, key: BookKey) -> Vec<Row> {
        let device = view
            .processes
            .iter()
            .filter(|process| process.info.pid == key.process)
            .flat_map(|process| &process.devices)
            .find(|device| device.device == key.device);
        let sites = match (device, key.layer) {
            (Some(device), Layer::Tensor) => Arc::clone(&device.sites),
            (Some(device), Layer::Driver) => Arc::clone(&device.driver_sites),
            _ => Arc::default(),
        };
        let stacks: FxHashMap<_, _> = self
            .collector
            .site_totals(key)
            .map(|site| (site.site, site.stack))
            .collect();
        let mut rows = Vec::new();
        for site in sites.iter() {
            // A cast from a float saturates, and makes 0 of a NaN.
            let bytes = site.growth_bytes_per_step.round() as u64;
            if let (Some(stack), true) = (stacks.get(&site.id), bytes > 0) {
                rows.push(Row {
                    stack: self.stack(key.process, *stack),
                    generation: None,
                    bytes,
                    blocks: 0,
                });
            }
        }
        rows
    }

    pub fn finish(self, view: &View, choice: &Choice, moment: Time) -> Selection {
        let mut notes = Vec::new();
        if view.lost.events > 0 {
            notes.push(format!(
                "{} events were lost: the numbers are bounds",
                units::count(view.lost.events)
            ));
        }
        if matches!(choice.what, What::Survivors | What::Window(..)) {
            for part in &self.parts {
                if part.baseline > 0 && part.key.layer == Layer::Tensor {
                    notes.push(format!(
                        "{}: {} from before the attach are not shown",
                        part.name(),
                        units::bytes(part.baseline)
                    ));
                }
            }
        }
        Selection {
            title: choice.what.title(view.started),
            kind: choice.what.kind(),
            table: self.table,
            parts: self.parts,
            moment,
            started: view.started,
            started_unix: view.started_unix,
            notes,
        }
    }
}

fn baseline(view: &View, key: BookKey) -> Bytes {
    view.processes
        .iter()
        .filter(|process| process.info.pid == key.process)
        .flat_map(|process| &process.devices)
        .find(|device| device.device == key.device && key.layer == Layer::Tensor)
        .map_or(0, |device| device.baseline)
}

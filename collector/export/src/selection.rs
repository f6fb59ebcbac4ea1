//! What to show: which allocations of a stream, by whom, and how many bytes.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vramscope_collector::{
    BookKey, Collector, Survivor,
    report::units,
    view::{ProcessInfo, View},
};
use vramscope_events::{Address, Bytes, DeviceId, Layer, Pid, Time};

use crate::{
    frames::{StackIndex, Table},
    peak::Peaks,
};

/// Which allocations a selection holds.
#[derive(Clone, Debug, Default)]
pub enum What {
    /// Those alive at the end of the stream.
    #[default]
    Survivors,
    /// Those alive at a time.
    At(Time),
    /// Those made from the first bound on and before the second, and alive at the end.
    Window(Bound, Bound),
    /// Those alive when most was alive, each device at its own moment.
    Peak(Peaks),
    /// Bytes by which the survivors of a stack grow a step; what does not grow is left out.
    Growth,
    /// All that was ever made.
    Allocated,
}

/// One end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A moment.
    Time(Time),
    /// The beginning of a step, counted from the attach.
    Step(u64),
}

impl Bound {
    fn is_at_or_before(self, block: &Survivor) -> bool {
        match self {
            Bound::Time(time) => time <= block.born,
            Bound::Step(step) => step <= block.born_step,
        }
    }
}

/// What kind of numbers a selection holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Blocks that are alive at some moment.
    Alive,
    /// Bytes a step.
    Growth,
    /// All that was ever allocated.
    Allocated,
}

/// Which of the numbers counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Bytes.
    #[default]
    Bytes,
    /// Blocks.
    Blocks,
}

/// Some allocations of a stream, by stack.
#[derive(Clone, Debug)]
pub struct Selection {
    /// What it is, in a few words.
    pub title: String,
    /// What kind of numbers it holds.
    pub kind: Kind,
    /// Frames and stacks.
    pub table: Table,
    /// One part for each device and layer that was selected.
    pub parts: Vec<Part>,
    /// The moment of the numbers.
    pub moment: Time,
    /// When the stream began.
    pub started: Time,
    /// Wall clock at that time, seconds since the Unix epoch; 0 where unknown.
    pub started_unix: u64,
    /// What a reader must know to read the numbers right, a sentence each.
    pub notes: Vec<String>,
}

/// The allocations of one layer of one device of one process.
#[derive(Clone, Debug)]
pub struct Part {
    /// Which book.
    pub key: BookKey,
    /// Whose.
    pub process: Arc<ProcessInfo>,
    /// Steps since the attach at the end of the stream.
    pub steps: u64,
    /// By stack and the step of birth (where the selection knows it), each pair once, sorted.
    pub rows: Vec<Row>,
    /// All that each stack ever allocated, each stack once.
    pub totals: Vec<Row>,
    /// The blocks one by one, by birth, where they were asked for.
    pub blocks: Vec<BlockRow>,
    /// What the framework's allocator took from the driver since the attach, by address: where
    /// blocks were asked for, the layer is the framework's and the tracer sees the driver.
    pub segments: Vec<BlockRow>,
    /// Bytes that were there before the attach and are not in the rows.
    pub baseline: Bytes,
}

/// Allocations with one stack (and one step of birth).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Who asked.
    pub stack: StackIndex,
    /// The step in which they were made.
    pub generation: Option<u64>,
    /// How much.
    pub bytes: Bytes,
    /// How many.
    pub blocks: u64,
}

/// One block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRow {
    /// When it was made.
    pub born: Time,
    /// Where it lies.
    pub address: Address,
    /// Its size.
    pub size: Bytes,
    /// The step in which it was made.
    pub generation: u64,
    /// Who asked.
    pub stack: StackIndex,
}

/// How to select.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Which allocations.
    pub what: What,
    /// Which layer; `None`: the framework's blocks where it reports them, else the driver's.
    pub layer: Option<Layer>,
    /// Which device; `None`: all.
    pub device: Option<DeviceId>,
    /// Which process; `None`: all.
    pub process: Option<Pid>,
    /// Whether to list the blocks one by one.
    pub blocks: bool,
}

/// The collector or its stream lacks what a selection needs.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectError {
    /// Nothing of what was asked for is there.
    #[error("nothing was allocated on {wanted}; seen: {seen}")]
    NoBook {
        /// What was asked for.
        wanted: String,
        /// What there is.
        seen: String,
    },
    /// A moment of the past was asked of a collector that knows the present.
    #[error("{0} needs a recording: a running session knows only its present")]
    NeedsStream(&'static str),
}

impl What {
    /// What it is, in a few words; times count from `started`.
    pub fn title(&self, started: Time) -> String {
        let at = |time: &Time| units::duration(time.seconds_since(started));
        let bound = |bound: &Bound| match bound {
            Bound::Time(time) => at(time),
            Bound::Step(step) => format!("step {}", units::count(*step)),
        };
        match self {
            What::Survivors => "Survivors".into(),
            What::At(time) => format!("Alive after {}", at(time)),
            What::Window(from, to) => {
                format!("Survivors allocated from {} to {}", bound(from), bound(to))
            }
            What::Peak(_) => "Alive at the peak".into(),
            What::Growth => "Growth a step".into(),
            What::Allocated => "All allocations".into(),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            What::Growth => Kind::Growth,
            What::Allocated => Kind::Allocated,
            _ => Kind::Alive,
        }
    }

    pub(crate) fn takes(&self, block: &Survivor) -> bool {
        match self {
            What::Window(from, to) => from.is_at_or_before(block) && !to.is_at_or_before(block),
            _ => true,
        }
    }
}

impl Row {
    /// The number that counts.
    pub fn weight(&self, weight: Weight) -> u64 {
        match weight {
            Weight::Bytes => self.bytes,
            Weight::Blocks => self.blocks,
        }
    }
}

impl Part {
    /// Bytes of all rows.
    pub fn bytes(&self) -> Bytes {
        self.rows.iter().map(|row| row.bytes).sum()
    }

    /// Blocks of all rows.
    pub fn count(&self) -> u64 {
        self.rows.iter().map(|row| row.blocks).sum()
    }

    /// What to call it where several parts are shown: `pid 4121, GPU 0, tensor`.
    pub fn name(&self) -> String {
        let rank = self.process.rank.map(|rank| format!("rank {rank}, "));
        format!(
            "{}pid {}, {}",
            rank.unwrap_or_default(),
            self.key.process,
            place(&self.key)
        )
    }

    /// Rows by stack, generations added together.
    pub fn by_stack(&self) -> Vec<Row> {
        let mut out: Vec<Row> = Vec::new();
        for row in &self.rows {
            match out.last_mut() {
                Some(last) if last.stack == row.stack => {
                    last.bytes += row.bytes;
                    last.blocks += row.blocks;
                }
                _ => out.push(Row {
                    generation: None,
                    ..*row
                }),
            }
        }
        out
    }
}

impl Selection {
    /// Bytes of all parts.
    pub fn bytes(&self) -> Bytes {
        self.parts.iter().map(Part::bytes).sum()
    }

    /// Blocks of all parts.
    pub fn count(&self) -> u64 {
        self.parts.iter().map(Part::count).sum()
    }

    /// The part with the most bytes.
    pub fn largest(&self) -> Option<&Part> {
        self.parts.iter().max_by_key(|part| part.bytes())
    }
}

/// `GPU 0, tensor`; `host` for host memory.
pub fn place(key: &BookKey) -> String {
    match key.layer {
        Layer::Host => "host".into(),
        layer => format!("GPU {}, {}", key.device, layer_name(layer)),
    }
}

/// What a layer is called in files.
pub fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::Tensor => "tensor",
        Layer::Driver => "driver",
        Layer::Host => "host",
    }
}

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
    rows: FxHashMap<(vramscope_events::StackId, Option<u64>), (Bytes, u64)>,
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
    pub fn stack(&mut self, process: Pid, id: vramscope_events::StackId) -> StackIndex {
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

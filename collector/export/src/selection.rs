//! What to show: which allocations of a stream, by whom, and how many bytes.

use std::sync::Arc;

use vramscope_collector::{BookKey, Survivor, report::units};
use vramscope_events::{Address, Bytes, DeviceId, Layer, Pid, ProcessInfo, Time};

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

    pub(crate) fn kind(&self) -> Kind {
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

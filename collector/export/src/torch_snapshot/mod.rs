//! A snapshot as `torch.cuda.memory._snapshot()` makes it: for pytorch.org/memory_viz and
//! `torch/cuda/_memory_viz.py`.
//!
//! Segments are what the driver handed out, where the tracer saw it, and otherwise the span from
//! the first to the last of neighbouring blocks. Blocks are those of the selection; what else a
//! segment holds is shown as inactive.

mod pickle;

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use rustc_hash::FxHashMap;
use vramscope_events::{Bytes, DeviceId, FrameKind, Pid};

use crate::{
    events::{BlockEvent, block_events},
    frames::StackIndex,
    gather::Gathered,
    selection::{BlockRow, Kind, Part},
    tail::{MOST_EVENTS, TailKind},
};

use pickle::{Memo, Pickler};

/// Blocks further apart than this are taken to be in different segments where the driver's are
/// unknown: the smallest segment of PyTorch's allocator (`kSmallBuffer` in c10's
/// CUDACachingAllocator).
const GAP: Bytes = 2 << 20;
/// Segments up to this size are of the small pool (`kSmallBuffer`).
const SMALL: Bytes = 2 << 20;

/// Writing the snapshot failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The selection is not one of blocks.
    #[error("a memory snapshot shows blocks: it has no place for growth or for all allocations")]
    NotBlocks,
    /// A snapshot is of one process.
    #[error("a memory snapshot is of one process; choose one with --pid (here: {0})")]
    Processes(String),
    /// The writer's.
    #[error("the snapshot could not be written")]
    Write(#[from] io::Error),
}

/// What was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Events that were not written, since the viewer hides what is beyond [`MOST_EVENTS`].
    pub events: u64,
}

/// A selection with the last events. Its blocks must have been asked for
/// ([`crate::Choice::blocks`]).
///
/// # Errors
/// [`Error`].
pub fn write(gathered: &Gathered, out: impl Write) -> Result<LeftOut, Error> {
    let selection = &gathered.selection;
    if selection.kind != Kind::Alive {
        return Err(Error::NotBlocks);
    }
    let mut pids: Vec<Pid> = selection
        .parts
        .iter()
        .map(|part| part.key.process)
        .collect();
    pids.dedup();
    if pids.len() > 1 {
        let pids: Vec<String> = pids.iter().map(Pid::to_string).collect();
        return Err(Error::Processes(pids.join(", ")));
    }
    let mut left_out = LeftOut {
        events: gathered.tail.dropped(),
    };
    let mut writer = Writer {
        pickler: Pickler::new(out)?,
        frames: FxHashMap::default(),
        gathered,
    };
    let devices = selection
        .parts
        .iter()
        .map(|part| usize::from(part.key.device.0) + 1)
        .max()
        .unwrap_or(0);
    let mut traces: Vec<Vec<Entry>> = vec![Vec::new(); devices];
    for part in &selection.parts {
        let trace = &mut traces[usize::from(part.key.device.0)];
        *trace = entries(gathered, part);
        let excess = trace.len().saturating_sub(MOST_EVENTS);
        trace.drain(..excess);
        left_out.events += excess as u64;
    }
    writer.snapshot(&traces)?;
    writer.pickler.finish()?;
    Ok(left_out)
}

/// One entry of a device's trace.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Block(BlockEvent),
    OutOfMemory {
        time: u64,
        requested: Bytes,
        stack: StackIndex,
    },
}

impl Entry {
    fn time(&self) -> u64 {
        match self {
            Entry::Block(event) => event.time.0,
            Entry::OutOfMemory { time, .. } => *time,
        }
    }
}

fn entries(gathered: &Gathered, part: &Part) -> Vec<Entry> {
    let blocks = block_events(gathered, part).into_iter().map(Entry::Block);
    let mut all: Vec<Entry> = blocks.collect();
    for event in gathered.tail.events() {
        if let TailKind::OutOfMemory {
            device,
            requested,
            stack,
        } = event.what
            && event.process == part.key.process
            && device == part.key.device
            && let Some(stack) = gathered.tail_stacks.get(&(event.process, stack))
        {
            all.push(Entry::OutOfMemory {
                time: event.time.0,
                requested,
                stack: *stack,
            });
        }
    }
    all.sort_by_key(Entry::time);
    all
}

/// A segment with its blocks, both by address.
struct Segment<'a> {
    device: DeviceId,
    address: u64,
    size: Bytes,
    stack: Option<StackIndex>,
    blocks: Vec<&'a BlockRow>,
}

fn segments(part: &Part) -> Vec<Segment<'_>> {
    let mut known: BTreeMap<u64, Segment<'_>> = BTreeMap::new();
    for segment in &part.segments {
        known.insert(
            segment.address.0,
            Segment {
                device: part.key.device,
                address: segment.address.0,
                size: segment.size,
                stack: Some(segment.stack),
                blocks: Vec::new(),
            },
        );
    }
    let mut blocks: Vec<&BlockRow> = part.blocks.iter().collect();
    blocks.sort_unstable_by_key(|block| block.address);
    let mut guessed: Vec<Segment<'_>> = Vec::new();
    for block in blocks {
        let (start, end) = (block.address.0, block.address.0.saturating_add(block.size));
        let around = known
            .range_mut(..=start)
            .next_back()
            .map(|(_, segment)| segment);
        if let Some(segment) = around.filter(|one| end <= one.address.saturating_add(one.size)) {
            segment.blocks.push(block);
            continue;
        }
        match guessed.last_mut() {
            Some(last) if start < last.address.saturating_add(last.size).saturating_add(GAP) => {
                last.size = last.size.max(end - last.address);
                last.blocks.push(block);
            }
            _ => guessed.push(Segment {
                device: part.key.device,
                address: start,
                size: block.size,
                stack: None,
                blocks: vec![block],
            }),
        }
    }
    // The driver's other allocations (workspaces of libraries) are no segments.
    let known = known.into_values().filter(|one| !one.blocks.is_empty());
    let mut all: Vec<Segment<'_>> = known.chain(guessed).collect();
    all.sort_unstable_by_key(|segment| segment.address);
    all
}

struct Writer<'a, W> {
    pickler: Pickler<W>,
    frames: FxHashMap<Option<StackIndex>, Memo>,
    gathered: &'a Gathered,
}

impl<W: Write> Writer<'_, W> {
    fn snapshot(&mut self, traces: &[Vec<Entry>]) -> io::Result<()> {
        let segments: Vec<Segment<'_>> = (self.gathered.selection.parts.iter())
            .flat_map(segments)
            .collect();
        self.open_dict()?;
        self.pickler.text("segments")?;
        self.list(&segments, Self::segment)?;
        self.pickler.text("device_traces")?;
        self.list(traces, |writer, trace| writer.list(trace, Self::entry))?;
        self.pickler.text("allocator_settings")?;
        self.open_dict()?;
        self.close_dict()?;
        self.pickler.text("external_annotations")?;
        self.list(&[] as &[u8], |_, _| Ok(()))?;
        self.close_dict()
    }

    fn segment(&mut self, segment: &Segment<'_>) -> io::Result<()> {
        let active: Bytes = segment.blocks.iter().map(|block| block.size).sum();
        self.open_dict()?;
        self.pickler.entry("device", segment.device.0.into())?;
        self.pickler.entry("address", segment.address)?;
        self.pickler.entry("total_size", segment.size)?;
        self.pickler.entry("allocated_size", active)?;
        self.pickler.entry("active_size", active)?;
        self.pickler.entry("requested_size", active)?;
        self.pickler.entry("stream", 0)?;
        self.pickler.text("segment_type")?;
        let small = segment.size <= SMALL;
        self.pickler.text(if small { "small" } else { "large" })?;
        self.pickler.text("segment_pool_id")?;
        self.pickler.zero_pair()?;
        self.pickler.text("is_expandable")?;
        self.pickler.truth(false)?;
        self.pickler.text("frames")?;
        self.frames(segment.stack)?;
        self.pickler.text("blocks")?;
        let blocks = with_gaps(segment);
        self.list(&blocks, Self::block)?;
        self.close_dict()
    }

    fn block(
        &mut self,
        (address, size, stack): &(u64, Bytes, Option<StackIndex>),
    ) -> io::Result<()> {
        self.open_dict()?;
        self.pickler.entry("address", *address)?;
        self.pickler.entry("size", *size)?;
        self.pickler.entry("requested_size", *size)?;
        self.pickler.text("state")?;
        self.pickler.text(match stack {
            Some(_) => "active_allocated",
            None => "inactive",
        })?;
        self.pickler.text("frames")?;
        self.frames(*stack)?;
        self.close_dict()
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        match entry {
            Entry::Block(event) if event.comes => self.trace("alloc", event),
            Entry::Block(event) => {
                self.trace("free_requested", event)?;
                // The list goes on: both are items of it.
                self.trace("free_completed", event)
            }
            Entry::OutOfMemory {
                time,
                requested,
                stack,
            } => {
                self.open_dict()?;
                self.pickler.text("action")?;
                self.pickler.text("oom")?;
                self.pickler.entry("size", *requested)?;
                self.pickler.entry("device_free", 0)?;
                self.pickler.entry("stream", 0)?;
                self.pickler.entry("time_us", time / 1000)?;
                self.pickler.text("frames")?;
                self.frames(Some(*stack))?;
                self.close_dict()
            }
        }
    }

    fn trace(&mut self, action: &str, event: &BlockEvent) -> io::Result<()> {
        self.open_dict()?;
        self.pickler.text("action")?;
        self.pickler.text(action)?;
        self.pickler.entry("addr", event.address.0)?;
        self.pickler.entry("size", event.size)?;
        self.pickler.entry("stream", 0)?;
        self.pickler.entry("time_us", event.time.0 / 1000)?;
        self.pickler.text("frames")?;
        self.frames(Some(event.stack))?;
        self.close_dict()
    }

    /// The frames of a stack, innermost first, written once.
    fn frames(&mut self, stack: Option<StackIndex>) -> io::Result<()> {
        if let Some(memo) = self.frames.get(&stack) {
            return self.pickler.again(*memo);
        }
        let table = &self.gathered.selection.table;
        let frames = stack.into_iter().flat_map(|stack| table.frames_of(stack));
        self.pickler.open_list()?;
        self.pickler.open_batch()?;
        for frame in frames {
            self.pickler.open_dict()?;
            self.pickler.text("filename")?;
            self.pickler.text(match frame.kind {
                FrameKind::Backward => "autograd",
                _ if frame.file.is_empty() => "??",
                _ => &frame.file,
            })?;
            self.pickler.text("name")?;
            self.pickler.text(&frame.function)?;
            self.pickler.entry("line", frame.line.into())?;
            self.pickler.close_dict()?;
        }
        self.pickler.close_batch()?;
        let memo = self.pickler.memoize()?;
        self.frames.insert(stack, memo);
        Ok(())
    }

    fn list<T>(
        &mut self,
        items: &[T],
        item: impl Fn(&mut Self, &T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.pickler.open_list()?;
        for batch in items.chunks(pickle::BATCH) {
            self.pickler.open_batch()?;
            for one in batch {
                item(self, one)?;
            }
            self.pickler.close_batch()?;
        }
        Ok(())
    }

    fn open_dict(&mut self) -> io::Result<()> {
        self.pickler.open_dict()
    }

    fn close_dict(&mut self) -> io::Result<()> {
        self.pickler.close_dict()
    }
}

/// The blocks of a segment and what lies between them: a reader takes them to follow each other.
fn with_gaps(segment: &Segment<'_>) -> Vec<(u64, Bytes, Option<StackIndex>)> {
    let mut out = Vec::new();
    let mut at = segment.address;
    for block in &segment.blocks {
        let start = block.address.0;
        if start > at {
            out.push((at, start - at, None));
        }
        out.push((start, block.size, Some(block.stack)));
        at = start.saturating_add(block.size);
    }
    let end = segment.address.saturating_add(segment.size);
    if end > at {
        out.push((at, end - at, None));
    }
    out
}

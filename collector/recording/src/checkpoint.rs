//! Checkpoints: everything needed to go on from a moment without what came before.

use vramscope_events::{
    Address, Alloc, Bytes, DeviceId, Event, Layer, Pid, Record, StackId, Tid, Time,
};

use crate::{
    columns::{Decoder, Encoder, GRAIN, layer},
    error::Malformed,
    wire::{Input, put, put_bytes, zigzag},
};

/// Everything known at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// The moment: the time of the last event before it.
    pub time: Time,
    /// Frames, stacks and source lines so far, as the events that define them.
    pub definitions: Vec<Record>,
    /// Every live block.
    pub blocks: Vec<Block>,
    /// Which version of the collector's state follows; readers that do not know it ignore it.
    pub state_version: u32,
    /// The collector's state, opaque.
    pub state: Vec<u8>,
}

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// Whose.
    pub process: Pid,
    /// Of which book.
    pub layer: Layer,
    /// On which device.
    pub device: DeviceId,
    /// Where.
    pub address: Address,
    /// How large, in bytes.
    pub size: Bytes,
    /// Who asked.
    pub stack: StackId,
    /// When.
    pub born: Time,
    /// In which step, as the collector counted at the checkpoint.
    pub step: u32,
    /// Whether the framework's allocator took it to cut tensors from (driver layer).
    pub segment: bool,
    /// Whether it took it for the private pool of a graph.
    pub graph: bool,
}

impl Checkpoint {
    /// Definitions and live blocks as events: what a reader needs that has no collector's state.
    pub fn restated(&self) -> Vec<Record> {
        let blocks = self.blocks.iter().map(|block| Record {
            time: block.born,
            process: block.process,
            thread: Tid(0),
            event: Event::Alloc(Alloc {
                layer: block.layer,
                device: block.device,
                address: block.address,
                size: block.size,
                stack: block.stack,
                totals: None,
            }),
        });
        self.definitions.iter().cloned().chain(blocks).collect()
    }

    /// The payload.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (definitions, _) = Encoder::default().encode(&self.definitions);
        let mut out =
            Vec::with_capacity(definitions.len() + self.state.len() + self.blocks.len() * 12 + 64);
        put(&mut out, self.time.0);
        put_bytes(&mut out, &definitions);
        put_blocks(&mut out, &self.blocks);
        put(&mut out, self.state_version.into());
        out.extend_from_slice(&self.state);
        out
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Checkpoint, Malformed> {
        let mut input = Input::new(payload);
        let time = Time(input.varint()?);
        let definitions = Decoder::default().decode(input.bytes()?)?;
        let blocks = blocks(&mut input)?;
        Ok(Checkpoint {
            time,
            definitions,
            blocks,
            state_version: input.u32()?,
            state: input.rest().to_vec(),
        })
    }
}

/// What blocks have in common.
#[derive(Clone, Copy, PartialEq)]
struct Owner {
    process: Pid,
    layer: Layer,
    device: DeviceId,
    segment: bool,
    graph: bool,
}

/// Runs of blocks with one owner; in a run, a block is the distance of its address from the one
/// before, size, stack, birth and step.
fn put_blocks(out: &mut Vec<u8>, blocks: &[Block]) {
    let owner = |block: &Block| Owner {
        process: block.process,
        layer: block.layer,
        device: block.device,
        segment: block.segment,
        graph: block.graph,
    };
    let runs: Vec<&[Block]> = blocks.chunk_by(|a, b| owner(a) == owner(b)).collect();
    put(out, runs.len() as u64);
    for run in runs {
        put(out, run[0].process.0.into());
        out.push(run[0].layer as u8);
        put(out, run[0].device.0.into());
        out.push(u8::from(run[0].segment) | u8::from(run[0].graph) << 1);
        put(out, run.len() as u64);
        let grained = |value: u64| value.is_multiple_of(GRAIN);
        let grains = run
            .iter()
            .all(|block| grained(block.size) && grained(block.address.0));
        let scale = if grains { GRAIN } else { 1 };
        put(out, scale);
        let (mut address, mut born) = (0u64, 0u64);
        for block in run {
            let passed = block.address.0.wrapping_sub(address) as i64;
            put(out, zigzag(passed / scale as i64));
            address = block.address.0;
            put(out, block.size / scale);
            put(out, block.stack.0.into());
            put(out, zigzag(block.born.0.wrapping_sub(born) as i64));
            born = block.born.0;
            put(out, block.step.into());
        }
    }
}

fn blocks(input: &mut Input<'_>) -> Result<Vec<Block>, Malformed> {
    let mut blocks = Vec::new();
    for _ in 0..input.count()? {
        let process = Pid(input.u32()?);
        let layer = layer(input.byte()?)?;
        let device = DeviceId(input.u16()?);
        let kind = input.byte()?;
        let count = input.count()?;
        let scale = input.varint()?;
        let (mut address, mut born) = (0u64, 0u64);
        for _ in 0..count {
            let distance = input.signed()?.wrapping_mul(scale as i64);
            address = address.wrapping_add_signed(distance);
            let size = input.varint()?.wrapping_mul(scale);
            let stack = StackId(input.u32()?);
            born = born.wrapping_add_signed(input.signed()?);
            blocks.push(Block {
                process,
                layer,
                device,
                address: Address(address),
                size,
                stack,
                born: Time(born),
                step: input.u32()?,
                segment: kind & 1 != 0,
                graph: kind & 2 != 0,
            });
        }
    }
    Ok(blocks)
}

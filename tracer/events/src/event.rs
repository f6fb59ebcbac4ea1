//! What a tracer can tell.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Address, Bytes, DeviceId, DeviceUser, FrameId, Holders, Pid, ProcessInfo, StackId, Tid, Time,
};

/// One thing that happened in a traced process, in the order in which it took effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When.
    pub time: Time,
    /// In which process.
    pub process: Pid,
    /// On which thread; 0 where no thread is meant (a process event, a loss).
    pub thread: Tid,
    /// What.
    pub event: Event,
}

/// Which book an allocation belongs to. The two are never added together: the driver layer's
/// segments contain the tensor layer's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Blocks that the framework's caching allocator hands out: what leaks.
    Tensor,
    /// Device memory that the process takes from the driver: segments, pools, library workspaces.
    Driver,
    /// Page-locked host memory taken through the driver. Not device memory.
    Host,
}

/// An allocation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alloc {
    /// Which book.
    pub layer: Layer,
    /// The device it lies on.
    pub device: DeviceId,
    /// Its first byte.
    pub address: Address,
    /// Its size in bytes, as rounded by the allocator.
    pub size: Bytes,
    /// Who asked, innermost frame first.
    pub stack: StackId,
    /// The tensor layer's own totals after this allocation, where it tells them.
    pub totals: Option<Totals>,
}

/// A free.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Free {
    /// Which book.
    pub layer: Layer,
    /// The device the allocation lay on, where the tracer knows it.
    pub device: Option<DeviceId>,
    /// Its first byte.
    pub address: Address,
    /// Its size in bytes, where the tracer knows it (the tensor layer tells it, the driver does
    /// not).
    pub size: Option<Bytes>,
    /// The tensor layer's own totals after this free, where it tells them.
    pub totals: Option<Totals>,
}

/// PyTorch's own counters of one device, as reported with every event: the truth that the ledger
/// is checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Bytes in live blocks (`torch.cuda.memory_allocated`).
    pub allocated: Bytes,
    /// Bytes in segments taken from the driver (`torch.cuda.memory_reserved`).
    pub reserved: Bytes,
}

/// The framework could not serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutOfMemory {
    /// On which device.
    pub device: DeviceId,
    /// How many bytes were asked for.
    pub requested: Bytes,
    /// The counters at that moment.
    pub totals: Totals,
    /// Who asked.
    pub stack: StackId,
}

/// A sign that the training loop passed a known place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepMark {
    /// What was seen.
    pub kind: StepMarkKind,
    /// Where: for a backward, the Python stack that called it.
    pub stack: StackId,
}

/// What a [`StepMark`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepMarkKind {
    /// `torch::autograd::Engine::execute` was entered from outside: one `backward()` call.
    Backward,
    /// A place that the user named with `--step-on`.
    User,
}

/// Why events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostCause {
    /// The ring between kernel (or target) and reader was full.
    RingFull,
    /// The body of a new stack did not fit or could not be read; the event itself arrived.
    StackUnreadable,
    /// A kernel-side table was full.
    TableFull,
    /// A record arrived that could not be decoded.
    Undecodable,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Defines a frame.
    Frame {
        /// The id that stacks use for it.
        id: FrameId,
        /// What it is.
        frame: Arc<Frame>,
    },
    /// Defines a stack. [`StackId::EMPTY`] is never defined: it has no frames.
    Stack {
        /// The id that events use for it.
        id: StackId,
        /// Innermost first; every frame was defined before.
        frames: Arc<[FrameId]>,
    },
    /// The text of a frame's source line, as it was when the frame was first seen: what a
    /// recording keeps so that it can be read where the source is not. Follows its frame.
    Source {
        /// Which frame.
        frame: FrameId,
        /// The line, trimmed. Foreign text.
        text: Arc<str>,
    },
    /// Memory was handed out.
    Alloc(Alloc),
    /// Memory was given back.
    Free(Free),
    /// A request failed.
    OutOfMemory(OutOfMemory),
    /// The framework gave its unused cache back to the driver.
    CacheEmptied {
        /// On which device.
        device: DeviceId,
    },
    /// The training loop passed a known place.
    StepMark(StepMark),
    /// Events are missing: every number from here on is a bound until the ledger has
    /// resynchronised.
    Lost {
        /// How many.
        count: u64,
        /// Why.
        cause: LostCause,
    },
    /// The capacity and use of a device as the driver tells them (NVML or `cuMemGetInfo`).
    DeviceMemory {
        /// Which device.
        device: DeviceId,
        /// Bytes the device has.
        total: Bytes,
        /// Bytes that nobody has taken.
        free: Bytes,
        /// Bytes that this process has taken, where the driver tells it.
        used_by_process: Option<Bytes>,
    },
    /// The other processes that have memory on a device; told when it changed.
    DeviceUsers {
        /// Which device.
        device: DeviceId,
        /// All but the process of this record.
        users: Arc<[DeviceUser]>,
    },
    /// Work is captured into a graph from here on, or is no longer: what the framework's allocator
    /// takes from the driver meanwhile belongs to the graph's private pool.
    GraphCapture {
        /// Whether it begins.
        began: bool,
    },
    /// Physical memory can be reached at an address from here on. It may be a part of its
    /// allocation, and there may be several such places.
    Mapped {
        /// The address that its [`Alloc`] told: of physical memory a number that stands for one.
        allocation: Address,
        /// Where it can be reached.
        address: Address,
        /// How much of it.
        size: Bytes,
    },
    /// What was mapped in this range no longer is.
    Unmapped {
        /// Its first byte.
        address: Address,
        /// Its size.
        size: Bytes,
    },
    /// What the driver's memory pools on a device are known to keep although it was freed: at
    /// least so much.
    PoolsKept {
        /// Which device.
        device: DeviceId,
        /// How much, beyond what is allocated from them.
        bytes: Bytes,
    },
    /// The process was asked what holds some blocks, and answered.
    Holders(Arc<Holders>),
    /// A process is traced from here on.
    ProcessStarted {
        /// Who it is.
        info: Arc<ProcessInfo>,
    },
    /// The traced process ended; nothing of it follows.
    ProcessExited,
}

/// One frame of a call stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Frame {
    /// What kind of code it is.
    pub kind: FrameKind,
    /// The source file as the code object names it (Python), or the module (native). Foreign
    /// text: escape it before it meets a terminal or a file format.
    pub file: Arc<str>,
    /// The qualified name of the function. Foreign text.
    pub function: Arc<str>,
    /// The line, from 1; 0 where the code has none.
    pub line: u32,
}

/// What kind of code a [`Frame`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// A Python function.
    Python,
    /// Machine code.
    Native,
    /// Not a function: says that the frames outside it called `backward()` and that the
    /// allocation was made for it on an autograd thread.
    Backward,
}

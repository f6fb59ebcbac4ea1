//! The vocabulary between a tracer and the collector.
//!
//! A tracer (eBPF, injection, a replayed recording) turns what it sees into [`Record`]s; the
//! collector knows nothing else. Definitions of frames and stacks travel in the same stream as the
//! allocations that use them. A definition may arrive *after* its first use (two threads race to
//! the ring), so a consumer must resolve [`StackId`]s when it shows them, not when it counts.
//!
//! Addresses and sizes are as the allocator reports them: bytes, rounded as the allocator rounds.

#![deny(unsafe_code)]

mod device;
mod event;
mod holders;
mod id;
mod session;

pub use device::DeviceUser;
pub use event::{
    Alloc, Event, Frame, FrameKind, Free, Layer, LostCause, OutOfMemory, Record, StepMark,
    StepMarkKind, Totals,
};
pub use holders::{Holder, Holders};
pub use id::{Address, Bytes, DeviceId, FrameId, Pid, StackId, Tid, Time};
pub use session::{Backend, ProbeState, ProbeView, ProcessInfo, Role};

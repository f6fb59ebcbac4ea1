//! The driver layer from inside the process: CUPTI's callbacks, turned into [`DriverCall`]s.
//!
//! [`start`] subscribes to the memory functions of both API domains and nothing else. Each finished
//! operation is told once, on the thread that made it, through a [`Sink`]: what gives memory back
//! before the driver can hand its address to another thread, what hands memory out when the call
//! has succeeded. A driver call beneath a runtime call is the runtime's ([`nesting`]).
//!
//! A process has one CUPTI subscriber. [`StartError::Held`] says who else is it; [`yield_to`] lets
//! go at once when PyTorch's profiler wants it, [`resume`] takes it again.
//!
//! # On the path of a call
//! No lock is taken, nothing is allocated, nothing can panic, and nothing of the process's own
//! libraries is called, with one exception: the first allocation in a context asks CUPTI for its
//! device.

mod activity;
mod call;
mod callback;
mod device;
mod nesting;
mod subscription;
mod watched;

pub use activity::{Activity, ActivityKind, ActivitySink};
pub use call::{DriverCall, Sink};
pub use subscription::{
    Options, StartError, Stopped, Subscription, let_go, others_subscribe, others_use_cupti, resume,
    start, start_with, taken_away, yield_to,
};

//! Newtypes: an address is never mistaken for a size, nor a process for a thread.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A process as the tracer's own pid namespace numbers it (the kernel's "tgid").
    Pid(u32)
}
id! {
    /// A thread (the kernel's "pid").
    Tid(u32)
}
id! {
    /// A CUDA device as the traced process numbers it, after `CUDA_VISIBLE_DEVICES`.
    DeviceId(u16)
}
id! {
    /// An address in the traced process or on its device.
    Address(u64)
}
id! {
    /// One frame: file, function, line. Unique within a session.
    FrameId(u32)
}
id! {
    /// One call stack, innermost frame first. Unique within a session.
    StackId(u32)
}
id! {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    Time(u64)
}

impl StackId {
    /// The empty stack: a thread without Python frames of which nothing else is known.
    pub const EMPTY: StackId = StackId(0);
}

impl Time {
    /// Seconds from `earlier` to `self`; 0 when the clock seems to run backwards.
    pub fn seconds_since(self, earlier: Time) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 * 1e-9
    }
}

/// A number of bytes.
pub type Bytes = u64;

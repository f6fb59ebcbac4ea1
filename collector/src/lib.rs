//! Events in, an immutable [`view::View`] out.
//!
//! A live eBPF session, an injected session and a replayed recording feed the same
//! [`vramscope_events::Record`]s and get the same answer. What shows a view (terminal, report,
//! export) computes nothing but text.

#![deny(unsafe_code)]

pub mod escape;
#[cfg(any(test, feature = "fixture"))]
#[doc(hidden)]
pub mod fixture;
pub mod flamegraph;
pub mod grouping;
pub mod report;
pub mod view;

//! The library inside a traced process.

pub mod cupti;

//! Events as columns of numbers. docs/recording-format.md describes every column.
//!
//! What repeats from step to step (which stack asks for how much, which block is freed) becomes
//! the same bytes again and again, and zstd finds that by itself; what does not (the time between
//! two events) is kept small.

mod decode;
mod encode;
mod shape;

pub(crate) use decode::Decoder;
pub(crate) use encode::Encoder;
pub(crate) use shape::layer;

/// A free names an allocation at most so many allocations back; one further back by address.
pub(crate) const REACH: u64 = 1 << 21;
/// Columns of a chunk.
pub(crate) const COLUMNS: usize = 7;
/// Addresses and sizes of the caching allocator are multiples of this: kept without the zeros.
pub(crate) const GRAIN: u64 = 512;

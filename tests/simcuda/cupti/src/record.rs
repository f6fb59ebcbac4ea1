//! Activity records: their layouts, which grew with CUPTI's versions.

use std::ffi::c_char;

use crate::version::{ALLOCATION_SOURCE, UTILIZED_SIZE, version};

pub const DRIVER: u32 = 4;
pub const RUNTIME: u32 = 5;
pub const EXTERNAL_CORRELATION: u32 = 39;
pub const MEMORY2: u32 = 49;
pub const MEMORY_POOL: u32 = 50;

/// `CUpti_ActivityAPI`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Api {
    pub kind: u32,
    pub id: u32,
    pub start: u64,
    pub end: u64,
    pub process: u32,
    pub thread: u32,
    pub correlation: u32,
    pub result: u32,
}

/// `CUpti_ActivityExternalCorrelation`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ExternalCorrelation {
    pub kind: u32,
    pub external_kind: u32,
    pub external_id: u64,
    pub correlation: u32,
    pub reserved: u32,
}

/// `CUpti_ActivityMemory4`; older versions end before `utilized` or before `source`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memory {
    pub kind: u32,
    pub operation: u32,
    pub memory_kind: u32,
    pub correlation: u32,
    pub address: u64,
    pub bytes: u64,
    pub timestamp: u64,
    pub pc: u64,
    pub process: u32,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub name: *const c_char,
    pub is_async: u32,
    pub padding: u32,
    pub pool_type: u32,
    pub pool_padding: u32,
    pub pool_address: u64,
    pub pool_threshold: u64,
    pub pool_size: u64,
    pub pool_utilized: u64,
    pub source: *const c_char,
}

/// `CUpti_ActivityMemoryPool2`; older versions end before `utilized`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryPool {
    pub kind: u32,
    pub operation: u32,
    pub pool_type: u32,
    pub correlation: u32,
    pub process: u32,
    pub device: u32,
    pub bytes_to_keep: usize,
    pub address: u64,
    pub size: u64,
    pub threshold: u64,
    pub timestamp: u64,
    pub utilized: u64,
}

const _: () = {
    assert!(size_of::<Api>() == 40);
    assert!(size_of::<ExternalCorrelation>() == 24);
    assert!(size_of::<Memory>() == 128);
    assert!(std::mem::offset_of!(Memory, name) == 64);
    assert!(std::mem::offset_of!(Memory, pool_utilized) == 112);
    assert!(size_of::<MemoryPool>() == 72);
};

/// Bytes of a record of that kind in the version that is played.
pub fn size_of_kind(kind: u32) -> Option<usize> {
    match kind {
        DRIVER | RUNTIME => Some(size_of::<Api>()),
        EXTERNAL_CORRELATION => Some(size_of::<ExternalCorrelation>()),
        MEMORY2 if version() >= ALLOCATION_SOURCE => Some(size_of::<Memory>()),
        MEMORY2 if version() >= UTILIZED_SIZE => Some(120),
        MEMORY2 => Some(112),
        MEMORY_POOL if version() >= UTILIZED_SIZE => Some(size_of::<MemoryPool>()),
        MEMORY_POOL => Some(64),
        _ => None,
    }
}

/// The record's first bytes, as many as its kind has.
pub fn bytes_of<R: Copy>(kind: u32, record: &R) -> &[u8] {
    let size = size_of_kind(kind).unwrap_or(0).min(size_of::<R>());
    // SAFETY: the records above are made of integers and pointers without hidden padding.
    unsafe { std::slice::from_raw_parts((&raw const *record).cast(), size) }
}

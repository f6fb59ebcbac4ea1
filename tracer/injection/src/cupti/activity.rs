//! CUPTI's own records of memory and pools: what callbacks do not tell.
//!
//! CUPTI asks for buffers and gives them back full, on threads of its own choice. The buffers are
//! made beforehand; when all are in use CUPTI drops records and counts them.

use std::ffi::c_char;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use vramscope_cupti_sys::{Cupti, Error, Version, raw};

/// What a record tells of.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityKind {
    /// Memory was handed out.
    Alloc = 1,
    /// Memory was given back.
    Free = 2,
    /// A pool was made.
    PoolCreated = 3,
    /// A pool is gone.
    PoolDestroyed = 4,
    /// A pool gave up what it did not use.
    PoolTrimmed = 5,
}

/// One record. The library's name is valid while the sink runs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Activity {
    /// What happened.
    pub kind: ActivityKind,
    /// Number of the API call, as its callbacks had it.
    pub correlation: u32,
    /// Ordinal of the device.
    pub device: u32,
    /// 1 if the memory is a pool's.
    pub is_async: u32,
    /// Address of the memory; of a pool, its handle.
    pub address: u64,
    /// Bytes of the memory; of a pool, what it may keep when it is trimmed.
    pub bytes: u64,
    /// Handle of the memory's pool, 0 if none.
    pub pool: u64,
    /// Bytes that the pool has taken from the device.
    pub pool_size: u64,
    /// Bytes of them that are in use; 0 before CUDA 11.6.
    pub pool_used: u64,
    /// Bytes that the pool keeps when it could give them back.
    pub pool_threshold: u64,
    /// Path of the library that allocates, or null: before CUDA 12.6, or not known.
    pub source: *const c_char,
}

/// Is told of records, on a thread of CUPTI's or of the program's. As [`Sink`](super::Sink).
pub type ActivitySink = extern "C" fn(&Activity);

/// Bytes of a buffer: some 500 records.
const BYTES: usize = 64 << 10;
const BUFFERS: usize = 8;

#[repr(C, align(64))]
struct Bytes([u8; BYTES]);

struct Buffer {
    /// Made with the first start, and kept.
    start: AtomicPtr<Bytes>,
    taken: AtomicBool,
}

static POOL: [Buffer; BUFFERS] = [const {
    Buffer {
        start: AtomicPtr::new(ptr::null_mut()),
        taken: AtomicBool::new(false),
    }
}; BUFFERS];
static SINK: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(ptr::null_mut());
static CUPTI: AtomicPtr<Cupti> = AtomicPtr::new(ptr::null_mut());
static DROPPED: AtomicU64 = AtomicU64::new(0);

const KINDS: [raw::CUpti_ActivityKind; 2] = [
    raw::CUPTI_ACTIVITY_KIND_MEMORY2,
    raw::CUPTI_ACTIVITY_KIND_MEMORY_POOL,
];

/// Turns the records on.
pub(super) fn start(cupti: &'static Cupti, sink: ActivitySink) -> Result<(), Error> {
    for buffer in &POOL {
        if buffer.start.load(Ordering::SeqCst).is_null() {
            let bytes = Box::into_raw(Box::new(Bytes([0; BYTES])));
            buffer.start.store(bytes, Ordering::SeqCst);
        }
    }
    CUPTI.store(ptr::from_ref(cupti).cast_mut(), Ordering::SeqCst);
    SINK.store(sink as *mut std::ffi::c_void, Ordering::SeqCst);
    // SAFETY: both are functions of this library; `stop` turns the records off before it goes.
    unsafe { cupti.register_buffers(request, complete)? };
    if cupti.version() >= Version::ALLOCATION_SOURCE {
        // Not known for every installation: records without a name are records all the same.
        let _ = cupti.enable_allocation_source(true);
    }
    KINDS
        .iter()
        .try_for_each(|kind| cupti.enable_activity(*kind, true))
}

/// Turns the records off and takes what there is.
pub(super) fn stop(cupti: &Cupti) {
    for kind in KINDS {
        // Refused where somebody else finalized CUPTI: then there is nothing to turn off.
        let _ = cupti.enable_activity(kind, false);
    }
    let _ = cupti.enable_allocation_source(false);
    let _ = cupti.flush(true);
}

/// Records that were lost so far.
pub(super) fn dropped(cupti: &Cupti) -> u64 {
    let more = cupti.dropped_records().unwrap_or(0) as u64;
    DROPPED.fetch_add(more, Ordering::Relaxed) + more
}

/// CUPTI asks for an empty buffer.
unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let free = POOL.iter().find(|buffer| {
        buffer
            .taken
            .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    });
    let start = free.map_or(ptr::null_mut(), |buffer| {
        buffer.start.load(Ordering::Relaxed)
    });
    // SAFETY: CUPTI gives places for the three results.
    unsafe {
        buffer.write(start.cast());
        size.write(if start.is_null() { 0 } else { BYTES });
        most.write(0);
    }
}

/// CUPTI gives a buffer back.
unsafe extern "C" fn complete(
    _context: raw::CUcontext,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    // SAFETY: null or from a reference that lives for good.
    let cupti = unsafe { CUPTI.load(Ordering::SeqCst).as_ref() };
    let sink = SINK.load(Ordering::SeqCst);
    if let Some(cupti) = cupti
        && !sink.is_null()
    {
        // SAFETY: stored by `start` from such a function.
        let sink = unsafe { std::mem::transmute::<*mut std::ffi::c_void, ActivitySink>(sink) };
        let mut record = ptr::null_mut();
        loop {
            // SAFETY: the buffer has that many bytes, filled by CUPTI.
            record = unsafe { cupti.next_record(buffer, valid, record) };
            if record.is_null() {
                break;
            }
            // SAFETY: CUPTI gives the beginning of a record of its version.
            if let Some(activity) = unsafe { read(cupti.version(), record) } {
                sink(&activity);
            }
        }
    }
    for known in &POOL {
        if known.start.load(Ordering::Relaxed).cast() == buffer {
            known.taken.store(false, Ordering::Release);
        }
    }
}

/// The first version whose records of memory have what a pool uses (CUDA 11.6; `Memory3` and
/// `MemoryPool2`).
const POOL_USED: Version = Version(17);

/// # Safety
/// `record` is a record that this version wrote.
unsafe fn read(version: Version, record: *const raw::CUpti_Activity) -> Option<Activity> {
    // SAFETY: every record begins with its kind; those of the two kinds have at least the fields
    // of their first version, and what later ones append is read from later ones only.
    unsafe {
        match (*record).kind {
            raw::CUPTI_ACTIVITY_KIND_MEMORY2 => {
                let first = ptr::read_unaligned(record.cast::<raw::CUpti_ActivityMemory2>());
                let kind = match first.memoryOperationType {
                    raw::CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION => ActivityKind::Alloc,
                    raw::CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE => ActivityKind::Free,
                    _ => return None,
                };
                let mut activity = Activity {
                    kind,
                    correlation: first.correlationId,
                    device: first.deviceId,
                    is_async: first.isAsync,
                    address: first.address,
                    bytes: first.bytes,
                    pool: first.memoryPoolConfig.address,
                    pool_size: first.memoryPoolConfig.pool.size,
                    pool_used: 0,
                    pool_threshold: first.memoryPoolConfig.releaseThreshold,
                    source: ptr::null(),
                };
                if first.memoryPoolConfig.memoryPoolType
                    != raw::CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL
                {
                    // An imported pool's place holds the exporting process's id.
                    activity.pool_size = 0;
                }
                if version >= POOL_USED {
                    let later = ptr::read_unaligned(record.cast::<raw::CUpti_ActivityMemory3>());
                    activity.pool_used = later.memoryPoolConfig.utilizedSize;
                }
                if version >= Version::ALLOCATION_SOURCE {
                    let later = ptr::read_unaligned(record.cast::<raw::CUpti_ActivityMemory4>());
                    activity.source = later.source;
                }
                Some(activity)
            }
            raw::CUPTI_ACTIVITY_KIND_MEMORY_POOL => {
                let first = ptr::read_unaligned(record.cast::<raw::CUpti_ActivityMemoryPool>());
                let kind = match first.memoryPoolOperationType {
                    raw::CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED => {
                        ActivityKind::PoolCreated
                    }
                    raw::CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED => {
                        ActivityKind::PoolDestroyed
                    }
                    raw::CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED => {
                        ActivityKind::PoolTrimmed
                    }
                    _ => return None,
                };
                let used = if version >= POOL_USED {
                    ptr::read_unaligned(record.cast::<raw::CUpti_ActivityMemoryPool2>())
                        .utilizedSize
                } else {
                    0
                };
                Some(Activity {
                    kind,
                    correlation: first.correlationId,
                    device: first.deviceId,
                    is_async: 1,
                    address: first.address,
                    bytes: first.minBytesToKeep as u64,
                    pool: first.address,
                    pool_size: first.size,
                    pool_used: used,
                    pool_threshold: first.releaseThreshold,
                    source: ptr::null(),
                })
            }
            _ => None,
        }
    }
}

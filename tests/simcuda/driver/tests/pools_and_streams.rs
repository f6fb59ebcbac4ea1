//! Stream-ordered memory, stale handles and capture.

mod support;

use std::ffi::c_int;

use support::*;

const CHUNK: usize = 32 * MIB;
// CUmemPool_attribute
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
const USED: c_int = 7;
const USED_HIGH: c_int = 8;

fn default_pool(device: c_int) -> usize {
    let mut pool = 0;
    // SAFETY: the place is valid.
    let code = unsafe { cuDeviceGetDefaultMemPool(&raw mut pool, device) };
    assert_eq!(code, 0);
    pool
}

fn attribute(pool: usize, which: c_int) -> usize {
    let mut value = 0_usize;
    // SAFETY: the attributes asked for here are 64 bits wide.
    let code = unsafe { cuMemPoolGetAttribute(pool, which, (&raw mut value).cast()) };
    assert_eq!(code, 0);
    value
}

fn allocate_async(size: usize) -> Result<usize, c_int> {
    let mut address = 0;
    // SAFETY: the place is valid.
    match unsafe { cuMemAllocAsync(&raw mut address, size, 0) } {
        0 => Ok(address),
        code => Err(code),
    }
}

fn free_async(address: usize) -> c_int {
    // SAFETY: takes no pointer.
    unsafe { cuMemFreeAsync(address, 0) }
}

fn keep_everything(pool: usize) {
    let mut threshold = u64::MAX;
    // SAFETY: the attribute is 64 bits wide.
    unsafe {
        assert_eq!(
            cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, (&raw mut threshold).cast()),
            0
        );
    }
}

#[test]
fn a_pool_keeps_memory_until_it_is_trimmed() {
    let device = own_device();
    let pool = default_pool(device);
    keep_everything(pool);
    let small = allocate_async(100).expect("room");
    let large = allocate_async(40 * MIB).expect("room");
    assert_eq!(attribute(pool, USED), 512 + 40 * MIB);
    assert_eq!(attribute(pool, RESERVED), 2 * CHUNK);
    assert_eq!(used(), 2 * CHUNK);
    assert_eq!(write(large, &[3; 100]), 0);
    assert_eq!(free_async(large), 0);
    assert_eq!(free_async(large), INVALID_VALUE);
    assert_eq!(
        write(large, &[3; 100]),
        INVALID_VALUE,
        "freed memory must not be written"
    );
    // SAFETY: take no pointer.
    unsafe {
        assert_eq!(cuCtxSynchronize(), 0);
        assert_eq!(used(), 2 * CHUNK);
        assert_eq!(cuMemPoolTrimTo(pool, 0), 0);
    }
    assert_eq!(used(), CHUNK, "the chunk of the small block stays");
    assert_eq!(free(small), 0, "cuMemFree takes pool memory too");
    assert_eq!(attribute(pool, USED), 0);
    assert_eq!(attribute(pool, USED_HIGH), 512 + 40 * MIB);
    // SAFETY: takes no pointer.
    assert_eq!(unsafe { cuMemPoolTrimTo(pool, 0) }, 0);
    assert_eq!(used(), 0);
}

#[test]
fn without_a_threshold_a_synchronisation_gives_memory_back() {
    own_device();
    let block = allocate_async(MIB).expect("room");
    assert_eq!(free_async(block), 0);
    assert_eq!(used(), CHUNK);
    // SAFETY: takes no pointer.
    assert_eq!(unsafe { cuCtxSynchronize() }, 0);
    assert_eq!(used(), 0);
}

#[test]
fn a_pool_runs_out_with_its_device_and_uses_what_it_has_first() {
    let device = own_device();
    keep_everything(default_pool(device));
    let blocks: Vec<usize> = (0..8)
        .map(|_| allocate_async(CHUNK).expect("room"))
        .collect();
    assert_eq!(used(), CAPACITY);
    assert_eq!(allocate_async(512), Err(OUT_OF_MEMORY));
    assert_eq!(free_async(blocks[1]), 0);
    assert_eq!(free_async(blocks[5]), 0);
    // Two free chunks, but not side by side: other addresses get their memory.
    let across = allocate_async(2 * CHUNK).expect("room after giving up free chunks");
    assert_eq!(used(), CAPACITY);
    for block in [0, 2, 3, 4, 6, 7].map(|index| blocks[index]) {
        assert_eq!(free_async(block), 0);
    }
    assert_eq!(free_async(across), 0);
}

#[test]
fn stale_handles_are_errors() {
    own_device();
    let (mut stream, mut event) = (0, 0);
    // SAFETY: the places are valid.
    unsafe {
        assert_eq!(cuStreamCreate(&raw mut stream, 0), 0);
        assert_eq!(cuEventCreate(&raw mut event, 0), 0);
        assert_eq!(cuEventRecord(event, stream), 0);
        assert_eq!(
            cuEventRecord(stream, event),
            INVALID_HANDLE,
            "kinds are not mixed up"
        );
        assert_eq!(cuStreamDestroy_v2(stream), 0);
        assert_eq!(cuStreamDestroy_v2(stream), INVALID_HANDLE);
        assert_eq!(cuStreamQuery(stream), INVALID_HANDLE);
        assert_eq!(cuEventRecord(event, stream), INVALID_HANDLE);
        assert_eq!(cuEventDestroy_v2(event), 0);
        assert_eq!(cuEventDestroy_v2(event), INVALID_HANDLE);
    }
}

#[test]
fn a_capture_collects_the_launches_of_its_stream_only() {
    own_device();
    let nothing = std::ptr::null_mut();
    let (mut stream, mut other, mut graph, mut count) = (0, 0, 0, 0);
    // SAFETY: the places are valid, and a kernel is only a number here.
    unsafe {
        assert_eq!(cuStreamCreate(&raw mut stream, 0), 0);
        assert_eq!(cuStreamCreate(&raw mut other, 0), 0);
        assert_eq!(cuStreamBeginCapture_v2(stream, 0), 0);
        for target in [stream, other, stream] {
            assert_eq!(
                cuLaunchKernel(1, 1, 1, 1, 1, 1, 1, 0, target, nothing, nothing),
                0
            );
        }
        assert_eq!(cuStreamEndCapture(stream, &raw mut graph), 0);
        assert_eq!(
            cuGraphGetNodes(graph, std::ptr::null_mut(), &raw mut count),
            0
        );
        assert_eq!(count, 2);
        assert_eq!(cuGraphDestroy(graph), 0);
        assert_eq!(cuGraphDestroy(graph), INVALID_HANDLE);
    }
}

//! The driver API as a C program sees it, and one device for each test.
#![allow(dead_code, non_snake_case)]

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

// The functions below are this crate's.
use cuda as _;

pub const INVALID_VALUE: c_int = 1;
pub const OUT_OF_MEMORY: c_int = 2;
pub const INVALID_CONTEXT: c_int = 201;
pub const INVALID_HANDLE: c_int = 400;
pub const MIB: usize = 1 << 20;
pub const DEVICE_PAGE: usize = 2 * MIB;
/// Capacity of every device here.
pub const CAPACITY: usize = 256 * MIB;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllocationProp {
    pub kind: c_int,
    pub handle_types: c_int,
    pub location: [c_int; 2],
    pub rest: [u64; 2],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct AccessDesc {
    pub location: [c_int; 2],
    pub flags: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcHandle {
    pub bytes: [u8; 64],
}

unsafe extern "C" {
    pub fn cuInit(flags: c_uint) -> c_int;
    pub fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) -> c_int;
    pub fn cuCtxSetCurrent(context: usize) -> c_int;
    pub fn cuCtxSynchronize() -> c_int;
    pub fn cuMemAlloc_v2(address: *mut usize, size: usize) -> c_int;
    pub fn cuMemFree_v2(address: usize) -> c_int;
    pub fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int;
    pub fn cuMemHostAlloc(address: *mut *mut c_void, size: usize, flags: c_uint) -> c_int;
    pub fn cuMemFreeHost(address: *mut c_void) -> c_int;
    pub fn cuMemcpyHtoD_v2(to: usize, from: *const c_void, size: usize) -> c_int;
    pub fn cuMemcpyDtoH_v2(to: *mut c_void, from: usize, size: usize) -> c_int;
    pub fn cuMemsetD8_v2(address: usize, value: u8, count: usize) -> c_int;
    pub fn cuMemsetD32_v2(address: usize, value: u32, count: usize) -> c_int;
    pub fn cuMemAddressReserve(
        address: *mut usize,
        size: usize,
        alignment: usize,
        hint: usize,
        flags: u64,
    ) -> c_int;
    pub fn cuMemAddressFree(address: usize, size: usize) -> c_int;
    pub fn cuMemCreate(
        handle: *mut usize,
        size: usize,
        properties: *const AllocationProp,
        flags: u64,
    ) -> c_int;
    pub fn cuMemRelease(handle: usize) -> c_int;
    pub fn cuMemMap(address: usize, size: usize, offset: usize, handle: usize, flags: u64)
    -> c_int;
    pub fn cuMemUnmap(address: usize, size: usize) -> c_int;
    pub fn cuMemSetAccess(
        address: usize,
        size: usize,
        access: *const AccessDesc,
        count: usize,
    ) -> c_int;
    pub fn cuMemRetainAllocationHandle(handle: *mut usize, address: *mut c_void) -> c_int;
    pub fn cuDeviceGetDefaultMemPool(pool: *mut usize, device: c_int) -> c_int;
    pub fn cuMemAllocAsync(address: *mut usize, size: usize, stream: usize) -> c_int;
    pub fn cuMemFreeAsync(address: usize, stream: usize) -> c_int;
    pub fn cuMemPoolGetAttribute(pool: usize, which: c_int, value: *mut c_void) -> c_int;
    pub fn cuMemPoolSetAttribute(pool: usize, which: c_int, value: *mut c_void) -> c_int;
    pub fn cuMemPoolTrimTo(pool: usize, keep: usize) -> c_int;
    pub fn cuPointerGetAttribute(value: *mut c_void, which: c_int, address: usize) -> c_int;
    pub fn cuStreamCreate(stream: *mut usize, flags: c_uint) -> c_int;
    pub fn cuStreamDestroy_v2(stream: usize) -> c_int;
    pub fn cuStreamQuery(stream: usize) -> c_int;
    pub fn cuStreamBeginCapture_v2(stream: usize, mode: c_int) -> c_int;
    pub fn cuStreamEndCapture(stream: usize, graph: *mut usize) -> c_int;
    pub fn cuLaunchKernel(
        function: usize,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: usize,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> c_int;
    pub fn cuGraphGetNodes(graph: usize, nodes: *mut usize, count: *mut usize) -> c_int;
    pub fn cuGraphDestroy(graph: usize) -> c_int;
    pub fn cuMemExportToShareableHandle(
        shareable: *mut c_void,
        handle: usize,
        kind: c_int,
        flags: u64,
    ) -> c_int;
    pub fn cuMemImportFromShareableHandle(
        handle: *mut usize,
        shareable: *mut c_void,
        kind: c_int,
    ) -> c_int;
    pub fn cuMemGetAddressRange_v2(base: *mut usize, size: *mut usize, address: usize) -> c_int;
    pub fn cuIpcGetMemHandle(handle: *mut IpcHandle, address: usize) -> c_int;
    pub fn cuIpcOpenMemHandle_v2(address: *mut usize, handle: IpcHandle, flags: c_uint) -> c_int;
    pub fn cuIpcCloseMemHandle(address: usize) -> c_int;
    pub fn cuIpcGetEventHandle(handle: *mut IpcHandle, event: usize) -> c_int;
    pub fn cuIpcOpenEventHandle(event: *mut usize, handle: IpcHandle) -> c_int;
    pub fn cuEventQuery(event: usize) -> c_int;
    pub fn cuEventCreate(event: *mut usize, flags: c_uint) -> c_int;
    pub fn cuEventRecord(event: usize, stream: usize) -> c_int;
    pub fn cuEventDestroy_v2(event: usize) -> c_int;
}

/// Keeps other tests from allocating meanwhile: addresses are of the whole process, and what lies
/// behind a block may be another test's.
#[allow(dead_code)] // not every file of tests needs it
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ONE.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Makes a device that no other test uses current on this thread; returns its ordinal.
pub fn own_device() -> c_int {
    static START: Once = Once::new();
    static NEXT: AtomicI32 = AtomicI32::new(0);
    START.call_once(|| {
        // SAFETY: `call_once` holds up all tests, and nothing else reads the environment.
        unsafe {
            std::env::set_var("SIMCUDA_DEVICES", "16");
            std::env::set_var("SIMCUDA_MEM", CAPACITY.to_string());
            assert_eq!(cuInit(0), 0);
        }
    });
    let device = NEXT.fetch_add(1, Ordering::Relaxed);
    use_device(device);
    device
}

/// Makes `device` current on this thread.
pub fn use_device(device: c_int) {
    let mut context = 0;
    // SAFETY: the place for the context is valid.
    unsafe {
        assert_eq!(cuDevicePrimaryCtxRetain(&raw mut context, device), 0);
        assert_eq!(cuCtxSetCurrent(context), 0);
    }
}

/// Bytes taken from the current device.
pub fn used() -> usize {
    let (mut free, mut total) = (0, 0);
    // SAFETY: the places are valid.
    assert_eq!(unsafe { cuMemGetInfo_v2(&raw mut free, &raw mut total) }, 0);
    assert_eq!(total, CAPACITY);
    total - free
}

/// `cuMemAlloc`: the address, or the error code.
pub fn allocate(size: usize) -> Result<usize, c_int> {
    let mut address = 0;
    // SAFETY: the place is valid.
    match unsafe { cuMemAlloc_v2(&raw mut address, size) } {
        0 => Ok(address),
        code => Err(code),
    }
}

pub fn free(address: usize) -> c_int {
    // SAFETY: takes no pointer.
    unsafe { cuMemFree_v2(address) }
}

/// Copies device memory to the host.
pub fn read(address: usize, size: usize) -> Result<Vec<u8>, c_int> {
    let mut bytes = vec![0xEE; size];
    // SAFETY: the buffer has `size` bytes.
    match unsafe { cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), address, size) } {
        0 => Ok(bytes),
        code => Err(code),
    }
}

/// Copies bytes to device memory.
pub fn write(address: usize, bytes: &[u8]) -> c_int {
    // SAFETY: the source has that many bytes.
    unsafe { cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), bytes.len()) }
}

//! What a call means: from the arguments that CUPTI shows to one [`DriverCall`].

use std::ffi::c_void;
use std::ptr;

use vramscope_cupti_sys::raw;
use vramscope_wire as wire;

/// One finished operation of the driver layer, told on the thread that made it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCall {
    /// `enum vs_driver_function`, as are the meanings of the next three.
    pub function: u32,
    /// An address, or a handle.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// More, for some functions.
    pub extra: u64,
    /// Ordinal of the device as this process counts; -1 where neither the arguments nor the
    /// current context tell it, as for host memory and whatever is given back.
    pub device: i32,
}

/// Is told of operations. Called on any thread, in the middle of a CUDA call: it must take no
/// lock, allocate nothing and never panic.
pub type Sink = extern "C" fn(&DriverCall);

/// The device is that of the thread's context.
pub(super) const OF_CONTEXT: i32 = i32::MIN;
/// The device is not told.
const NONE: i32 = -1;

fn told(function: u32, address: u64, size: u64, extra: u64, device: i32) -> Option<DriverCall> {
    // An address of zero is a call that did nothing: a free of null, an allocation of no bytes.
    (address != 0).then_some(DriverCall {
        function,
        address,
        size,
        extra,
        device,
    })
}

/// Memory of the context's device.
fn handed_out(function: u32, address: u64, size: usize) -> Option<DriverCall> {
    told(function, address, size as u64, 0, OF_CONTEXT)
}

fn given_back(function: u32, address: u64, size: usize) -> Option<DriverCall> {
    told(function, address, size as u64, 0, NONE)
}

/// What a place holds; zero where there is no place.
///
/// # Safety
/// The place is null or valid.
unsafe fn at<T: Copy>(place: *const T) -> Option<T> {
    // SAFETY: the caller's promise; C callers need not align.
    (!place.is_null()).then(|| unsafe { place.read_unaligned() })
}

/// An address or handle that a call stored.
///
/// # Safety
/// As [`at`].
unsafe fn stored<T>(place: *mut T) -> u64 {
    const { assert!(size_of::<T>() == size_of::<u64>()) };
    // SAFETY: the caller's promise; every such result is 64 bits wide.
    unsafe { at(place.cast::<u64>()) }.unwrap_or(0)
}

fn number<T>(pointer: *mut T) -> u64 {
    pointer as usize as u64
}

/// `CUmemLocation`: two ints, the kind of place and its number.
fn device_at(location: *const raw::CUmemLocation) -> i32 {
    // SAFETY: called with the address of a struct's field, or null.
    match unsafe { at(location.cast::<[i32; 2]>()) } {
        Some([kind, id]) if kind as u32 == raw::CU_MEM_LOCATION_TYPE_DEVICE => id,
        _ => NONE,
    }
}

/// A node that allocates, as `CUgraphNodeParams` and `cudaGraphNodeParams` begin.
#[repr(C)]
#[derive(Clone, Copy)]
struct MemoryNode {
    kind: u32,
    reserved: [u32; 3],
    what: Node,
}

#[repr(C)]
#[derive(Clone, Copy)]
union Node {
    alloc: raw::CUDA_MEM_ALLOC_NODE_PARAMS_v2,
    free: raw::CUdeviceptr,
}

const _: () = assert!(std::mem::offset_of!(MemoryNode, what) == 16);

/// `cuGraphAddNode` and its like: graph, and what node.
///
/// # Safety
/// Both are null or what the call was given.
unsafe fn node(graph: *mut c_void, parameters: *const MemoryNode) -> Option<DriverCall> {
    let graph = number(graph);
    // SAFETY: the caller's promise; the union is read as its kind says, and no further.
    unsafe {
        match at(parameters.cast::<u32>())? {
            raw::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
                let alloc = at(&raw const (*parameters).what.alloc)?;
                let function = wire::vs_driver_function_VS_GRAPH_ALLOC_NODE;
                let device = device_at(&raw const alloc.poolProps.location);
                told(function, alloc.dptr, alloc.bytesize as u64, graph, device)
            }
            raw::CU_GRAPH_NODE_TYPE_MEM_FREE => {
                let address = at(&raw const (*parameters).what.free)?;
                let function = wire::vs_driver_function_VS_GRAPH_FREE_NODE;
                told(function, address, 0, graph, NONE)
            }
            _ => None,
        }
    }
}

/// The arguments of the generic functions that add a node, in two versions.
#[repr(C)]
#[derive(Clone, Copy)]
struct AddNode {
    node: *mut c_void,
    graph: *mut c_void,
    dependencies: *const c_void,
    count: usize,
    parameters: *const MemoryNode,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct AddNodeWithEdges {
    node: *mut c_void,
    graph: *mut c_void,
    dependencies: *const c_void,
    edges: *const c_void,
    count: usize,
    parameters: *const MemoryNode,
}

/// What the beginning of a call tells: memory that is given back. After the call another thread
/// may be given the same address, so that its allocation would be told first.
///
/// # Safety
/// `arguments` are those of the function that `domain` and `id` name.
pub(super) unsafe fn at_enter(
    domain: u32,
    id: u32,
    arguments: *const c_void,
) -> Option<DriverCall> {
    // SAFETY: the caller's promise, in every line that reads arguments.
    unsafe {
        match domain {
            raw::CUPTI_CB_DOMAIN_DRIVER_API => driver_enter(id, arguments),
            raw::CUPTI_CB_DOMAIN_RUNTIME_API => runtime_enter(id, arguments),
            _ => None,
        }
    }
}

/// What the end of a call that succeeded tells: memory that was handed out, and all else.
///
/// # Safety
/// As [`at_enter`]; the call has succeeded.
pub(super) unsafe fn at_exit(domain: u32, id: u32, arguments: *const c_void) -> Option<DriverCall> {
    // SAFETY: as above.
    unsafe {
        match domain {
            raw::CUPTI_CB_DOMAIN_DRIVER_API => driver_exit(id, arguments),
            raw::CUPTI_CB_DOMAIN_RUNTIME_API => runtime_exit(id, arguments),
            _ => None,
        }
    }
}

/// Reads the arguments as the struct of that name.
macro_rules! arguments {
    ($from:ident as $type:ident) => {
        ptr::read_unaligned($from.cast::<raw::$type>())
    };
}

/// # Safety
/// As [`at_enter`].
unsafe fn driver_enter(id: u32, from: *const c_void) -> Option<DriverCall> {
    // SAFETY: the caller's promise.
    unsafe {
        match id {
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2 => {
                let a = arguments!(from as cuMemFree_v2_params);
                given_back(wire::vs_driver_function_VS_MEM_FREE, a.dptr, 0)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync
            | raw::CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz => {
                let a = arguments!(from as cuMemFreeAsync_params);
                given_back(wire::vs_driver_function_VS_FREE_ASYNC, a.dptr, 0)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost => {
                let a = arguments!(from as cuMemFreeHost_params);
                given_back(wire::vs_driver_function_VS_HOST_FREE, number(a.p), 0)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemRelease => {
                let a = arguments!(from as cuMemRelease_params);
                given_back(wire::vs_driver_function_VS_VMM_RELEASE, a.handle, 0)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemUnmap => {
                let a = arguments!(from as cuMemUnmap_params);
                given_back(wire::vs_driver_function_VS_VMM_UNMAP, a.ptr, a.size)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemAddressFree => {
                let a = arguments!(from as cuMemAddressFree_params);
                given_back(wire::vs_driver_function_VS_ADDRESS_FREE, a.ptr, a.size)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemPoolDestroy => {
                let a = arguments!(from as cuMemPoolDestroy_params);
                given_back(wire::vs_driver_function_VS_POOL_DESTROY, number(a.pool), 0)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuIpcCloseMemHandle => {
                let a = arguments!(from as cuIpcCloseMemHandle_params);
                given_back(wire::vs_driver_function_VS_IPC_CLOSE, a.dptr, 0)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastUnbind => {
                let a = arguments!(from as cuMulticastUnbind_params);
                let function = wire::vs_driver_function_VS_MULTICAST_UNBIND;
                told(function, a.mcHandle, a.size as u64, 0, a.dev)
            }
            _ => None,
        }
    }
}

/// # Safety
/// As [`at_exit`].
unsafe fn driver_exit(id: u32, from: *const c_void) -> Option<DriverCall> {
    // SAFETY: the caller's promise; results are where a call that succeeded stored them.
    unsafe {
        match id {
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2 => {
                let a = arguments!(from as cuMemAlloc_v2_params);
                let address = stored(a.dptr);
                handed_out(wire::vs_driver_function_VS_MEM_ALLOC, address, a.bytesize)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2 => {
                let a = arguments!(from as cuMemAllocPitch_v2_params);
                let size = at(a.pPitch).unwrap_or(0).wrapping_mul(a.Height);
                handed_out(
                    wire::vs_driver_function_VS_ALLOC_PITCH,
                    stored(a.dptr),
                    size,
                )
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged => {
                let a = arguments!(from as cuMemAllocManaged_params);
                let address = stored(a.dptr);
                handed_out(
                    wire::vs_driver_function_VS_ALLOC_MANAGED,
                    address,
                    a.bytesize,
                )
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync
            | raw::CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz => {
                let a = arguments!(from as cuMemAllocAsync_params);
                let address = stored(a.dptr);
                handed_out(wire::vs_driver_function_VS_ALLOC_ASYNC, address, a.bytesize)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync
            | raw::CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz => {
                let a = arguments!(from as cuMemAllocFromPoolAsync_params);
                let (function, address) = (wire::vs_driver_function_VS_ALLOC_POOL, stored(a.dptr));
                told(
                    function,
                    address,
                    a.bytesize as u64,
                    number(a.pool),
                    OF_CONTEXT,
                )
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc => {
                let a = arguments!(from as cuMemHostAlloc_params);
                let function = wire::vs_driver_function_VS_HOST_ALLOC;
                told(function, stored(a.pp), a.bytesize as u64, 0, NONE)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2 => {
                let a = arguments!(from as cuMemAllocHost_v2_params);
                let function = wire::vs_driver_function_VS_HOST_ALLOC;
                told(function, stored(a.pp), a.bytesize as u64, 0, NONE)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemPoolTrimTo => {
                let a = arguments!(from as cuMemPoolTrimTo_params);
                let function = wire::vs_driver_function_VS_POOL_TRIM;
                told(function, number(a.pool), a.minBytesToKeep as u64, 0, NONE)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemPoolCreate => {
                let a = arguments!(from as cuMemPoolCreate_params);
                let device = pool_device(a.poolProps);
                told(
                    wire::vs_driver_function_VS_POOL_CREATE,
                    stored(a.pool),
                    0,
                    0,
                    device,
                )
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle
            | raw::CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle_v2 => {
                let a = arguments!(from as cuIpcOpenMemHandle_v2_params);
                handed_out(wire::vs_driver_function_VS_IPC_OPEN, stored(a.pdptr), 0)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuGraphAddMemAllocNode => {
                let a = arguments!(from as cuGraphAddMemAllocNode_params);
                let node = at(a.nodeParams)?;
                let function = wire::vs_driver_function_VS_GRAPH_ALLOC_NODE;
                let device = device_at(&raw const node.poolProps.location);
                let size = node.bytesize as u64;
                told(function, node.dptr, size, number(a.hGraph), device)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuGraphAddMemFreeNode => {
                let a = arguments!(from as cuGraphAddMemFreeNode_params);
                let function = wire::vs_driver_function_VS_GRAPH_FREE_NODE;
                told(function, a.dptr, 0, number(a.hGraph), NONE)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode => {
                let a = ptr::read_unaligned(from.cast::<AddNode>());
                node(a.graph, a.parameters)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2 => {
                let a = ptr::read_unaligned(from.cast::<AddNodeWithEdges>());
                node(a.graph, a.parameters)
            }
            _ => virtual_memory_exit(id, from),
        }
    }
}

/// # Safety
/// As [`at_exit`].
unsafe fn virtual_memory_exit(id: u32, from: *const c_void) -> Option<DriverCall> {
    // SAFETY: as in `driver_exit`.
    unsafe {
        match id {
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemCreate => {
                let a = arguments!(from as cuMemCreate_params);
                let device = if a.prop.is_null() {
                    NONE
                } else {
                    device_at(&raw const (*a.prop).location)
                };
                let function = wire::vs_driver_function_VS_VMM_CREATE;
                told(function, stored(a.handle), a.size as u64, 0, device)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemRetainAllocationHandle => {
                let a = arguments!(from as cuMemRetainAllocationHandle_params);
                let handle = stored(a.handle);
                told(wire::vs_driver_function_VS_VMM_RETAIN, handle, 0, 0, NONE)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemMap => {
                let a = arguments!(from as cuMemMap_params);
                let function = wire::vs_driver_function_VS_VMM_MAP;
                told(function, a.ptr, a.size as u64, a.handle, NONE)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemAddressReserve => {
                let a = arguments!(from as cuMemAddressReserve_params);
                let function = wire::vs_driver_function_VS_ADDRESS_RESERVE;
                told(function, stored(a.ptr), a.size as u64, 0, NONE)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastCreate => {
                let a = arguments!(from as cuMulticastCreate_params);
                let size = at(a.prop).map_or(0, |prop| prop.size as u64);
                let function = wire::vs_driver_function_VS_MULTICAST_CREATE;
                told(function, stored(a.mcHandle), size, 0, NONE)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastBindMem => {
                let a = arguments!(from as cuMulticastBindMem_params);
                let function = wire::vs_driver_function_VS_MULTICAST_BIND;
                told(function, a.mcHandle, a.size as u64, a.memHandle, NONE)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastBindMem_v2 => {
                let a = arguments!(from as cuMulticastBindMem_v2_params);
                let function = wire::vs_driver_function_VS_MULTICAST_BIND;
                told(function, a.mcHandle, a.size as u64, a.memHandle, a.dev)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastBindAddr => {
                let a = arguments!(from as cuMulticastBindAddr_params);
                let function = wire::vs_driver_function_VS_MULTICAST_BIND;
                told(function, a.mcHandle, a.size as u64, a.memptr, NONE)
            }
            raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastBindAddr_v2 => {
                let a = arguments!(from as cuMulticastBindAddr_v2_params);
                let function = wire::vs_driver_function_VS_MULTICAST_BIND;
                told(function, a.mcHandle, a.size as u64, a.memptr, a.dev)
            }
            _ => None,
        }
    }
}

fn pool_device(properties: *const raw::CUmemPoolProps) -> i32 {
    if properties.is_null() {
        return NONE;
    }
    // SAFETY: called with what a call that succeeded was given.
    device_at(unsafe { &raw const (*properties).location })
}

/// # Safety
/// As [`at_enter`].
unsafe fn runtime_enter(id: u32, from: *const c_void) -> Option<DriverCall> {
    // SAFETY: the caller's promise.
    unsafe {
        match id {
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020 => {
                let a = arguments!(from as cudaFree_v3020_params);
                given_back(wire::vs_driver_function_VS_MEM_FREE, number(a.devPtr), 0)
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaFreeAsync_v11020
            | raw::CUPTI_RUNTIME_TRACE_CBID_cudaFreeAsync_ptsz_v11020 => {
                let a = arguments!(from as cudaFreeAsync_v11020_params);
                given_back(wire::vs_driver_function_VS_FREE_ASYNC, number(a.devPtr), 0)
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaFreeHost_v3020 => {
                let a = arguments!(from as cudaFreeHost_v3020_params);
                given_back(wire::vs_driver_function_VS_HOST_FREE, number(a.ptr), 0)
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolDestroy_v11020 => {
                let a = arguments!(from as cudaMemPoolDestroy_v11020_params);
                given_back(
                    wire::vs_driver_function_VS_POOL_DESTROY,
                    number(a.memPool),
                    0,
                )
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaIpcCloseMemHandle_v4010 => {
                let a = arguments!(from as cudaIpcCloseMemHandle_v4010_params);
                given_back(wire::vs_driver_function_VS_IPC_CLOSE, number(a.devPtr), 0)
            }
            _ => None,
        }
    }
}

/// # Safety
/// As [`at_exit`].
unsafe fn runtime_exit(id: u32, from: *const c_void) -> Option<DriverCall> {
    // SAFETY: as in `driver_exit`.
    unsafe {
        match id {
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020 => {
                let a = arguments!(from as cudaMalloc_v3020_params);
                handed_out(
                    wire::vs_driver_function_VS_MEM_ALLOC,
                    stored(a.devPtr),
                    a.size,
                )
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaMallocPitch_v3020 => {
                let a = arguments!(from as cudaMallocPitch_v3020_params);
                let size = at(a.pitch).unwrap_or(0).wrapping_mul(a.height);
                handed_out(
                    wire::vs_driver_function_VS_ALLOC_PITCH,
                    stored(a.devPtr),
                    size,
                )
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaMalloc3D_v3020 => {
                let a = arguments!(from as cudaMalloc3D_v3020_params);
                let block = at(a.pitchedDevPtr)?;
                let rows = a.extent.height.wrapping_mul(a.extent.depth);
                let size = block.pitch.wrapping_mul(rows);
                handed_out(
                    wire::vs_driver_function_VS_ALLOC_PITCH,
                    number(block.ptr),
                    size,
                )
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaMallocManaged_v6000 => {
                let a = arguments!(from as cudaMallocManaged_v6000_params);
                handed_out(
                    wire::vs_driver_function_VS_ALLOC_MANAGED,
                    stored(a.devPtr),
                    a.size,
                )
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_v11020
            | raw::CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_ptsz_v11020 => {
                let a = arguments!(from as cudaMallocAsync_v11020_params);
                handed_out(
                    wire::vs_driver_function_VS_ALLOC_ASYNC,
                    stored(a.devPtr),
                    a.size,
                )
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaMallocFromPoolAsync_v11020
            | raw::CUPTI_RUNTIME_TRACE_CBID_cudaMallocFromPoolAsync_ptsz_v11020 => {
                let a = arguments!(from as cudaMallocFromPoolAsync_v11020_params);
                let (function, address) = (wire::vs_driver_function_VS_ALLOC_POOL, stored(a.ptr));
                told(
                    function,
                    address,
                    a.size as u64,
                    number(a.memPool),
                    OF_CONTEXT,
                )
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaMallocHost_v3020 => {
                let a = arguments!(from as cudaMallocHost_v3020_params);
                let function = wire::vs_driver_function_VS_HOST_ALLOC;
                told(function, stored(a.ptr), a.size as u64, 0, NONE)
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaHostAlloc_v3020 => {
                let a = arguments!(from as cudaHostAlloc_v3020_params);
                let function = wire::vs_driver_function_VS_HOST_ALLOC;
                told(function, stored(a.pHost), a.size as u64, 0, NONE)
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolCreate_v11020 => {
                let a = arguments!(from as cudaMemPoolCreate_v11020_params);
                // `struct cudaMemPoolProps` begins as the driver's does.
                let device = pool_device(a.poolProps.cast());
                told(
                    wire::vs_driver_function_VS_POOL_CREATE,
                    stored(a.memPool),
                    0,
                    0,
                    device,
                )
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolTrimTo_v11020 => {
                let a = arguments!(from as cudaMemPoolTrimTo_v11020_params);
                let function = wire::vs_driver_function_VS_POOL_TRIM;
                told(
                    function,
                    number(a.memPool),
                    a.minBytesToKeep as u64,
                    0,
                    NONE,
                )
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaIpcOpenMemHandle_v4010 => {
                let a = arguments!(from as cudaIpcOpenMemHandle_v4010_params);
                handed_out(wire::vs_driver_function_VS_IPC_OPEN, stored(a.devPtr), 0)
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddMemAllocNode_v11040 => {
                let a = arguments!(from as cudaGraphAddMemAllocNode_v11040_params);
                let node = at(a.nodeParams)?;
                let function = wire::vs_driver_function_VS_GRAPH_ALLOC_NODE;
                let device = pool_device((&raw const node.poolProps).cast());
                let size = node.bytesize as u64;
                told(function, number(node.dptr), size, number(a.graph), device)
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddMemFreeNode_v11040 => {
                let a = arguments!(from as cudaGraphAddMemFreeNode_v11040_params);
                let function = wire::vs_driver_function_VS_GRAPH_FREE_NODE;
                told(function, number(a.dptr), 0, number(a.graph), NONE)
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddNode_v12020 => {
                let a = ptr::read_unaligned(from.cast::<AddNode>());
                node(a.graph, a.parameters)
            }
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddNode_v12030 => {
                let a = ptr::read_unaligned(from.cast::<AddNodeWithEdges>());
                node(a.graph, a.parameters)
            }
            _ => None,
        }
    }
}

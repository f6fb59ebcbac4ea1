//! What a call means: from the arguments that CUPTI shows to one [`DriverCall`].

mod driver;
mod runtime;

use std::ffi::c_void;

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

/// `cuMemPoolSetAttribute` and its like.
#[repr(C)]
#[derive(Clone, Copy)]
struct PoolAttribute {
    pool: *mut c_void,
    attribute: u32,
    value: *const u64,
}

/// What a pool may keep, where that is set.
///
/// # Safety
/// `arguments` are those of such a call that succeeded.
unsafe fn pool_threshold(arguments: *const c_void) -> Option<DriverCall> {
    /// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`; the runtime has the same number.
    const RELEASE_THRESHOLD: u32 = 4;
    // SAFETY: the caller's promise; the value of this attribute is 64 bits wide.
    unsafe {
        let set = at(arguments.cast::<PoolAttribute>())?;
        if set.attribute != RELEASE_THRESHOLD {
            return None;
        }
        let function = wire::vs_driver_function_VS_POOL_THRESHOLD;
        told(function, number(set.pool), at(set.value)?, 0, NONE)
    }
}

/// A capture begins or ends on the stream that is the first argument. The default stream of a
/// thread is a small number.
///
/// # Safety
/// `arguments` are those of such a call.
unsafe fn capture(function: u32, arguments: *const c_void) -> Option<DriverCall> {
    // SAFETY: the caller's promise.
    let stream = unsafe { at(arguments.cast::<u64>()) }?;
    told(function, stream, 0, 0, NONE)
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
            raw::CUPTI_CB_DOMAIN_DRIVER_API => driver::enter(id, arguments),
            raw::CUPTI_CB_DOMAIN_RUNTIME_API => runtime::enter(id, arguments),
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
            raw::CUPTI_CB_DOMAIN_DRIVER_API => driver::exit(id, arguments),
            raw::CUPTI_CB_DOMAIN_RUNTIME_API => runtime::exit(id, arguments),
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
use arguments;

fn pool_device(properties: *const raw::CUmemPoolProps) -> i32 {
    if properties.is_null() {
        return NONE;
    }
    // SAFETY: called with what a call that succeeded was given.
    device_at(unsafe { &raw const (*properties).location })
}

#[cfg(test)]
mod tests;

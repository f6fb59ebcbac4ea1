//! Calls of the driver.

use std::ffi::c_void;
use std::ptr;

use vramscope_cupti_sys::raw;
use vramscope_wire as wire;

use super::{
    AddNode, AddNodeWithEdges, DriverCall, NONE, OF_CONTEXT, arguments, at, capture, device_at,
    given_back, handed_out, node, number, pool_device, pool_threshold, stored, told,
};

/// # Safety
/// As [`at_enter`](super::at_enter).
pub(super) unsafe fn enter(id: u32, from: *const c_void) -> Option<DriverCall> {
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
            raw::CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture
            | raw::CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz => {
                capture(wire::vs_driver_function_VS_CAPTURE_END, from)
            }
            _ => None,
        }
    }
}

/// # Safety
/// As [`at_exit`](super::at_exit).
pub(super) unsafe fn exit(id: u32, from: *const c_void) -> Option<DriverCall> {
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
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemPoolSetAttribute => pool_threshold(from),
            raw::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture
            | raw::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz
            | raw::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2
            | raw::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz
            | raw::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph
            | raw::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz => {
                capture(wire::vs_driver_function_VS_CAPTURE_BEGIN, from)
            }
            _ => virtual_memory_exit(id, from),
        }
    }
}

/// # Safety
/// As [`at_exit`](super::at_exit).
unsafe fn virtual_memory_exit(id: u32, from: *const c_void) -> Option<DriverCall> {
    // SAFETY: as in `exit`.
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

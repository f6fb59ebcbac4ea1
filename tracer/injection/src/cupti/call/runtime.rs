//! Calls of the runtime.

use std::ffi::c_void;
use std::ptr;

use vramscope_cupti_sys::raw;
use vramscope_wire as wire;

use super::{
    AddNode, AddNodeWithEdges, DriverCall, NONE, OF_CONTEXT, arguments, at, capture, given_back,
    handed_out, node, number, pool_device, pool_threshold, stored, told,
};

/// # Safety
/// As [`at_enter`](super::at_enter).
pub(super) unsafe fn enter(id: u32, from: *const c_void) -> Option<DriverCall> {
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
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_v10000
            | raw::CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_ptsz_v10000 => {
                capture(wire::vs_driver_function_VS_CAPTURE_END, from)
            }
            _ => None,
        }
    }
}

/// # Safety
/// As [`at_exit`](super::at_exit).
pub(super) unsafe fn exit(id: u32, from: *const c_void) -> Option<DriverCall> {
    // SAFETY: as in `driver::exit`.
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
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolSetAttribute_v11020 => pool_threshold(from),
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_v10000
            | raw::CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_ptsz_v10000
            | raw::CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCaptureToGraph_v12030
            | raw::CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCaptureToGraph_ptsz_v12030 => {
                capture(wire::vs_driver_function_VS_CAPTURE_BEGIN, from)
            }
            _ => None,
        }
    }
}

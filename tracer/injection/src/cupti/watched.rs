//! The functions whose calls are watched.

use vramscope_cupti_sys::raw::{self, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API};

macro_rules! ids {
    ($domain:ident, $($id:ident),* $(,)?) => {
        &[$(($domain, raw::$id)),*]
    };
}

/// Of the driver: all that hands out or takes back memory, or says what memory is for.
pub(super) const DRIVER: &[(raw::CUpti_CallbackDomain, raw::CUpti_CallbackId)] = ids![
    CUPTI_CB_DOMAIN_DRIVER_API,
    CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost,
    CUPTI_DRIVER_TRACE_CBID_cuMemCreate,
    CUPTI_DRIVER_TRACE_CBID_cuMemRelease,
    CUPTI_DRIVER_TRACE_CBID_cuMemRetainAllocationHandle,
    CUPTI_DRIVER_TRACE_CBID_cuMemMap,
    CUPTI_DRIVER_TRACE_CBID_cuMemUnmap,
    CUPTI_DRIVER_TRACE_CBID_cuMemAddressReserve,
    CUPTI_DRIVER_TRACE_CBID_cuMemAddressFree,
    CUPTI_DRIVER_TRACE_CBID_cuMemPoolCreate,
    CUPTI_DRIVER_TRACE_CBID_cuMemPoolDestroy,
    CUPTI_DRIVER_TRACE_CBID_cuMemPoolTrimTo,
    CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle,
    CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle_v2,
    CUPTI_DRIVER_TRACE_CBID_cuIpcCloseMemHandle,
    CUPTI_DRIVER_TRACE_CBID_cuGraphAddMemAllocNode,
    CUPTI_DRIVER_TRACE_CBID_cuGraphAddMemFreeNode,
    CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode,
    CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMulticastCreate,
    CUPTI_DRIVER_TRACE_CBID_cuMulticastBindMem,
    CUPTI_DRIVER_TRACE_CBID_cuMulticastBindMem_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMulticastBindAddr,
    CUPTI_DRIVER_TRACE_CBID_cuMulticastBindAddr_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMulticastUnbind,
];

/// Of the runtime: the same, where it has such a function. It has no virtual memory.
pub(super) const RUNTIME: &[(raw::CUpti_CallbackDomain, raw::CUpti_CallbackId)] = ids![
    CUPTI_CB_DOMAIN_RUNTIME_API,
    CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMallocPitch_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMalloc3D_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMallocManaged_v6000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMallocHost_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaHostAlloc_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaFreeHost_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_v11020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_ptsz_v11020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMallocFromPoolAsync_v11020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMallocFromPoolAsync_ptsz_v11020,
    CUPTI_RUNTIME_TRACE_CBID_cudaFreeAsync_v11020,
    CUPTI_RUNTIME_TRACE_CBID_cudaFreeAsync_ptsz_v11020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolCreate_v11020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolDestroy_v11020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolTrimTo_v11020,
    CUPTI_RUNTIME_TRACE_CBID_cudaIpcOpenMemHandle_v4010,
    CUPTI_RUNTIME_TRACE_CBID_cudaIpcCloseMemHandle_v4010,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddMemAllocNode_v11040,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddMemFreeNode_v11040,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddNode_v12020,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddNode_v12030,
];

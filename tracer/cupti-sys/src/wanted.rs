// What is taken from CUPTI's headers. Included by the build script and by the test that compares
// the committed bindings with the headers, so no `//!` comment can stand here.

/// Functions, looked up at run time; which of them a version lacks is found out there.
pub const FUNCTIONS: &[&str] = &[
    "cuptiActivityDisable",
    "cuptiActivityEnable",
    "cuptiActivityEnableAllocationSource",
    "cuptiActivityFlushAll",
    "cuptiActivityGetNextRecord",
    "cuptiActivityGetNumDroppedRecords",
    "cuptiActivityRegisterCallbacks",
    "cuptiEnableCallback",
    "cuptiEnableDomain",
    "cuptiFinalize",
    "cuptiGetCallbackState",
    "cuptiGetDeviceId",
    "cuptiGetResultString",
    "cuptiGetVersion",
    "cuptiSubscribe",
    "cuptiSubscribe_v2",
    "cuptiUnsubscribe",
];

/// Functions whose calls are watched, by the name of their struct of arguments without its
/// `_params`; that is also the name of their callback id without its prefix.
pub const DRIVER_CALLS: &[&str] = &[
    "cuGraphAddMemAllocNode",
    "cuGraphAddMemFreeNode",
    "cuIpcCloseMemHandle",
    "cuIpcOpenMemHandle",
    "cuIpcOpenMemHandle_v2",
    "cuMemAddressFree",
    "cuMemAddressReserve",
    "cuMemAllocAsync",
    "cuMemAllocAsync_ptsz",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocFromPoolAsync_ptsz",
    "cuMemAllocHost_v2",
    "cuMemAllocManaged",
    "cuMemAllocPitch_v2",
    "cuMemAlloc_v2",
    "cuMemCreate",
    "cuMemFreeAsync",
    "cuMemFreeAsync_ptsz",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemMap",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolTrimTo",
    "cuMemRelease",
    "cuMemRetainAllocationHandle",
    "cuMemUnmap",
    "cuMulticastBindAddr",
    "cuMulticastBindAddr_v2",
    "cuMulticastBindMem",
    "cuMulticastBindMem_v2",
    "cuMulticastCreate",
    "cuMulticastUnbind",
];

/// The same for the runtime.
pub const RUNTIME_CALLS: &[&str] = &[
    "cudaFreeAsync_ptsz_v11020",
    "cudaFreeAsync_v11020",
    "cudaFreeHost_v3020",
    "cudaFree_v3020",
    "cudaGraphAddMemAllocNode_v11040",
    "cudaGraphAddMemFreeNode_v11040",
    "cudaHostAlloc_v3020",
    "cudaIpcCloseMemHandle_v4010",
    "cudaIpcOpenMemHandle_v4010",
    "cudaMalloc3D_v3020",
    "cudaMallocAsync_ptsz_v11020",
    "cudaMallocAsync_v11020",
    "cudaMallocFromPoolAsync_ptsz_v11020",
    "cudaMallocFromPoolAsync_v11020",
    "cudaMallocHost_v3020",
    "cudaMallocManaged_v6000",
    "cudaMallocPitch_v3020",
    "cudaMalloc_v3020",
    "cudaMemPoolCreate_v11020",
    "cudaMemPoolDestroy_v11020",
    "cudaMemPoolTrimTo_v11020",
];

/// Functions of which the id is taken alone: the argument that is read of them points to a union
/// of every kind of graph node, of no use here, or it is the first one.
pub const IDS_ONLY: &[&str] = &[
    "cuGraphAddNode",
    "cuGraphAddNode_v2",
    "cuMemPoolSetAttribute",
    "cuStreamBeginCapture",
    "cuStreamBeginCaptureToGraph",
    "cuStreamBeginCaptureToGraph_ptsz",
    "cuStreamBeginCapture_ptsz",
    "cuStreamBeginCapture_v2",
    "cuStreamBeginCapture_v2_ptsz",
    "cuStreamEndCapture",
    "cuStreamEndCapture_ptsz",
    "cudaGraphAddNode_v12020",
    "cudaGraphAddNode_v12030",
    "cudaMemPoolSetAttribute_v11020",
    "cudaStreamBeginCaptureToGraph_ptsz_v12030",
    "cudaStreamBeginCaptureToGraph_v12030",
    "cudaStreamBeginCapture_ptsz_v10000",
    "cudaStreamBeginCapture_v10000",
    "cudaStreamEndCapture_ptsz_v10000",
    "cudaStreamEndCapture_v10000",
];

/// Structs besides those of arguments.
pub const STRUCTS: &[&str] = &[
    "CUDA_MEM_ALLOC_NODE_PARAMS",
    "CUDA_MEM_ALLOC_NODE_PARAMS_v2",
    "CUmemAllocationProp",
    "CUmemPoolProps",
    "CUmulticastObjectProp",
    "CUpti_Activity",
    "CUpti_ActivityMemory2",
    "CUpti_ActivityMemory3",
    "CUpti_ActivityMemory4",
    "CUpti_ActivityMemoryPool",
    "CUpti_ActivityMemoryPool2",
    "CUpti_CallbackData",
    "CUpti_SubscriberParams",
    "cudaMemAllocNodeParams",
    "cudaMemAllocNodeParamsV2",
];

/// Enumerations, of which only the values that are listed are kept.
pub const ENUMS: &[(&str, &[&str])] = &[
    (
        "CUptiResult",
        &[
            "CUPTI_SUCCESS",
            "CUPTI_ERROR_INVALID_KIND",
            "CUPTI_ERROR_MAX_LIMIT_REACHED",
            "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        ],
    ),
    (
        "CUpti_CallbackDomain",
        &["CUPTI_CB_DOMAIN_DRIVER_API", "CUPTI_CB_DOMAIN_RUNTIME_API"],
    ),
    (
        "CUpti_ApiCallbackSite",
        &["CUPTI_API_ENTER", "CUPTI_API_EXIT"],
    ),
    (
        "CUpti_ActivityKind",
        &[
            "CUPTI_ACTIVITY_KIND_MEMORY2",
            "CUPTI_ACTIVITY_KIND_MEMORY_POOL",
        ],
    ),
    (
        "CUpti_ActivityMemoryOperationType",
        &[
            "CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION",
            "CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE",
        ],
    ),
    (
        "CUpti_ActivityMemoryPoolOperationType",
        &[
            "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED",
            "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED",
            "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED",
        ],
    ),
    (
        "CUpti_ActivityMemoryKind",
        &[
            "CUPTI_ACTIVITY_MEMORY_KIND_PINNED",
            "CUPTI_ACTIVITY_MEMORY_KIND_DEVICE",
            "CUPTI_ACTIVITY_MEMORY_KIND_MANAGED",
        ],
    ),
    (
        "CUpti_ActivityMemoryPoolType",
        &[
            "CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL",
            "CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED",
        ],
    ),
    ("CUmemLocationType", &["CU_MEM_LOCATION_TYPE_DEVICE"]),
    (
        "CUgraphNodeType",
        &[
            "CU_GRAPH_NODE_TYPE_MEM_ALLOC",
            "CU_GRAPH_NODE_TYPE_MEM_FREE",
        ],
    ),
];

/// Beginnings of the names of callback ids.
pub const DRIVER_ID: &str = "CUPTI_DRIVER_TRACE_CBID_";
/// The same for the runtime.
pub const RUNTIME_ID: &str = "CUPTI_RUNTIME_TRACE_CBID_";

/// The oldest headers from which all of this can be taken (CUDA 13.2: before it,
/// `CUpti_SubscriberParams` ends earlier).
pub const OLDEST_HEADERS: u32 = 130_200;

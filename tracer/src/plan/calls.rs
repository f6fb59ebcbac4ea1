//! The functions of libcuda that are probed.
//!
//! A program gets at them by their exported names or through `cuGetProcAddress`, which hands out the
//! very same functions: a probe sits on the function and sees both. Not here, because they take no
//! device memory of the process's own: address ranges, what other processes share (`cuIpcOpenMemHandle`,
//! `cuMemImportFromShareableHandle`, imported pools: counted where it was taken), multicast objects,
//! nodes of graphs before they run. The first versions of `cuMemAlloc`, `cuMemFree` and their like have
//! addresses of 32 bits, which no device of a 64-bit system has. Arrays and textures
//! (`cuArrayCreate`) are not followed: they count as unknown.

use vramscope_wire as wire;

/// A function of libcuda.
pub(super) struct Call {
    /// Its name without version.
    pub name: &'static str,
    /// The names under which a version or a stream mode exports it.
    pub symbols: &'static [&'static str],
    /// `enum vs_driver_function`.
    pub function: u32,
    /// Whether what it does is known at its return only.
    pub returns: bool,
    pub kind: Kind,
}

/// What it is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It takes or gives back memory.
    Memory,
    /// It says what memory is for.
    Captures,
    /// It says what pools keep.
    Pools,
    /// It says on which device a thread is at work: of no use where there is one only.
    Contexts,
}

impl Kind {
    /// What cannot be told without it.
    pub fn consequence(self) -> &'static str {
        match self {
            Kind::Memory => "device memory taken this way is not seen",
            Kind::Captures => "private pools of CUDA graphs count as cache like any other",
            Kind::Pools => "what the driver's memory pools keep counts as unknown",
            Kind::Contexts => "memory that libraries take may be charged to another device",
        }
    }
}

const fn call(
    name: &'static str,
    symbols: &'static [&'static str],
    function: u32,
    returns: bool,
    kind: Kind,
) -> Call {
    Call {
        name,
        symbols,
        function,
        returns,
        kind,
    }
}

/// All of them, in the order of attaching.
pub(super) const CALLS: &[Call] = &[
    call(
        "cuMemAlloc",
        &["cuMemAlloc_v2"],
        wire::vs_driver_function_VS_MEM_ALLOC,
        true,
        Kind::Memory,
    ),
    call(
        "cuMemFree",
        &["cuMemFree_v2"],
        wire::vs_driver_function_VS_MEM_FREE,
        false,
        Kind::Memory,
    ),
    call(
        "cuMemAllocAsync",
        &["cuMemAllocAsync", "cuMemAllocAsync_ptsz"],
        wire::vs_driver_function_VS_ALLOC_ASYNC,
        true,
        Kind::Memory,
    ),
    call(
        "cuMemFreeAsync",
        &["cuMemFreeAsync", "cuMemFreeAsync_ptsz"],
        wire::vs_driver_function_VS_FREE_ASYNC,
        false,
        Kind::Memory,
    ),
    call(
        "cuMemAllocFromPoolAsync",
        &["cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync_ptsz"],
        wire::vs_driver_function_VS_ALLOC_POOL,
        true,
        Kind::Memory,
    ),
    call(
        "cuMemAllocManaged",
        &["cuMemAllocManaged"],
        wire::vs_driver_function_VS_ALLOC_MANAGED,
        true,
        Kind::Memory,
    ),
    call(
        "cuMemAllocPitch",
        &["cuMemAllocPitch_v2"],
        wire::vs_driver_function_VS_ALLOC_PITCH,
        true,
        Kind::Memory,
    ),
    call(
        "cuMemHostAlloc",
        &["cuMemHostAlloc", "cuMemAllocHost_v2"],
        wire::vs_driver_function_VS_HOST_ALLOC,
        true,
        Kind::Memory,
    ),
    call(
        "cuMemFreeHost",
        &["cuMemFreeHost"],
        wire::vs_driver_function_VS_HOST_FREE,
        false,
        Kind::Memory,
    ),
    call(
        "cuMemCreate",
        &["cuMemCreate"],
        wire::vs_driver_function_VS_VMM_CREATE,
        true,
        Kind::Memory,
    ),
    call(
        "cuMemRelease",
        &["cuMemRelease"],
        wire::vs_driver_function_VS_VMM_RELEASE,
        false,
        Kind::Memory,
    ),
    call(
        "cuMemRetainAllocationHandle",
        &["cuMemRetainAllocationHandle"],
        wire::vs_driver_function_VS_VMM_RETAIN,
        true,
        Kind::Memory,
    ),
    call(
        "cuMemMap",
        &["cuMemMap"],
        wire::vs_driver_function_VS_VMM_MAP,
        true,
        Kind::Memory,
    ),
    call(
        "cuMemUnmap",
        &["cuMemUnmap"],
        wire::vs_driver_function_VS_VMM_UNMAP,
        false,
        Kind::Memory,
    ),
    call(
        "cuStreamBeginCapture",
        &[
            "cuStreamBeginCapture",
            "cuStreamBeginCapture_ptsz",
            "cuStreamBeginCapture_v2",
            "cuStreamBeginCapture_v2_ptsz",
            "cuStreamBeginCaptureToGraph",
            "cuStreamBeginCaptureToGraph_ptsz",
        ],
        wire::vs_driver_function_VS_CAPTURE_BEGIN,
        true,
        Kind::Captures,
    ),
    call(
        "cuStreamEndCapture",
        &["cuStreamEndCapture", "cuStreamEndCapture_ptsz"],
        wire::vs_driver_function_VS_CAPTURE_END,
        false,
        Kind::Captures,
    ),
    call(
        "cuMemPoolCreate",
        &["cuMemPoolCreate"],
        wire::vs_driver_function_VS_POOL_CREATE,
        true,
        Kind::Pools,
    ),
    call(
        "cuMemPoolTrimTo",
        &["cuMemPoolTrimTo"],
        wire::vs_driver_function_VS_POOL_TRIM,
        false,
        Kind::Pools,
    ),
    call(
        "cuMemPoolDestroy",
        &["cuMemPoolDestroy"],
        wire::vs_driver_function_VS_POOL_DESTROY,
        false,
        Kind::Pools,
    ),
    call(
        "cuMemPoolSetAttribute",
        &["cuMemPoolSetAttribute"],
        wire::vs_driver_function_VS_POOL_THRESHOLD,
        false,
        Kind::Pools,
    ),
    call(
        "cuCtxSetCurrent",
        &["cuCtxSetCurrent"],
        wire::vs_driver_function_VS_CONTEXT_SET,
        false,
        Kind::Contexts,
    ),
    call(
        "cuCtxPushCurrent",
        &["cuCtxPushCurrent", "cuCtxPushCurrent_v2"],
        wire::vs_driver_function_VS_CONTEXT_PUSH,
        false,
        Kind::Contexts,
    ),
    call(
        "cuCtxPopCurrent",
        &["cuCtxPopCurrent", "cuCtxPopCurrent_v2"],
        wire::vs_driver_function_VS_CONTEXT_POP,
        false,
        Kind::Contexts,
    ),
    call(
        "cuDevicePrimaryCtxRetain",
        &["cuDevicePrimaryCtxRetain"],
        wire::vs_driver_function_VS_CONTEXT_RETAIN,
        true,
        Kind::Contexts,
    ),
    call(
        "cuCtxCreate",
        &["cuCtxCreate", "cuCtxCreate_v2"],
        wire::vs_driver_function_VS_CONTEXT_CREATE,
        true,
        Kind::Contexts,
    ),
    call(
        "cuCtxCreate with an affinity",
        &["cuCtxCreate_v3"],
        wire::vs_driver_function_VS_CONTEXT_CREATE_3,
        true,
        Kind::Contexts,
    ),
    call(
        "cuCtxCreate with parameters",
        &["cuCtxCreate_v4"],
        wire::vs_driver_function_VS_CONTEXT_CREATE_4,
        true,
        Kind::Contexts,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_and_no_function_is_there_twice() {
        let mut symbols: Vec<_> = CALLS.iter().flat_map(|call| call.symbols).collect();
        let mut functions: Vec<_> = CALLS.iter().map(|call| call.function).collect();
        let counts = (symbols.len(), functions.len());
        symbols.sort_unstable();
        symbols.dedup();
        functions.sort_unstable();
        functions.dedup();
        assert_eq!((symbols.len(), functions.len()), counts);
    }
}

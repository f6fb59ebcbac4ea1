//! Which calls are told, and how.

use vramscope_injection::cupti::start;
use vramscope_wire as wire;

use super::{alloc, call, free, sink, told};
use crate::cuda::Cuda;

use wire::{
    vs_driver_function_VS_ADDRESS_FREE as ADDRESS_FREE,
    vs_driver_function_VS_ADDRESS_RESERVE as ADDRESS_RESERVE,
    vs_driver_function_VS_ALLOC_ASYNC as ALLOC_ASYNC,
    vs_driver_function_VS_ALLOC_MANAGED as ALLOC_MANAGED,
    vs_driver_function_VS_ALLOC_PITCH as ALLOC_PITCH,
    vs_driver_function_VS_ALLOC_POOL as ALLOC_POOL, vs_driver_function_VS_FREE_ASYNC as FREE_ASYNC,
    vs_driver_function_VS_GRAPH_ALLOC_NODE as GRAPH_ALLOC_NODE,
    vs_driver_function_VS_GRAPH_FREE_NODE as GRAPH_FREE_NODE,
    vs_driver_function_VS_HOST_ALLOC as HOST_ALLOC, vs_driver_function_VS_HOST_FREE as HOST_FREE,
    vs_driver_function_VS_MEM_ALLOC as MEM_ALLOC, vs_driver_function_VS_MEM_FREE as MEM_FREE,
    vs_driver_function_VS_MULTICAST_BIND as MULTICAST_BIND,
    vs_driver_function_VS_MULTICAST_CREATE as MULTICAST_CREATE,
    vs_driver_function_VS_MULTICAST_UNBIND as MULTICAST_UNBIND,
    vs_driver_function_VS_POOL_CREATE as POOL_CREATE,
    vs_driver_function_VS_POOL_DESTROY as POOL_DESTROY,
    vs_driver_function_VS_POOL_TRIM as POOL_TRIM, vs_driver_function_VS_VMM_CREATE as VMM_CREATE,
    vs_driver_function_VS_VMM_MAP as VMM_MAP, vs_driver_function_VS_VMM_RELEASE as VMM_RELEASE,
    vs_driver_function_VS_VMM_RETAIN as VMM_RETAIN, vs_driver_function_VS_VMM_UNMAP as VMM_UNMAP,
};

#[test]
#[ignore = "run by the tests above"]
fn every_operation() {
    let cuda = Cuda::load();
    // The second device, so that a device that is not told would be seen.
    cuda.use_device(1);
    let subscription = start(sink).expect("nobody else is there");
    runtime(&cuda);
    driver(&cuda);
    virtual_memory(&cuda);
    graphs(&cuda);
    multicast(&cuda);
    nothing(&cuda);
    assert_eq!(subscription.untracked(), 0);
}

fn runtime(cuda: &Cuda) {
    let block = cuda.runtime("cudaMalloc", &[5000]);
    cuda.free("cudaFree", &[block]);
    assert_eq!(
        told(),
        [alloc(MEM_ALLOC, block, 5000), free(MEM_FREE, block)]
    );
    let (block, pitch) = cuda.pitched(&cuda.runtime, "cudaMallocPitch", &[1000, 7]);
    cuda.free("cudaFree", &[block]);
    assert_eq!(
        told(),
        [alloc(ALLOC_PITCH, block, pitch * 7), free(MEM_FREE, block)]
    );
    let block = cuda.runtime("cudaMallocManaged", &[5000, 1]);
    cuda.free("cudaFree", &[block]);
    assert_eq!(
        told(),
        [alloc(ALLOC_MANAGED, block, 5000), free(MEM_FREE, block)]
    );
    for (function, arguments) in [
        ("cudaMallocHost", &[5000][..]),
        ("cudaHostAlloc", &[5000, 0]),
    ] {
        let block = cuda.runtime(function, arguments);
        cuda.free("cudaFreeHost", &[block]);
        assert_eq!(
            told(),
            [call(HOST_ALLOC, block, 5000, 0, -1), free(HOST_FREE, block)]
        );
    }
    for suffix in ["", "_ptsz"] {
        let block = cuda.runtime(&format!("cudaMallocAsync{suffix}"), &[5000, 0]);
        cuda.free(&format!("cudaFreeAsync{suffix}"), &[block, 0]);
        assert_eq!(
            told(),
            [alloc(ALLOC_ASYNC, block, 5000), free(FREE_ASYNC, block)]
        );
    }
    let pool = cuda.pool(&cuda.runtime, "cudaMemPoolCreate", 1);
    let block = cuda.runtime("cudaMallocFromPoolAsync", &[5000, pool, 0]);
    cuda.free("cudaFreeAsync", &[block, 0]);
    cuda.free("cudaMemPoolTrimTo", &[pool, 4096]);
    cuda.free("cudaMemPoolDestroy", &[pool]);
    assert_eq!(
        told(),
        [
            call(POOL_CREATE, pool, 0, 0, 1),
            call(ALLOC_POOL, block, 5000, pool, 1),
            free(FREE_ASYNC, block),
            call(POOL_TRIM, pool, 4096, 0, -1),
            free(POOL_DESTROY, pool),
        ]
    );
}

fn driver(cuda: &Cuda) {
    for (function, arguments, kind) in [
        ("cuMemAlloc_v2", &[5000][..], MEM_ALLOC),
        ("cuMemAllocManaged", &[5000, 1], ALLOC_MANAGED),
    ] {
        let block = cuda.driver(function, arguments);
        cuda.driver_free("cuMemFree_v2", &[block]);
        assert_eq!(told(), [alloc(kind, block, 5000), free(MEM_FREE, block)]);
    }
    let (block, pitch) = cuda.pitched(&cuda.driver, "cuMemAllocPitch_v2", &[1000, 7, 4]);
    cuda.driver_free("cuMemFree_v2", &[block]);
    assert_eq!(
        told(),
        [alloc(ALLOC_PITCH, block, pitch * 7), free(MEM_FREE, block)]
    );
    for (function, arguments) in [
        ("cuMemHostAlloc", &[5000, 0][..]),
        ("cuMemAllocHost_v2", &[5000]),
    ] {
        let block = cuda.driver(function, arguments);
        cuda.driver_free("cuMemFreeHost", &[block]);
        assert_eq!(
            told(),
            [call(HOST_ALLOC, block, 5000, 0, -1), free(HOST_FREE, block)]
        );
    }
    for suffix in ["", "_ptsz"] {
        let block = cuda.driver(&format!("cuMemAllocAsync{suffix}"), &[5000, 0]);
        cuda.driver_free(&format!("cuMemFreeAsync{suffix}"), &[block, 0]);
        assert_eq!(
            told(),
            [alloc(ALLOC_ASYNC, block, 5000), free(FREE_ASYNC, block)]
        );
    }
    let pool = cuda.pool(&cuda.driver, "cuMemPoolCreate", 1);
    let block = cuda.driver("cuMemAllocFromPoolAsync", &[5000, pool, 0]);
    cuda.driver_free("cuMemFreeAsync", &[block, 0]);
    cuda.driver_free("cuMemPoolTrimTo", &[pool, 0]);
    cuda.driver_free("cuMemPoolDestroy", &[pool]);
    assert_eq!(
        told(),
        [
            call(POOL_CREATE, pool, 0, 0, 1),
            call(ALLOC_POOL, block, 5000, pool, 1),
            free(FREE_ASYNC, block),
            free(POOL_TRIM, pool),
            free(POOL_DESTROY, pool),
        ]
    );
}

fn virtual_memory(cuda: &Cuda) {
    const PAGE: usize = 2 << 20;
    let addresses = cuda.driver("cuMemAddressReserve", &[2 * PAGE, 0, 0, 0]);
    // Physical memory of the other device than the context's.
    let handle = cuda.physical(PAGE, 0);
    cuda.driver_free("cuMemMap", &[addresses, PAGE, 0, handle, 0]);
    let retained = cuda.driver("cuMemRetainAllocationHandle", &[addresses]);
    cuda.driver_free("cuMemRelease", &[retained]);
    cuda.driver_free("cuMemUnmap", &[addresses, PAGE]);
    cuda.driver_free("cuMemRelease", &[handle]);
    cuda.driver_free("cuMemAddressFree", &[addresses, 2 * PAGE]);
    assert_eq!(
        told(),
        [
            call(ADDRESS_RESERVE, addresses, 2 * PAGE, 0, -1),
            call(VMM_CREATE, handle, PAGE, 0, 0),
            call(VMM_MAP, addresses, PAGE, handle, -1),
            free(VMM_RETAIN, retained),
            free(VMM_RELEASE, retained),
            call(VMM_UNMAP, addresses, PAGE, 0, -1),
            free(VMM_RELEASE, handle),
            call(ADDRESS_FREE, addresses, 2 * PAGE, 0, -1),
        ]
    );
}

fn graphs(cuda: &Cuda) {
    for (library, prefix) in [(&cuda.runtime, "cudaGraph"), (&cuda.driver, "cuGraph")] {
        let graph = cuda.runtime("cudaGraphCreate", &[0]);
        let name = format!("{prefix}AddMemAllocNode");
        let block = cuda.alloc_node(library, &name, graph, 0, 5000);
        let mut node = 0_usize;
        let words = [(&raw mut node) as usize, graph, 0, 0, block];
        let name = format!("{prefix}AddMemFreeNode");
        if prefix == "cuGraph" {
            cuda.driver_free(&name, &words);
        } else {
            cuda.free(&name, &words);
        }
        cuda.free("cudaGraphDestroy", &[graph]);
        assert_eq!(
            told(),
            [
                call(GRAPH_ALLOC_NODE, block, 5000, graph, 0),
                call(GRAPH_FREE_NODE, block, 0, graph, -1),
            ]
        );
    }
}

fn multicast(cuda: &Cuda) {
    const PAGE: usize = 2 << 20;
    let object = cuda.multicast(PAGE);
    let memory = cuda.physical(PAGE, 1);
    cuda.driver_free("cuMulticastBindMem", &[object, 0, memory, 0, PAGE, 0]);
    cuda.driver_free("cuMulticastUnbind", &[object, 1, 0, PAGE]);
    cuda.driver_free("cuMemRelease", &[memory]);
    cuda.driver_free("cuMemRelease", &[object]);
    assert_eq!(
        told(),
        [
            call(MULTICAST_CREATE, object, PAGE, 0, -1),
            call(VMM_CREATE, memory, PAGE, 0, 1),
            call(MULTICAST_BIND, object, PAGE, memory, -1),
            call(MULTICAST_UNBIND, object, PAGE, 0, 1),
            free(VMM_RELEASE, memory),
            free(VMM_RELEASE, object),
        ]
    );
}

/// Calls that change nothing.
fn nothing(cuda: &Cuda) {
    assert_eq!(cuda.runtime("cudaMalloc", &[0]), 0);
    cuda.free("cudaFree", &[0]);
    cuda.free("cudaFreeHost", &[0]);
    cuda.driver_free("cuMemFree_v2", &[0]);
    let more_than_there_is = 1_usize << 50;
    assert_ne!(
        cuda.try_alloc(&cuda.runtime, "cudaMalloc", more_than_there_is),
        0
    );
    assert_ne!(
        cuda.try_alloc(&cuda.driver, "cuMemAlloc_v2", more_than_there_is),
        0
    );
    cuda.free("cudaDeviceSynchronize", &[]);
    assert_eq!(told(), []);
}

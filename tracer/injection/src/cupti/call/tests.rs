//! On made-up arguments, what the simulated driver does not do: memory of other processes, and some
//! versions of functions.

use std::ffi::c_void;
use std::mem::zeroed;

use std::ptr;

use super::super::watched::{DRIVER, RUNTIME};
use super::*;

fn enter<T>(domain: u32, id: u32, arguments: &T) -> Option<DriverCall> {
    // SAFETY: the tests give the arguments of the function that they name.
    unsafe { at_enter(domain, id, ptr::from_ref(arguments).cast()) }
}

fn exit<T>(domain: u32, id: u32, arguments: &T) -> Option<DriverCall> {
    // SAFETY: as above.
    unsafe { at_exit(domain, id, ptr::from_ref(arguments).cast()) }
}

fn call(function: u32, address: u64, size: u64, extra: u64, device: i32) -> Option<DriverCall> {
    Some(DriverCall {
        function,
        address,
        size,
        extra,
        device,
    })
}

fn pointer(number: usize) -> *mut c_void {
    ptr::without_provenance_mut(number)
}

const D: u32 = raw::CUPTI_CB_DOMAIN_DRIVER_API;
const R: u32 = raw::CUPTI_CB_DOMAIN_RUNTIME_API;

#[test]
fn memory_of_other_processes() {
    let mut address = 0x7000_u64;
    for id in [
        raw::CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle,
        raw::CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle_v2,
    ] {
        let arguments = raw::cuIpcOpenMemHandle_v2_params {
            pdptr: &raw mut address,
            // SAFETY: bytes.
            handle: unsafe { zeroed() },
            Flags: 1,
        };
        let function = wire::vs_driver_function_VS_IPC_OPEN;
        assert_eq!(
            exit(D, id, &arguments),
            call(function, 0x7000, 0, 0, OF_CONTEXT)
        );
        assert_eq!(enter(D, id, &arguments), None);
    }
    let mut place = pointer(0x7000);
    let arguments = raw::cudaIpcOpenMemHandle_v4010_params {
        devPtr: &raw mut place,
        // SAFETY: bytes.
        handle: unsafe { zeroed() },
        flags: 1,
    };
    let id = raw::CUPTI_RUNTIME_TRACE_CBID_cudaIpcOpenMemHandle_v4010;
    let function = wire::vs_driver_function_VS_IPC_OPEN;
    assert_eq!(
        exit(R, id, &arguments),
        call(function, 0x7000, 0, 0, OF_CONTEXT)
    );
    let closed = call(wire::vs_driver_function_VS_IPC_CLOSE, 0x7000, 0, 0, NONE);
    let arguments = raw::cuIpcCloseMemHandle_params { dptr: 0x7000 };
    let id = raw::CUPTI_DRIVER_TRACE_CBID_cuIpcCloseMemHandle;
    assert_eq!(enter(D, id, &arguments), closed);
    let arguments = raw::cudaIpcCloseMemHandle_v4010_params {
        devPtr: pointer(0x7000),
    };
    let id = raw::CUPTI_RUNTIME_TRACE_CBID_cudaIpcCloseMemHandle_v4010;
    assert_eq!(enter(R, id, &arguments), closed);
}

/// A node that allocates 5,000 bytes at 0x7000 on device 3.
fn alloc_node() -> raw::CUDA_MEM_ALLOC_NODE_PARAMS_v2 {
    // SAFETY: numbers and pointers; `poolProps` begins with two numbers, then the location.
    unsafe {
        let mut node: raw::CUDA_MEM_ALLOC_NODE_PARAMS_v2 = zeroed();
        let location = (&raw mut node.poolProps.location).cast::<[i32; 2]>();
        location.write_unaligned([1, 3]);
        node.bytesize = 5000;
        node.dptr = 0x7000;
        node
    }
}

#[test]
fn nodes_of_graphs() {
    let added = call(
        wire::vs_driver_function_VS_GRAPH_ALLOC_NODE,
        0x7000,
        5000,
        0x99,
        3,
    );
    let freed = call(
        wire::vs_driver_function_VS_GRAPH_FREE_NODE,
        0x7000,
        0,
        0x99,
        NONE,
    );
    let mut parameters = alloc_node();
    let arguments = raw::cuGraphAddMemAllocNode_params {
        phGraphNode: ptr::null_mut(),
        hGraph: pointer(0x99).cast(),
        dependencies: ptr::null(),
        numDependencies: 0,
        nodeParams: (&raw mut parameters).cast(),
    };
    let id = raw::CUPTI_DRIVER_TRACE_CBID_cuGraphAddMemAllocNode;
    assert_eq!(exit(D, id, &arguments), added);
    // The runtime's struct has the same fields.
    let id = raw::CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddMemAllocNode_v11040;
    assert_eq!(exit(R, id, &arguments), added);
    let arguments = raw::cuGraphAddMemFreeNode_params {
        phGraphNode: ptr::null_mut(),
        hGraph: pointer(0x99).cast(),
        dependencies: ptr::null(),
        numDependencies: 0,
        dptr: 0x7000,
    };
    assert_eq!(
        exit(
            D,
            raw::CUPTI_DRIVER_TRACE_CBID_cuGraphAddMemFreeNode,
            &arguments
        ),
        freed
    );
    assert_eq!(
        exit(
            R,
            raw::CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddMemFreeNode_v11040,
            &arguments
        ),
        freed
    );
    // The generic functions, and a node of another kind.
    let node = |kind| MemoryNode {
        kind,
        reserved: [0; 3],
        what: Node {
            alloc: alloc_node(),
        },
    };
    let alloc = node(raw::CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    let mut free = node(raw::CU_GRAPH_NODE_TYPE_MEM_FREE);
    free.what.free = 0x7000;
    let kernel = node(0);
    for (node, expected) in [(&alloc, added), (&free, freed), (&kernel, None)] {
        let short = AddNode {
            node: ptr::null_mut(),
            graph: pointer(0x99),
            dependencies: ptr::null(),
            count: 0,
            parameters: node,
        };
        let long = AddNodeWithEdges {
            node: ptr::null_mut(),
            graph: pointer(0x99),
            dependencies: ptr::null(),
            edges: ptr::null(),
            count: 0,
            parameters: node,
        };
        assert_eq!(
            exit(D, raw::CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode, &short),
            expected
        );
        assert_eq!(
            exit(D, raw::CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2, &long),
            expected
        );
        assert_eq!(
            exit(
                R,
                raw::CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddNode_v12020,
                &short
            ),
            expected
        );
        assert_eq!(
            exit(
                R,
                raw::CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddNode_v12030,
                &long
            ),
            expected
        );
    }
}

#[test]
fn multicast() {
    let mut handle = 0x55_u64;
    let properties = raw::CUmulticastObjectProp {
        numDevices: 2,
        size: 4096,
        handleTypes: 0,
        flags: 0,
    };
    let arguments = raw::cuMulticastCreate_params {
        mcHandle: &raw mut handle,
        prop: &raw const properties,
    };
    let function = wire::vs_driver_function_VS_MULTICAST_CREATE;
    let id = raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastCreate;
    assert_eq!(exit(D, id, &arguments), call(function, 0x55, 4096, 0, NONE));
    let bound = |device| {
        call(
            wire::vs_driver_function_VS_MULTICAST_BIND,
            0x55,
            4096,
            0x66,
            device,
        )
    };
    let arguments = raw::cuMulticastBindMem_params {
        mcHandle: 0x55,
        mcOffset: 1,
        memHandle: 0x66,
        memOffset: 2,
        size: 4096,
        flags: 0,
    };
    let id = raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastBindMem;
    assert_eq!(exit(D, id, &arguments), bound(NONE));
    let arguments = raw::cuMulticastBindMem_v2_params {
        mcHandle: 0x55,
        dev: 3,
        mcOffset: 1,
        memHandle: 0x66,
        memOffset: 2,
        size: 4096,
        flags: 0,
    };
    let id = raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastBindMem_v2;
    assert_eq!(exit(D, id, &arguments), bound(3));
    let arguments = raw::cuMulticastBindAddr_params {
        mcHandle: 0x55,
        mcOffset: 1,
        memptr: 0x66,
        size: 4096,
        flags: 0,
    };
    let id = raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastBindAddr;
    assert_eq!(exit(D, id, &arguments), bound(NONE));
    let arguments = raw::cuMulticastBindAddr_v2_params {
        mcHandle: 0x55,
        dev: 3,
        mcOffset: 1,
        memptr: 0x66,
        size: 4096,
        flags: 0,
    };
    let id = raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastBindAddr_v2;
    assert_eq!(exit(D, id, &arguments), bound(3));
    let arguments = raw::cuMulticastUnbind_params {
        mcHandle: 0x55,
        dev: 3,
        mcOffset: 1,
        size: 4096,
    };
    let id = raw::CUPTI_DRIVER_TRACE_CBID_cuMulticastUnbind;
    let function = wire::vs_driver_function_VS_MULTICAST_UNBIND;
    assert_eq!(enter(D, id, &arguments), call(function, 0x55, 4096, 0, 3));
}

#[test]
fn a_block_of_three_dimensions_has_the_size_of_its_rows() {
    let mut block = raw::cudaPitchedPtr {
        ptr: pointer(0x7000),
        pitch: 512,
        xsize: 100,
        ysize: 7,
    };
    let arguments = raw::cudaMalloc3D_v3020_params {
        pitchedDevPtr: &raw mut block,
        extent: raw::cudaExtent {
            width: 100,
            height: 7,
            depth: 3,
        },
    };
    let id = raw::CUPTI_RUNTIME_TRACE_CBID_cudaMalloc3D_v3020;
    let function = wire::vs_driver_function_VS_ALLOC_PITCH;
    let expected = call(function, 0x7000, 512 * 7 * 3, 0, OF_CONTEXT);
    assert_eq!(exit(R, id, &arguments), expected);
}

#[test]
fn every_watched_function_means_something() {
    // Places that hold 1, so that every address and handle is there.
    let ones = [1_u64; 64];
    let arguments = [ones.as_ptr() as u64; 32];
    for (domain, id) in DRIVER.iter().chain(RUNTIME) {
        let node = [raw::CU_GRAPH_NODE_TYPE_MEM_ALLOC as u64; 64];
        let nodes = [node.as_ptr() as u64; 32];
        // Of a pool's attributes, one is told of: `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`, 4.
        let mut attribute = arguments;
        attribute[1] = 4;
        let told = [&arguments, &nodes, &attribute]
            .into_iter()
            .any(|arguments| {
                enter(*domain, *id, arguments).is_some() != exit(*domain, *id, arguments).is_some()
            });
        assert!(
            told,
            "domain {domain}, id {id}: told at the beginning or at the end, not both"
        );
    }
}

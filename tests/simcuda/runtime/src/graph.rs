//! Graphs.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use simcuda_common::code::NOT_SUPPORTED;
use simcuda_common::ffi::Out;
use simcuda_common::types::{DevicePtr, Handle, MemAllocNodeParams};

use crate::driver::HostFunction;
use crate::state::bound;

crate::runtime_api! {
    fn cudaGraphCreate(graph: Out<Handle>, flags: c_uint) {
        bound()?.cuGraphCreate(graph, flags)
    }

    fn cudaGraphDestroy(graph: Handle) {
        bound()?.cuGraphDestroy(graph)
    }

    fn cudaGraphAddMemAllocNode(
        node: Out<Handle>, graph: Handle, dependencies: *const Handle, count: usize,
        params: Out<MemAllocNodeParams>,
    ) {
        bound()?.cuGraphAddMemAllocNode(node, graph, dependencies, count, params)
    }

    fn cudaGraphAddMemFreeNode(
        node: Out<Handle>, graph: Handle, dependencies: *const Handle, count: usize,
        address: DevicePtr,
    ) {
        bound()?.cuGraphAddMemFreeNode(node, graph, dependencies, count, address)
    }

    fn cudaGraphInstantiate, cudaGraphInstantiateWithFlags(
        exec: Out<Handle>, graph: Handle, flags: c_ulonglong,
    ) {
        bound()?.cuGraphInstantiateWithFlags(exec, graph, flags)
    }

    fn cudaGraphExecDestroy(exec: Handle) {
        bound()?.cuGraphExecDestroy(exec)
    }

    fn cudaGraphUpload(exec: Handle, stream: Handle) {
        bound()?.cuGraphUpload(exec, stream)
    }

    fn cudaGraphLaunch, cudaGraphLaunch_ptsz(exec: Handle, stream: Handle) {
        bound()?.cuGraphLaunch(exec, stream)
    }

    fn cudaGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        bound()?.cuGraphGetNodes(graph, nodes, count)
    }

    fn cudaGraphNodeGetType(node: Handle, kind: Out<c_int>) {
        bound()?.cuGraphNodeGetType(node, kind)
    }

    fn cudaGraphDebugDotPrint(graph: Handle, path: *const c_char, flags: c_uint) {
        bound()?.cuGraphDebugDotPrint(graph, path, flags)
    }

    fn cudaUserObjectCreate(
        object: Out<Handle>, pointer: *mut c_void, destroy: HostFunction, references: c_uint,
        flags: c_uint,
    ) {
        bound()?.cuUserObjectCreate(object, pointer, destroy, references, flags)
    }

    fn cudaUserObjectRetain(object: Handle, count: c_uint) {
        bound()?.cuUserObjectRetain(object, count)
    }

    fn cudaUserObjectRelease(object: Handle, count: c_uint) {
        bound()?.cuUserObjectRelease(object, count)
    }

    fn cudaGraphRetainUserObject(graph: Handle, object: Handle, count: c_uint, flags: c_uint) {
        bound()?.cuGraphRetainUserObject(graph, object, count, flags)
    }

    // Conditional nodes decide on what kernels compute; there is nothing to decide on.
    fn cudaGraphConditionalHandleCreate(
        handle: Out<c_ulonglong>, graph: Handle, default: c_uint, flags: c_uint,
    ) {
        bound()?.cuGraphConditionalHandleCreate(handle, graph, 0, default, flags)
    }
}

/// Functions whose signature CUDA 13 changed.
pub mod versioned {
    use super::*;

    #[cfg(feature = "cuda13")]
    crate::runtime_api! {
        fn cudaGraphNodeGetDependencies(
            node: Handle, dependencies: Out<Handle>, edges: *mut c_void, count: Out<usize>,
        ) {
            bound()?.cuGraphNodeGetDependencies(node, dependencies, edges, count)
        }

        // Nodes made by hand; what streams capture is all that PyTorch launches.
        fn cudaGraphAddNode(
            _node: Out<Handle>, _graph: Handle, _dependencies: *const Handle, _edges: *const c_void,
            _count: usize, _params: *mut c_void,
        ) {
            Err(NOT_SUPPORTED)
        }
    }

    #[cfg(not(feature = "cuda13"))]
    crate::runtime_api! {
        fn cudaGraphNodeGetDependencies(
            node: Handle, dependencies: Out<Handle>, count: Out<usize>,
        ) {
            bound()?.cuGraphNodeGetDependencies(node, dependencies, std::ptr::null_mut(), count)
        }

        fn cudaGraphAddNode(
            _node: Out<Handle>, _graph: Handle, _dependencies: *const Handle, _count: usize,
            _params: *mut c_void,
        ) {
            Err(NOT_SUPPORTED)
        }
    }
}

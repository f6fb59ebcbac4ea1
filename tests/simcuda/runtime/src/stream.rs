//! Streams and stream capture.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use simcuda_common::ffi::Out;
use simcuda_common::types::{CaptureId, Handle};

use crate::driver::{HostFunction, StreamCallback};
use crate::state::{bound, current_device};

fn capture_info(
    stream: Handle,
    status: Out<c_int>,
    id: Out<CaptureId>,
    graph: Out<Handle>,
    dependencies: Out<*const Handle>,
    edges: Out<*const c_void>,
    count: Out<usize>,
) -> Result<(), c_int> {
    bound()?.cuStreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count)
}

fn null<T>() -> Out<T> {
    Out::new(std::ptr::null_mut())
}

crate::runtime_api! {
    fn cudaStreamCreate(stream: Out<Handle>) {
        bound()?.cuStreamCreate(stream, 0)
    }

    fn cudaStreamCreateWithFlags(stream: Out<Handle>, flags: c_uint) {
        bound()?.cuStreamCreate(stream, flags)
    }

    fn cudaStreamCreateWithPriority(stream: Out<Handle>, flags: c_uint, priority: c_int) {
        bound()?.cuStreamCreateWithPriority(stream, flags, priority)
    }

    fn cudaStreamDestroy(stream: Handle) {
        bound()?.cuStreamDestroy(stream)
    }

    fn cudaStreamSynchronize, cudaStreamSynchronize_ptsz(stream: Handle) {
        bound()?.cuStreamSynchronize(stream)
    }

    fn cudaStreamQuery, cudaStreamQuery_ptsz(stream: Handle) {
        bound()?.cuStreamQuery(stream)
    }

    fn cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz(stream: Handle, event: Handle, flags: c_uint) {
        bound()?.cuStreamWaitEvent(stream, event, flags)
    }

    fn cudaStreamGetPriority, cudaStreamGetPriority_ptsz(stream: Handle, priority: Out<c_int>) {
        bound()?.cuStreamGetPriority(stream, priority)
    }

    fn cudaStreamGetFlags, cudaStreamGetFlags_ptsz(stream: Handle, flags: Out<c_uint>) {
        bound()?.cuStreamGetFlags(stream, flags)
    }

    fn cudaStreamGetId, cudaStreamGetId_ptsz(stream: Handle, id: Out<c_ulonglong>) {
        bound()?.cuStreamGetId(stream, id)
    }

    fn cudaStreamGetDevice(_stream: Handle, device: Out<c_int>) {
        device.set(current_device()?)
    }

    fn cudaStreamAddCallback, cudaStreamAddCallback_ptsz(
        stream: Handle, callback: StreamCallback, user: *mut c_void, flags: c_uint,
    ) {
        bound()?.cuStreamAddCallback(stream, callback, user, flags)
    }

    fn cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz(
        stream: Handle, function: HostFunction, user: *mut c_void,
    ) {
        bound()?.cuLaunchHostFunc(stream, function, user)
    }

    fn cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz(stream: Handle, mode: c_int) {
        bound()?.cuStreamBeginCapture(stream, mode)
    }

    fn cudaStreamBeginCaptureToGraph, cudaStreamBeginCaptureToGraph_ptsz(
        stream: Handle, graph: Handle, dependencies: *const Handle, edges: *const c_void,
        count: usize, mode: c_int,
    ) {
        bound()?.cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count, mode)
    }

    fn cudaStreamEndCapture, cudaStreamEndCapture_ptsz(stream: Handle, graph: Out<Handle>) {
        bound()?.cuStreamEndCapture(stream, graph)
    }

    fn cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz(stream: Handle, status: Out<c_int>) {
        bound()?.cuStreamIsCapturing(stream, status)
    }

    fn cudaStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo_v2_ptsz(
        stream: Handle, status: Out<c_int>, id: Out<CaptureId>, graph: Out<Handle>,
        dependencies: Out<*const Handle>, count: Out<usize>,
    ) {
        capture_info(stream, status, id, graph, dependencies, null(), count)
    }

    fn cudaStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo_v3_ptsz(
        stream: Handle, status: Out<c_int>, id: Out<CaptureId>, graph: Out<Handle>,
        dependencies: Out<*const Handle>, edges: Out<*const c_void>, count: Out<usize>,
    ) {
        capture_info(stream, status, id, graph, dependencies, edges, count)
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: Out<c_int>) {
        bound()?.cuThreadExchangeStreamCaptureMode(mode)
    }
}

/// Functions whose signature CUDA 13 changed.
pub mod versioned {
    use super::*;

    #[cfg(feature = "cuda13")]
    crate::runtime_api! {
        fn cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz(
            stream: Handle, status: Out<c_int>, id: Out<CaptureId>, graph: Out<Handle>,
            dependencies: Out<*const Handle>, edges: Out<*const c_void>, count: Out<usize>,
        ) {
            capture_info(stream, status, id, graph, dependencies, edges, count)
        }

        fn cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_ptsz(
            stream: Handle, dependencies: *const Handle, edges: *const c_void, count: usize,
            flags: c_uint,
        ) {
            bound()?.cuStreamUpdateCaptureDependencies(stream, dependencies, edges, count, flags)
        }
    }

    #[cfg(not(feature = "cuda13"))]
    crate::runtime_api! {
        fn cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz(
            stream: Handle, status: Out<c_int>, id: Out<CaptureId>,
        ) {
            capture_info(stream, status, id, null(), null(), null(), null())
        }

        fn cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_ptsz(
            stream: Handle, dependencies: *const Handle, count: usize, flags: c_uint,
        ) {
            bound()?.cuStreamUpdateCaptureDependencies(stream, dependencies, std::ptr::null(), count, flags)
        }
    }
}

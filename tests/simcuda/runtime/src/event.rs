//! Events.

use std::ffi::c_uint;

use simcuda_common::ffi::Out;
use simcuda_common::types::Handle;

use crate::state::bound;

crate::runtime_api! {
    fn cudaEventCreate(event: Out<Handle>) {
        bound()?.cuEventCreate(event, 0)
    }

    fn cudaEventCreateWithFlags(event: Out<Handle>, flags: c_uint) {
        bound()?.cuEventCreate(event, flags)
    }

    fn cudaEventDestroy(event: Handle) {
        bound()?.cuEventDestroy(event)
    }

    fn cudaEventRecord, cudaEventRecord_ptsz(event: Handle, stream: Handle) {
        bound()?.cuEventRecord(event, stream)
    }

    fn cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz(
        event: Handle, stream: Handle, flags: c_uint,
    ) {
        bound()?.cuEventRecordWithFlags(event, stream, flags)
    }

    fn cudaEventQuery(event: Handle) {
        bound()?.cuEventQuery(event)
    }

    fn cudaEventSynchronize(event: Handle) {
        bound()?.cuEventSynchronize(event)
    }

    fn cudaEventElapsedTime, cudaEventElapsedTime_v2(
        milliseconds: Out<f32>, start: Handle, end: Handle,
    ) {
        bound()?.cuEventElapsedTime(milliseconds, start, end)
    }
}

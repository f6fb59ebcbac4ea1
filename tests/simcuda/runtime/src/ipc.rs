//! Memory and events of other processes.

use std::ffi::{c_uint, c_void};

use simcuda_common::ffi::Out;
use simcuda_common::types::{Handle, IpcHandle};

use crate::state::bound;

crate::runtime_api! {
    fn cudaIpcGetMemHandle(handle: Out<IpcHandle>, address: *mut c_void) {
        bound()?.cuIpcGetMemHandle(handle, address as usize)
    }

    fn cudaIpcOpenMemHandle(address: Out<*mut c_void>, handle: IpcHandle, flags: c_uint) {
        bound()?.cuIpcOpenMemHandle(address.cast(), handle, flags)
    }

    fn cudaIpcCloseMemHandle(address: *mut c_void) {
        bound()?.cuIpcCloseMemHandle(address as usize)
    }

    fn cudaIpcGetEventHandle(handle: Out<IpcHandle>, event: Handle) {
        bound()?.cuIpcGetEventHandle(handle, event)
    }

    fn cudaIpcOpenEventHandle(event: Out<Handle>, handle: IpcHandle) {
        bound()?.cuIpcOpenEventHandle(event, handle)
    }
}

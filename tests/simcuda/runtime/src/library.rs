//! Dynamically loaded device code.

use std::ffi::{c_char, c_int, c_uint, c_void};

use simcuda_common::code::NOT_FOUND;
use simcuda_common::ffi::Out;
use simcuda_common::types::{DevicePtr, Handle};

use crate::state::bound;

crate::runtime_api! {
    fn cudaLibraryLoadData(
        library: Out<Handle>, code: *const c_void, jit: *mut c_int, jit_values: *mut *mut c_void,
        jit_count: c_uint, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
    ) {
        bound()?.cuLibraryLoadData(library, code, jit, jit_values, jit_count, options, values, count)
    }

    fn cudaLibraryLoadFromFile(
        library: Out<Handle>, path: *const c_char, jit: *mut c_int, jit_values: *mut *mut c_void,
        jit_count: c_uint, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
    ) {
        bound()?.cuLibraryLoadFromFile(library, path, jit, jit_values, jit_count, options, values, count)
    }

    fn cudaLibraryUnload(library: Handle) {
        bound()?.cuLibraryUnload(library)
    }

    fn cudaLibraryGetKernel(kernel: Out<Handle>, library: Handle, name: *const c_char) {
        bound()?.cuLibraryGetKernel(kernel, library, name)
    }

    fn cudaLibraryGetKernelCount(count: Out<c_uint>, library: Handle) {
        bound()?.cuLibraryGetKernelCount(count, library)
    }

    fn cudaLibraryGetGlobal(
        address: Out<DevicePtr>, size: Out<usize>, library: Handle, name: *const c_char,
    ) {
        bound()?.cuLibraryGetGlobal(address, size, library, name)
    }

    fn cudaLibraryGetManaged(
        address: Out<DevicePtr>, size: Out<usize>, library: Handle, name: *const c_char,
    ) {
        bound()?.cuLibraryGetManaged(address, size, library, name)
    }

    // Device code that the host could call does not exist.
    fn cudaLibraryGetUnifiedFunction(
        _function: Out<*mut c_void>, _library: Handle, _name: *const c_char,
    ) {
        Err(NOT_FOUND)
    }
}

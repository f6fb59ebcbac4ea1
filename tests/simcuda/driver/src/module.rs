//! Modules, libraries and functions: names without code.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::Mutex;

use simcuda_common::code::{INVALID_VALUE, Outcome};
use simcuda_common::ffi::{Out, text};

use crate::context;
use crate::driver::driver;
use crate::types::{DevicePtr, Handle};

/// A loaded image, as module or as library.
#[derive(Debug, Default)]
pub struct Module {
    /// Global variables asked for so far: room of [`GLOBAL_BYTES`] each.
    globals: Mutex<HashMap<String, Box<[u8]>>>,
}

/// A kernel.
#[derive(Debug)]
pub struct Function {
    name: CString,
    module: Handle,
}

/// A linker's state. What it links is not looked at.
#[derive(Debug)]
pub struct Link;

/// The size of a global variable is in its image, which is not read; this is room
/// enough for what PyTorch's kernels have.
const GLOBAL_BYTES: usize = 64 << 10;

/// Stands for every linked image.
static IMAGE: [u8; 16] = [0; 16];

fn load(module: Out<Handle>) -> Outcome {
    let driver = driver()?;
    context::current()?;
    module.set(driver.modules.insert(Module::default()))
}

fn function(function: Out<Handle>, module: Handle, name: *const c_char) -> Outcome {
    let driver = driver()?;
    driver.modules.get(module)?;
    let name = CString::new(text(name)?).map_err(|_| INVALID_VALUE)?;
    function.set(driver.functions.insert(Function { name, module }))
}

fn global(
    address: Out<DevicePtr>,
    size: Out<usize>,
    module: Handle,
    name: *const c_char,
) -> Outcome {
    let module = driver()?.modules.get(module)?;
    let mut globals = module.globals.lock().expect("no panics");
    let room = globals
        .entry(text(name)?)
        .or_insert_with(|| vec![0; GLOBAL_BYTES].into_boxed_slice());
    address.set_if_wanted(room.as_mut_ptr() as usize);
    size.set_if_wanted(size_of::<usize>());
    Ok(())
}

/// `CUfunction_attribute`
fn attribute(value: Out<c_int>, which: c_int, device: usize) -> Outcome {
    const MAX_THREADS_PER_BLOCK: c_int = 0;
    const NUM_REGS: c_int = 4;
    const PTX_VERSION: c_int = 5;
    const BINARY_VERSION: c_int = 6;
    const MAX_DYNAMIC_SHARED_SIZE: c_int = 8;
    let (major, minor) = driver()?.device(device as c_int)?.settings.capability;
    value.set(match which {
        MAX_THREADS_PER_BLOCK => 1024,
        NUM_REGS => 32,
        PTX_VERSION | BINARY_VERSION => major * 10 + minor,
        MAX_DYNAMIC_SHARED_SIZE => 48 << 10,
        _ => 0,
    })
}

crate::driver_api! {
    fn cuModuleLoad(module: Out<Handle>, _path: *const c_char) {
        load(module)
    }

    fn cuModuleLoadData(module: Out<Handle>, _image: *const c_void) {
        load(module)
    }

    fn cuModuleLoadDataEx(
        module: Out<Handle>, _image: *const c_void, _count: c_uint, _options: *mut c_int,
        _values: *mut *mut c_void,
    ) {
        load(module)
    }

    fn cuModuleLoadFatBinary(module: Out<Handle>, _image: *const c_void) {
        load(module)
    }

    fn cuModuleUnload(module: Handle) {
        driver()?.modules.remove(module).map(|_| ())
    }

    fn cuModuleGetFunction(result: Out<Handle>, module: Handle, name: *const c_char) {
        function(result, module, name)
    }

    fn cuModuleGetGlobal_v2(
        address: Out<DevicePtr>, size: Out<usize>, module: Handle, name: *const c_char,
    ) {
        global(address, size, module, name)
    }

    fn cuModuleGetLoadingMode(mode: Out<c_int>) {
        const LAZY: c_int = 2;
        mode.set(LAZY)
    }

    fn cuLibraryLoadData(
        library: Out<Handle>, _code: *const c_void, _jit: *mut c_int, _jit_values: *mut *mut c_void,
        _jit_count: c_uint, _options: *mut c_int, _values: *mut *mut c_void, _count: c_uint,
    ) {
        library.set(driver()?.modules.insert(Module::default()))
    }

    fn cuLibraryLoadFromFile(
        library: Out<Handle>, _path: *const c_char, _jit: *mut c_int, _jit_values: *mut *mut c_void,
        _jit_count: c_uint, _options: *mut c_int, _values: *mut *mut c_void, _count: c_uint,
    ) {
        library.set(driver()?.modules.insert(Module::default()))
    }

    fn cuLibraryUnload(library: Handle) {
        driver()?.modules.remove(library).map(|_| ())
    }

    fn cuLibraryGetModule(module: Out<Handle>, library: Handle) {
        driver()?.modules.get(library)?;
        module.set(library)
    }

    fn cuLibraryGetKernel(kernel: Out<Handle>, library: Handle, name: *const c_char) {
        function(kernel, library, name)
    }

    fn cuLibraryGetKernelCount(count: Out<c_uint>, library: Handle) {
        driver()?.modules.get(library)?;
        count.set(0)
    }

    fn cuLibraryGetGlobal, cuLibraryGetManaged(
        address: Out<DevicePtr>, size: Out<usize>, library: Handle, name: *const c_char,
    ) {
        global(address, size, library, name)
    }

    // Kernels and functions are the same objects.
    fn cuKernelGetFunction(result: Out<Handle>, kernel: Handle) {
        result.set(kernel)
    }

    fn cuFuncGetModule(module: Out<Handle>, function: Handle) {
        module.set(driver()?.functions.get(function)?.module)
    }

    fn cuFuncGetName, cuKernelGetName(name: Out<*const c_char>, function: Handle) {
        // Functions stay registered, so the text stays.
        name.set(driver()?.functions.get(function)?.name.as_ptr())
    }

    fn cuFuncGetAttribute(value: Out<c_int>, which: c_int, _function: Handle) {
        attribute(value, which, context::current()?.device)
    }

    fn cuKernelGetAttribute(value: Out<c_int>, which: c_int, _kernel: Handle, device: c_int) {
        attribute(value, which, device as usize)
    }

    fn cuFuncSetAttribute(_function: Handle, _which: c_int, _value: c_int) {
        driver().map(|_| ())
    }

    fn cuKernelSetAttribute(_which: c_int, _value: c_int, _kernel: Handle, device: c_int) {
        driver()?.device(device).map(|_| ())
    }

    fn cuFuncSetCacheConfig, cuFuncSetSharedMemConfig(_function: Handle, _config: c_int) {
        driver().map(|_| ())
    }

    fn cuLinkCreate_v2(
        _count: c_uint, _options: *mut c_int, _values: *mut *mut c_void, state: Out<Handle>,
    ) {
        state.set(driver()?.links.insert(Link))
    }

    fn cuLinkAddData_v2(
        state: Handle, _kind: c_int, _data: *mut c_void, _size: usize, _name: *const c_char,
        _count: c_uint, _options: *mut c_int, _values: *mut *mut c_void,
    ) {
        driver()?.links.get(state).map(|_| ())
    }

    fn cuLinkAddFile_v2(
        state: Handle, _kind: c_int, _path: *const c_char, _count: c_uint, _options: *mut c_int,
        _values: *mut *mut c_void,
    ) {
        driver()?.links.get(state).map(|_| ())
    }

    fn cuLinkComplete(state: Handle, image: Out<*const c_void>, size: Out<usize>) {
        driver()?.links.get(state)?;
        image.set(IMAGE.as_ptr().cast())?;
        size.set(IMAGE.len())
    }

    fn cuLinkDestroy(state: Handle) {
        driver()?.links.remove(state).map(|_| ())
    }
}

//! What the compiler's start-up code registers: fat binaries, kernels, variables.
//!
//! PyTorch registers tens of thousands of kernels while it is loaded. Nothing is done
//! for a kernel, since its host address is all that a launch needs.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

use simcuda_common::code::INVALID_SYMBOL;

/// A `__device__` variable: host memory in its place, made when first asked for.
#[derive(Debug)]
struct Variable {
    size: usize,
    room: Option<Box<[u64]>>,
}

static VARIABLES: Mutex<Option<HashMap<usize, Variable>>> = Mutex::new(None);

fn with_variable<R>(symbol: *const c_void, f: impl FnOnce(&mut Variable) -> R) -> Result<R, c_int> {
    let mut variables = VARIABLES.lock().expect("no panics");
    let variable = variables
        .as_mut()
        .and_then(|map| map.get_mut(&(symbol as usize)));
    variable.map(f).ok_or(INVALID_SYMBOL)
}

/// Address of the variable that the host symbol stands for.
pub fn address(symbol: *const c_void) -> Result<usize, c_int> {
    with_variable(symbol, |variable| {
        let words = variable.size.div_ceil(8).max(1);
        let room = variable
            .room
            .get_or_insert_with(|| vec![0; words].into_boxed_slice());
        room.as_mut_ptr() as usize
    })
}

/// Size of the variable in bytes.
pub fn size(symbol: *const c_void) -> Result<usize, c_int> {
    with_variable(symbol, |variable| variable.size)
}

/// The handle of a fat binary only has to be unique; callers may look one word into it.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinary(image: *mut c_void) -> *mut *mut c_void {
    Box::into_raw(Box::new([image, std::ptr::null_mut()])).cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinaryEnd(_binary: *mut *mut c_void) {}

/// The handle is not freed: libraries unregister while the process exits, in an order
/// that does not exclude a later use.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaUnregisterFatBinary(_binary: *mut *mut c_void) {}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaInitModule(_binary: *mut *mut c_void) -> c_char {
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFunction(
    _binary: *mut *mut c_void,
    _host: *const c_char,
    _device: *mut c_char,
    _name: *const c_char,
    _thread_limit: c_int,
    _thread_id: *mut c_void,
    _block_id: *mut c_void,
    _block_dim: *mut c_void,
    _grid_dim: *mut c_void,
    _warp_size: *mut c_int,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterVar(
    _binary: *mut *mut c_void,
    host: *const c_char,
    _device: *mut c_char,
    _name: *const c_char,
    _is_extern: c_int,
    size: usize,
    _is_constant: c_int,
    _is_global: c_int,
) {
    let mut variables = VARIABLES.lock().expect("no panics");
    let variable = Variable { size, room: None };
    variables
        .get_or_insert_default()
        .insert(host as usize, variable);
}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterManagedVar(
    _binary: *mut *mut c_void,
    _host: *mut *mut c_void,
    _device: *mut c_char,
    _name: *const c_char,
    _is_extern: c_int,
    _size: usize,
    _is_constant: c_int,
    _is_global: c_int,
) {
}

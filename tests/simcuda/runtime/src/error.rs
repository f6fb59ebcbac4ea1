//! Result codes, and the last error of each thread.

use std::cell::Cell;
use std::ffi::{c_char, c_int};

use simcuda_common::code::{Outcome, SUCCESS, describe};

thread_local! {
    static LAST: Cell<c_int> = const { Cell::new(SUCCESS) };
}

/// The code that a function's outcome is to its C caller; errors are remembered.
pub fn finish(outcome: Outcome) -> c_int {
    match outcome {
        Ok(()) => SUCCESS,
        Err(code) => {
            LAST.set(code);
            code
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> c_int {
    LAST.replace(SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaPeekAtLastError() -> c_int {
    LAST.get()
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorName(code: c_int) -> *const c_char {
    describe(code).2.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorString(code: c_int) -> *const c_char {
    describe(code).3.as_ptr()
}

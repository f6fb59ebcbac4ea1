//! Names and descriptions of result codes.

use std::ffi::{c_char, c_int};

use simcuda_common::code::{ALL, INVALID_VALUE, describe};
use simcuda_common::ffi::Out;

crate::driver_api! {
    fn cuGetErrorName(code: c_int, name: Out<*const c_char>) {
        name.set(describe(code).1.as_ptr())?;
        if ALL.iter().any(|row| row.0 == code) { Ok(()) } else { Err(INVALID_VALUE) }
    }

    fn cuGetErrorString(code: c_int, text: Out<*const c_char>) {
        text.set(describe(code).3.as_ptr())?;
        if ALL.iter().any(|row| row.0 == code) { Ok(()) } else { Err(INVALID_VALUE) }
    }
}

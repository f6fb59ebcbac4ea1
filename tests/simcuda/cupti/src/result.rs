//! Result codes (`CUptiResult`).

use std::ffi::{CStr, c_char, c_int};

/// A code that is not success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub c_int);

pub const INVALID_PARAMETER: Code = Code(1);
pub const INVALID_DEVICE: Code = Code(2);
pub const INVALID_CONTEXT: Code = Code(3);
pub const INVALID_OPERATION: Code = Code(7);
pub const API_NOT_IMPLEMENTED: Code = Code(11);
pub const MAX_LIMIT_REACHED: Code = Code(12);
pub const NOT_INITIALIZED: Code = Code(15);
pub const QUEUE_EMPTY: Code = Code(18);
pub const INVALID_KIND: Code = Code(21);
#[cfg(not(feature = "cuda13"))]
pub const NOT_SUPPORTED: Code = Code(27);
pub const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: Code = Code(39);

const NAMES: &[(c_int, &CStr)] = &[
    (0, c"CUPTI_SUCCESS"),
    (1, c"CUPTI_ERROR_INVALID_PARAMETER"),
    (2, c"CUPTI_ERROR_INVALID_DEVICE"),
    (3, c"CUPTI_ERROR_INVALID_CONTEXT"),
    (7, c"CUPTI_ERROR_INVALID_OPERATION"),
    (11, c"CUPTI_ERROR_API_NOT_IMPLEMENTED"),
    (12, c"CUPTI_ERROR_MAX_LIMIT_REACHED"),
    (15, c"CUPTI_ERROR_NOT_INITIALIZED"),
    (18, c"CUPTI_ERROR_QUEUE_EMPTY"),
    (21, c"CUPTI_ERROR_INVALID_KIND"),
    (27, c"CUPTI_ERROR_NOT_SUPPORTED"),
    (39, c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"),
    (999, c"CUPTI_ERROR_UNKNOWN"),
];

/// What C sees.
pub fn finish(outcome: Result<(), Code>) -> c_int {
    outcome.err().map_or(0, |code| code.0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(result: c_int, text: *mut *const c_char) -> c_int {
    let named = NAMES.iter().find(|(code, _)| *code == result);
    let (name, outcome) = match named {
        _ if text.is_null() => return INVALID_PARAMETER.0,
        Some((_, name)) => (*name, Ok(())),
        None => (c"CUPTI_ERROR_UNKNOWN", Err(INVALID_PARAMETER)),
    };
    // SAFETY: the caller gave a place for a pointer.
    unsafe { text.write(name.as_ptr()) };
    finish(outcome)
}

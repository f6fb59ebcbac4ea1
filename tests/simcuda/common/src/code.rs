//! Result codes. Since CUDA 10.1 the runtime's codes have the driver's numbers.

/// What an API function's body returns; the error is the code that C sees.
pub type Outcome = Result<(), i32>;

macro_rules! codes {
    ($($name:ident = $value:literal, $driver_name:literal, $runtime_name:literal, $text:literal;)*) => {
        $(pub const $name: i32 = $value;)*

        /// (code, the driver's name, the runtime's name, description)
        pub const ALL: &[(i32, &std::ffi::CStr, &std::ffi::CStr, &std::ffi::CStr)] =
            &[$(($value, $driver_name, $runtime_name, $text)),*];
    };
}

codes! {
    SUCCESS = 0, c"CUDA_SUCCESS", c"cudaSuccess", c"no error";
    INVALID_VALUE = 1, c"CUDA_ERROR_INVALID_VALUE", c"cudaErrorInvalidValue", c"invalid argument";
    OUT_OF_MEMORY = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"cudaErrorMemoryAllocation", c"out of memory";
    NOT_INITIALIZED = 3,
        c"CUDA_ERROR_NOT_INITIALIZED", c"cudaErrorInitializationError",
        c"initialization error";
    DEINITIALIZED = 4,
        c"CUDA_ERROR_DEINITIALIZED", c"cudaErrorCudartUnloading",
        c"driver shutting down";
    INVALID_SYMBOL = 13, c"CUDA_ERROR_UNKNOWN", c"cudaErrorInvalidSymbol", c"invalid device symbol";
    INSUFFICIENT_DRIVER = 35,
        c"CUDA_ERROR_UNKNOWN", c"cudaErrorInsufficientDriver",
        c"CUDA driver version is insufficient for CUDA runtime version";
    NO_DEVICE = 100,
        c"CUDA_ERROR_NO_DEVICE", c"cudaErrorNoDevice",
        c"no CUDA-capable device is detected";
    INVALID_DEVICE = 101,
        c"CUDA_ERROR_INVALID_DEVICE", c"cudaErrorInvalidDevice",
        c"invalid device ordinal";
    INVALID_IMAGE = 200,
        c"CUDA_ERROR_INVALID_IMAGE", c"cudaErrorInvalidKernelImage",
        c"device kernel image is invalid";
    INVALID_CONTEXT = 201,
        c"CUDA_ERROR_INVALID_CONTEXT", c"cudaErrorDeviceUninitialized",
        c"invalid device context";
    INVALID_HANDLE = 400,
        c"CUDA_ERROR_INVALID_HANDLE", c"cudaErrorInvalidResourceHandle",
        c"invalid resource handle";
    ILLEGAL_STATE = 401,
        c"CUDA_ERROR_ILLEGAL_STATE", c"cudaErrorIllegalState",
        c"the operation cannot be performed in the present state";
    NOT_FOUND = 500, c"CUDA_ERROR_NOT_FOUND", c"cudaErrorSymbolNotFound", c"named symbol not found";
    NOT_READY = 600, c"CUDA_ERROR_NOT_READY", c"cudaErrorNotReady", c"device not ready";
    ILLEGAL_ADDRESS = 700,
        c"CUDA_ERROR_ILLEGAL_ADDRESS", c"cudaErrorIllegalAddress",
        c"an illegal memory access was encountered";
    PEER_ACCESS_ALREADY_ENABLED = 704,
        c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"cudaErrorPeerAccessAlreadyEnabled",
        c"peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705,
        c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"cudaErrorPeerAccessNotEnabled",
        c"peer access has not been enabled";
    CONTEXT_IS_DESTROYED = 709,
        c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"cudaErrorContextIsDestroyed",
        c"context is destroyed";
    HOST_MEMORY_ALREADY_REGISTERED = 712,
        c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"cudaErrorHostMemoryAlreadyRegistered",
        c"part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713,
        c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"cudaErrorHostMemoryNotRegistered",
        c"pointer does not correspond to a registered memory region";
    NOT_PERMITTED = 800,
        c"CUDA_ERROR_NOT_PERMITTED", c"cudaErrorNotPermitted",
        c"operation not permitted";
    NOT_SUPPORTED = 801,
        c"CUDA_ERROR_NOT_SUPPORTED", c"cudaErrorNotSupported",
        c"operation not supported";
    STREAM_CAPTURE_UNSUPPORTED = 900,
        c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"cudaErrorStreamCaptureUnsupported",
        c"operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901,
        c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"cudaErrorStreamCaptureInvalidated",
        c"operation failed due to a previous error during capture";
    STREAM_CAPTURE_UNMATCHED = 903,
        c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"cudaErrorStreamCaptureUnmatched",
        c"capture was not ended in the same stream as it began";
    UNKNOWN = 999, c"CUDA_ERROR_UNKNOWN", c"cudaErrorUnknown", c"unknown error";
}

/// The row of `code`, or that of [`UNKNOWN`].
pub fn describe(
    code: i32,
) -> (
    i32,
    &'static std::ffi::CStr,
    &'static std::ffi::CStr,
    &'static std::ffi::CStr,
) {
    let row = ALL.iter().find(|row| row.0 == code);
    *row.unwrap_or_else(|| &ALL[ALL.len() - 1])
}

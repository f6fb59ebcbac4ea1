//! Which library asked: the first on the stack that is not part of CUDA.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::Mutex;

unsafe extern "C" {
    fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
}

const CUDA: [&str; 3] = ["libcupti.so", "libcudart.so", "libcuda.so"];

/// The path of the caller's library, for the life of the process.
pub fn library() -> *const c_char {
    let mut frames = [std::ptr::null_mut(); 64];
    // SAFETY: the buffer has that many places.
    let count = unsafe { backtrace(frames.as_mut_ptr(), frames.len() as c_int) };
    let frames = &frames[..usize::try_from(count).unwrap_or(0)];
    let found = frames.iter().map(|frame| object_of(*frame)).find(|path| {
        let name = Path::new(path).file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| !CUDA.iter().any(|cuda| name.starts_with(cuda)))
    });
    found.map_or(std::ptr::null(), kept)
}

fn object_of(address: *mut c_void) -> String {
    // SAFETY: all zero is a valid `Dl_info`, and dladdr fills it or says that it did not.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address, &raw mut info) == 0 || info.dli_fname.is_null() {
            return String::new();
        }
        CStr::from_ptr(info.dli_fname)
            .to_string_lossy()
            .into_owned()
    }
}

fn kept(path: String) -> *const c_char {
    static PATHS: Mutex<Option<HashMap<String, CString>>> = Mutex::new(None);
    let mut paths = PATHS.lock().expect("no panics");
    let text = CString::new(path.as_str()).unwrap_or_default();
    paths
        .get_or_insert_default()
        .entry(path)
        .or_insert(text)
        .as_ptr()
}

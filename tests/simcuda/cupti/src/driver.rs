//! The simulated driver, as this library needs it: its hook, and questions to it.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use simcuda_common::hook::ApiHook;

type SetHook = extern "C" fn(Option<ApiHook>) -> Option<ApiHook>;
type GetDevice = unsafe extern "C" fn(*mut c_int, usize) -> c_int;
type GetPool = unsafe extern "C" fn(*mut usize, c_int) -> c_int;
type PoolAttribute = unsafe extern "C" fn(usize, c_int, *mut c_void) -> c_int;

/// Functions of `libcuda.so.1`.
pub struct Driver {
    set_hook: SetHook,
    get_device: GetDevice,
    get_pool: GetPool,
    pool_attribute: PoolAttribute,
}

thread_local! {
    /// Set while this library itself calls the driver: such calls are nobody's.
    static OWN_CALL: Cell<bool> = const { Cell::new(false) };
}

/// Whether the call under way is this library's.
pub fn is_own_call() -> bool {
    OWN_CALL.get()
}

/// The driver, loaded; none where the simulated one is not found.
pub fn driver() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER.get_or_init(load).as_ref()
}

fn load() -> Option<Driver> {
    let symbol = |name: &CStr| {
        // SAFETY: dlopen and dlsym get C strings; the driver has no constructor.
        let address = unsafe {
            let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            if library.is_null() {
                return None;
            }
            libc::dlsym(library, name.as_ptr())
        };
        (!address.is_null()).then_some(address)
    };
    // SAFETY: the driver exports these names as functions of these types.
    unsafe {
        Some(Driver {
            set_hook: std::mem::transmute::<*mut c_void, SetHook>(symbol(c"simcuda_set_api_hook")?),
            get_device: std::mem::transmute::<*mut c_void, GetDevice>(symbol(
                c"cuCtxGetDevice_v2",
            )?),
            get_pool: std::mem::transmute::<*mut c_void, GetPool>(symbol(c"cuDeviceGetMemPool")?),
            pool_attribute: std::mem::transmute::<*mut c_void, PoolAttribute>(symbol(
                c"cuMemPoolGetAttribute",
            )?),
        })
    }
}

/// What a pool holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolState {
    pub threshold: u64,
    pub reserved: u64,
    pub used: u64,
}

impl Driver {
    pub fn set_hook(&self, hook: Option<ApiHook>) {
        (self.set_hook)(hook);
    }

    fn ask<R: Default>(&self, question: impl FnOnce(*mut R) -> c_int) -> Option<R> {
        let mut answer = R::default();
        let outer = OWN_CALL.replace(true);
        let code = question(&raw mut answer);
        OWN_CALL.set(outer);
        (code == 0).then_some(answer)
    }

    /// Ordinal of a context's device; 0 means the calling thread's context.
    pub fn device_of(&self, context: usize) -> Option<c_int> {
        // SAFETY: the place is valid; a handle that is none is an error code.
        self.ask(|place| unsafe { (self.get_device)(place, context) })
    }

    /// The pool from which `cuMemAllocAsync` takes.
    pub fn current_pool(&self, device: c_int) -> Option<usize> {
        // SAFETY: as above.
        self.ask(|place| unsafe { (self.get_pool)(place, device) })
    }

    pub fn pool_state(&self, pool: usize) -> Option<PoolState> {
        // CUmemPool_attribute: RELEASE_THRESHOLD, RESERVED_MEM_CURRENT, USED_MEM_CURRENT
        let attribute = |which: c_int| {
            // SAFETY: these attributes are 64 bits wide.
            self.ask(|place: *mut u64| unsafe { (self.pool_attribute)(pool, which, place.cast()) })
        };
        Some(PoolState {
            threshold: attribute(4)?,
            reserved: attribute(5)?,
            used: attribute(7)?,
        })
    }
}

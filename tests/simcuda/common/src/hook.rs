//! The API enter/exit hook: what a profiler of CUDA calls builds on.
//!
//! The driver owns one [`Port`]. While a hook is set, every driver and runtime API
//! function calls it on the calling thread, once before and once after its body.
//! While none is set, a call costs one relaxed load.
//!
//! [`api_functions!`](crate::api_functions) defines the C functions of a module
//! around this hook, and lists them in a table for `cuGetProcAddress`.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Which library a call belongs to. The numbers are those of CUPTI's callback domains.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    Driver = 1,
    Runtime = 2,
}

/// One visit of the hook. Lives only during the visit.
#[repr(C)]
#[derive(Debug)]
pub struct ApiCall {
    /// Size of this struct in bytes, so that it can grow.
    pub size: u32,
    /// [`Domain`] as a number.
    pub domain: u32,
    /// 0 before the body, 1 after it.
    pub site: u32,
    /// Size in bytes of what `params` points to.
    pub params_size: u32,
    /// Exported name of the function; the address is the same for every call of it.
    pub name: *const c_char,
    /// The arguments, in order, as a C struct.
    pub params: *const c_void,
    /// The result code; null before the body.
    pub result: *const c_int,
    /// Same at enter and exit; a driver call made by a runtime call shares its number.
    pub correlation: u64,
    /// Room for the hook, zero at enter and kept until exit.
    pub user: *mut u64,
    /// Current context of the calling thread, or null.
    pub context: *mut c_void,
}

/// Signature of a hook.
pub type ApiHook = unsafe extern "C" fn(*const ApiCall);

/// The one place where a hook is installed; shared by driver and runtime.
#[repr(C)]
#[derive(Debug)]
pub struct Port {
    hook: AtomicPtr<c_void>,
    next_correlation: AtomicU64,
    /// Address of the calling thread's correlation number; zero outside of any call.
    correlation_slot: extern "C" fn() -> *mut u64,
    current_context: extern "C" fn() -> *mut c_void,
}

impl Port {
    pub const fn new(
        correlation_slot: extern "C" fn() -> *mut u64,
        current_context: extern "C" fn() -> *mut c_void,
    ) -> Self {
        Self {
            hook: AtomicPtr::new(std::ptr::null_mut()),
            next_correlation: AtomicU64::new(1),
            correlation_slot,
            current_context,
        }
    }

    /// Installs `hook`, or removes it with `None`; returns the one before.
    pub fn set(&self, hook: Option<ApiHook>) -> Option<ApiHook> {
        let new = hook.map_or(std::ptr::null_mut(), |f| f as *mut c_void);
        as_hook(self.hook.swap(new, Ordering::AcqRel))
    }

    /// Current context of the calling thread, or null.
    pub fn current_context(&self) -> *mut c_void {
        (self.current_context)()
    }

    /// Runs `body` between the two visits of the hook, or alone when there is none.
    #[inline(always)]
    pub fn call<P>(
        &self,
        domain: Domain,
        name: *const c_char,
        params: impl FnOnce() -> P,
        body: impl FnOnce() -> c_int,
    ) -> c_int {
        if self.hook.load(Ordering::Relaxed).is_null() {
            return body();
        }
        let params = params();
        let described = Described {
            domain,
            name,
            params: (&raw const params).cast(),
            params_size: size_of::<P>() as u32,
        };
        self.call_hooked(&described, body)
    }

    #[cold]
    fn call_hooked(&self, described: &Described, body: impl FnOnce() -> c_int) -> c_int {
        let Some(hook) = as_hook(self.hook.load(Ordering::Acquire)) else {
            return body();
        };
        let slot = (self.correlation_slot)();
        // SAFETY: the slot is a thread-local of the calling thread and stays for its life.
        let outer = unsafe { slot.read() };
        let correlation = match outer {
            0 => self.next_correlation.fetch_add(1, Ordering::Relaxed),
            number => number,
        };
        let mut user = 0_u64;
        let mut visit = ApiCall {
            size: size_of::<ApiCall>() as u32,
            domain: described.domain as u32,
            site: 0,
            params_size: described.params_size,
            name: described.name,
            params: described.params,
            result: std::ptr::null(),
            correlation,
            user: &raw mut user,
            context: (self.current_context)(),
        };
        // SAFETY: whoever set the hook promised that it takes an `ApiCall`; the slot as above.
        unsafe {
            slot.write(correlation);
            hook(&raw const visit);
        }
        let result = body();
        visit.site = 1;
        visit.result = &raw const result;
        visit.context = (self.current_context)();
        // SAFETY: as above.
        unsafe {
            hook(&raw const visit);
            slot.write(outer);
        }
        result
    }
}

struct Described {
    domain: Domain,
    name: *const c_char,
    params: *const c_void,
    params_size: u32,
}

fn as_hook(pointer: *mut c_void) -> Option<ApiHook> {
    // SAFETY: the pointer is null or was stored by `Port::set` from an `ApiHook`;
    // `Option` of a function pointer represents `None` as null.
    unsafe { std::mem::transmute::<*mut c_void, Option<ApiHook>>(pointer) }
}

/// An exported function: its name and its address.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub name: &'static str,
    pub address: *const (),
}

// SAFETY: the address of a function is plain data.
unsafe impl Sync for Entry {}
// SAFETY: as above.
unsafe impl Send for Entry {}

/// Defines exported C functions that run between the visits of the hook.
///
/// `fn name, other_name (argument: Type, ...) { body }` defines one function for each
/// name. The body has the type [`Outcome`](crate::code::Outcome) and may use `?`. The
/// macro also defines `ENTRIES`, the table of the functions.
#[macro_export]
macro_rules! api_functions {
    (
        domain = $domain:expr; port = $port:expr; finish = $finish:path;
        $( fn $($name:ident),+ ( $($arguments:tt)* ) $body:block )*
    ) => {
        $( $crate::api_function! {
            $domain, $port, $finish, [ $($name)+ ] ( $($arguments)* ) $body
        } )*

        // Of use only to a library that hands out addresses by name.
        #[allow(dead_code)]
        pub const ENTRIES: &[$crate::hook::Entry] = &[
            $( $( $crate::hook::Entry { name: stringify!($name), address: $name as *const () } ),+ ),*
        ];
    };
}

/// One item of [`api_functions!`](crate::api_functions): a function for each name.
#[macro_export]
macro_rules! api_function {
    ( $domain:expr, $port:expr, $finish:path, [] $arguments:tt $body:block ) => {};
    (
        $domain:expr, $port:expr, $finish:path,
        [ $name:ident $($others:ident)* ] ( $( $argument:ident : $type:ty ),* $(,)? ) $body:block
    ) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name( $( $argument: $type ),* ) -> std::ffi::c_int {
            #[repr(C)]
            struct Params { $( $argument: $type ),* }
            const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => panic!("a function name holds a NUL"),
            };
            $port.call(
                $domain,
                NAME.as_ptr(),
                || Params { $( $argument ),* },
                || {
                    let outcome = || -> $crate::code::Outcome { $body };
                    $finish(outcome())
                },
            )
        }

        $crate::api_function! {
            $domain, $port, $finish, [ $($others)* ] ( $( $argument: $type ),* ) $body
        }
    };
}

//! The library, loaded, and its functions as far as they are used.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use crate::find::{LoadError, find};
use crate::raw;
use crate::version::Version;

/// A code that CUPTI gave back, or a function that it lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The function failed.
    #[error("{function}: {text} ({code})")]
    Failed {
        /// Its name.
        function: &'static str,
        /// `CUptiResult`
        code: u32,
        /// The code's name, as CUPTI tells it.
        text: String,
    },
    /// This version has no such function.
    #[error("{version} has no {function}")]
    Missing {
        /// Its name.
        function: &'static str,
        /// Which CUPTI.
        version: Version,
    },
}

/// Why there is no subscription.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// Another tool has it: a process has one subscriber.
    #[error("another tool holds CUPTI's one subscription of this process: {}",
        by.as_deref().unwrap_or("this version of CUPTI does not tell which"))]
    Held {
        /// Its name, from CUDA 13.0 on.
        by: Option<String>,
    },
    /// Something else.
    #[error(transparent)]
    Other(#[from] Error),
}

/// A subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscriber(raw::CUpti_SubscriberHandle);

impl Subscriber {
    /// The handle, to be kept where only a word can be.
    pub fn into_raw(self) -> *mut c_void {
        self.0.cast()
    }

    /// What [`into_raw`](Self::into_raw) gave; none for null. A wrong handle is an error code of
    /// the functions that take it.
    pub fn from_raw(handle: *mut c_void) -> Option<Self> {
        (!handle.is_null()).then_some(Self(handle.cast()))
    }
}

// SAFETY: an opaque number to all but CUPTI, whose functions are thread-safe.
unsafe impl Send for Subscriber {}
// SAFETY: as above.
unsafe impl Sync for Subscriber {}

/// CUPTI. Never unloaded: it has threads and callbacks of its own.
pub struct Cupti {
    functions: raw::Functions,
    path: PathBuf,
    reused: bool,
    version: Version,
}

/// What a function that was looked up is, or the error that says it is missing.
macro_rules! call {
    ($cupti:expr, $function:ident ( $($argument:expr),* $(,)? )) => {
        match &$cupti.functions.$function {
            Ok(function) => $cupti.check(stringify!($function), function($($argument),*)),
            Err(_) => Err(Error::Missing {
                function: stringify!($function),
                version: $cupti.version,
            }),
        }
    };
}

impl Cupti {
    /// Finds and loads it, or says where it was looked for.
    pub fn load() -> Result<&'static Self, LoadError> {
        let found = find()?;
        // SAFETY: the symbols of a library of this name have the signatures of the headers; the
        // arguments that a later version appends to structs are announced by their size.
        let functions = unsafe { raw::Functions::from_library(found.library) };
        let unusable = |reason: String| LoadError::Unusable {
            path: found.path.clone(),
            reason,
        };
        let functions = functions.map_err(|error| unusable(error.to_string()))?;
        let mut cupti = Self {
            functions,
            path: found.path.clone(),
            reused: found.reused,
            version: Version(0),
        };
        let mut number = 0;
        // SAFETY: the place for the number is valid.
        let asked = unsafe { call!(cupti, cuptiGetVersion(&raw mut number)) };
        asked.map_err(|error| unusable(error.to_string()))?;
        cupti.version = Version(number);
        Ok(Box::leak(Box::new(cupti)))
    }

    /// Which it is.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The file, or the name by which the dynamic linker found it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the process had it already.
    pub fn reused(&self) -> bool {
        self.reused
    }

    fn check(&self, function: &'static str, code: raw::CUptiResult) -> Result<(), Error> {
        if code == raw::CUPTI_SUCCESS {
            return Ok(());
        }
        let mut text: *const c_char = ptr::null();
        let name = match &self.functions.cuptiGetResultString {
            // SAFETY: the place for the text is valid.
            Ok(name_of) if unsafe { name_of(code, &raw mut text) } == 0 && !text.is_null() => {
                // SAFETY: CUPTI gives a text that lives as long as itself.
                let text = unsafe { CStr::from_ptr(text) };
                text.to_string_lossy().into_owned()
            }
            _ => "unknown error".to_owned(),
        };
        Err(Error::Failed {
            function,
            code,
            text: name,
        })
    }

    /// Becomes the subscriber, under `name` where the version keeps one. `shared` lets others
    /// subscribe too, where version and driver can.
    ///
    /// # Safety
    /// `callback` is called on every thread that makes an enabled call, until
    /// [`unsubscribe`](Self::unsubscribe) has returned and every call under way has ended.
    pub unsafe fn subscribe(
        &self,
        callback: unsafe extern "C" fn(
            *mut c_void,
            raw::CUpti_CallbackDomain,
            raw::CUpti_CallbackId,
            *const c_void,
        ),
        name: &CStr,
        shared: bool,
    ) -> Result<Subscriber, SubscribeError> {
        if self.functions.cuptiSubscribe_v2.is_err() || self.version < Version::NAMES_HOLDER {
            let mut handle = ptr::null_mut();
            // SAFETY: the place is valid, the callback is the caller's promise.
            let done = unsafe {
                call!(
                    self,
                    cuptiSubscribe(&raw mut handle, Some(callback), ptr::null_mut())
                )
            };
            return match done {
                Ok(()) => Ok(Subscriber(handle)),
                Err(error) if is_held(&error) => Err(SubscribeError::Held { by: None }),
                Err(error) => Err(error.into()),
            };
        }
        let shared = shared && self.version >= Version::SEVERAL_SUBSCRIBERS;
        // SAFETY: the caller's promise.
        match unsafe { self.subscribe_v2(callback, name, shared) } {
            // The request may be what cannot be met: a driver that knows one subscriber only.
            Err(SubscribeError::Held { .. }) if shared => {
                // SAFETY: the caller's promise.
                unsafe { self.subscribe_v2(callback, name, false) }
            }
            result => result,
        }
    }

    /// # Safety
    /// As [`subscribe`](Self::subscribe).
    unsafe fn subscribe_v2(
        &self,
        callback: unsafe extern "C" fn(
            *mut c_void,
            raw::CUpti_CallbackDomain,
            raw::CUpti_CallbackId,
            *const c_void,
        ),
        name: &CStr,
        shared: bool,
    ) -> Result<Subscriber, SubscribeError> {
        let mut holder = [0_u8; HOLDER_BYTES];
        let mut handle = ptr::null_mut();
        let mut parameters = raw::CUpti_SubscriberParams {
            // The structure ended earlier before several subscribers were possible.
            structSize: if self.version >= Version::SEVERAL_SUBSCRIBERS {
                size_of::<raw::CUpti_SubscriberParams>()
            } else {
                std::mem::offset_of!(raw::CUpti_SubscriberParams, allowMultipleSubscribers)
            },
            subscriberName: name.as_ptr(),
            oldSubscriberName: holder.as_mut_ptr().cast(),
            oldSubscriberSize: holder.len(),
            allowMultipleSubscribers: u8::from(shared),
            padding: [0; 7],
        };
        // SAFETY: all places are valid during the call, the callback is the caller's promise.
        let done = unsafe {
            call!(
                self,
                cuptiSubscribe_v2(
                    &raw mut handle,
                    Some(callback),
                    ptr::null_mut(),
                    &raw mut parameters
                )
            )
        };
        match done {
            Ok(()) => Ok(Subscriber(handle)),
            Err(error) if is_held(&error) => Err(SubscribeError::Held { by: text(&holder) }),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the subscription: no callback begins after it. One that runs on another thread may
    /// still be running when this returns.
    pub fn unsubscribe(&self, subscriber: Subscriber) -> Result<(), Error> {
        // SAFETY: takes a handle that CUPTI made and checks.
        unsafe { call!(self, cuptiUnsubscribe(subscriber.0)) }
    }

    /// Turns the callbacks of one function on or off. Calls of this must not overlap.
    pub fn enable_callback(
        &self,
        subscriber: Subscriber,
        domain: raw::CUpti_CallbackDomain,
        id: raw::CUpti_CallbackId,
        enable: bool,
    ) -> Result<(), Error> {
        // SAFETY: takes a handle that CUPTI made and checks.
        unsafe {
            call!(
                self,
                cuptiEnableCallback(u32::from(enable), subscriber.0, domain, id)
            )
        }
    }

    /// Turns the callbacks of all functions of a domain on or off. Calls of this must not overlap.
    pub fn enable_domain(
        &self,
        subscriber: Subscriber,
        domain: raw::CUpti_CallbackDomain,
        enable: bool,
    ) -> Result<(), Error> {
        // SAFETY: takes a handle that CUPTI made and checks.
        unsafe {
            call!(
                self,
                cuptiEnableDomain(u32::from(enable), subscriber.0, domain)
            )
        }
    }

    /// Whether the callbacks of one function are on: false too when the subscription is gone.
    pub fn callback_is_on(
        &self,
        subscriber: Subscriber,
        domain: raw::CUpti_CallbackDomain,
        id: raw::CUpti_CallbackId,
    ) -> bool {
        let mut enabled = 0;
        // SAFETY: the place is valid; a handle that is gone is an error code.
        let asked = unsafe {
            call!(
                self,
                cuptiGetCallbackState(&raw mut enabled, subscriber.0, domain, id)
            )
        };
        asked.is_ok() && enabled != 0
    }

    /// Detaches CUPTI from the process. Best from a callback at the end of an API call.
    pub fn finalize(&self) -> Result<(), Error> {
        // SAFETY: takes nothing.
        unsafe { call!(self, cuptiFinalize()) }
    }

    /// Ordinal of the device of a context. May be called from a callback. No allocation.
    pub fn device_of(&self, context: raw::CUcontext) -> Option<u32> {
        let mut device = 0;
        let ask = self.functions.cuptiGetDeviceId.as_ref().ok()?;
        // SAFETY: the place is valid; the context is what CUPTI gave.
        (unsafe { ask(context, &raw mut device) } == raw::CUPTI_SUCCESS).then_some(device)
    }

    /// Sets who gives and takes buffers of activity records.
    ///
    /// # Safety
    /// Both functions are called on CUPTI's threads from then on, for good.
    pub unsafe fn register_buffers(
        &self,
        request: unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize),
        complete: unsafe extern "C" fn(raw::CUcontext, u32, *mut u8, usize, usize),
    ) -> Result<(), Error> {
        // SAFETY: the functions are the caller's promise.
        unsafe {
            call!(
                self,
                cuptiActivityRegisterCallbacks(Some(request), Some(complete))
            )
        }
    }

    /// Turns records of one kind on or off.
    pub fn enable_activity(&self, kind: raw::CUpti_ActivityKind, on: bool) -> Result<(), Error> {
        // SAFETY: both take a number.
        unsafe {
            if on {
                call!(self, cuptiActivityEnable(kind))
            } else {
                call!(self, cuptiActivityDisable(kind))
            }
        }
    }

    /// Lets records of allocations name the library that allocates (from 12.6 on; costs time).
    pub fn enable_allocation_source(&self, on: bool) -> Result<(), Error> {
        // SAFETY: takes a number.
        unsafe { call!(self, cuptiActivityEnableAllocationSource(u8::from(on))) }
    }

    /// Hands over what records there are. Blocks; not from within a callback of buffers.
    pub fn flush(&self, forced: bool) -> Result<(), Error> {
        // SAFETY: takes a number.
        unsafe { call!(self, cuptiActivityFlushAll(u32::from(forced))) }
    }

    /// The record after `record` (null: the first) in a buffer, null at the end. No allocation.
    ///
    /// # Safety
    /// `buffer` has `bytes` bytes that CUPTI filled, and `record` came from this function for it.
    pub unsafe fn next_record(
        &self,
        buffer: *mut u8,
        bytes: usize,
        record: *mut raw::CUpti_Activity,
    ) -> *mut raw::CUpti_Activity {
        let mut next = record;
        let Ok(step) = &self.functions.cuptiActivityGetNextRecord else {
            return ptr::null_mut();
        };
        // SAFETY: the caller's promise.
        match unsafe { step(buffer, bytes, &raw mut next) } {
            raw::CUPTI_SUCCESS => next,
            _ => ptr::null_mut(),
        }
    }

    /// Records that found no room since this was asked last.
    pub fn dropped_records(&self) -> Result<usize, Error> {
        let mut dropped = 0;
        // SAFETY: the place is valid.
        unsafe {
            call!(
                self,
                cuptiActivityGetNumDroppedRecords(ptr::null_mut(), 0, &raw mut dropped)
            )?;
        }
        Ok(dropped)
    }
}

impl std::fmt::Debug for Cupti {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cupti")
            .field("version", &self.version)
            .field("path", &self.path)
            .field("reused", &self.reused)
            .finish_non_exhaustive()
    }
}

/// Room for the holder's name: CUPTI cuts it below 64 bytes (`CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN`).
const HOLDER_BYTES: usize = 128;

fn is_held(error: &Error) -> bool {
    matches!(
        error,
        Error::Failed {
            code: raw::CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
            ..
        }
    )
}

/// A text that ends with a zero, or nothing.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = CString::new(bytes.get(..end)?).ok()?;
    let text = text.to_string_lossy().trim().to_owned();
    (!text.is_empty()).then_some(text)
}

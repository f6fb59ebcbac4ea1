//! From a visit of the driver's hook to callbacks and records.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::offset_of;
use std::sync::OnceLock;

use simcuda_common::hook::ApiCall;

use crate::activity;
use crate::driver;
use crate::ids::{DRIVER, RUNTIME, id_of_call};
use crate::subscriber::{self, MOST};

/// `CUpti_CallbackData`
#[repr(C)]
struct CallbackData {
    site: c_int,
    function_name: *const c_char,
    params: *const c_void,
    result: *const c_int,
    symbol_name: *const c_char,
    context: *mut c_void,
    context_uid: u32,
    correlation_data: *mut u64,
    correlation_id: u32,
}

const _: () = {
    assert!(size_of::<CallbackData>() == 72);
    assert!(offset_of!(CallbackData, function_name) == 8);
    assert!(offset_of!(CallbackData, context) == 40);
    assert!(offset_of!(CallbackData, correlation_data) == 56);
    assert!(offset_of!(CallbackData, correlation_id) == 64);
};

/// What is kept of one call from its beginning to its end.
#[derive(Debug, Default)]
struct PerCall {
    /// Each subscriber's 8 bytes, in the order of their subscribing.
    data: [u64; MOST],
    start: u64,
}

thread_local! {
    /// How many runtime calls the thread is in.
    static RUNTIME_CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Whether driver calls beneath a runtime call have callbacks of their own: the documentation does
/// not say, so both can be played (`SIMCUDA_CUPTI_NESTED=0`).
fn nested_calls_are_told() -> bool {
    static NESTED: OnceLock<bool> = OnceLock::new();
    *NESTED.get_or_init(|| std::env::var("SIMCUDA_CUPTI_NESTED").as_deref() != Ok("0"))
}

/// A number for a context, counted from 1: the driver's handles hold one.
pub fn context_uid(context: *mut c_void) -> u32 {
    ((context as usize >> 4) & 0xffff_ffff) as u32
}

/// The hook.
pub unsafe extern "C" fn visit(call: *const ApiCall) {
    if driver::is_own_call() {
        return;
    }
    // SAFETY: the driver gives a description that lives during the visit.
    let call = unsafe { &*call };
    // SAFETY: names are constants of the driver and the runtime.
    let name = unsafe { CStr::from_ptr(call.name) };
    let Some(id) = id_of_call(call.domain, name) else {
        return;
    };
    let entering = call.site == 0;
    if call.domain == RUNTIME {
        let calls = RUNTIME_CALLS.get();
        let now = if entering {
            calls + 1
        } else {
            calls.saturating_sub(1)
        };
        RUNTIME_CALLS.set(now);
    }
    // A call that began while somebody wanted it is ended in any case: its room is freed.
    // SAFETY: the room is this hook's, at both visits of a call.
    let began = !entering && unsafe { call.user.read() } != 0;
    if !began && !activity::any_enabled() && !subscriber::anybody_wants(call.domain, id) {
        return;
    }
    let nested = call.domain == DRIVER && RUNTIME_CALLS.get() > 0;
    let per_call = if entering {
        let per_call = Box::into_raw(Box::new(PerCall {
            start: if nested {
                0
            } else {
                activity::start_of_call(call.domain, id)
            },
            ..PerCall::default()
        }));
        // SAFETY: the room is this hook's, at both visits of a call.
        unsafe { call.user.write(per_call as u64) };
        activity::call_begins(call, name);
        per_call
    } else {
        // SAFETY: as above; zero if the hook was set in between.
        unsafe { call.user.read() as *mut PerCall }
    };
    let mut late = PerCall::default();
    let mut data = CallbackData {
        site: call.site as c_int,
        function_name: call.name,
        params: call.params,
        result: call.result,
        symbol_name: std::ptr::null(),
        context: call.context,
        context_uid: context_uid(call.context),
        correlation_data: std::ptr::null_mut(),
        correlation_id: call.correlation as u32,
    };
    for (index, subscriber) in subscriber::all().into_iter().enumerate() {
        let Some(subscriber) = subscriber.filter(|found| found.wants(call.domain, id)) else {
            continue;
        };
        if nested && !nested_calls_are_told() {
            continue;
        }
        // SAFETY: null or the box made at the call's beginning, which only this thread has.
        let slots = unsafe { per_call.as_mut() }.unwrap_or(&mut late);
        data.correlation_data = &raw mut slots.data[index];
        // SAFETY: the subscriber gave this function for this purpose.
        unsafe {
            (subscriber.callback)(
                subscriber.user(),
                call.domain as c_int,
                id,
                (&raw const data).cast(),
            );
        }
    }
    if !entering {
        // SAFETY: the box is taken back once, at the end of the call.
        let start = (!per_call.is_null()).then(|| unsafe { Box::from_raw(per_call) }.start);
        activity::call_ended(call, name, id, start.unwrap_or(0));
    }
}

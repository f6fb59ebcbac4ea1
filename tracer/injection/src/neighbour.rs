//! Others in the process that want CUPTI: PyTorch's profiler, above all.
//!
//! A process has one subscriber, and PyTorch's profiler fails for good, and silently, when it is
//! not the first. So its calls of CUPTI lead through here: we let go at once, before its call, and
//! the helper thread takes CUPTI again when the profiler is done. None of this is on the path of an
//! allocation.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicI32, Ordering},
};

use crate::{
    cupti,
    live::Wrapped,
    record::{Hook, original},
};

/// An eventfd of the helper's, -1 while there is none.
static BELL: AtomicI32 = AtomicI32::new(-1);

/// Tells which descriptor wakes the helper.
pub fn set_bell(descriptor: i32) {
    BELL.store(descriptor, Ordering::SeqCst);
}

/// Wakes the helper.
fn ring() {
    let bell = BELL.load(Ordering::SeqCst);
    if bell >= 0 {
        let one = 1_u64;
        // SAFETY: eight bytes, as an eventfd takes them; one that is closed meanwhile says so.
        unsafe { libc::write(bell, (&raw const one).cast(), size_of::<u64>()) };
    }
}

/// After somebody's attempt to subscribe.
fn done(result: i32) -> i32 {
    if result != 0 {
        cupti::others_subscribe(false);
    }
    ring();
    result
}

type Subscribe = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> i32;
type SubscribeV2 = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void) -> i32;
type Unsubscribe = unsafe extern "C" fn(*mut c_void) -> i32;
type ActivityEnable = unsafe extern "C" fn(u32) -> i32;
type Finalize = unsafe extern "C" fn() -> i32;

macro_rules! go_on {
    ($hook:expr, $type:ty, $($argument:expr),*) => {
        // SAFETY: the function that this one stands in for, which has this type (cupti_callbacks.h,
        // cupti_activity.h); the arguments are the caller's.
        unsafe { core::mem::transmute::<usize, $type>(original($hook))($($argument),*) }
    };
}

/// Stands in for `cuptiSubscribe`.
pub extern "C" fn subscribe(
    subscriber: *mut c_void,
    callback: *mut c_void,
    data: *mut c_void,
) -> i32 {
    let _wrapped = Wrapped::enter();
    cupti::others_subscribe(true);
    let result = go_on!(Hook::CuptiSubscribe, Subscribe, subscriber, callback, data);
    done(result)
}

/// Stands in for `cuptiSubscribe_v2`.
pub extern "C" fn subscribe_v2(
    subscriber: *mut c_void,
    callback: *mut c_void,
    data: *mut c_void,
    parameters: *mut c_void,
) -> i32 {
    let _wrapped = Wrapped::enter();
    cupti::others_subscribe(true);
    let result = go_on!(
        Hook::CuptiSubscribeV2,
        SubscribeV2,
        subscriber,
        callback,
        data,
        parameters
    );
    done(result)
}

/// Stands in for `cuptiUnsubscribe`.
pub extern "C" fn unsubscribe(subscriber: *mut c_void) -> i32 {
    let _wrapped = Wrapped::enter();
    let result = go_on!(Hook::CuptiUnsubscribe, Unsubscribe, subscriber);
    if result == 0 {
        cupti::others_subscribe(false);
    }
    ring();
    result
}

/// Stands in for `cuptiActivityEnable`: whoever records activities does not want CUPTI finalized.
pub extern "C" fn activity_enable(kind: u32) -> i32 {
    let _wrapped = Wrapped::enter();
    cupti::others_use_cupti(true);
    go_on!(Hook::CuptiActivityEnable, ActivityEnable, kind)
}

/// Stands in for `cuptiFinalize`.
pub extern "C" fn finalize() -> i32 {
    let _wrapped = Wrapped::enter();
    let result = go_on!(Hook::CuptiFinalize, Finalize,);
    cupti::taken_away();
    cupti::others_use_cupti(false);
    cupti::others_subscribe(false);
    ring();
    result
}

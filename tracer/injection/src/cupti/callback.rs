//! What CUPTI calls at the beginning and the end of every watched function, and what it is told by
//! the thread that starts and stops.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::thread::Thread;

use vramscope_cupti_sys::{Cupti, Subscriber, raw};

use super::call::{DriverCall, OF_CONTEXT, Sink, at_enter, at_exit};
use super::nesting::{Entered, Place, enter, leave, this_thread};
use super::{device, nesting};

/// Nothing is told.
pub(super) const OFF: u32 = 0;
/// Calls are told.
pub(super) const ON: u32 = 1;
/// The next thread that is at the end of a call detaches CUPTI.
pub(super) const LEAVING: u32 = 2;
/// It does.
pub(super) const FINALIZING: u32 = 3;
/// It has.
pub(super) const FINALIZED: u32 = 4;

/// One of the above.
pub(super) static PHASE: AtomicU32 = AtomicU32::new(OFF);
/// The subscription, null while there is none. Whoever takes it out ends it.
pub(super) static HANDLE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// Counts subscriptions: what an earlier one left in the table of threads is stale.
pub(super) static EPOCH: AtomicU32 = AtomicU32::new(0);
/// Threads that are in the callback.
pub(super) static INSIDE: AtomicU32 = AtomicU32::new(0);
/// Calls of threads that found no place in the table: their driver calls are told twice.
pub(super) static UNTRACKED: AtomicU64 = AtomicU64::new(0);

static SINK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static CUPTI: AtomicPtr<Cupti> = AtomicPtr::new(ptr::null_mut());
/// Who waits for this module's threads to leave. Never freed.
static WAITING: AtomicPtr<Thread> = AtomicPtr::new(ptr::null_mut());

/// In the call's own word: it is an operation, and has a slot in the table of threads or not.
const OPERATION: u64 = 0x7673_4f50_0000_0000;
const OPERATION_WITHOUT_SLOT: u64 = 0x7673_4f51_0000_0000;
const NO_OPERATION: u64 = 0;

/// Before subscribing: what the callback needs.
pub(super) fn prepare(cupti: &'static Cupti, sink: Sink) {
    EPOCH.fetch_add(1, Ordering::SeqCst);
    device::forget();
    CUPTI.store(ptr::from_ref(cupti).cast_mut(), Ordering::SeqCst);
    SINK.store(sink as *mut c_void, Ordering::SeqCst);
}

/// Whoever calls this is woken when a thread leaves the callback while [`PHASE`] is not [`ON`].
pub(super) fn announce_waiting() {
    let thread = Box::new(std::thread::current());
    // The one before is leaked: a thread may be about to wake it.
    WAITING.store(Box::into_raw(thread), Ordering::SeqCst);
}

#[cold]
#[inline(never)]
fn wake() {
    // SAFETY: null or a box that is never freed.
    if let Some(thread) = unsafe { WAITING.load(Ordering::SeqCst).as_ref() } {
        thread.unpark();
    }
}

fn cupti() -> Option<&'static Cupti> {
    // SAFETY: null or from a reference that lives for good.
    unsafe { CUPTI.load(Ordering::Relaxed).as_ref() }
}

fn tell(call: &DriverCall) {
    let sink = SINK.load(Ordering::Relaxed);
    if sink.is_null() {
        return;
    }
    // SAFETY: stored by `prepare` from such a function.
    let sink = unsafe { std::mem::transmute::<*mut c_void, Sink>(sink) };
    sink(call);
}

/// Ends the subscription, if nobody else has.
pub(super) fn unsubscribe() -> bool {
    let handle = HANDLE.swap(ptr::null_mut(), Ordering::SeqCst);
    match (Subscriber::from_raw(handle), cupti()) {
        (Some(subscriber), Some(cupti)) => cupti.unsubscribe(subscriber).is_ok(),
        _ => false,
    }
}

/// CUPTI's callback.
///
/// # Safety
/// CUPTI calls it with its description of a call.
pub(super) unsafe extern "C" fn callback(
    _user: *mut c_void,
    domain: raw::CUpti_CallbackDomain,
    id: raw::CUpti_CallbackId,
    data: *const c_void,
) {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    // SAFETY: for the two domains that are enabled it is this struct, or null at worst.
    if let Some(data) = unsafe { data.cast::<raw::CUpti_CallbackData>().as_ref() } {
        match PHASE.load(Ordering::SeqCst) {
            ON => visit(domain, id, data),
            LEAVING if data.callbackSite == raw::CUPTI_API_EXIT => finalize(),
            _ => {}
        }
    }
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    if PHASE.load(Ordering::SeqCst) != ON {
        wake();
    }
}

/// At the end of a call, as CUPTI's documentation asks. The first thread to come does it. Not on
/// the path of a call that is told: it may allocate.
#[cold]
#[inline(never)]
fn finalize() {
    let taken = PHASE.compare_exchange(LEAVING, FINALIZING, Ordering::SeqCst, Ordering::SeqCst);
    if taken.is_err() {
        return;
    }
    unsubscribe();
    let done = cupti().is_some_and(|cupti| cupti.finalize().is_ok());
    PHASE.store(if done { FINALIZED } else { OFF }, Ordering::SeqCst);
}

fn visit(domain: u32, id: u32, data: &raw::CUpti_CallbackData) {
    if data.callbackSite == raw::CUPTI_API_ENTER {
        begins(domain, id, data);
    } else {
        ended(domain, id, data);
    }
}

fn begins(domain: u32, id: u32, data: &raw::CUpti_CallbackData) {
    let local = 0_u8;
    let place = Place {
        thread: this_thread(),
        frame: (&raw const local) as u64,
        domain,
        correlation: data.correlationId,
        epoch: EPOCH.load(Ordering::Relaxed),
    };
    let mark = match enter(place) {
        Entered::Outermost => OPERATION,
        Entered::Unknown => {
            UNTRACKED.fetch_add(1, Ordering::Relaxed);
            OPERATION_WITHOUT_SLOT
        }
        Entered::Nested => NO_OPERATION,
    };
    if !data.correlationData.is_null() {
        let word = if mark == NO_OPERATION {
            NO_OPERATION
        } else {
            mark | u64::from(place.epoch)
        };
        // SAFETY: the word that CUPTI keeps for this call.
        unsafe { data.correlationData.write(word) };
    }
    if mark == NO_OPERATION {
        return;
    }
    // SAFETY: CUPTI shows the arguments of the function that it names.
    if let Some(call) = unsafe { at_enter(domain, id, data.functionParams) } {
        tell(&call);
    }
}

fn ended(domain: u32, id: u32, data: &raw::CUpti_CallbackData) {
    if data.correlationData.is_null() {
        return;
    }
    // SAFETY: the word that CUPTI keeps for this call. Whose beginning was not seen has none of
    // our marks in it: it began before the subscription.
    let word = unsafe { data.correlationData.read() };
    let epoch = u64::from(EPOCH.load(Ordering::Relaxed));
    if word == OPERATION | epoch {
        leave(nesting::this_thread());
    } else if word != OPERATION_WITHOUT_SLOT | epoch {
        return;
    }
    let result = data.functionReturnValue.cast::<u32>();
    // SAFETY: at the end of a call its result is there.
    if result.is_null() || unsafe { result.read() } != 0 {
        return;
    }
    // SAFETY: CUPTI shows the arguments of the function that it names, and it has succeeded.
    if let Some(mut call) = unsafe { at_exit(domain, id, data.functionParams) } {
        if call.device == OF_CONTEXT {
            call.device =
                cupti().map_or(-1, |cupti| device::of(cupti, data.context, data.contextUid));
        }
        tell(&call);
    }
}

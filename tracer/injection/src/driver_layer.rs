//! The subscription to CUPTI, and what is to be told of it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use vramscope_wire::{
    vs_hook_report, vs_hook_state_VS_HOOK_FAILED, vs_hook_state_VS_HOOK_PLACED,
    vs_hook_state_VS_HOOK_UNWANTED,
};

use crate::{
    cupti::{self, Subscription},
    record, report,
};

enum State {
    Unwanted,
    On(Subscription),
    Failed(String),
}

/// Only for the helper thread, and for the one that begins.
static STATE: Mutex<State> = Mutex::new(State::Unwanted);

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Subscribes. On the driver's own thread while it is being initialised, as CUPTI's documentation
/// has it; else on the helper's.
pub fn begin() {
    *lock() = start();
}

/// Takes CUPTI again if whoever took it is done.
pub fn look() {
    let mut state = lock();
    match &*state {
        State::On(subscription) if subscription.lost() || !subscription.is_watching() => {
            // Held by somebody else: the state says that it is given up.
            let _ = cupti::resume(subscription);
        }
        State::Failed(_) => *state = start(),
        _ => {}
    }
}

fn start() -> State {
    match cupti::start(record::on_driver) {
        Ok(subscription) => State::On(subscription),
        Err(error) => State::Failed(error.to_string()),
    }
}

/// The state in words.
pub fn report() -> vs_hook_report {
    match &*lock() {
        State::Unwanted => report::entry(vs_hook_state_VS_HOOK_UNWANTED, 0, ""),
        State::On(subscription) if subscription.is_watching() => {
            report::entry(vs_hook_state_VS_HOOK_PLACED, 1, &subscription.to_string())
        }
        State::On(_) => report::entry(
            vs_hook_state_VS_HOOK_FAILED,
            0,
            "given up to a profiler in the process (torch.profiler), which needs CUPTI for itself",
        ),
        State::Failed(why) => report::entry(vs_hook_state_VS_HOOK_FAILED, 0, why),
    }
}

/// Ends the subscription; whether no thread is in a callback, and what could not be undone.
pub fn end() -> (bool, Option<&'static str>) {
    match std::mem::replace(&mut *lock(), State::Unwanted) {
        State::On(subscription) => {
            let stopped = subscription.stop();
            (stopped.quiet, stopped.note)
        }
        _ => (true, None),
    }
}

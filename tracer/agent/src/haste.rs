//! While this thread holds the GIL the whole program waits for it: it must not wait for a processor.
#![allow(unsafe_code)]

use std::time::Duration;

/// The highest priority that there is.
const HIGHEST: i32 = -20;

/// The time that this thread has had a processor.
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer; the clock is that of the calling thread.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if failed != 0 {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Sets this thread's priority, where the process may: it needs `CAP_SYS_NICE`. On Linux a nice value
/// is a thread's own.
fn set(nice: i32) -> bool {
    // SAFETY: takes numbers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) == 0 }
}

/// High priority, until it is dropped.
#[derive(Debug)]
pub(crate) struct Haste {
    before: Option<i32>,
}

impl Haste {
    pub(crate) fn begin() -> Haste {
        // SAFETY: takes numbers; 0 is the calling thread. -1 may be an error or an answer; of an
        // error nothing follows but that priority.
        let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        Haste {
            before: set(HIGHEST).then_some(before),
        }
    }
}

impl Drop for Haste {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            set(before);
        }
    }
}

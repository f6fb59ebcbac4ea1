//! Events: points in time on the host's clock.

use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use simcuda_common::code::{INVALID_HANDLE, INVALID_VALUE, Outcome};
use simcuda_common::ffi::Out;

use crate::context;
use crate::driver::driver;
use crate::graph::Capture;
use crate::types::Handle;

const DISABLE_TIMING: c_uint = 2;
const INTERPROCESS: c_uint = 4;

/// An event.
#[derive(Debug)]
pub struct Event {
    flags: c_uint,
    last: Mutex<Recorded>,
}

impl Event {
    /// An event of another process, as an importer has it.
    pub fn of_another_process() -> Self {
        Self {
            flags: DISABLE_TIMING | INTERPROCESS,
            last: Mutex::default(),
        }
    }

    /// Whether other processes may have it.
    pub fn is_interprocess(&self) -> bool {
        self.flags & INTERPROCESS != 0
    }
}

#[derive(Debug, Default)]
struct Recorded {
    at: Option<Instant>,
    /// The capture of the stream that it was recorded in.
    capture: Option<Arc<Capture>>,
}

fn record(event: Handle, stream: Handle) -> Outcome {
    let driver = driver()?;
    let event = driver.events.get(event)?;
    let capture = driver
        .streams
        .get(stream)?
        .capture
        .lock()
        .expect("no panics")
        .clone();
    *event.last.lock().expect("no panics") = Recorded {
        at: Some(Instant::now()),
        capture,
    };
    Ok(())
}

crate::driver_api! {
    fn cuEventCreate(event: Out<Handle>, flags: c_uint) {
        let driver = driver()?;
        context::current()?;
        if flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
            return Err(INVALID_VALUE);
        }
        event.set(driver.events.insert(Event { flags, last: Mutex::default() }))
    }

    fn cuEventDestroy, cuEventDestroy_v2(event: Handle) {
        driver()?.events.remove(event).map(|_| ())
    }

    fn cuEventRecord, cuEventRecord_ptsz(event: Handle, stream: Handle) {
        record(event, stream)
    }

    fn cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz(
        event: Handle, stream: Handle, _flags: c_uint,
    ) {
        record(event, stream)
    }

    fn cuEventQuery(event: Handle) {
        driver()?.events.get(event).map(|_| ())
    }

    fn cuEventSynchronize(event: Handle) {
        driver()?.events.get(event).map(|_| ())
    }

    fn cuEventElapsedTime, cuEventElapsedTime_v2(
        milliseconds: Out<f32>, start: Handle, end: Handle,
    ) {
        let driver = driver()?;
        let when = |handle: Handle| -> Result<Instant, c_int> {
            let event = driver.events.get(handle)?;
            if event.flags & DISABLE_TIMING != 0 {
                return Err(INVALID_HANDLE);
            }
            event.last.lock().expect("no panics").at.ok_or(INVALID_HANDLE)
        };
        let (start, end) = (when(start)?, when(end)?);
        let elapsed = match end.checked_duration_since(start) {
            Some(forward) => forward.as_secs_f64(),
            None => -start.duration_since(end).as_secs_f64(),
        };
        milliseconds.set((elapsed * 1e3) as f32)
    }

    // Waiting for an event of a capturing stream makes the waiting stream capture too.
    fn cuStreamWaitEvent, cuStreamWaitEvent_ptsz(stream: Handle, event: Handle, _flags: c_uint) {
        let driver = driver()?;
        let stream = driver.streams.get(stream)?;
        let capture = driver.events.get(event)?.last.lock().expect("no panics").capture.clone();
        if let Some(capture) = capture.filter(|capture| capture.is_active()) {
            stream.capture.lock().expect("no panics").get_or_insert(capture);
        }
        Ok(())
    }
}

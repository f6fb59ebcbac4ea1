//! Recording a session: when to write what, and what to do when it cannot be written.
//!
//! The collector's thread hands its records over and never waits: a thread of the recorder's own
//! compresses and writes them. Where that falls behind (a slow disk), events are left out, counted
//! and said, and a checkpoint makes the recording right again. Where the disk is full the
//! recording ends and the session goes on.

mod file;
mod flight;
mod rotate;
mod work;

use std::{
    io, mem,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crossbeam_channel::{Sender, unbounded};
use thiserror::Error;
use vramscope_events::{Event, ProbeView, ProcessInfo, Record, Time};
use vramscope_recording::{Checkpoint, News, SessionInfo};

use crate::Collector;
use file::FileOutput;
use flight::FlightOutput;
use work::{Output, Work};

/// Records that may wait for the disk: some 100 MB of them.
const MAX_WAITING: u64 = 1_000_000;
/// Nanoseconds between checkpoints, at least.
const CHECKPOINT_EVERY: u64 = 30_000_000_000;
/// After so many nanoseconds a checkpoint is made whatever it costs.
const CHECKPOINT_AT_LAST: u64 = 120_000_000_000;
/// After so many events likewise: a reader has to go through them to reach a moment.
const CHECKPOINT_EVENTS: u64 = 1_500_000;
/// A checkpoint may take so much of the file: one part in eight.
const CHECKPOINT_SHARE: u64 = 8;
/// Minutes that a flight recorder keeps where nothing else is said.
pub const FLIGHT_MINUTES: u64 = 5;
/// Bytes that it keeps at most where nothing else is said.
pub const FLIGHT_BYTES: u64 = 256 << 20;

/// What to record to, and how much of it to keep.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file.
    pub path: PathBuf,
    /// Whether to write over a file that is there.
    pub force: bool,
    /// Keep what happened in memory, and write it when memory runs out or the process ends.
    pub flight: bool,
    /// Keep the last so much; everything (of a flight recorder, [`FLIGHT_MINUTES`]) if not given.
    pub keep_last: Option<Duration>,
    /// Keep the last so many bytes.
    pub max_bytes: Option<u64>,
}

/// Why recording cannot begin.
#[derive(Debug, Error)]
pub enum RecorderError {
    /// The file is there.
    #[error(
        "{path} is there already\n  write over it with --force, or name another file",
        path = path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be made.
    #[error("{path} cannot be written: {cause}", path = path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        cause: io::Error,
    },
}

/// What became of a recording.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Where it is.
    pub path: PathBuf,
    /// How large the file is; 0 if there is none.
    pub bytes: u64,
    /// Events written, all in all.
    pub events: u64,
    /// Events that were left out because the disk could not keep up.
    pub left_out: u64,
    /// Why it ended before the session did.
    pub trouble: Option<String>,
}

/// What goes to the recorder's thread.
pub(crate) enum Message {
    Records(Vec<Record>),
    Checkpoint(Box<Checkpoint>),
    LeftOut { events: u64, time: Time },
    News { news: News, time: Time },
    End { until: Time, reason: String },
}

/// What both threads know.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Records under way.
    pub waiting: AtomicU64,
    /// Bytes written since the last checkpoint, and of the last checkpoint.
    pub bytes_since: AtomicU64,
    pub checkpoint_bytes: AtomicU64,
    /// The recording ended with this.
    pub stopped: AtomicBool,
    pub trouble: Mutex<Option<String>>,
}

impl Shared {
    /// Nothing is written any more.
    pub fn stop(&self, trouble: String) {
        let mut told = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        told.get_or_insert(trouble);
        self.stopped.store(true, Ordering::Release);
    }
}

/// A recording under way.
pub struct Recorder {
    sender: Sender<Message>,
    shared: Arc<Shared>,
    thread: JoinHandle<Summary>,
    path: PathBuf,
    /// Left out since something was sent last, and in all.
    missing: u64,
    left_out: u64,
    /// The last event, and where and when the last checkpoint was.
    last: Time,
    checkpoint_at: Time,
    events_since: u64,
    told: bool,
}

impl Recorder {
    /// Opens the file and begins.
    ///
    /// # Errors
    /// The file is there, or cannot be made.
    pub fn start(options: &Options, info: &SessionInfo) -> Result<Recorder, RecorderError> {
        let output: Box<dyn Output> = if options.flight {
            Box::new(FlightOutput::new(options)?)
        } else {
            Box::new(FileOutput::new(options)?)
        };
        Self::start_on(output, options.path.clone(), info)
    }

    fn start_on(
        output: Box<dyn Output>,
        path: PathBuf,
        info: &SessionInfo,
    ) -> Result<Recorder, RecorderError> {
        let shared = Arc::new(Shared::default());
        let (sender, receiver) = unbounded();
        let work = Work::new(output, path.clone(), info, receiver, Arc::clone(&shared));
        let work = work.map_err(|cause| RecorderError::Create {
            path: path.clone(),
            cause,
        })?;
        let thread = thread::Builder::new()
            .name("recorder".into())
            .spawn(move || work.run())
            .map_err(|cause| RecorderError::Create {
                path: path.clone(),
                cause,
            })?;
        Ok(Recorder {
            sender,
            shared,
            thread,
            path,
            missing: 0,
            left_out: 0,
            last: info.started,
            checkpoint_at: info.started,
            events_since: 0,
            told: false,
        })
    }

    /// Takes records that `collector` has just taken in. Never waits.
    pub fn take(&mut self, mut records: Vec<Record>, collector: &Collector) {
        let Some(last) = records.last() else { return };
        if self.shared.stopped.load(Ordering::Acquire) {
            return;
        }
        self.last = self.last.max(last.time);
        let count = records.len() as u64;
        let no_room = self.shared.waiting.load(Ordering::Acquire) + count > MAX_WAITING;
        if no_room || self.missing > 0 {
            while let Some((at, news)) = next_start(&records) {
                self.send(news);
                records.drain(..=at);
            }
        }
        if no_room {
            self.missing += count;
            return;
        }
        if self.missing > 0 {
            // The checkpoint knows these records already.
            let (events, time) = (self.missing + count, self.last);
            self.missing = 0;
            self.left_out += events;
            self.send(Message::LeftOut { events, time });
            self.checkpoint(collector);
            return;
        }
        self.events_since += count;
        self.shared.waiting.fetch_add(count, Ordering::AcqRel);
        // Who begins is told where it was told: behind what came before.
        while let Some((at, news)) = next_start(&records) {
            let later = records.split_off(at + 1);
            self.send(Message::Records(mem::replace(&mut records, later)));
            self.send(news);
        }
        self.send(Message::Records(records));
        if self.is_checkpoint_due() {
            self.checkpoint(collector);
        }
    }

    /// What became of the probes.
    pub fn probes(&mut self, probes: &[ProbeView]) {
        let (news, time) = (News::Probes(probes.to_vec()), self.last);
        self.send(Message::News { news, time });
    }

    /// Records that wait for the disk.
    pub fn waiting(&self) -> u64 {
        self.shared.waiting.load(Ordering::Acquire)
    }

    /// Why the recording ended before the session: said once.
    pub fn trouble(&mut self) -> Option<String> {
        if self.told || !self.shared.stopped.load(Ordering::Acquire) {
            return None;
        }
        self.told = true;
        let told = self.shared.trouble.lock();
        told.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what is under way and closes the file. `until`: the moment up to which the session
    /// watched.
    pub fn finish(mut self, collector: &Collector, until: Time, reason: &str) -> Summary {
        if self.missing > 0 {
            let (events, time) = (self.missing, self.last);
            self.left_out += events;
            self.send(Message::LeftOut { events, time });
            self.checkpoint(collector);
        }
        let reason = reason.to_owned();
        self.send(Message::End { until, reason });
        let summary = self.thread.join().unwrap_or_else(|_| Summary {
            path: self.path,
            bytes: 0,
            events: 0,
            left_out: 0,
            trouble: Some("the recorder died; this is a bug, please report it".into()),
        });
        Summary {
            left_out: self.left_out,
            ..summary
        }
    }

    fn is_checkpoint_due(&self) -> bool {
        let passed = self.last.0.saturating_sub(self.checkpoint_at.0);
        let written = self.shared.bytes_since.load(Ordering::Acquire);
        let costs = self.shared.checkpoint_bytes.load(Ordering::Acquire);
        let cheap = written >= costs * CHECKPOINT_SHARE;
        (passed >= CHECKPOINT_EVERY && cheap)
            || passed >= CHECKPOINT_AT_LAST
            || self.events_since >= CHECKPOINT_EVENTS
    }

    fn checkpoint(&mut self, collector: &Collector) {
        let checkpoint = Box::new(collector.checkpoint(self.last));
        self.send(Message::Checkpoint(checkpoint));
        self.checkpoint_at = self.last;
        self.events_since = 0;
    }

    fn send(&self, message: Message) {
        // A thread that is gone has said why.
        let _ = self.sender.send(message);
    }
}

/// The first process that begins among these: where, and what to tell of it.
fn next_start(records: &[Record]) -> Option<(usize, Message)> {
    let mut records = records.iter().enumerate();
    records.find_map(|(at, record)| match &record.event {
        Event::ProcessStarted { info } => {
            let news = News::Process(ProcessInfo::clone(info));
            let time = record.time;
            Some((at, Message::News { news, time }))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests;

//! The recorder's thread.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use vramscope_events::{Event, Record, Time};
use vramscope_recording::{EVENTS_A_CHUNK, End, SessionInfo, Writer};

use super::{Message, Shared, Summary};

/// Records wait at most so long to be written: what a killed recorder loses, and less than the
/// 250 ms that the documentation promises.
const FLUSH: Duration = Duration::from_millis(150);

/// Where a recording goes.
pub(crate) trait Output: Send {
    /// The head of the file.
    fn begin(&mut self, head: &[u8]) -> io::Result<()>;
    /// Chunks that belong to what came before. Either all of it is kept, or none and an error.
    fn append(&mut self, chunks: &[u8], last: Time) -> io::Result<()>;
    /// A checkpoint with its number and moment: what comes after needs nothing before it.
    fn checkpoint(&mut self, chunk: &[u8], sequence: u64, time: Time) -> io::Result<()>;
    /// Memory ran out, or the process ended: something worth keeping.
    fn keep(&mut self, why: Why, writer: &Writer, until: Time) -> io::Result<()>;
    /// Whether there is work to do while nothing comes; does a little of it.
    fn idle(&mut self) -> bool;
    /// The recording ends in good order. Bytes of the file.
    fn end(&mut self, writer: &Writer, end: End) -> io::Result<u64>;
    /// The recording ends after an error. Bytes of the file.
    fn give_up(&mut self) -> u64;
}

/// Why something is worth keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    OutOfMemory,
    Exited,
}

impl Why {
    pub fn words(self) -> &'static str {
        match self {
            Why::OutOfMemory => "out of memory",
            Why::Exited => "the process ended",
        }
    }
}

pub(crate) struct Work {
    output: Box<dyn Output>,
    path: PathBuf,
    receiver: Receiver<Message>,
    shared: Arc<Shared>,
    writer: Writer,
    buffer: Vec<Record>,
    /// When the buffer must be written.
    due: Option<Instant>,
    last: Time,
}

impl Work {
    pub fn new(
        mut output: Box<dyn Output>,
        path: PathBuf,
        info: &SessionInfo,
        receiver: Receiver<Message>,
        shared: Arc<Shared>,
    ) -> io::Result<Work> {
        let mut writer = Writer::default();
        output.begin(&writer.session(info))?;
        Ok(Work {
            output,
            path,
            receiver,
            shared,
            writer,
            buffer: Vec::new(),
            due: None,
            last: info.started,
        })
    }

    pub fn run(mut self) -> Summary {
        let mut working = false;
        loop {
            let patience = match (working, self.due) {
                (true, _) => Duration::ZERO,
                (false, Some(due)) => due.saturating_duration_since(Instant::now()),
                (false, None) => Duration::from_secs(1),
            };
            match self.receiver.recv_timeout(patience) {
                Ok(Message::End { until, reason }) => return self.end(until, reason),
                Ok(message) => self.guarded(|work| work.take(message)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let last = self.last;
                    return self.end(last, "the session broke off".into());
                }
            }
            let due = self.due.is_some_and(|due| due <= Instant::now());
            if due || self.buffer.len() >= EVENTS_A_CHUNK {
                self.guarded(Work::flush);
            }
            working = !self.is_stopped() && self.output.idle();
        }
    }

    fn is_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::Acquire)
    }

    /// An error ends the recording, not the session.
    fn guarded(&mut self, work: impl FnOnce(&mut Work) -> io::Result<()>) {
        if self.is_stopped() {
            self.drop_buffer();
            return;
        }
        if let Err(error) = work(self) {
            self.stop(&error);
        }
    }

    fn stop(&mut self, error: &io::Error) {
        let bytes = self.output.give_up();
        let reason = match error.kind() {
            io::ErrorKind::StorageFull => "the disk is full".to_owned(),
            io::ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
            io::ErrorKind::FileTooLarge => "the file may not become larger".to_owned(),
            _ => error.to_string(),
        };
        self.drop_buffer();
        self.shared.stop(format!(
            "recording ended: {reason}; {} has what came before ({bytes} bytes), the session goes \
             on",
            self.path.display()
        ));
    }

    fn drop_buffer(&mut self) {
        let count = self.buffer.len() as u64;
        self.shared.waiting.fetch_sub(count, Ordering::AcqRel);
        self.buffer.clear();
        self.due = None;
    }

    fn take(&mut self, message: Message) -> io::Result<()> {
        match message {
            Message::Records(mut records) => {
                let why = records.iter().find_map(|record| match record.event {
                    Event::OutOfMemory(_) => Some(Why::OutOfMemory),
                    Event::ProcessExited => Some(Why::Exited),
                    _ => None,
                });
                if self.buffer.is_empty() {
                    self.buffer = records;
                    self.due = Some(Instant::now() + FLUSH);
                } else {
                    self.buffer.append(&mut records);
                }
                if let Some(why) = why {
                    self.flush()?;
                    self.output.keep(why, &self.writer, self.last)?;
                }
                Ok(())
            }
            Message::Checkpoint(checkpoint) => {
                self.flush()?;
                let sequence = self.writer.sequence();
                let chunk = self.writer.checkpoint(&checkpoint);
                self.output.checkpoint(&chunk, sequence, checkpoint.time)?;
                let bytes = chunk.len() as u64;
                self.shared.checkpoint_bytes.store(bytes, Ordering::Release);
                self.shared.bytes_since.store(0, Ordering::Release);
                Ok(())
            }
            Message::LeftOut { events, time } => {
                self.flush()?;
                let chunk = self.writer.left_out(events, time);
                self.output.append(&chunk, time)
            }
            Message::News { news, time } => {
                self.flush()?;
                let chunk = self.writer.news(&news, time);
                self.output.append(&chunk, time)
            }
            Message::End { .. } => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.due = None;
        if self.buffer.is_empty() {
            return Ok(());
        }
        let chunks = self.writer.records(&self.buffer);
        let last = self.buffer.iter().map(|record| record.time).max();
        self.last = self.last.max(last.unwrap_or_default());
        let written = self.output.append(&chunks, self.last);
        let bytes = chunks.len() as u64;
        self.shared.bytes_since.fetch_add(bytes, Ordering::AcqRel);
        if written.is_ok() {
            self.drop_buffer();
        }
        written
    }

    fn end(mut self, until: Time, reason: String) -> Summary {
        let mut bytes = 0;
        if !self.is_stopped() {
            let end = End {
                until,
                events: self.writer.events(),
                reason,
                checkpoints: Vec::new(),
            };
            let ended = self.flush().and_then(|()| {
                let events = self.writer.events();
                self.output.end(&self.writer, End { events, ..end })
            });
            match ended {
                Ok(written) => bytes = written,
                Err(error) => self.stop(&error),
            }
        }
        if self.is_stopped() {
            bytes = self.output.give_up();
        }
        let trouble = self.shared.trouble.lock();
        Summary {
            path: self.path.clone(),
            bytes,
            events: self.writer.events(),
            left_out: 0,
            trouble: trouble
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .clone(),
        }
    }
}

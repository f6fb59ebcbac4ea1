//! The flight recorder: the last minutes in memory, written when something happens.

use std::{
    collections::VecDeque,
    fs, io,
    os::unix::fs::FileExt as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use vramscope_events::Time;
use vramscope_recording::{CheckpointAt, End, Writer};

use super::{
    FLIGHT_BYTES, FLIGHT_MINUTES, Options, RecorderError,
    file::{may_write, part, private},
    work::{Output, Why},
};

/// A program that catches its out-of-memory errors may have one every step.
const REST: Duration = Duration::from_secs(10);

/// What happened from one checkpoint to the next.
struct Segment {
    /// Number and moment of the checkpoint that it begins with; the first has none.
    checkpoint: Option<(u64, Time)>,
    bytes: Vec<u8>,
}

/// The last minutes.
pub(crate) struct FlightOutput {
    path: PathBuf,
    head: Vec<u8>,
    segments: VecDeque<Segment>,
    bytes: u64,
    last: Time,
    keep: u64,
    max_bytes: u64,
    written: Option<Instant>,
    /// Something happened that is not in the file yet.
    pending: Option<Why>,
    length: u64,
}

impl FlightOutput {
    pub fn new(options: &Options) -> Result<FlightOutput, RecorderError> {
        may_write(&options.path, options.force)?;
        let keep = options
            .keep_last
            .unwrap_or(Duration::from_secs(FLIGHT_MINUTES * 60));
        Ok(FlightOutput {
            path: options.path.clone(),
            head: Vec::new(),
            segments: VecDeque::from([Segment {
                checkpoint: None,
                bytes: Vec::new(),
            }]),
            bytes: 0,
            last: Time(0),
            keep: u64::try_from(keep.as_nanos()).unwrap_or(u64::MAX),
            max_bytes: options.max_bytes.unwrap_or(FLIGHT_BYTES),
            written: None,
            pending: None,
            length: 0,
        })
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Some(segment) = self.segments.back_mut() {
            segment.bytes.extend_from_slice(bytes);
        }
    }

    /// Forgets what is older than it must be, as far as a checkpoint follows.
    fn forget(&mut self) {
        let from = Time(self.last.0.saturating_sub(self.keep));
        while let Some(second) = self.segments.get(1) {
            let old = second.checkpoint.is_some_and(|(_, time)| time <= from);
            if !old && self.bytes <= self.max_bytes {
                break;
            }
            if let Some(gone) = self.segments.pop_front() {
                self.bytes -= gone.bytes.len() as u64;
            }
        }
    }

    fn write(&mut self, why: Why, writer: &Writer, until: Time) -> io::Result<()> {
        let mut checkpoints = Vec::new();
        let mut offset = self.head.len() as u64;
        for segment in &self.segments {
            if let Some((sequence, time)) = segment.checkpoint {
                checkpoints.push(CheckpointAt {
                    offset,
                    sequence,
                    time,
                });
            }
            offset += segment.bytes.len() as u64;
        }
        let end = End {
            until,
            events: writer.events(),
            reason: why.words().into(),
            checkpoints,
        };
        let last = writer.end(&end, offset);
        let part = part(&self.path);
        let written = private(&part).and_then(|file| {
            let mut at = 0;
            let segments = self.segments.iter().map(|segment| &segment.bytes);
            for bytes in std::iter::once(&self.head).chain(segments).chain([&last]) {
                file.write_all_at(bytes, at)?;
                at += bytes.len() as u64;
            }
            file.sync_all()?;
            fs::rename(&part, &self.path)?;
            Ok(at)
        });
        match written {
            Ok(length) => {
                self.length = length;
                self.written = Some(Instant::now());
                self.pending = None;
                Ok(())
            }
            Err(error) => {
                // The error that counts is the one that is reported.
                let _ = fs::remove_file(&part);
                Err(error)
            }
        }
    }
}

impl Output for FlightOutput {
    fn begin(&mut self, head: &[u8]) -> io::Result<()> {
        self.head = head.to_vec();
        Ok(())
    }

    fn append(&mut self, chunks: &[u8], last: Time) -> io::Result<()> {
        self.last = self.last.max(last);
        self.push(chunks);
        Ok(())
    }

    fn checkpoint(&mut self, chunk: &[u8], sequence: u64, time: Time) -> io::Result<()> {
        self.segments.push_back(Segment {
            checkpoint: Some((sequence, time)),
            bytes: Vec::new(),
        });
        self.push(chunk);
        self.forget();
        Ok(())
    }

    fn keep(&mut self, why: Why, writer: &Writer, until: Time) -> io::Result<()> {
        let resting = self.written.is_some_and(|written| written.elapsed() < REST);
        if why == Why::OutOfMemory && resting {
            self.pending = Some(why);
            return Ok(());
        }
        self.write(why, writer, until)
    }

    fn idle(&mut self) -> bool {
        false
    }

    fn end(&mut self, writer: &Writer, end: End) -> io::Result<u64> {
        if let Some(why) = self.pending {
            self.write(why, writer, end.until)?;
        }
        Ok(self.length)
    }

    fn give_up(&mut self) -> u64 {
        self.length
    }
}

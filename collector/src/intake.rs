//! What happens to records between a tracer and everything that takes them: the collector and the
//! recorder see the same.

use std::sync::Arc;

use vramscope_events::{Event, Frame, FrameId, FrameKind, Pid, Record, Time};

use crate::{Collector, source::SourceCache};

/// Times are cut to this many nanoseconds: finer ones say nothing about memory, and cost a
/// recording a byte an event.
const GRAIN: u64 = 1_000;

/// Prepares the records of a session.
#[derive(Debug)]
pub struct Intake {
    sources: SourceCache,
}

impl Intake {
    /// For a session that began at `started_unix` (seconds since the Unix epoch): files that were
    /// changed later are not what its processes run.
    pub fn new(started_unix: u64) -> Intake {
        Intake {
            sources: SourceCache::new(started_unix),
        }
    }

    /// Cuts times to microseconds, and puts the text of its source line after each new frame: later
    /// the file may be another. `collector` knows the processes.
    pub fn prepare(&mut self, records: Vec<Record>, collector: &Collector) -> Vec<Record> {
        let mut records = records;
        let mut frames = false;
        for record in &mut records {
            record.time = Time(record.time.0 / GRAIN * GRAIN);
            frames |= matches!(record.event, Event::Frame { .. });
        }
        if !frames {
            return records;
        }
        let mut out = Vec::with_capacity(records.len() + 64);
        for record in records {
            let source = match &record.event {
                Event::Frame { id, frame } => self.source(record.process, *id, frame, collector),
                _ => None,
            };
            let source = source.map(|event| Record {
                event,
                ..record.clone()
            });
            out.push(record);
            out.extend(source);
        }
        out
    }

    fn source(
        &mut self,
        pid: Pid,
        id: FrameId,
        frame: &Arc<Frame>,
        collector: &Collector,
    ) -> Option<Event> {
        if frame.kind != FrameKind::Python {
            return None;
        }
        let process = collector.process(pid)?;
        let text = self.sources.line(process, &frame.file, frame.line)?;
        Some(Event::Source { frame: id, text })
    }
}

//! Steps that begin at a line of Python.
//!
//! Nothing tells when a line runs. What is seen is who allocates: a step begins when a thread
//! allocates below the line after it allocated elsewhere. So the line must allocate (or call what
//! allocates) once a step, and something else must, too.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_events::{Event, Frame, FrameId, Record, StackId, StepMark, StepMarkKind, Tid};

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepLine {
    file: String,
    line: u32,
}

impl StepLine {
    /// Line `line` of `file`: a path, or the end of one.
    pub fn new(file: &str, line: u32) -> StepLine {
        StepLine {
            file: file.to_owned(),
            line,
        }
    }

    /// The file as given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    fn is(&self, frame: &Frame) -> bool {
        let at_a_name = |rest: &str| rest.is_empty() || rest.ends_with('/');
        frame.line == self.line && frame.file.strip_suffix(&self.file).is_some_and(at_a_name)
    }
}

/// Finds the marks of one line in a stream of events.
#[derive(Debug)]
pub(crate) struct LineMarker {
    line: StepLine,
    frames: FxHashSet<FrameId>,
    below: FxHashSet<StackId>,
    /// By thread: whether its last allocation was below the line.
    inside: FxHashMap<Tid, bool>,
}

impl LineMarker {
    pub fn new(line: StepLine) -> LineMarker {
        LineMarker {
            line,
            frames: FxHashSet::default(),
            below: FxHashSet::default(),
            inside: FxHashMap::default(),
        }
    }

    /// Where each thread is; the rest is learnt from definitions.
    pub fn threads(&self) -> &FxHashMap<Tid, bool> {
        &self.inside
    }

    /// Goes on where another one was.
    pub fn restore_threads(&mut self, inside: FxHashMap<Tid, bool>) {
        self.inside = inside;
    }

    /// Learns which stacks lead through the line.
    pub fn define(&mut self, event: &Event) {
        match event {
            Event::Frame { id, frame } => self.frame(*id, frame),
            Event::Stack { id, frames }
                if frames.iter().any(|frame| self.frames.contains(frame)) =>
            {
                self.below.insert(*id);
            }
            _ => {}
        }
    }

    /// The mark that belongs before `record`, if one does.
    pub fn mark(&mut self, record: &Record) -> Option<Record> {
        let Event::Alloc(alloc) = &record.event else {
            return None;
        };
        let below = self.below.contains(&alloc.stack);
        let before = self.inside.insert(record.thread, below);
        (below && before != Some(true)).then(|| Record {
            event: Event::StepMark(StepMark {
                kind: StepMarkKind::User,
                stack: alloc.stack,
            }),
            ..record.clone()
        })
    }

    fn frame(&mut self, id: FrameId, frame: &Arc<Frame>) {
        if self.line.is(frame) {
            self.frames.insert(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use vramscope_events::{Address, Alloc, DeviceId, FrameKind, Layer, Pid, Time};

    use super::*;

    fn record(event: Event) -> Record {
        Record {
            time: Time(1),
            process: Pid(1),
            thread: Tid(1),
            event,
        }
    }

    fn frame(id: u32, file: &str, line: u32) -> Record {
        record(Event::Frame {
            id: FrameId(id),
            frame: Arc::new(Frame {
                kind: FrameKind::Python,
                file: file.into(),
                function: "f".into(),
                line,
            }),
        })
    }

    fn stack(id: u32, frames: &[u32]) -> Record {
        record(Event::Stack {
            id: StackId(id),
            frames: frames.iter().map(|id| FrameId(*id)).collect(),
        })
    }

    fn alloc(stack: u32) -> Record {
        record(Event::Alloc(Alloc {
            layer: Layer::Tensor,
            device: DeviceId(0),
            address: Address(1),
            size: 512,
            stack: StackId(stack),
            totals: None,
        }))
    }

    #[test]
    fn a_step_begins_when_the_line_is_entered() {
        let mut marker = LineMarker::new(StepLine::new("train.py", 42));
        let stream = [
            frame(1, "/home/me/train.py", 42),
            frame(2, "/home/me/model.py", 7),
            frame(3, "/home/me/train.py", 43),
            frame(4, "/home/me/pretrain.py", 42),
            stack(1, &[2, 1]),
            stack(2, &[3]),
            stack(3, &[4]),
            alloc(1),
            alloc(1),
            alloc(2),
            alloc(3),
            alloc(1),
        ];
        let marked: Vec<_> = stream
            .iter()
            .map(|record| {
                marker.define(&record.event);
                marker.mark(record).is_some()
            })
            .collect();
        assert_eq!(
            marked[7..],
            [true, false, false, false, true],
            "two steps: the first allocation of each pass"
        );
        assert!(marked[..7].iter().all(|marked| !marked));
    }
}

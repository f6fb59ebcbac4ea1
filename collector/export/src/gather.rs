//! From a stream of events to what a format writes, in one pass.

use rustc_hash::FxHashMap;
use vramscope_collector::{BookKey, Collector, view::View};
use vramscope_events::{Pid, ProcessInfo, Record, StackId, Time};

use crate::{
    frames::StackIndex,
    peak::Peak,
    select::{Maker, Taken, books},
    selection::{Choice, SelectError, Selection, What},
    tail::Tail,
};

/// Takes a stream and selects from it; memory by sites, live blocks and the events to keep.
///
/// [`What::Peak`] needs the stream twice: [`crate::PeakFinder`] sees it first.
#[derive(Debug)]
pub struct Gather {
    collector: Collector,
    choice: Choice,
    tail: Tail,
    /// Peaks that are still to come, the next one last.
    peaks: Vec<(BookKey, Peak)>,
    taken: Vec<(BookKey, Taken)>,
    /// Whether [`What::At`]'s time has passed: then `taken` is complete.
    passed: bool,
    record: u64,
    last: Time,
}

/// What a stream gave.
#[derive(Debug)]
pub struct Gathered {
    /// The allocations.
    pub selection: Selection,
    /// Everything the collector knows at the end of the stream.
    pub view: View,
    /// The last events up to the selection's moment.
    pub tail: Tail,
    /// Whether the selection is what is alive after the tail's last event.
    pub tail_is_state: bool,
    /// The stacks of the tail's events that are in the selection's table.
    pub tail_stacks: FxHashMap<(Pid, StackId), StackIndex>,
}

impl Gather {
    /// Selects by `choice` from what `collector` (fresh, its processes told) will be fed, and keeps
    /// the last `events` events.
    pub fn new(collector: Collector, choice: Choice, events: usize) -> Gather {
        let mut peaks: Vec<(BookKey, Peak)> = match &choice.what {
            What::Peak(peaks) => peaks.iter().collect(),
            _ => Vec::new(),
        };
        peaks.sort_by_key(|(_, peak)| std::cmp::Reverse(peak.record));
        Gather {
            collector,
            choice,
            tail: Tail::new(events),
            peaks,
            taken: Vec::new(),
            passed: false,
            record: 0,
            last: Time(0),
        }
    }

    /// Tells who a process is.
    pub fn process(&mut self, info: ProcessInfo) {
        self.collector.add_process(info);
    }

    /// Records are missing: the stream goes on at `time` with what `collector` knows.
    pub fn restart(&mut self, collector: Collector, time: Time) {
        // A moment within the gap is the last one before it, where there is one.
        if matches!(self.choice.what, What::At(at) if at < time) && !self.passed && self.record > 0
        {
            self.stop();
        }
        self.collector = collector;
        self.last = self.last.max(time);
        if !self.passed {
            self.tail.restart();
        }
    }

    /// Takes the next records of the stream.
    pub fn push(&mut self, batch: &[Record]) {
        let mut rest = batch;
        while !rest.is_empty() {
            let part = match self.next_moment(rest) {
                Some(length) => {
                    let (part, after) = rest.split_at(length);
                    rest = after;
                    self.take(part);
                    self.stop();
                    continue;
                }
                None => std::mem::take(&mut rest),
            };
            self.take(part);
        }
    }

    fn take(&mut self, part: &[Record]) {
        self.collector.ingest(part);
        if !self.passed {
            self.tail.push(part);
        }
        self.record += part.len() as u64;
        for record in part {
            self.last = self.last.max(record.time);
        }
    }

    /// How many of these records come before the next moment that counts.
    fn next_moment(&self, records: &[Record]) -> Option<usize> {
        match &self.choice.what {
            What::At(time) if !self.passed => records.iter().position(|record| record.time > *time),
            What::Peak(_) => {
                let (_, peak) = self.peaks.last()?;
                let length = (peak.record + 1 - self.record) as usize;
                (length <= records.len()).then_some(length)
            }
            _ => None,
        }
    }

    /// Counts what is alive now.
    fn stop(&mut self) {
        match &self.choice.what {
            What::At(_) => {
                self.passed = true;
                for key in self.collector.books() {
                    let taken = Taken::from(&self.collector, key, &self.choice);
                    self.taken.push((key, taken));
                }
            }
            What::Peak(_) => {
                if let Some((key, _)) = self.peaks.pop() {
                    let taken = Taken::from(&self.collector, key, &self.choice);
                    self.taken.push((key, taken));
                }
            }
            _ => {}
        }
    }

    /// Selects.
    ///
    /// # Errors
    /// The device or layer that was chosen is not in the stream.
    pub fn finish(mut self) -> Result<Gathered, SelectError> {
        if matches!(self.choice.what, What::At(_)) && !self.passed {
            self.stop();
        }
        let view = self.collector.view(self.last);
        let keys = books(&self.collector, &self.choice)?;
        let now_counts = !matches!(self.choice.what, What::At(_) | What::Peak(_));
        let mut taken: FxHashMap<BookKey, Taken> = self.taken.into_iter().collect();
        let moment = match (&self.choice.what, keys.first()) {
            (What::At(time), _) => *time,
            (What::Peak(peaks), Some(key)) => peaks.of(*key).map_or(view.now, |peak| peak.time),
            _ => view.now,
        };
        let mut maker = Maker::new(&mut self.collector, &view);
        for key in keys {
            let taken = if now_counts {
                Taken::from(maker.collector, key, &self.choice)
            } else {
                taken.remove(&key).unwrap_or_default()
            };
            maker.part(&view, key, taken, &self.choice);
        }
        let mut tail_stacks = FxHashMap::default();
        for event in self.tail.events() {
            if let crate::tail::TailKind::Alloc { stack, .. }
            | crate::tail::TailKind::OutOfMemory { stack, .. } = event.what
            {
                tail_stacks
                    .entry((event.process, stack))
                    .or_insert_with(|| maker.stack(event.process, stack));
            }
        }
        let selection = maker.finish(&view, &self.choice, moment);
        Ok(Gathered {
            selection,
            view,
            tail: self.tail,
            tail_is_state: matches!(self.choice.what, What::Survivors | What::At(_)),
            tail_stacks,
        })
    }
}

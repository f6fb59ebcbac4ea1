//! From a recording and the command line to a selection.

use std::{
    cell::Cell,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use vramscope_collector::{Collector, Config, UserCode, replay::ReplayError};
use vramscope_events::{DeviceId, Layer, Pid, ProcessInfo, Record, Time};
use vramscope_export::{Bound, Choice, Gather, Gathered, PeakFinder, What};
use vramscope_recording::{Checkpoint, Damage, News, Piece, Recording};

use crate::{
    cli::{LayerName, Moment, SelectArgs, TargetArgs, Weight, Window},
    exit::DAMAGED_INPUT,
    recording,
    subject::{At, Place},
};

/// A recording that is open.
pub struct Recorded {
    path: PathBuf,
    recording: Recording,
    config: Config,
    /// The moment that was named with the file.
    moment: Option<Time>,
    /// Whether bytes were found that are not what was written.
    corrupt: Cell<bool>,
}

/// Sees the records of a recording go by.
pub trait Visitor {
    /// The next records.
    ///
    /// # Errors
    /// Whatever it does with them fails.
    fn records(&mut self, records: &[Record]) -> anyhow::Result<()>;
    /// Records are missing: what comes follows from what the checkpoint states.
    fn restart(&mut self, checkpoint: &Checkpoint);
    /// A process, new or better known.
    fn process(&mut self, info: &ProcessInfo);
}

impl Recorded {
    /// Opens a recording, with what the command line says of its own.
    ///
    /// # Errors
    /// It cannot be read, or it is none; there is no such moment in it.
    pub fn open(place: &Place, target: Option<&TargetArgs>) -> anyhow::Result<Recorded> {
        let recording = Recording::open(&place.path).map_err(ReplayError::from)?;
        let mut config = Config::of_recording(recording.info()).map_err(ReplayError::from)?;
        if let Some(target) = target
            && !target.watch.user_code.is_empty()
        {
            config.user_code = UserCode::new(&target.watch.user_code)?;
        }
        let moment = match place.at {
            At::End => None,
            _ => Some(recording::at(place, target)?.moment()),
        };
        Ok(Recorded {
            path: place.path.clone(),
            config,
            recording,
            moment,
            corrupt: Cell::new(false),
        })
    }

    /// A collector that is set as the one was that recorded, and has seen nothing.
    fn collector(&self) -> Collector {
        let info = self.recording.info();
        let mut collector = Collector::new(self.config.clone());
        for process in &info.processes {
            collector.add_process(process.clone());
        }
        collector.set_probes(info.probes.clone());
        collector
    }

    /// A collector that knows what a checkpoint states.
    fn restored(&self, checkpoint: &Checkpoint) -> Collector {
        Collector::restore(self.config.clone(), checkpoint).unwrap_or_else(|error| {
            eprintln!("note: steps and growth before the gap are not known: {error}");
            let mut collector = self.collector();
            collector.ingest(&checkpoint.restated());
            collector
        })
    }

    /// Goes through the whole recording, with a progress bar on a terminal.
    ///
    /// # Errors
    /// The file cannot be read on, or the visitor fails. Damage is no error: it is told on stderr.
    pub fn visit(&self, what: &str, visitor: &mut dyn Visitor) -> anyhow::Result<()> {
        let bar = recording::bar(self.recording.length()).with_message(what.to_owned());
        let started = Instant::now();
        let mut pieces = self.recording.pieces();
        while let Some(piece) = pieces.next() {
            let piece =
                piece.with_context(|| format!("{} cannot be read on", self.path.display()))?;
            match piece {
                Piece::Records(records) => visitor.records(&records)?,
                Piece::Checkpoint {
                    checkpoint,
                    restart: true,
                } => visitor.restart(&checkpoint),
                Piece::News(News::Process(info)) => visitor.process(&info),
                // Probes are of no interest here, and a checkpoint on the way restates what is known.
                _ => {}
            }
            if started.elapsed() >= recording::QUICK {
                bar.set_position(pieces.position());
            }
        }
        bar.finish_and_clear();
        for damage in pieces.damage() {
            if !self.corrupt.get() {
                eprintln!("note: {}: {damage}", self.path.display());
            }
        }
        if pieces.damage().iter().any(Damage::is_corruption) {
            self.corrupt.set(true);
        }
        Ok(())
    }

    /// What the command line selects, with the last `events` events.
    ///
    /// # Errors
    /// As [`Recorded::visit`], and nothing of what was chosen is in the recording.
    pub fn gather(&self, choice: Choice, events: usize) -> anyhow::Result<Gathered> {
        let mut selecting = self.selecting(choice, events);
        self.visit("selecting", &mut selecting)?;
        selecting.finish()
    }

    /// A visitor that selects.
    pub fn selecting(&self, choice: Choice, events: usize) -> Selecting<'_> {
        Selecting {
            gather: Gather::new(self.collector(), choice, events),
            recorded: self,
        }
    }

    /// The command line's choice; the peak is looked for.
    ///
    /// # Errors
    /// As [`Recorded::visit`].
    pub fn choice(&self, args: &SelectArgs, blocks: bool) -> anyhow::Result<Choice> {
        let mut choice = choice(args, self.recording.info().started, blocks)?;
        if let Some(moment) = self.moment {
            anyhow::ensure!(
                matches!(choice.what, What::Survivors),
                "a moment named with the file is a selection of its own\n  leave it out, or --at, \
                 --window, --peak, --allocated and --by growth"
            );
            choice.what = What::At(moment);
        }
        if args.peak {
            let mut finder = Peaking::default();
            self.visit("looking for the peak", &mut finder)?;
            choice.what = What::Peak(finder.0.finish());
        }
        Ok(choice)
    }

    /// The exit code where nothing else went wrong.
    pub fn exit_code(&self) -> ExitCode {
        if self.corrupt.get() {
            ExitCode::from(DAMAGED_INPUT)
        } else {
            ExitCode::SUCCESS
        }
    }

    /// When it began.
    pub fn started(&self) -> Time {
        self.recording.info().started
    }
}

/// The command line's choice, with a peak that nobody has looked for yet.
///
/// # Errors
/// What the command line says does not go together.
pub fn choice(args: &SelectArgs, started: Time, blocks: bool) -> anyhow::Result<Choice> {
    let special = args.at.is_some() || args.window.is_some() || args.peak || args.allocated;
    anyhow::ensure!(
        !(special && args.by == Weight::Growth),
        "--by growth is about all survivors\n  leave --at, --window, --peak and --allocated out"
    );
    let what = match args {
        _ if args.by == Weight::Growth => What::Growth,
        _ if args.allocated => What::Allocated,
        _ if args.peak => What::Peak(PeakFinder::default().finish()),
        SelectArgs { at: Some(at), .. } => What::At(after(started, *at)),
        SelectArgs {
            window: Some(window),
            ..
        } => bounds(*window, started),
        _ => What::Survivors,
    };
    Ok(Choice {
        what,
        layer: args.layer.map(|layer| match layer {
            LayerName::Tensor => Layer::Tensor,
            LayerName::Driver => Layer::Driver,
            LayerName::Host => Layer::Host,
        }),
        device: args.device.map(DeviceId),
        process: args.pid.map(Pid),
        blocks,
    })
}

fn bounds(window: Window, started: Time) -> What {
    let bound = |moment: Option<Moment>, open: Bound| match moment {
        None => open,
        Some(Moment::Step(step)) => Bound::Step(step),
        Some(Moment::Time(time)) => Bound::Time(after(started, time)),
    };
    What::Window(
        bound(window.from, Bound::Step(0)),
        bound(window.to, Bound::Step(u64::MAX)),
    )
}

/// A time of the command line, which counts from the beginning.
pub fn after(started: Time, time: Duration) -> Time {
    let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Time(started.0.saturating_add(nanoseconds))
}

/// Which number counts.
pub fn weight(args: &SelectArgs) -> vramscope_export::Weight {
    match args.by {
        _ if args.blocks => vramscope_export::Weight::Blocks,
        Weight::Blocks => vramscope_export::Weight::Blocks,
        Weight::Bytes | Weight::Growth => vramscope_export::Weight::Bytes,
    }
}

/// Selects while the records go by.
pub struct Selecting<'a> {
    gather: Gather,
    recorded: &'a Recorded,
}

impl Selecting<'_> {
    /// What was selected; its notes go to stderr.
    ///
    /// # Errors
    /// Nothing of what was chosen is in the recording.
    pub fn finish(self) -> anyhow::Result<Gathered> {
        let gathered = self.gather.finish()?;
        for note in &gathered.selection.notes {
            eprintln!("note: {note}");
        }
        Ok(gathered)
    }
}

impl Visitor for Selecting<'_> {
    fn records(&mut self, records: &[Record]) -> anyhow::Result<()> {
        self.gather.push(records);
        Ok(())
    }

    fn restart(&mut self, checkpoint: &Checkpoint) {
        let collector = self.recorded.restored(checkpoint);
        self.gather.restart(collector, checkpoint.time);
    }

    fn process(&mut self, info: &ProcessInfo) {
        self.gather.process(info.clone());
    }
}

#[derive(Default)]
struct Peaking(PeakFinder);

impl Visitor for Peaking {
    fn records(&mut self, records: &[Record]) -> anyhow::Result<()> {
        self.0.push(records);
        Ok(())
    }

    fn restart(&mut self, checkpoint: &Checkpoint) {
        self.0.restart(&checkpoint.restated());
    }

    fn process(&mut self, _: &ProcessInfo) {}
}

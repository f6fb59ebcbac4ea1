//! A recording fed to a collector: the view at any moment of it.

use std::{path::Path, sync::Arc};

use thiserror::Error;
use vramscope_events::{Record, Time};
use vramscope_recording::{
    Damage, News, OpenError, Piece, Pieces, ReadError, Recording, SessionInfo, Settings,
};

use crate::{
    Alarms, Collector, Config, RestoreError, StepLine, StepOptions, UserCode, UserCodeError,
    view::{LogLevel, View},
};

/// Why a recording cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be read on.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its settings make no sense.
    #[error("the settings in the recording: {0}")]
    Settings(#[from] UserCodeError),
}

impl ReplayError {
    /// Whether the file is at fault, not the system.
    pub fn is_damage(&self) -> bool {
        match self {
            ReplayError::Open(error) => error.is_damage(),
            ReplayError::Read(error) => matches!(error, ReadError::TooNew { .. }),
            ReplayError::Settings(_) => true,
        }
    }
}

impl Config {
    /// How the collector of the session was set whose recording begins with `info`.
    ///
    /// # Errors
    /// A pattern that is not a glob.
    pub fn of_recording(info: &SessionInfo) -> Result<Config, UserCodeError> {
        let settings = &info.settings;
        let line = settings.step_on.as_ref();
        Ok(Config {
            backend: info.backend,
            started: info.started,
            started_unix: info.started_unix,
            user_code: UserCode::new(&settings.user_code)?,
            steps: StepOptions {
                fold: settings.fold,
                heartbeat: settings.heartbeat,
            },
            step_on: line.map(|(file, line)| StepLine::new(file, *line)),
            alarms: Alarms {
                growth_over_baseline: settings.alarm_growth,
                capacity_use: settings.alarm_capacity,
                steps_to_decide: settings.steps_to_decide,
            },
            capacity: settings.capacity,
            read_sources: false,
        })
    }

    /// What a recording keeps of it.
    pub fn settings(&self) -> Settings {
        let line = self.step_on.as_ref();
        Settings {
            user_code: self.user_code.globs().to_vec(),
            step_on: line.map(|line| (line.file().to_owned(), line.line())),
            capacity: self.capacity,
            alarm_growth: self.alarms.growth_over_baseline,
            alarm_capacity: self.alarms.capacity_use,
            steps_to_decide: self.alarms.steps_to_decide,
            fold: self.steps.fold,
            heartbeat: self.steps.heartbeat,
        }
    }
}

/// A recording at a moment.
pub struct Replay {
    recording: Recording,
    config: Config,
    collector: Collector,
    pieces: Pieces,
    /// Records that come after the moment.
    pending: std::vec::IntoIter<Record>,
    /// A restart that comes after the moment.
    restart: Option<Piece>,
    /// The last event taken in.
    last: Time,
    moment: Time,
    notes: Vec<String>,
    corrupt: bool,
}

/// How far a seek is: bytes of the file done, and to do.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

impl Replay {
    /// Opens a recording, at its beginning.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn open(path: &Path) -> Result<Replay, ReplayError> {
        Self::new(Recording::open(path)?)
    }

    /// The same with an open recording.
    ///
    /// # Errors
    /// Its settings make no sense.
    pub fn new(recording: Recording) -> Result<Replay, ReplayError> {
        let config = Config::of_recording(recording.info())?;
        Ok(Self::with(recording, config))
    }

    /// The same with other settings than the session had.
    pub fn with(recording: Recording, config: Config) -> Replay {
        let mut replay = Replay {
            collector: fresh(&config, recording.info()),
            pieces: recording.pieces(),
            pending: Vec::new().into_iter(),
            restart: None,
            last: recording.info().started,
            moment: recording.span().0,
            notes: Vec::new(),
            corrupt: false,
            config,
            recording,
        };
        let found = replay.recording.damage().to_vec();
        for damage in &found {
            replay.note(damage);
        }
        replay
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The first and the last moment.
    pub fn span(&self) -> (Time, Time) {
        self.recording.span()
    }

    /// What the collector knows at the moment.
    pub fn collector(&self) -> &Collector {
        &self.collector
    }

    /// The moment.
    pub fn moment(&self) -> Time {
        self.moment
    }

    /// What is wrong with the file, as far as it was read, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether some of its bytes are not what was written.
    pub fn is_corrupt(&self) -> bool {
        self.corrupt
    }

    /// Everything known at the moment.
    pub fn view(&mut self) -> View {
        self.collector.view(self.moment)
    }

    /// Goes to the end.
    ///
    /// # Errors
    /// As [`Replay::seek`].
    pub fn seek_end(&mut self, progress: Progress<'_>) -> Result<(), ReplayError> {
        self.seek(self.span().1, progress)
    }

    /// Goes to `moment`: everything up to the first event that is later.
    ///
    /// # Errors
    /// The file cannot be read, or needs a later version.
    pub fn seek(&mut self, moment: Time, progress: Progress<'_>) -> Result<(), ReplayError> {
        let (first, last) = self.span();
        let moment = moment.clamp(first, last);
        let back = moment < self.moment;
        let checkpoints = self.recording.checkpoints();
        let nearer = checkpoints
            .iter()
            .any(|at| at.time > self.last && at.time <= moment);
        if back || nearer {
            self.begin(self.recording.pieces_from(moment));
        }
        self.moment = moment;
        self.advance(progress)
    }

    /// Goes to the first event of step `step`, as the steps were counted then. Whether there is
    /// one; if not, this is the end.
    ///
    /// # Errors
    /// As [`Replay::seek`].
    pub fn seek_step(&mut self, step: u64, progress: Progress<'_>) -> Result<bool, ReplayError> {
        let (first, last) = self.span();
        self.begin(self.recording.pieces());
        self.moment = first;
        while self.collector.steps() < step {
            let Some(record) = self.pending.next() else {
                if !self.read_on(last, progress)? {
                    self.moment = last;
                    return Ok(false);
                }
                continue;
            };
            self.collector.ingest(std::slice::from_ref(&record));
            self.last = self.last.max(record.time);
            self.moment = self.last;
        }
        Ok(true)
    }

    fn begin(&mut self, pieces: Pieces) {
        self.collector = fresh(&self.config, self.recording.info());
        self.pieces = pieces;
        self.pending = Vec::new().into_iter();
        self.restart = None;
        self.last = self.recording.info().started;
    }

    fn advance(&mut self, progress: Progress<'_>) -> Result<(), ReplayError> {
        while self.take_pending() && self.read_on(self.moment, progress)? {}
        Ok(())
    }

    /// Takes in the next piece, or for records makes them pending. Whether there was one that may
    /// be taken in at `moment`.
    fn read_on(&mut self, moment: Time, progress: Progress<'_>) -> Result<bool, ReplayError> {
        let known = self.pieces.damage().len();
        let next = match self.restart.take() {
            Some(piece) => Some(Ok(piece)),
            None => self.pieces.next(),
        };
        let found = self.pieces.damage()[known..].to_vec();
        for damage in &found {
            self.note(damage);
        }
        progress(self.pieces.position(), self.recording.length());
        let Some(piece) = next else {
            return Ok(false);
        };
        match piece? {
            Piece::Records(records) => self.pending = records.into_iter(),
            Piece::Checkpoint {
                checkpoint,
                restart: true,
            } => {
                if checkpoint.time > moment && self.last > self.recording.info().started {
                    self.restart = Some(Piece::Checkpoint {
                        checkpoint,
                        restart: true,
                    });
                    return Ok(false);
                }
                self.last = self.last.max(checkpoint.time);
                self.go_on_from(&checkpoint);
            }
            Piece::News(News::Process(info)) => self.collector.add_process(info),
            Piece::News(News::Probes(probes)) => self.collector.set_probes(probes),
            _ => {}
        }
        Ok(true)
    }

    /// Takes in what is not after the moment; whether that was all.
    fn take_pending(&mut self) -> bool {
        let pending = self.pending.as_slice();
        let moment = self.moment;
        let upto = pending
            .iter()
            .position(|record| record.time > moment)
            .unwrap_or(pending.len());
        self.collector.ingest(&pending[..upto]);
        if let Some(last) = pending[..upto].last() {
            self.last = self.last.max(last.time);
        }
        let all = upto == pending.len();
        if upto > 0 {
            self.pending.nth(upto - 1);
        }
        all
    }

    fn go_on_from(&mut self, checkpoint: &vramscope_recording::Checkpoint) {
        match Collector::restore(self.config.clone(), checkpoint) {
            Ok(collector) => self.collector = collector,
            Err(error) => {
                // The live blocks are right; what was counted before is gone.
                self.collector = fresh(&self.config, self.recording.info());
                self.collector.ingest(&checkpoint.restated());
                let text = match error {
                    RestoreError::Version { .. } => format!(
                        "steps, growth and history before this moment are not known: {error}"
                    ),
                    RestoreError::Inconsistent(_) => error.to_string(),
                };
                let (time, level) = (checkpoint.time, LogLevel::Warning);
                self.collector.tell(time, level, text.clone());
                if !self.notes.contains(&text) {
                    self.notes.push(text);
                }
            }
        }
    }

    fn note(&mut self, damage: &Damage) {
        self.corrupt |= damage.is_corruption();
        let text = damage.to_string();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

/// A collector that has seen nothing of a session but who it is about.
fn fresh(config: &Config, info: &SessionInfo) -> Collector {
    let mut collector = Collector::new(config.clone());
    for process in &info.processes {
        collector.add_process(process.clone());
    }
    collector.set_probes(info.probes.clone());
    collector
}

/// A view of a recording's last moment.
///
/// # Errors
/// As [`Replay::open`] and [`Replay::seek`].
pub fn last_view(path: &Path) -> Result<Arc<View>, ReplayError> {
    let mut replay = Replay::open(path)?;
    replay.seek_end(&mut |_, _| {})?;
    Ok(Arc::new(replay.view()))
}

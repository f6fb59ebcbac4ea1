//! The session's thread: takes events from the tracer, feeds the collector, publishes views.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use vramscope_collector::{
    Collector,
    intake::Intake,
    recorder::{Recorder, Summary},
    view::{LogLevel, View},
};
use vramscope_events::{Event, Pid, Record, Tid, Time};
use vramscope_tracer::{Session, now};

/// How long the thread waits for events before it looks at the clock.
const PATIENCE: Duration = Duration::from_millis(20);
/// How often the process is looked at for libraries that came later.
const LOOK: Duration = Duration::from_secs(1);
/// Building a view may take at most this share of the time.
const VIEW_SHARE: u32 = 10;

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was asked to.
    Stopped,
    /// The process ended.
    Exited,
}

/// A session at work on its own thread.
pub struct Engine {
    latest: Arc<Mutex<Arc<View>>>,
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    handle: Handle,
    thread: JoinHandle<Finished>,
}

/// A way to the session's thread, for whoever works beside it.
#[derive(Clone)]
pub struct Handle {
    questions: Sender<Question>,
    told: Sender<Record>,
}

/// Something to do with the collector, on its thread.
type Question = Box<dyn FnOnce(&mut Collector) + Send>;

/// What a session leaves behind.
pub struct Finished {
    /// Everything that was counted.
    pub collector: Collector,
    /// The last view.
    pub view: View,
    /// Why it ended.
    pub end: End,
    /// What became of the recording.
    pub recording: Option<Summary>,
    /// Dropped last: taking the rest of the probes off takes a second or two.
    pub session: Session,
}

impl Engine {
    /// Starts the thread. `publish`: how often to make a view on the way, where anybody looks.
    /// `recorder`: takes everything that the collector takes.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(
        session: Session,
        mut collector: Collector,
        publish: Option<Duration>,
        recorder: Option<Recorder>,
    ) -> anyhow::Result<Engine> {
        let latest = Arc::new(Mutex::new(Arc::new(collector.view(now()))));
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(AtomicBool::new(false));
        let (questions, asked) = unbounded();
        let (told, tales) = unbounded();
        let work = Work {
            notes: session.notes.len(),
            asked,
            tales,
            session,
            intake: Intake::new(collector.started_unix()),
            collector,
            recorder,
            publish,
            latest: Arc::clone(&latest),
            stop: Arc::clone(&stop),
            ended: Arc::clone(&ended),
        };
        let thread = thread::Builder::new()
            .name("collector".into())
            .spawn(move || work.run())
            .context("no thread for the collector")?;
        Ok(Engine {
            latest,
            stop,
            ended,
            handle: Handle { questions, told },
            thread,
        })
    }

    /// A way to the session's thread.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The newest view.
    pub fn view(&self) -> Arc<View> {
        let latest = self.latest.lock();
        Arc::clone(&latest.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Whether the session has ended by itself: its process did.
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Detaches, takes what is still under way, and gives everything back.
    ///
    /// # Errors
    /// The collector's thread died.
    pub fn finish(self) -> anyhow::Result<Finished> {
        self.stop.store(true, Ordering::Release);
        self.thread
            .join()
            .map_err(|_| anyhow::anyhow!("the collector died; this is a bug, please report it"))
    }
}

impl Handle {
    /// Does something with the collector as it is now, and a view of it, while the session goes on.
    ///
    /// # Errors
    /// The session has ended.
    pub fn with_collector<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Collector, &View) -> T + Send + 'static,
    ) -> anyhow::Result<T> {
        let (answer, answered) = bounded(1);
        let question = Box::new(move |collector: &mut Collector| {
            let view = collector.view(now());
            // Whoever asked may be gone.
            let _ = answer.send(work(collector, &view));
        });
        self.questions
            .send(question)
            .ok()
            .and_then(|()| answered.recv().ok())
            .context("the process has ended")
    }

    /// Tells the session of something that happened to a process beside the tracer's events: it is
    /// counted, and recorded, as they are.
    pub fn tell(&self, process: Pid, event: Event) {
        // A session that is over has no use for it.
        let _ = self.told.send(Record {
            time: now(),
            process,
            thread: Tid::default(),
            event,
        });
    }
}

struct Work {
    session: Session,
    intake: Intake,
    /// Of the session's notes, those that were told.
    notes: usize,
    collector: Collector,
    recorder: Option<Recorder>,
    publish: Option<Duration>,
    latest: Arc<Mutex<Arc<View>>>,
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    asked: Receiver<Question>,
    tales: Receiver<Record>,
}

impl Work {
    fn run(mut self) -> Finished {
        let records = self.session.records().clone();
        let mut end = None;
        let mut until = now();
        let mut last_view = Instant::now();
        let mut last_look = Instant::now();
        let mut rest = self.publish;
        loop {
            match records.recv_timeout(PATIENCE) {
                Ok(batch) => {
                    let exited = batch
                        .last()
                        .is_some_and(|record| record.event == Event::ProcessExited);
                    if exited && end.is_none() && self.session.ends_with_process() {
                        end = Some(End::Exited);
                        self.session.detach();
                    }
                    until = until.max(self.take(batch));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            until = until.max(self.take_tales());
            for question in self.asked.try_iter() {
                question(&mut self.collector);
            }
            if end.is_none() && self.session.is_over() {
                end = Some(End::Exited);
                self.session.detach();
            }
            if end.is_none() && self.stop.load(Ordering::Acquire) {
                end = Some(End::Stopped);
                until = now();
                self.session.detach();
            }
            if end.is_none() && last_look.elapsed() >= LOOK {
                last_look = Instant::now();
                self.look();
                self.look_at_recorder();
            }
            if let Some(every) = rest
                && last_view.elapsed() >= every
            {
                let started = Instant::now();
                let view = self.collector.view(now());
                self.show(view);
                last_view = Instant::now();
                rest = self
                    .publish
                    .map(|publish| publish.max(started.elapsed() * VIEW_SHARE));
            }
        }
        until = until.max(self.take_tales());
        self.look();
        // What happened is over, however long it took to say so: rates and ages are of then.
        self.look_at_recorder();
        let view = self.collector.view(until);
        self.show(view.clone());
        let end = end.unwrap_or(End::Exited);
        let recording = self.recorder.take().map(|recorder| {
            let reason = match end {
                End::Stopped => "it was stopped",
                End::Exited => "the process ended",
            };
            recorder.finish(&self.collector, until, reason)
        });
        self.ended.store(true, Ordering::Release);
        Finished {
            collector: self.collector,
            view,
            end,
            recording,
            session: self.session,
        }
    }

    /// Counts and records a batch; the time of its last event.
    fn take(&mut self, batch: Vec<Record>) -> Time {
        let batch = self.intake.prepare(batch, &self.collector);
        self.collector.ingest(&batch);
        let last = batch.last().map_or(Time(0), |last| last.time);
        if let Some(recorder) = &mut self.recorder {
            recorder.take(batch, &self.collector);
        }
        last
    }

    /// The same with what was told beside the tracer's events.
    fn take_tales(&mut self) -> Time {
        let tales: Vec<Record> = self.tales.try_iter().collect();
        match tales.is_empty() {
            true => Time(0),
            false => self.take(tales),
        }
    }

    /// Once a second, and at the end: libraries that came later, and what became of them.
    fn look(&mut self) {
        if self.session.take_news() {
            self.collector.set_probes(self.session.probes.clone());
            if let Some(recorder) = &mut self.recorder {
                recorder.probes(&self.session.probes);
            }
        }
        for note in self.session.notes.iter().skip(self.notes) {
            self.collector.tell(now(), LogLevel::Warning, note.clone());
        }
        self.notes = self.notes.max(self.session.notes.len());
    }

    /// A recording that ended early is told at once; the session goes on.
    fn look_at_recorder(&mut self) {
        let trouble = self.recorder.as_mut().and_then(Recorder::trouble);
        if let Some(trouble) = trouble {
            if self.publish.is_none() {
                eprintln!("warning: {trouble}");
            }
            self.collector.tell(now(), LogLevel::Warning, trouble);
        }
    }

    fn show(&self, view: View) {
        let mut latest = self
            .latest
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *latest = Arc::new(view);
    }
}

//! `live`: the live view on a recording, with a time cursor.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use vramscope_collector::{replay::Replay, view::View};
use vramscope_events::Time;
use vramscope_tui::{Feed, Options, Playback, Source};

use crate::{cli::LiveArgs, recording};

/// How often the picture moves while playing.
const FRAME: Duration = Duration::from_millis(100);
/// How often the thread looks whether somebody wants something.
const PATIENCE: Duration = Duration::from_secs(1);

/// `vramscope live FILE`.
pub fn live(options: &LiveArgs) -> anyhow::Result<ExitCode> {
    use std::io::IsTerminal as _;
    if !std::io::stdout().is_terminal() {
        anyhow::bail!(
            "the live view needs a terminal, and standard output is none\n  for a report: vramscope \
             report {}",
            options.file.path.display()
        );
    }
    let replay = recording::at(&options.file, None)?;
    let code = recording::exit_code(&replay);
    let mut feed = RecordingFeed::start(replay)?;
    let options = Options::from_environment(Source::File(options.file.path.clone()));
    vramscope_tui::run(&mut feed, options)?;
    Ok(code)
}

/// What the screen asks for.
enum Wish {
    Seek(Time),
    Play(Playback),
}

/// What the thread has.
struct State {
    view: Arc<View>,
    playback: Playback,
    /// Why nothing new comes.
    failed: Option<String>,
}

/// A recording that is read on a thread of its own: the screen never waits for the disk.
struct RecordingFeed {
    span: (Time, Time),
    wishes: Sender<Wish>,
    state: Arc<Mutex<State>>,
}

impl RecordingFeed {
    fn start(mut replay: Replay) -> anyhow::Result<RecordingFeed> {
        let state = Arc::new(Mutex::new(State {
            view: Arc::new(replay.view()),
            playback: Playback {
                playing: false,
                speed: 1.0,
            },
            failed: None,
        }));
        let (wishes, receiver) = unbounded();
        let feed = RecordingFeed {
            span: replay.span(),
            wishes,
            state: Arc::clone(&state),
        };
        let player = Player {
            replay,
            wishes: receiver,
            state,
            playback: Playback {
                playing: false,
                speed: 1.0,
            },
        };
        thread::Builder::new()
            .name("replay".into())
            .spawn(move || player.run())
            .context("no thread for the replay")?;
        Ok(feed)
    }

    fn state<T>(&self, get: impl FnOnce(&mut State) -> T) -> T {
        get(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Feed for RecordingFeed {
    fn view(&mut self) -> Arc<View> {
        self.state(|state| Arc::clone(&state.view))
    }

    fn ended(&self) -> Option<String> {
        self.state(|state| state.failed.clone())
    }

    fn span(&self) -> Option<(Time, Time)> {
        Some(self.span)
    }

    fn seek(&mut self, moment: Time) {
        // A thread that is gone has said why.
        let _ = self.wishes.send(Wish::Seek(moment));
    }

    fn playback(&self) -> Option<Playback> {
        Some(self.state(|state| state.playback))
    }

    fn may_ask(&self) -> Result<String, String> {
        Err(
            "a recording cannot be asked what holds its memory, only a running process: vramscope \
             holders PID"
                .into(),
        )
    }

    fn play(&mut self, playback: Playback) {
        self.state(|state| state.playback = playback);
        let _ = self.wishes.send(Wish::Play(playback));
    }
}

/// Moves through the recording.
struct Player {
    replay: Replay,
    wishes: Receiver<Wish>,
    state: Arc<Mutex<State>>,
    playback: Playback,
}

impl Player {
    fn run(mut self) {
        let mut shown = Instant::now();
        loop {
            let patience = if self.playback.playing {
                FRAME.saturating_sub(shown.elapsed())
            } else {
                PATIENCE
            };
            let mut moment = None;
            match self.wishes.recv_timeout(patience) {
                Ok(wish) => {
                    self.take(wish, &mut moment);
                    // Whoever holds a key down wants the last place.
                    while let Ok(wish) = self.wishes.try_recv() {
                        self.take(wish, &mut moment);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let passed = shown.elapsed().as_secs_f64() * self.playback.speed;
            if moment.is_some() {
                shown = Instant::now();
            } else if self.playback.playing && shown.elapsed() >= FRAME {
                shown = Instant::now();
                let now = self.replay.moment();
                moment = Some(Time(now.0.saturating_add((passed * 1e9) as u64)));
            }
            if let Some(moment) = moment
                && !self.go(moment)
            {
                return;
            }
        }
    }

    fn take(&mut self, wish: Wish, moment: &mut Option<Time>) {
        match wish {
            Wish::Seek(to) => *moment = Some(to),
            Wish::Play(playback) => {
                if playback.playing && self.replay.moment() >= self.replay.span().1 {
                    // From the start again.
                    *moment = Some(self.replay.span().0);
                }
                self.playback = playback;
            }
        }
    }

    /// Whether it goes on.
    fn go(&mut self, moment: Time) -> bool {
        let result = self.replay.seek(moment, &mut |_, _| {});
        if self.replay.moment() >= self.replay.span().1 {
            self.playback.playing = false;
        }
        let view = Arc::new(self.replay.view());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.view = view;
        if !self.playback.playing && state.playback.speed == self.playback.speed {
            state.playback.playing = false;
        }
        if let Err(error) = &result {
            state.failed = Some(error.to_string());
        }
        result.is_ok()
    }
}

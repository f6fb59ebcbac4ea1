//! The loop: wait for a key or the next view, take it in, draw if anything changed.

use std::{
    io::BufWriter,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use ratatui::{
    Terminal,
    backend::{Backend, CrosstermBackend},
    layout::Rect,
};
use vramscope_collector::view::View;

use crate::{
    app::{App, Source},
    ask,
    error::TuiError,
    feed::Feed,
    files,
    input::{self, Input, Inputs, TerminalInputs},
    terminal::Guard,
    text::Charset,
    theme::{Depth, Palette, Theme},
    update::{Effect, Message, update},
    views,
};

/// The feed is asked for a view this often at most.
const VIEW_EVERY: Duration = Duration::from_millis(100);
/// A new view is taken in only after this many times the time that the last one took: sorting a
/// million sites may cost what it costs, but never more than a fiftieth of a core.
const REST: u32 = 50;

/// How the live view is to look and where it writes.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is watched: it stands in the equivalent commands.
    pub source: Source,
    /// Colours and characters.
    pub theme: Theme,
    /// Where `w` and `f` write.
    pub output_directory: PathBuf,
    /// Whether `SIGTERM`, `SIGINT`, `SIGHUP`, `SIGQUIT` and `SIGTSTP` act as by default after the
    /// live view has ended. Set it to `false` if handlers of your own must go on to work: without
    /// either, these signals would be ignored from then on.
    pub default_signals_after: bool,
}

impl Options {
    /// Looks as the environment asks for: `NO_COLOR`, `TERM`, `COLORFGBG` and the locale.
    pub fn from_environment(source: Source) -> Options {
        let env = |name: &str| std::env::var(name).ok();
        Options {
            source,
            theme: Theme {
                palette: Palette::detect(env),
                depth: Depth::detect(env),
                charset: Charset::detect(env),
            },
            output_directory: PathBuf::from("."),
            default_signals_after: true,
        }
    }
}

/// Why the live view ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The user left while the feed went on: detach.
    Left,
    /// The user left after the feed had ended.
    Ended,
    /// A signal asked us to end: its number.
    Signal(i32),
}

/// Shows `feed` on the terminal until the user leaves. The terminal is as before when this
/// returns or panics.
///
/// # Errors
///
/// The terminal cannot be taken or has gone.
pub fn run(feed: &mut dyn Feed, options: Options) -> Result<Exit, TuiError> {
    let guard = Guard::take().map_err(TuiError::Terminal)?;
    let inputs = TerminalInputs::new(options.default_signals_after).map_err(TuiError::Input)?;
    // One write a picture: standard output by itself would tear it into lines.
    let output = BufWriter::with_capacity(1 << 16, std::io::stdout());
    let backend = CrosstermBackend::new(output);
    let mut terminal = Terminal::new(backend).map_err(TuiError::Terminal)?;
    let mut session = Session {
        inputs: Box::new(inputs),
        guard: Some(guard),
        options,
    };
    session.drive(&mut terminal, feed)
}

/// Like [`run`], with a terminal and inputs of the caller's: for tests and benchmarks.
///
/// # Errors
///
/// The terminal or the inputs fail.
pub fn run_on<B: Backend>(
    terminal: &mut Terminal<B>,
    inputs: Box<dyn Inputs>,
    feed: &mut dyn Feed,
    options: Options,
) -> Result<Exit, TuiError> {
    let mut session = Session {
        inputs,
        guard: None,
        options,
    };
    session.drive(terminal, feed)
}

struct Session {
    /// Dropped before the guard: whoever gets the terminal back gets its keys too.
    inputs: Box<dyn Inputs>,
    guard: Option<Guard>,
    options: Options,
}

impl Session {
    fn drive<B: Backend>(
        &mut self,
        terminal: &mut Terminal<B>,
        feed: &mut dyn Feed,
    ) -> Result<Exit, TuiError> {
        let size = size(terminal)?;
        let options = &self.options;
        let mut app = App::new(options.theme, options.source.clone(), size, feed.view());
        update(&mut app, Message::Span(feed.span()));
        update(&mut app, Message::Playback(feed.playback()));
        update(&mut app, Message::MayAsk(feed.may_ask()));
        update(&mut app, Message::Question(feed.question()));
        let mut schedule = Schedule::default();
        let mut stale = true;
        loop {
            if self.guard.as_ref().is_some_and(Guard::was_disturbed) {
                self.take_again(terminal)?;
                stale = true;
            }
            if stale {
                draw(terminal, &app)?;
                stale = false;
            }
            let mut input = self.next(schedule.until_next())?;
            // Whatever is waiting is taken in before the next picture.
            while let Some(taken) = input {
                stale = true;
                if let Some(exit) = self.take_in(&mut app, terminal, feed, taken)? {
                    return Ok(exit);
                }
                input = self.next(Duration::ZERO)?;
            }
            if schedule.is_due() {
                stale |= schedule.take(&mut app, feed);
                stale |= follow_size(&mut app, terminal)?;
            }
        }
    }

    fn next(&mut self, timeout: Duration) -> Result<Option<Input>, TuiError> {
        self.inputs.next(timeout).map_err(TuiError::Input)
    }

    fn take_in<B: Backend>(
        &mut self,
        app: &mut App,
        terminal: &mut Terminal<B>,
        feed: &mut dyn Feed,
        input: Input,
    ) -> Result<Option<Exit>, TuiError> {
        let effect = match input {
            Input::Key(key) => update(app, Message::Key(key)),
            Input::Redraw => {
                let (columns, lines) = size(terminal)?;
                update(app, Message::Size(columns, lines))
            }
            Input::Terminate(signal) => return Ok(Some(Exit::Signal(signal))),
            Input::Stop => Some(Effect::Suspend),
            Input::Continue => Some(Effect::Redraw),
        };
        let directory = &self.options.output_directory;
        match effect {
            None => {}
            Some(Effect::Leave) => {
                return Ok(Some(match app.ended {
                    None => Exit::Left,
                    Some(_) => Exit::Ended,
                }));
            }
            Some(Effect::Suspend) => {
                if let Some(guard) = &self.guard {
                    guard.give_back().map_err(TuiError::Draw)?;
                    input::stop_process().map_err(TuiError::Draw)?;
                }
                self.take_again(terminal)?;
                let (columns, lines) = size(terminal)?;
                update(app, Message::Size(columns, lines));
            }
            Some(Effect::Redraw) => self.take_again(terminal)?,
            Some(Effect::WriteReport) => {
                let note = files::write_report(app, directory);
                update(app, Message::Note(note));
            }
            Some(Effect::WriteFlamegraph) => {
                let note = files::write_flamegraph(app, directory);
                update(app, Message::Note(note));
            }
            Some(Effect::Ask) => {
                if let Some(about) = ask::about(app) {
                    feed.ask(about);
                    update(app, Message::Question(feed.question()));
                }
            }
            Some(Effect::Play(playback)) => feed.play(playback),
            Some(Effect::Seek(moment)) => {
                feed.seek(moment);
                update(app, Message::View(feed.view()));
            }
        }
        Ok(None)
    }

    fn take_again<B: Backend>(&self, terminal: &mut Terminal<B>) -> Result<(), TuiError> {
        if let Some(guard) = &self.guard {
            guard.take_again().map_err(TuiError::Draw)?;
        }
        // Not `Terminal::clear`: it asks the terminal for the cursor's place, and the answer would
        // be read as keys.
        let (columns, lines) = size(terminal)?;
        let all = Rect::new(0, 0, columns, lines);
        terminal.resize(all).map_err(gone)
    }
}

/// When the next view is taken.
struct Schedule {
    next: Instant,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule {
            next: Instant::now() + VIEW_EVERY,
        }
    }
}

impl Schedule {
    fn until_next(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    fn is_due(&self) -> bool {
        self.until_next().is_zero()
    }

    /// Takes a view in; whether anything is new.
    fn take(&mut self, app: &mut App, feed: &mut dyn Feed) -> bool {
        let view: Arc<View> = feed.view();
        let ended = feed.ended();
        let mut new = false;
        if ended != app.ended {
            update(app, Message::Ended(ended));
            new = true;
        }
        let playback = feed.playback();
        if playback != app.playback {
            update(app, Message::Playback(playback));
            new = true;
        }
        let question = feed.question();
        if question != app.question {
            update(app, Message::Question(question));
            new = true;
        }
        let start = Instant::now();
        if !Arc::ptr_eq(&view, &app.latest) {
            update(app, Message::View(view));
            new = true;
        }
        let end = Instant::now();
        self.next = end + pause_after(end.duration_since(start));
        new
    }
}

/// How long to wait after a view that took `cost` to take in.
fn pause_after(cost: Duration) -> Duration {
    cost.saturating_mul(REST).max(VIEW_EVERY)
}

fn draw<B: Backend>(terminal: &mut Terminal<B>, app: &App) -> Result<(), TuiError> {
    terminal
        .draw(|frame| views::draw(app, frame.buffer_mut()))
        .map_err(gone)?;
    Ok(())
}

/// Takes the terminal's size in; whether it has changed. Nobody tells of a change that comes
/// before the thread that reads the keys listens for signals, or together with a key.
fn follow_size<B: Backend>(app: &mut App, terminal: &Terminal<B>) -> Result<bool, TuiError> {
    let (columns, lines) = size(terminal)?;
    let new = app.size != (columns, lines);
    if new {
        update(app, Message::Size(columns, lines));
    }
    Ok(new)
}

fn size<B: Backend>(terminal: &Terminal<B>) -> Result<(u16, u16), TuiError> {
    let size = terminal.size().map_err(gone)?;
    Ok((size.width, size.height))
}

fn gone(error: impl std::error::Error) -> TuiError {
    // Backends need not have errors that travel; their words do.
    TuiError::Draw(std::io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_views_in_is_a_fiftieth_of_the_time_at_most() {
        assert_eq!(pause_after(Duration::ZERO), VIEW_EVERY);
        assert_eq!(pause_after(Duration::from_millis(1)), VIEW_EVERY);
        assert_eq!(
            pause_after(Duration::from_millis(400)),
            Duration::from_secs(20)
        );
    }
}

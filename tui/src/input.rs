//! Where keys, sizes and signals come from. The program sees one [`Inputs`]; tests bring their
//! own.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use signal_hook::{
    consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP},
    flag, low_level,
};

/// Something from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// The terminal has a new size, or its content is no longer known.
    Redraw,
    /// Another process asks us to end: the signal's number.
    Terminate(i32),
    /// Another process asks us to stop for a while.
    Stop,
    /// We go on after a stop.
    Continue,
}

/// A source of inputs.
pub trait Inputs {
    /// The next input; `None` when `timeout` has passed without one.
    ///
    /// # Errors
    ///
    /// The source is broken for good.
    fn next(&mut self, timeout: Duration) -> io::Result<Option<Input>>;
}

/// How long a signal may wait to be noticed, and the reading thread to notice that it shall end.
const SLICE: Duration = Duration::from_millis(100);

const TERMINATING: [i32; 4] = [SIGTERM, SIGHUP, SIGINT, SIGQUIT];

/// The terminal of the process and its signals.
///
/// Keys are read on a thread of their own: crossterm 0.29 spins in its read when the terminal
/// hangs up, and `SIGHUP` must be obeyed all the same.
pub struct TerminalInputs {
    keys: Receiver<io::Result<Event>>,
    ends: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    signals: Signals,
    hung_up: bool,
}

impl TerminalInputs {
    /// Starts to listen. `default_signals_after`: signals act as by default once this is dropped.
    ///
    /// # Errors
    ///
    /// No thread can be started or no handler installed.
    pub fn new(default_signals_after: bool) -> io::Result<TerminalInputs> {
        let signals = Signals::new(default_signals_after)?;
        let ends = Arc::new(AtomicBool::new(false));
        let (sender, keys) = mpsc::channel();
        let flag = Arc::clone(&ends);
        let reader = thread::Builder::new()
            .name("vramscope-keys".into())
            .spawn(move || read(&sender, &flag))?;
        Ok(TerminalInputs {
            keys,
            ends,
            reader: Some(reader),
            signals,
            hung_up: false,
        })
    }
}

impl Inputs for TerminalInputs {
    fn next(&mut self, timeout: Duration) -> io::Result<Option<Input>> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(input) = self.signals.pending() {
                self.hung_up |= input == Input::Terminate(SIGHUP);
                return Ok(Some(input));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.keys.recv_timeout(left.min(SLICE)) {
                Ok(event) => match event? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        return Ok(Some(Input::Key(key)));
                    }
                    Event::Resize(..) => return Ok(Some(Input::Redraw)),
                    _ => {}
                },
                Err(RecvTimeoutError::Timeout) if left <= SLICE => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::new(
                        io::ErrorKind::BrokenPipe,
                        "the thread that reads the keyboard has ended",
                    ));
                }
            }
        }
    }
}

impl Drop for TerminalInputs {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        // Whoever comes next must not find a thread that eats their keys; after a hang-up nobody
        // comes and the thread may never return.
        if !self.hung_up
            && let Some(reader) = self.reader.take()
        {
            // It cannot panic in a way that matters here.
            let _ = reader.join();
        }
    }
}

fn read(sender: &Sender<io::Result<Event>>, ends: &AtomicBool) {
    while !ends.load(Ordering::Acquire) {
        let event = match event::poll(SLICE) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let failed = event.is_err();
        if sender.send(event).is_err() || failed {
            return;
        }
    }
}

/// Flags that signal handlers raise.
struct Signals {
    terminating: [Arc<AtomicBool>; TERMINATING.len()],
    stop: Arc<AtomicBool>,
    goes_on: Arc<AtomicBool>,
    handlers: Vec<signal_hook::SigId>,
    left: Arc<AtomicBool>,
    default_after: bool,
}

impl Signals {
    fn new(default_after: bool) -> io::Result<Signals> {
        let mut signals = Signals {
            terminating: Default::default(),
            stop: Arc::default(),
            goes_on: Arc::default(),
            handlers: Vec::new(),
            left: Arc::default(),
            default_after,
        };
        for (signal, raised) in TERMINATING.into_iter().zip(&signals.terminating) {
            // signal-hook never restores a disposition: without this a signal would be ignored
            // once our handler is gone.
            flag::register_conditional_default(signal, Arc::clone(&signals.left))?;
            let handler = flag::register(signal, Arc::clone(raised))?;
            signals.handlers.push(handler);
        }
        flag::register_conditional_default(SIGTSTP, Arc::clone(&signals.left))?;
        let stop = flag::register(SIGTSTP, Arc::clone(&signals.stop))?;
        let goes_on = flag::register(SIGCONT, Arc::clone(&signals.goes_on))?;
        signals.handlers.extend([stop, goes_on]);
        Ok(signals)
    }

    fn pending(&self) -> Option<Input> {
        let raised = |flag: &AtomicBool| flag.swap(false, Ordering::AcqRel);
        for (signal, flag) in TERMINATING.into_iter().zip(&self.terminating) {
            if raised(flag) {
                return Some(Input::Terminate(signal));
            }
        }
        if raised(&self.stop) {
            return Some(Input::Stop);
        }
        raised(&self.goes_on).then_some(Input::Continue)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
        if self.default_after {
            self.left.store(true, Ordering::Release);
        }
    }
}

/// Stops the process as `SIGTSTP` would without a handler; returns when it goes on.
///
/// # Errors
///
/// The signal cannot be raised.
pub fn stop_process() -> io::Result<()> {
    low_level::emulate_default_handler(SIGTSTP)
}

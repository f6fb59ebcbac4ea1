//! `--holders`: asks what holds the survivors while the program goes on, by itself.
//!
//! A program that runs out of memory cannot be asked afterwards. So it is asked for the first time
//! once a verdict speaks of growth, and again whenever it has been watched for twice as long: the
//! last answer is never older than half the session, and a day of training costs a dozen questions.

use std::{
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{
    asking::{self, Limits},
    engine::Handle,
    exit,
};

/// How often the verdict is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// A look is followed by a rest of this many times what it took.
const REST: u32 = 50;
/// The second question comes this long after the first at the earliest.
const BETWEEN: Duration = Duration::from_secs(10);
/// How many questions may fail before the first answer; after that none is asked any more.
const FAILURES: usize = 3;

/// What came of it.
#[derive(Debug, Default)]
pub struct Heard {
    /// How many questions were answered.
    pub answers: usize,
    /// Why the questions since the last answer were not.
    pub failures: Vec<String>,
}

/// The thread that asks.
pub struct Interview {
    /// Dropped to have the thread end.
    halt: Sender<()>,
    thread: JoinHandle<Heard>,
}

impl Interview {
    /// Starts to ask; `say` is told of the first question before it is asked. Of all of them the
    /// session's log tells.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(
        handle: Handle,
        say: impl Fn(&str) + Send + 'static,
    ) -> std::io::Result<Interview> {
        let (halt, halted) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("interview".into())
            .spawn(move || ask_now_and_then(&handle, say, &halted))?;
        Ok(Interview { halt, thread })
    }

    /// Asks no more; a question that is under way is waited for, for a while.
    pub fn end(self) -> Heard {
        drop(self.halt);
        let nothing = |why: &str| Heard {
            answers: 0,
            failures: vec![why.into()],
        };
        match asking::wait_for(&self.thread) {
            true => (self.thread.join()).unwrap_or_else(|_| nothing("a bug, please report it")),
            false => nothing("the question has no answer yet"),
        }
    }
}

/// Says that nobody answered, or why there is no later answer.
pub fn tell(heard: &Heard, last: Option<&anyhow::Error>) {
    let last = last.map(exit::words);
    let why = last.as_ref().or(heard.failures.last());
    match (heard.answers, why) {
        (0, None) => eprintln!(
            "note: not asked what holds the survivors: no verdict spoke of growth while it ran"
        ),
        (0, Some(why)) => eprintln!("warning: not asked what holds the survivors: {why}"),
        (_, Some(why)) => eprintln!("note: not asked again what holds the survivors: {why}"),
        (_, None) => {}
    }
}

fn ask_now_and_then(handle: &Handle, say: impl Fn(&str), halted: &Receiver<()>) -> Heard {
    let mut heard = Heard::default();
    let begun = Instant::now();
    let (mut next, mut pause) = (begun, LOOK);
    while heard.answers > 0 || heard.failures.len() < FAILURES {
        if halted.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            break;
        }
        if Instant::now() < next {
            continue;
        }
        let looked = Instant::now();
        let first = heard.answers == 0 && heard.failures.is_empty();
        let say_once = |words: &str| {
            if first {
                say(words);
            }
        };
        match ask(handle, say_once) {
            Ok(false) => {
                pause = LOOK.max(looked.elapsed() * REST);
                continue;
            }
            Ok(true) => {
                heard.answers += 1;
                heard.failures.clear();
            }
            Err(error) => heard.failures.push(exit::words(&error)),
        }
        pause = LOOK;
        next = begun + 2 * begun.elapsed().max(BETWEEN / 2);
    }
    heard
}

/// Asks about the line that the verdict names first, if it speaks of growth; whether it did.
fn ask(handle: &Handle, say: impl Fn(&str)) -> anyhow::Result<bool> {
    // Nothing to ask about, or nobody any more.
    let Ok(Some(subject)) = asking::find_growing(handle) else {
        return Ok(false);
    };
    say(&format!(
        "{}; it is asked again each time the session has become twice as long",
        asking::announcement(&subject)
    ));
    asking::ask(handle, &subject, Limits::default())?;
    Ok(true)
}

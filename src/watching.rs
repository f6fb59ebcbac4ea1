//! The live view of a session.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use vramscope_collector::view::View;
use vramscope_events::Pid;
use vramscope_tui::{About, Asking, Feed, Options, Question, Source};

use crate::{
    asking::{self, Choice, Limits},
    engine::{Engine, Handle},
    exit,
};

/// Shows a session until the user leaves.
pub fn live(
    engine: &Engine,
    stop: &AtomicBool,
    until: Option<Instant>,
    pid: u32,
) -> anyhow::Result<()> {
    let mut options = Options::from_environment(Source::Process(Pid(pid)));
    // Our own handlers go on to work while the probes are taken off.
    options.default_signals_after = false;
    let mut feed = LiveFeed {
        engine,
        stop,
        until,
        pid,
        question: Arc::default(),
        asking: None,
    };
    vramscope_tui::run(&mut feed, options)?;
    if let Some(thread) = &feed.asking {
        asking::wait_for(thread);
    }
    Ok(())
}

/// What the live view is fed with: the engine's newest view, and answers about holders.
struct LiveFeed<'a> {
    engine: &'a Engine,
    stop: &'a AtomicBool,
    until: Option<Instant>,
    pid: u32,
    question: Arc<Mutex<Option<Question>>>,
    asking: Option<JoinHandle<()>>,
}

impl Feed for LiveFeed<'_> {
    fn view(&mut self) -> Arc<View> {
        self.engine.view()
    }

    fn ended(&self) -> Option<String> {
        let over = self.until.is_some_and(|until| Instant::now() >= until);
        if self.engine.ended() {
            Some(format!("process {} ended", self.pid))
        } else if over || self.stop.load(Ordering::Relaxed) {
            Some("the time is over".into())
        } else {
            None
        }
    }

    fn may_ask(&self) -> Result<String, String> {
        let limits = Limits::default();
        Ok(format!(
            "this loads a library into the process, which takes the GIL for {} ms at a time, {} s in \
             all at most, and goes again",
            limits.slice.as_millis(),
            limits.budget.as_secs(),
        ))
    }

    fn ask(&mut self, about: About) {
        let question = Arc::clone(&self.question);
        let tell = move |about: About, state: Asking| {
            let mut question = question.lock().unwrap_or_else(PoisonError::into_inner);
            *question = Some(Question { about, state });
        };
        tell(about.clone(), Asking::Waiting);
        let handle = self.engine.handle().clone();
        let (told, asked) = (tell.clone(), about.clone());
        let thread = thread::Builder::new()
            .name("holders".into())
            .spawn(move || told(asked.clone(), answer(&handle, &asked)));
        match thread {
            Ok(thread) => self.asking = Some(thread),
            Err(error) => tell(
                about,
                Asking::Failed(format!("no thread to ask with: {error}")),
            ),
        }
    }

    fn question(&self) -> Option<Question> {
        let question = self.question.lock();
        question.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn answer(handle: &Handle, about: &About) -> Asking {
    let choice = Choice::Sites(about.process, about.device, about.sites.clone());
    let asked = asking::find(handle, &choice)
        .and_then(|subject| asking::ask(handle, &subject, Limits::default()));
    match asked {
        Ok(_) => Asking::Answered,
        Err(error) => Asking::Failed(exit::words(&error)),
    }
}

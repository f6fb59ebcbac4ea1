//! What the live view makes of its feed: views that change, an end, a recording's time cursor.

mod common;

use std::{cell::RefCell, rc::Rc, sync::Arc};

use common::{options, screen_of, text};
use vramscope_collector::{fixture, view::View};
use vramscope_events::Time;
use vramscope_tui::{About, Asking, Feed, Playback, Question, Theme};

const SIZE: (u16, u16) = (100, 30);

/// A recording: any moment gives a view that says so.
struct Recording {
    view: Arc<View>,
    span: (Time, Time),
    asked: Rc<RefCell<Vec<Time>>>,
    playback: Playback,
}

impl Recording {
    fn new(asked: &Rc<RefCell<Vec<Time>>>) -> Recording {
        let view = fixture::leak();
        Recording {
            span: (view.started, view.now),
            view: Arc::new(view),
            asked: Rc::clone(asked),
            playback: Playback {
                playing: false,
                speed: 1.0,
            },
        }
    }
}

impl Feed for Recording {
    fn view(&mut self) -> Arc<View> {
        Arc::clone(&self.view)
    }

    fn ended(&self) -> Option<String> {
        None
    }

    fn span(&self) -> Option<(Time, Time)> {
        Some(self.span)
    }

    fn seek(&mut self, moment: Time) {
        self.asked.borrow_mut().push(moment);
        let mut view = (*self.view).clone();
        view.now = moment;
        self.view = Arc::new(view);
    }

    fn playback(&self) -> Option<Playback> {
        Some(self.playback)
    }

    fn play(&mut self, playback: Playback) {
        self.playback = playback;
    }
}

#[test]
fn space_plays_a_recording_and_its_speed_can_be_changed() {
    let asked = Rc::default();
    let mut recording = Recording::new(&asked);
    let buffer = screen_of(&mut recording, " >>>", SIZE, options(Theme::default()));
    let playing = Playback {
        playing: true,
        speed: 10.0,
    };
    assert_eq!(recording.playback, playing);
    let picture = text(&buffer);
    assert!(
        picture.contains("playing 10x, at 8.0 min of 8.0 min"),
        "{picture}"
    );
    let buffer = screen_of(&mut recording, "<<<<<< ", SIZE, options(Theme::default()));
    let paused = Playback {
        playing: false,
        speed: 0.25,
    };
    assert_eq!(recording.playback, paused);
    assert!(text(&buffer).contains("paused; space plays at 0.25x"));
}

#[test]
fn the_time_cursor_moves_in_hundredths_and_stays_inside() {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let mut recording = Recording::new(&asked);
    let (first, last) = recording.span;
    let hundredth = (last.0 - first.0) / 100;
    let buffer = screen_of(&mut recording, "][[{]", SIZE, options(Theme::default()));
    let moments: Vec<u64> = asked.borrow().iter().map(|moment| moment.0).collect();
    let steps = [0, 1, 2, 12, 11];
    assert_eq!(moments.len(), steps.len());
    for (moment, step) in moments.into_iter().zip(steps) {
        let wanted = last.0 - step * hundredth;
        assert!(moment.abs_diff(wanted) <= 100, "{moment} is not {wanted}");
    }
    assert!(
        text(&buffer).contains("at 7.1 min of 8.0 min"),
        "{}",
        text(&buffer)
    );
    // Never before the beginning.
    let keys = "{".repeat(12);
    screen_of(&mut recording, &keys, SIZE, options(Theme::default()));
    assert_eq!(asked.borrow().last(), Some(&first));
}

#[test]
fn a_live_session_has_no_time_cursor() {
    let mut feed = common::Fixed(Arc::new(fixture::leak()));
    let buffer = screen_of(&mut feed, "]", SIZE, options(Theme::default()));
    assert!(text(&buffer).contains("the time cursor moves only in a recording"));
}

/// A live session that can be asked, and does not answer by itself.
struct Asked {
    view: Arc<View>,
    questions: Vec<About>,
    state: Asking,
}

impl Asked {
    fn new(view: View, state: Asking) -> Asked {
        Asked {
            view: Arc::new(view),
            questions: Vec::new(),
            state,
        }
    }
}

impl Feed for Asked {
    fn view(&mut self) -> Arc<View> {
        Arc::clone(&self.view)
    }

    fn ended(&self) -> Option<String> {
        None
    }

    fn may_ask(&self) -> Result<String, String> {
        Ok("this runs code in the process".into())
    }

    fn ask(&mut self, about: About) {
        self.questions.push(about);
    }

    fn question(&self) -> Option<Question> {
        let about = self.questions.last()?.clone();
        let state = self.state.clone();
        Some(Question { about, state })
    }
}

#[test]
fn nobody_is_asked_without_consent() {
    let mut feed = Asked::new(fixture::leak(), Asking::Waiting);
    let picture = text(&screen_of(&mut feed, "h", SIZE, options(Theme::default())));
    assert!(
        picture.contains("h or y asks, any other key does not: this runs code in the process"),
        "{picture}"
    );
    assert_eq!(feed.questions, []);
    // Another key takes it back, and does nothing else.
    for other in ["h<esc>", "hn", "hq"] {
        let picture = text(&screen_of(
            &mut feed,
            other,
            SIZE,
            options(Theme::default()),
        ));
        assert!(!picture.contains("Held by"), "{picture}");
        assert!(picture.contains("callers first"), "{picture}");
        assert_eq!(feed.questions, [], "{other}");
    }
}

#[test]
fn a_question_is_about_the_selected_line() {
    let mut feed = Asked::new(fixture::leak(), Asking::Waiting);
    let buffer = screen_of(&mut feed, "hh", SIZE, options(Theme::default()));
    assert!(
        text(&buffer).contains("asking the process"),
        "{}",
        text(&buffer)
    );
    let sites = &feed.view.processes[0].devices[0].sites;
    let first = sites[0].own_frame().unwrap();
    let about = &feed.questions[0];
    assert_eq!(about.process, feed.view.processes[0].info.pid);
    let on_the_line = |id| {
        let site = sites.iter().find(|site| site.id == id).unwrap();
        let own = site.own_frame().unwrap();
        (&own.file, own.line) == (&first.file, first.line)
    };
    assert!(about.sites.contains(&sites[0].id));
    assert!(about.sites.iter().all(|id| on_the_line(*id)));
    // The second time nobody asks back; but one question at a time.
    let mut feed = Asked::new(fixture::leak(), Asking::Answered);
    screen_of(&mut feed, "hyh", SIZE, options(Theme::default()));
    assert_eq!(feed.questions.len(), 2);
    let mut feed = Asked::new(fixture::leak(), Asking::Waiting);
    let buffer = screen_of(&mut feed, "hyh", SIZE, options(Theme::default()));
    assert_eq!(feed.questions.len(), 1);
    assert!(text(&buffer).contains("one at a time"), "{}", text(&buffer));
}

#[test]
fn who_cannot_be_asked_says_why() {
    let failed = Asking::Failed("process 4121: no answer within 18s: some thread".into());
    let mut feed = Asked::new(fixture::leak(), failed);
    let picture = text(&screen_of(&mut feed, "hy", SIZE, options(Theme::default())));
    assert!(
        picture.contains("no answer: process 4121: no answer within 18s"),
        "{picture}"
    );
    // What the driver gave is held by no object.
    let mut feed = Asked::new(fixture::leak(), Asking::Waiting);
    let picture = text(&screen_of(&mut feed, "th", SIZE, options(Theme::default())));
    assert!(picture.contains("press t"), "{picture}");
    // A recording.
    let mut feed = Recording::new(&Rc::default());
    let picture = text(&screen_of(&mut feed, "h", SIZE, options(Theme::default())));
    assert!(
        picture.contains("only a running process can be asked"),
        "{picture}"
    );
}

/// A new view each time it is asked, and in the end none.
struct Moving {
    asked: u64,
}

impl Feed for Moving {
    fn view(&mut self) -> Arc<View> {
        self.asked = (self.asked + 1).min(3);
        let mut view = fixture::leak();
        view.processes[0].steps.count = self.asked * 1_000_000;
        Arc::new(view)
    }

    fn ended(&self) -> Option<String> {
        (self.asked == 3).then(|| "process exited".to_owned())
    }
}

/// Waits for what the feed will say, which takes a real tenth of a second.
#[test]
fn stays_on_the_last_view_when_the_feed_ends() {
    let mut feed = Moving { asked: 0 };
    let inputs = Until {
        views: 3,
        left: None,
    };
    let backend = ratatui::backend::TestBackend::new(100, 30);
    let mut terminal = ratatui::Terminal::new(backend).expect("memory does not fail");
    let exit = vramscope_tui::run_on(
        &mut terminal,
        Box::new(inputs),
        &mut feed,
        options(Theme::default()),
    );
    assert_eq!(
        exit.expect("memory does not fail"),
        vramscope_tui::Exit::Ended
    );
    let picture = text(terminal.backend().buffer());
    assert!(picture.contains("process exited: q leaves"), "{picture}");
    assert!(picture.contains("step 3,000,000"), "{picture}");
}

/// Lets the time pass that is asked for, a few times, then presses `q`.
struct Until {
    views: usize,
    left: Option<usize>,
}

impl vramscope_tui::Inputs for Until {
    fn next(
        &mut self,
        timeout: std::time::Duration,
    ) -> std::io::Result<Option<vramscope_tui::Input>> {
        let left = self.left.get_or_insert(self.views);
        if *left > 0 {
            *left -= 1;
            std::thread::sleep(timeout);
            return Ok(None);
        }
        let q = crossterm::event::KeyEvent::from(crossterm::event::KeyCode::Char('q'));
        Ok(Some(vramscope_tui::Input::Key(q)))
    }
}

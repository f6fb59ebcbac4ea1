//! What the live view is fed with.

use std::sync::Arc;

use vramscope_collector::view::{SiteId, View};
use vramscope_events::{DeviceId, Pid, Time};

/// How a recording moves by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Playback {
    /// Whether it does.
    pub playing: bool,
    /// Seconds of the recording a second.
    pub speed: f64,
}

/// Sites that are asked about together: what holds their survivors?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Whose.
    pub process: Pid,
    /// On which device.
    pub device: DeviceId,
    /// By their numbers.
    pub sites: Vec<SiteId>,
}

/// The last question that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// About what.
    pub about: About,
    /// What became of it.
    pub state: Asking,
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    /// No answer yet.
    Waiting,
    /// The answer is in the views from now on.
    Answered,
    /// There will be none, and why. May be foreign text.
    Failed(String),
}

/// A live session or a recording.
pub trait Feed {
    /// What is known now: the same `Arc` as before where nothing is new. Asked at most ten times a
    /// second, never while a key is handled; must not wait.
    fn view(&mut self) -> Arc<View>;

    /// Why nothing new will come: the process ended, the recording is at its end. The live view
    /// stays open on the last state and says so.
    fn ended(&self) -> Option<String>;

    /// The first and the last moment that [`Feed::seek`] can reach; `None` for a live session.
    fn span(&self) -> Option<(Time, Time)> {
        None
    }

    /// Makes [`Feed::view`] give the state at `moment`. A live session cannot.
    fn seek(&mut self, moment: Time) {
        let _ = moment;
    }

    /// How a recording moves by itself; `None` for a live session.
    fn playback(&self) -> Option<Playback> {
        None
    }

    /// Plays or pauses, at a speed. A live session cannot.
    fn play(&mut self, playback: Playback) {
        let _ = playback;
    }

    /// What asking for holders does to the process, in a sentence for whoever has to agree to it; or
    /// why nobody can be asked.
    ///
    /// # Errors
    /// Nobody can be asked.
    fn may_ask(&self) -> Result<String, String> {
        Err("only a running process can be asked what holds its memory".into())
    }

    /// Asks; must not wait. The answer comes with [`Feed::view`], in the sites that it is about.
    fn ask(&mut self, about: About) {
        let _ = about;
    }

    /// The last question.
    fn question(&self) -> Option<Question> {
        None
    }
}

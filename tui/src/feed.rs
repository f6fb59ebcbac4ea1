//! What the live view is fed with.

use std::sync::Arc;

use vramscope_collector::view::View;
use vramscope_events::Time;

/// How a recording moves by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Playback {
    /// Whether it does.
    pub playing: bool,
    /// Seconds of the recording a second.
    pub speed: f64,
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
}

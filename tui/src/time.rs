//! Time: the cursor of a recording, playing it, holding the picture.

use vramscope_events::Time;

use crate::{
    app::App,
    feed::Playback,
    update::{Effect, moved, note, show_latest},
};

/// Seconds of a recording a second.
const SPEEDS: [f64; 9] = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Plays a recording faster or slower.
pub fn speed(app: &mut App, by: isize) -> Option<Effect> {
    let Some(playback) = app.playback else {
        only_recordings(app);
        return None;
    };
    let at = SPEEDS.iter().position(|&speed| speed >= playback.speed);
    let at = moved(at.unwrap_or(0), by, SPEEDS.len() - 1);
    Some(play(
        app,
        Playback {
            speed: SPEEDS[at],
            ..playback
        },
    ))
}

fn play(app: &mut App, playback: Playback) -> Effect {
    app.playback = Some(playback);
    note(
        app,
        match playback.playing {
            true => format!("playing at {}x; < and > change it", playback.speed),
            false => format!("paused; space plays at {}x", playback.speed),
        },
    );
    Effect::Play(playback)
}

fn only_recordings(app: &mut App) {
    note(
        app,
        "the time cursor moves only in a recording: vramscope live FILE".into(),
    );
}

/// Holds the picture; plays or pauses a recording.
pub fn freeze(app: &mut App) -> Option<Effect> {
    if let Some(playback) = app.playback {
        return Some(play(
            app,
            Playback {
                playing: !playback.playing,
                ..playback
            },
        ));
    }
    app.frozen = !app.frozen;
    if !app.frozen {
        show_latest(app);
    }
    None
}

/// Moves the cursor of a recording by hundredths of its length.
pub fn seek(app: &mut App, hundredths: i32) -> Option<Effect> {
    let Some((first, last)) = app.span else {
        only_recordings(app);
        return None;
    };
    let length = i128::from(last.0.saturating_sub(first.0));
    // A feed may take its time: a key held down goes on from where it will be.
    let from = app.wanted.unwrap_or(app.latest.now);
    let moment = i128::from(from.0) + length * i128::from(hundredths) / 100;
    let moment = moment.clamp(i128::from(first.0), i128::from(last.0.max(first.0)));
    app.frozen = false;
    let moment = u64::try_from(moment).ok().map(Time)?;
    app.wanted = Some(moment);
    Some(Effect::Seek(moment))
}

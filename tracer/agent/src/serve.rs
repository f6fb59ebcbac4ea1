//! The agent's life: a thread that answers questions until nobody asks any more.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{
    python::Python,
    report::{Reply, Request},
    search::{self, Stop},
};

/// How long we wait for whoever loaded us to take its end of the connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers until the other end is closed. `theirs` is the copy of it that this process holds.
pub(crate) fn serve(ours: UnixStream, theirs: OwnedFd, stack: (u64, u64)) {
    // Somebody may die before it has taken its end.
    let _ = ours.set_read_timeout(Some(PATIENCE));
    let Ok(writer) = ours.try_clone() else {
        return;
    };
    let mut reader = BufReader::new(ours);
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    // From here on only they hold their end: when they are gone, ours tells.
    drop(theirs);
    if reader.get_ref().set_read_timeout(None).is_err() {
        return;
    }
    let python = match Python::find() {
        Ok(python) => python,
        Err(reason) => {
            say(&writer, &Reply::Refused(reason));
            return;
        }
    };
    let hello = Reply::Hello {
        thread: nix::unistd::gettid().as_raw().cast_unsigned(),
        python: python.version_text.clone(),
        stack,
    };
    if !say(&writer, &hello) {
        return;
    }
    loop {
        line.clear();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let reply = match serde_json::from_str::<Request>(&line) {
            Err(error) => Reply::Refused(format!("not understood: {error}")),
            Ok(request) => {
                let listens = || is_open(&writer);
                match search::search(&python, &request, &listens) {
                    Ok(answer) => Reply::Answer(Box::new(answer)),
                    Err(Stop::Alone) => return,
                    Err(Stop::Ended) => Reply::Refused(
                        "the interpreter is ending: its objects are gone in a moment".into(),
                    ),
                    Err(Stop::Broken) => Reply::Refused(
                        "the search failed by a mistake of its own; the process is unharmed".into(),
                    ),
                }
            }
        };
        if !say(&writer, &reply) {
            return;
        }
    }
}

fn say(mut writer: &UnixStream, reply: &Reply) -> bool {
    let Ok(mut line) = serde_json::to_vec(reply) else {
        return false;
    };
    line.push(b'\n');
    writer.write_all(&line).is_ok()
}

/// Whether the other end is still held.
fn is_open(stream: &UnixStream) -> bool {
    let mut wait = [PollFd::new(stream.as_fd(), PollFlags::POLLHUP)];
    match poll(&mut wait, PollTimeout::ZERO) {
        Ok(_) => !wait[0]
            .revents()
            .is_some_and(|events| events.intersects(PollFlags::POLLHUP | PollFlags::POLLERR)),
        Err(_) => false,
    }
}

//! The injected backend: a library in the process hands its records over in shared memory.
//!
//! A library that was loaded (by the CUDA driver at the program's start, or by ptrace later)
//! connects to our socket. [`Injected`] greets it, keeps its hooks up to date, and takes leave of
//! it; [`reader::Reader`] empties the rings of all of them.

mod attach;
mod clock;
pub mod library;
mod peer;
mod reader;
mod session;
mod shared;
mod socket;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use vramscope_events::{ProcessInfo, Record};

pub use attach::{Loaded, can_inject};
pub use peer::Wishes;
pub use socket::{Listener, runtime_directory};

use crate::{
    board::{Board, Shareable},
    unwind::names::name_frames,
};

use self::{
    peer::greet,
    reader::{News, Reader},
};

/// How often the wish to end is looked at.
const TICK: Duration = Duration::from_millis(50);

/// Libraries at work.
pub struct Injected {
    /// What is known of them.
    pub board: Shareable,
    path: PathBuf,
    leave: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Parted>>>,
    first: Receiver<Result<ProcessInfo, String>>,
}

/// How a process was left.
#[derive(Clone, Debug)]
pub struct Parted {
    /// Threads that were still in its code; `None`: it did not answer.
    pub inside: Option<u32>,
}

impl Injected {
    /// Listens. Records of every library that connects go to `sender`, from the reader's thread,
    /// which ends after `stop`.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(
        listener: Listener,
        wishes: Wishes,
        sender: Sender<Vec<Record>>,
        stop: Arc<AtomicBool>,
    ) -> io::Result<(Injected, Vec<JoinHandle<()>>)> {
        let board = Arc::new(Mutex::new(Board::default()));
        let leave = Arc::new(AtomicBool::new(false));
        let (news, all_news) = unbounded();
        let (told, first) = unbounded();
        let path = listener.path().to_owned();
        let (names, nameless) = unbounded();
        let reader = Reader::new(all_news, sender.clone(), names, stop);
        let reader = named("ring-reader", move || reader.run())?;
        let to = sender.clone();
        let namer = named("symbols", move || name_frames(&nameless, &to))?;
        let host = Host {
            listener,
            wishes,
            board: Arc::clone(&board),
            leave: Arc::clone(&leave),
            news,
            told,
            sender,
        };
        let host = named("injection-host", move || host.run())?;
        let injected = Injected {
            board,
            path,
            leave,
            threads: vec![host],
            first,
        };
        Ok((injected, vec![reader, namer]))
    }

    /// Where to connect to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next process that was greeted, or why that did not work; `None` when none came in time.
    pub fn next_process(&self, patience: Duration) -> Option<Result<ProcessInfo, String>> {
        self.first.recv_timeout(patience).ok()
    }

    /// Undoes all hooks; how each process was left. Empty when called again.
    pub fn part(&mut self) -> Vec<Parted> {
        self.leave.store(true, Ordering::Release);
        let threads = self.threads.drain(..);
        // One that panicked has nothing left to tell.
        threads
            .filter_map(|thread| thread.join().ok())
            .flatten()
            .collect()
    }
}

/// The thread that answers the door.
struct Host {
    listener: Listener,
    wishes: Wishes,
    board: Shareable,
    leave: Arc<AtomicBool>,
    news: Sender<News>,
    told: Sender<Result<ProcessInfo, String>>,
    sender: Sender<Vec<Record>>,
}

impl Host {
    fn run(self) -> Vec<Parted> {
        let mut guests = Vec::new();
        while !self.leave.load(Ordering::Acquire) {
            let connection = match self.listener.accept(TICK) {
                Ok(Some(connection)) => connection,
                Ok(None) => continue,
                Err(error) => {
                    // Nobody is listening for it, or somebody is.
                    let _ = self.told.send(Err(error.to_string()));
                    break;
                }
            };
            let (wishes, board) = (self.wishes.clone(), Arc::clone(&self.board));
            let (leave, news) = (Arc::clone(&self.leave), self.news.clone());
            let (told, sender) = (self.told.clone(), self.sender.clone());
            // A thread for each: a process that is slow to answer keeps no other one waiting.
            let guest = named("injection-guest", move || {
                let (greeted, peer) = match greet(connection, &wishes, &board, news.clone()) {
                    Ok(greeted) => greeted,
                    Err(error) => {
                        let _ = told.send(Err(error.to_string()));
                        return None;
                    }
                };
                let info = peer.info.clone();
                if news.send(News::Came(Box::new(peer))).is_err() {
                    return None;
                }
                let _ = told.send(Ok(info));
                let inside = greeted.keep(&leave, &wishes, &board, &sender);
                Some(Parted { inside })
            });
            match guest {
                Ok(guest) => guests.push(guest),
                Err(error) => {
                    let _ = self.told.send(Err(error.to_string()));
                }
            }
        }
        let guests = guests.into_iter();
        guests
            .filter_map(|guest| guest.join().ok().flatten())
            .collect()
    }
}

fn named<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    thread::Builder::new().name(name.into()).spawn(work)
}

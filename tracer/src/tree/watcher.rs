//! The thread that looks after a tree of processes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, bounded, never, select};

use super::Tree;
use crate::{error::AttachError, session::spawn};

/// How often what the kernel told is taken, where it tells.
const ATTEND: Duration = Duration::from_millis(10);
/// How often the processes' lives are looked at.
const LIFE: Duration = Duration::from_millis(100);
/// How often new processes and libraries are looked for where the kernel does not tell of them.
const LOOK: Duration = Duration::from_secs(1);
/// The same where it does.
const LOOK_ALL_THE_SAME: Duration = Duration::from_secs(10);

/// A tree that is looked after.
pub(crate) struct Watcher {
    /// Dropped to have the thread end.
    halt: Option<Sender<()>>,
    thread: Option<JoinHandle<Tree>>,
    /// The tree, once the thread has ended.
    tree: Option<Tree>,
    over: Arc<AtomicBool>,
}

impl Watcher {
    /// Starts the thread. `free`: indices that can be given away again. When all processes have
    /// ended, `stop` is raised for the reader.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(
        tree: Tree,
        free: Receiver<u16>,
        stop: Arc<AtomicBool>,
    ) -> Result<Watcher, AttachError> {
        let (halt, halted) = bounded(0);
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = spawn("process-tree", move || {
            run(tree, &halted, free, &told, &stop)
        })?;
        Ok(Watcher {
            halt: Some(halt),
            thread: Some(thread),
            tree: None,
            over,
        })
    }

    /// Whether all processes have ended.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends the thread, and takes the probes off that every block passes.
    pub fn silence(&mut self) {
        self.halt = None;
        if let Some(thread) = self.thread.take() {
            // One that panicked took the probes with it.
            self.tree = thread.join().ok();
        }
        if let Some(tree) = &mut self.tree {
            tree.silence();
        }
    }
}

fn run(
    mut tree: Tree,
    halted: &Receiver<()>,
    mut free: Receiver<u16>,
    over: &AtomicBool,
    stop: &AtomicBool,
) -> Tree {
    let mut last_look = Instant::now();
    let mut last_life = Instant::now();
    let closed = tree.closed.clone();
    let (tick, look) = match tree.hears() {
        true => (ATTEND, LOOK_ALL_THE_SAME),
        false => (LIFE, LOOK),
    };
    loop {
        select! {
            recv(halted) -> _ => return tree,
            recv(closed) -> index => index.into_iter().for_each(|index| tree.retire(index)),
            recv(free) -> index => match index {
                Ok(index) => tree.indices.free.push(index),
                // The reader has ended; so will we.
                Err(_) => free = never(),
            },
            default(tick) => {}
        }
        tree.attend();
        if last_life.elapsed() >= LIFE {
            last_life = Instant::now();
            tree.bury();
        }
        if last_look.elapsed() >= look {
            last_look = Instant::now();
            tree.look();
        }
        if tree.is_over() {
            over.store(true, Ordering::Release);
            stop.store(true, Ordering::Release);
            return tree;
        }
    }
}

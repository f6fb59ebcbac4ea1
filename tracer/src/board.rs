//! What a session and its threads tell each other at any time.

use std::sync::{Arc, Mutex, PoisonError};

use vramscope_events::ProbeView;

/// What the session's owner can read at any time.
#[derive(Debug, Default)]
pub struct Board {
    /// Probes or hooks of the processes.
    pub probes: Vec<ProbeView>,
    /// Things the user should know.
    pub notes: Vec<String>,
    /// Whether the tensor layer of any process is seen.
    pub tensor_layer: bool,
    /// Counts changes.
    pub version: u64,
}

/// A lock whose holder cannot leave anything half done.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A board that threads share.
pub type Shareable = Arc<Mutex<Board>>;

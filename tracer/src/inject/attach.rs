//! Into a process that already runs, by ptrace.

use super::Parted;

/// A library that we loaded and are to unload.
pub struct Loaded {}

impl Loaded {
    /// Unloads it if nobody is in it; what to tell where that could not be.
    pub fn unload(self, _: &[Parted]) -> Option<String> {
        None
    }
}

//! Taking probes off.
//!
//! The kernel waits at each probe until no processor can be in it any more, some 35 to 120 ms. Of
//! probes that are closed at the same time the waits run beside each other.

use std::thread;

/// A probe in place. Dropped, it is off.
pub type Link = aya::programs::uprobe::UProbeLink;

/// Threads that close at the same time: they only wait.
const THREADS: usize = 32;

/// Closes probes, and returns when all are off.
pub fn close(mut links: Vec<Link>) {
    let share = links.len().div_ceil(THREADS).max(1);
    thread::scope(|scope| {
        while links.len() > share {
            let some = links.split_off(links.len() - share);
            scope.spawn(move || drop(some));
        }
        drop(links);
    });
}

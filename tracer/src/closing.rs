//! Taking probes off.
//!
//! The kernel waits at each link until no processor can be in its programs any more, some 75 ms.
//! The waits for links of many probes that are closed at the same time run beside each other; those
//! for links of one probe do not, whatever is tried.

use std::{os::fd::OwnedFd, thread};

use aya::programs::uprobe::UProbeLink;

/// Probes in place. Dropped, they are off.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub enum Link {
    /// One probe.
    One(UProbeLink),
    /// All places of a program in a file.
    Many(OwnedFd),
}

/// Threads that close at the same time: they only wait.
const THREADS: usize = 64;

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

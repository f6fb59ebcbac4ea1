//! From the processor's time stamp counter to `CLOCK_MONOTONIC`.
//!
//! Reading the counter costs the traced process a third of what the clock costs it. The counter of
//! all cores runs alike where the kernel itself uses it as its clock; elsewhere it is not used.

use std::fs;

use super::shared::counter;
use crate::session::now;

/// Where the kernel says what it keeps time with.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Readings of both clocks of which the quickest is believed.
const TRIES: usize = 5;
/// Between the two readings that begin a session, in ns.
const FIRST_SPAN: u64 = 2_000_000;

/// Whether the kernel trusts the counter.
pub fn trusted() -> bool {
    fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
struct Pair {
    counter: u64,
    time: u64,
}

impl Pair {
    fn read() -> Pair {
        let mut best = (
            u64::MAX,
            Pair {
                counter: 0,
                time: 0,
            },
        );
        for _ in 0..TRIES {
            let before = counter();
            let time = now().0;
            let width = counter().wrapping_sub(before);
            if width < best.0 {
                let counter = before.wrapping_add(width / 2);
                best = (width, Pair { counter, time });
            }
        }
        best.1
    }
}

/// Converts counters to times.
#[derive(Clone, Debug)]
pub struct Clock {
    first: Pair,
    last: Pair,
    /// Nanoseconds a tick, over the whole session so far.
    rate: f64,
}

impl Clock {
    /// A clock, after a short wait.
    pub fn new() -> Clock {
        let first = Pair::read();
        let mut last = first;
        while last.time.saturating_sub(first.time) < FIRST_SPAN {
            last = Pair::read();
        }
        Clock::between(first, last)
    }

    fn between(first: Pair, last: Pair) -> Clock {
        let ticks = last.counter.wrapping_sub(first.counter).max(1);
        let rate = last.time.saturating_sub(first.time) as f64 / ticks as f64;
        Clock { first, last, rate }
    }

    /// Takes a new reading; to be called now and then.
    pub fn refresh(&mut self) {
        *self = Clock::between(self.first, Pair::read());
    }

    /// The time at which the counter was read. Not after now: the counter is the traced process's
    /// word.
    pub fn time(&self, counter: u64) -> u64 {
        let ticks = counter.wrapping_sub(self.last.counter).cast_signed();
        let offset = (ticks as f64 * self.rate) as i64;
        let limit = now_unless(ticks);
        self.last.time.saturating_add_signed(offset).min(limit)
    }
}

/// What lies before the last reading needs no look at the clock.
fn now_unless(ticks: i64) -> u64 {
    if ticks < 0 { u64::MAX } else { now().0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_counter_is_followed() {
        let first = Pair {
            counter: 1_000,
            time: 5_000_000,
        };
        let last = Pair {
            counter: 3_001_000,
            time: 6_000_000,
        };
        let clock = Clock::between(first, last);
        assert_eq!(clock.time(3_001_000), 6_000_000);
        assert_eq!(clock.time(1_501_000), 5_500_000);
        // Nonsense stays in range.
        assert!(clock.time(u64::MAX / 2) <= now().0);
    }

    #[test]
    fn the_counter_of_this_machine_tells_its_time() {
        if !trusted() {
            println!(
                "SKIP: the_counter_of_this_machine_tells_its_time: the kernel does not use it"
            );
            return;
        }
        let mut clock = Clock::new();
        for _ in 0..20 {
            clock.refresh();
            let (before, counter, after) = (now().0, counter(), now().0);
            let time = clock.time(counter);
            // Both readings were taken one after the other; 50 us is for an interrupt in between.
            assert!(before <= time + 50_000 && time <= after + 50_000);
        }
    }
}

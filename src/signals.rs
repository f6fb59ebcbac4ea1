//! Ctrl-C and friends: a wish to stop, not a death.

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
};

use signal_hook::{consts, flag};

/// A flag that SIGINT, SIGTERM and SIGHUP set. A second one of them ends the program at once, in
/// case stopping takes too long; the kernel then takes the probes off.
///
/// # Errors
/// The kernel refused.
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [consts::SIGINT, consts::SIGTERM, consts::SIGHUP] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// For a program of ours that runs: Ctrl-C reaches it from the terminal, so it means nothing to us;
/// the flag is set by signals that were sent to us alone, and are to be passed on.
///
/// # Errors
/// The kernel refused.
pub fn passed_on() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [consts::SIGTERM, consts::SIGHUP] {
        flag::register(signal, Arc::clone(&stop))?;
    }
    flag::register(consts::SIGINT, Arc::new(AtomicBool::new(false)))?;
    Ok(stop)
}

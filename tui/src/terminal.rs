//! The terminal is borrowed: whatever happens, it goes back as it was.
//!
//! A [`Guard`] gives it back when dropped; a panic hook gives it back before the panic's message
//! is printed, also when another thread panics (then the live view comes back with a redraw).

use std::{
    io::{self, Write},
    panic::{self, PanicHookInfo},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, ThreadId},
};

use crossterm::{
    cursor::{Hide, Show},
    execute,
    terminal::{
        Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
        enable_raw_mode,
    },
};

type Hook = dyn Fn(&PanicHookInfo<'_>) + Sync + Send;

/// Whether the terminal is ours now. One process has one terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Holds the terminal in raw mode on its alternate screen.
pub struct Guard {
    hook: Arc<Hook>,
    disturbed: Arc<AtomicBool>,
}

impl Guard {
    /// Takes the terminal.
    ///
    /// # Errors
    ///
    /// The terminal refuses raw mode, or standard output is closed.
    pub fn take() -> io::Result<Guard> {
        enter()?;
        let hook: Arc<Hook> = Arc::from(panic::take_hook());
        let disturbed = Arc::new(AtomicBool::new(false));
        let own: ThreadId = thread::current().id();
        let (before, flag) = (Arc::clone(&hook), Arc::clone(&disturbed));
        panic::set_hook(Box::new(move |info| {
            // A terminal that cannot be given back is no reason to lose the message.
            let _ = leave();
            before(info);
            if thread::current().id() != own {
                flag.store(true, Ordering::Release);
            }
        }));
        Ok(Guard { hook, disturbed })
    }

    /// Whether someone gave the terminal back behind our back since the last call.
    pub fn was_disturbed(&self) -> bool {
        self.disturbed.swap(false, Ordering::AcqRel)
    }

    /// Takes the terminal again, after a stop or a disturbance: the shell may have changed it, so
    /// it is given back first.
    ///
    /// # Errors
    ///
    /// As [`Guard::take`].
    pub fn take_again(&self) -> io::Result<()> {
        disable_raw_mode()?;
        enter()
    }

    /// Gives the terminal back for a while, until [`Guard::take_again`].
    ///
    /// # Errors
    ///
    /// Standard output is closed.
    pub fn give_back(&self) -> io::Result<()> {
        leave()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = leave();
        // The hook cannot be changed while it runs; after a panic the process ends anyhow.
        if !thread::panicking() {
            let hook = Arc::clone(&self.hook);
            panic::set_hook(Box::new(move |info| hook(info)));
        }
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::Release);
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        Hide,
        Clear(ClearType::All)
    )
    .inspect_err(|_| {
        // The first error is the one to tell.
        let _ = leave();
    })
}

fn leave() -> io::Result<()> {
    if !TAKEN.swap(false, Ordering::AcqRel) {
        return Ok(());
    }
    let mut stdout = io::stdout();
    // Both are tried, whatever the other says.
    let screen = execute!(stdout, Show, LeaveAlternateScreen).and_then(|()| stdout.flush());
    let mode = disable_raw_mode();
    screen.and(mode)
}

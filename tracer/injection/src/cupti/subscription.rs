//! Beginning and ending the subscription.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use vramscope_cupti_sys::{Cupti, LoadError, SubscribeError, Subscriber, Version, raw};

use super::activity::{self, ActivitySink};
use super::call::Sink;
use super::callback::{
    self, EPOCH, FINALIZED, FINALIZING, HANDLE, INSIDE, LEAVING, OFF, ON, PHASE, UNTRACKED,
};
use super::watched::{DRIVER, RUNTIME};

/// How long [`Subscription::stop`] waits for a thread that is at the end of a call. Programs that
/// use the GPU make thousands a second; one that sits at a prompt makes none.
const WAIT_FOR_A_CALL: Duration = Duration::from_millis(500);
/// How long it waits for threads to leave the callback: they are in it for a microsecond.
const WAIT_FOR_THREADS: Duration = Duration::from_secs(2);

/// What others see as the subscriber's name, from CUDA 13.0 on.
const NAME: &std::ffi::CStr = c"vramscope";

/// More than the callbacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Turns on CUPTI's records of memory and pools, and tells each. They know what callbacks do
    /// not: the size of a pool, and from CUDA 12.6 on the library that allocates. They cost more,
    /// and another user of CUPTI's records in the process (PyTorch's profiler) then takes them
    /// away from us, or we from it: not to be used beside it.
    pub activity: Option<ActivitySink>,
}

/// Why there is no subscription.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no CUPTI.
    #[error(transparent)]
    NoCupti(#[from] LoadError),
    /// Another tool is the process's subscriber.
    #[error(
        "{version}: another tool is the one subscriber that a process can have ({}); \
         its name or the process's libraries tell which, and without it the driver's calls can \
         be watched again",
        by.as_deref().unwrap_or("this version does not tell its name")
    )]
    Held {
        /// Its name, from CUDA 13.0 on.
        by: Option<String>,
        /// Which CUPTI.
        version: Version,
    },
    /// CUPTI refused.
    #[error("{version}: {error}")]
    Refused {
        /// What it said.
        error: vramscope_cupti_sys::Error,
        /// Which CUPTI.
        version: Version,
    },
    /// This process has a [`Subscription`] already.
    #[error("the driver's calls are already watched in this process")]
    AlreadyStarted,
    /// Somebody else asked for it: see [`yield_to`] and [`others_subscribe`].
    #[error(
        "another tool in this process asked for CUPTI's one subscription, and it was left to it"
    )]
    Yielded,
}

/// Callbacks are on until this is stopped; dropping it ends them at once, without finalizing.
#[derive(Debug)]
pub struct Subscription {
    cupti: &'static Cupti,
    options: Options,
    /// Functions that this version does not know.
    unknown: AtomicU32,
}

/// How a subscription ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// CUPTI has detached itself from the process. Without it, its own hooks in the driver stay,
    /// at a small cost to every CUDA call.
    pub finalized: bool,
    /// Why it was not finalized, in words.
    pub note: Option<&'static str>,
    /// No thread is in the callback any more.
    pub quiet: bool,
}

static STARTED: AtomicBool = AtomicBool::new(false);
/// A subscription is being made: whoever wants it given up has to wait for its handle.
static BEGINNING: AtomicBool = AtomicBool::new(false);
/// How often it was asked to let go.
static YIELDS: AtomicU32 = AtomicU32::new(0);
/// Somebody else is the subscriber, or about to be.
static RESERVED: AtomicBool = AtomicBool::new(false);
static OTHERS_USE_CUPTI: AtomicBool = AtomicBool::new(false);

/// To be told when somebody else in the process uses CUPTI's records (`cuptiActivityEnable`), or no
/// longer does: finalizing would take them away. CUPTI itself does not tell who uses them.
pub fn others_use_cupti(yes: bool) {
    OTHERS_USE_CUPTI.store(yes, Ordering::SeqCst);
}

/// Watches the driver's calls. May allocate and wait: not for a thread of the program's.
pub fn start(sink: Sink) -> Result<Subscription, StartError> {
    start_with(sink, Options::default())
}

/// The same, with more.
pub fn start_with(sink: Sink, options: Options) -> Result<Subscription, StartError> {
    if STARTED.swap(true, Ordering::SeqCst) {
        return Err(StartError::AlreadyStarted);
    }
    let started = Cupti::load().map_err(StartError::from).and_then(|cupti| {
        callback::prepare(cupti, sink);
        let subscription = Subscription {
            cupti,
            options,
            unknown: AtomicU32::new(0),
        };
        subscription.begin()?;
        Ok(subscription)
    });
    // A subscription that did not come about was dropped, or never was.
    if started.is_err() {
        STARTED.store(false, Ordering::SeqCst);
    }
    started
}

/// Lets go of CUPTI at once, on any thread: for the moment in which somebody else asks for it.
/// Waits only while another thread is about to become the subscriber, for a second at most. Says
/// whether there was something to let go of.
///
/// Calls under way on other threads are told up to here; their ends are not.
pub fn yield_to(_subscription: &Subscription) -> bool {
    let_go()
}

/// The same for who has no [`Subscription`] at hand, such as a hook.
pub fn let_go() -> bool {
    YIELDS.fetch_add(1, Ordering::SeqCst);
    // The helper thread that begins cannot wake whoever comes here: this is a thread of the
    // program's that may come at any time, and there may be several.
    for _ in 0..1000 {
        if !BEGINNING.load(Ordering::SeqCst) {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    PHASE.store(OFF, Ordering::SeqCst);
    callback::unsubscribe()
}

/// For a hook on `cuptiSubscribe`: to be told before somebody else's call goes through, which must
/// not be refused because of us, and again when they have unsubscribed or were refused all the
/// same. In between it was let go of, and neither [`start`] nor [`resume`] takes it.
pub fn others_subscribe(yes: bool) {
    RESERVED.store(yes, Ordering::SeqCst);
    if yes {
        let_go();
    }
}

/// To be told when somebody else has finalized CUPTI: the subscription is gone with it. Calls
/// nothing of CUPTI's.
pub fn taken_away() {
    HANDLE.store(std::ptr::null_mut(), Ordering::SeqCst);
    PHASE.store(OFF, Ordering::SeqCst);
}

/// Takes it again after [`yield_to`], [`taken_away`], or when it was lost. Not for a thread of the
/// program's.
pub fn resume(subscription: &Subscription) -> Result<(), StartError> {
    if subscription.is_watching() && !subscription.lost() {
        return Ok(());
    }
    EPOCH.fetch_add(1, Ordering::SeqCst);
    super::device::forget();
    subscription.begin()
}

impl Subscription {
    fn begin(&self) -> Result<(), StartError> {
        let version = self.cupti.version();
        let yields = YIELDS.load(Ordering::SeqCst);
        BEGINNING.store(true, Ordering::SeqCst);
        let subscriber = if RESERVED.load(Ordering::SeqCst) {
            Err(StartError::Yielded)
        } else {
            self.subscribe()
        };
        BEGINNING.store(false, Ordering::SeqCst);
        let subscriber = subscriber?;
        PHASE.store(ON, Ordering::SeqCst);
        if YIELDS.load(Ordering::SeqCst) != yields {
            // Whoever asked may have come before the handle was there.
            let_go();
            return Err(StartError::Yielded);
        }
        // A function that an older version does not know is refused there and cannot be called.
        let refused = DRIVER
            .iter()
            .chain(RUNTIME)
            .filter(|(domain, id)| {
                self.cupti
                    .enable_callback(subscriber, *domain, *id, true)
                    .is_err()
            })
            .count();
        let refused = u32::try_from(refused).unwrap_or(u32::MAX);
        self.unknown.store(refused, Ordering::Relaxed);
        if let Some(sink) = self.options.activity
            && let Err(error) = activity::start(self.cupti, sink)
        {
            let_go();
            return Err(StartError::Refused { error, version });
        }
        Ok(())
    }

    /// Becomes the subscriber, and puts the handle where it can be taken.
    fn subscribe(&self) -> Result<Subscriber, StartError> {
        let version = self.cupti.version();
        // CUPTI's records know one user at a time by the functions that are used here.
        let shared = self.options.activity.is_none();
        // SAFETY: the callback is a function of this library, which is never unmapped while a
        // thread is in it (see `Stopped::quiet`).
        let subscribed = unsafe { self.cupti.subscribe(callback::callback, NAME, shared) };
        let subscriber = subscribed.map_err(|error| match error {
            SubscribeError::Held { by } => StartError::Held { by, version },
            SubscribeError::Other(error) => StartError::Refused { error, version },
        })?;
        HANDLE.store(subscriber.into_raw(), Ordering::SeqCst);
        Ok(subscriber)
    }

    /// Which CUPTI it is.
    pub fn version(&self) -> Version {
        self.cupti.version()
    }

    /// Whether calls are told: false after [`yield_to`].
    pub fn is_watching(&self) -> bool {
        PHASE.load(Ordering::SeqCst) == ON
    }

    /// Whether somebody took CUPTI away, as PyTorch's profiler does when it finalizes it. Asks
    /// CUPTI about a handle that may be stale, which it should refuse; who sees the finalize can
    /// say so with [`taken_away`] instead. Not for a thread of the program's.
    pub fn lost(&self) -> bool {
        let handle = HANDLE.load(Ordering::SeqCst);
        let Some(subscriber) = Subscriber::from_raw(handle) else {
            return false;
        };
        let (domain, id) = (
            raw::CUPTI_CB_DOMAIN_DRIVER_API,
            raw::CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
        );
        if self.cupti.callback_is_on(subscriber, domain, id) {
            return false;
        }
        // Whoever takes the handle out says so, once.
        let taken = HANDLE.compare_exchange(
            handle,
            std::ptr::null_mut(),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        if taken.is_ok() {
            PHASE.store(OFF, Ordering::SeqCst);
        }
        taken.is_ok()
    }

    /// Calls whose thread found no place in the table, so that a driver call beneath them was told
    /// a second time. More than 32 threads at one place of it at once: not seen outside of tests.
    pub fn untracked(&self) -> u64 {
        UNTRACKED.load(Ordering::Relaxed)
    }

    /// Records of CUPTI's that found no room, with [`Options::activity`].
    pub fn dropped_records(&self) -> u64 {
        activity::dropped(self.cupti)
    }

    /// Ends it: no callback begins after this. CUPTI is finalized by a thread of the program's at
    /// the end of a CUDA call, if one comes in half a second. Waits; not for a thread of the
    /// program's.
    pub fn stop(self) -> Stopped {
        callback::announce_waiting();
        if self.options.activity.is_some() {
            activity::stop(self.cupti);
        }
        let note = self.why_not_finalize();
        let finalized = note.is_none() && self.finalize_at_the_end_of_a_call();
        PHASE.store(OFF, Ordering::SeqCst);
        callback::unsubscribe();
        let quiet = wait(WAIT_FOR_THREADS, || INSIDE.load(Ordering::SeqCst) == 0);
        let silence = "no CUDA call ended within half a second; CUPTI is finalized only then";
        Stopped {
            finalized,
            note: note.or((!finalized).then_some(silence)),
            quiet,
        }
    }

    fn why_not_finalize(&self) -> Option<&'static str> {
        if HANDLE.load(Ordering::SeqCst).is_null() || self.lost() {
            Some("the subscription was given up before; whoever has CUPTI now keeps it")
        } else if OTHERS_USE_CUPTI.load(Ordering::SeqCst) {
            Some("somebody else in this process uses CUPTI")
        } else if self.version() < Version::FINALIZE_WITH_GRAPHS {
            Some("before CUDA 12.6 CUPTI's finalize can crash programs that use CUDA graphs")
        } else {
            None
        }
    }

    fn finalize_at_the_end_of_a_call(&self) -> bool {
        PHASE.store(LEAVING, Ordering::SeqCst);
        // Memory functions may be rare: any call will do.
        if let Some(subscriber) = Subscriber::from_raw(HANDLE.load(Ordering::SeqCst)) {
            for domain in [
                raw::CUPTI_CB_DOMAIN_RUNTIME_API,
                raw::CUPTI_CB_DOMAIN_DRIVER_API,
            ] {
                // Refused at worst; then the wait is for a memory function.
                let _ = self.cupti.enable_domain(subscriber, domain, true);
            }
        }
        let has_ended = || !matches!(PHASE.load(Ordering::SeqCst), LEAVING | FINALIZING);
        wait(WAIT_FOR_A_CALL, has_ended);
        // Nobody begins any more; who has begun is waited for.
        let _ = PHASE.compare_exchange(LEAVING, OFF, Ordering::SeqCst, Ordering::SeqCst);
        wait(WAIT_FOR_THREADS, has_ended);
        PHASE.load(Ordering::SeqCst) == FINALIZED
    }
}

/// Waits until `done`; threads that leave the callback wake this one.
fn wait(patience: Duration, done: impl Fn() -> bool) -> bool {
    let until = Instant::now() + patience;
    loop {
        if done() {
            return true;
        }
        let Some(left) = until.checked_duration_since(Instant::now()) else {
            return false;
        };
        thread::park_timeout(left);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let_go();
        STARTED.store(false, Ordering::SeqCst);
    }
}

impl fmt::Display for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.cupti.path().display();
        let whose = if self.cupti.reused() {
            "the process's own"
        } else {
            "loaded for this"
        };
        write!(f, "{} ({path}, {whose})", self.version())?;
        let unknown = self.unknown.load(Ordering::Relaxed);
        if unknown > 0 {
            write!(f, "; {unknown} functions are unknown to it")?;
        }
        if !self.is_watching() {
            write!(f, "; given up")?;
        }
        Ok(())
    }
}

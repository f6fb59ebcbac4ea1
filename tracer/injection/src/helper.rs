//! The thread that talks to vramscope. It is the only one of ours in the target, asleep but for
//! messages, and everything that takes locks or memory happens on it.

use std::{
    ffi::{c_int, c_void},
    panic::{self, AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{driver_layer, live, session, thread};

/// How long a program waits at its start for the hooks. Without them it goes on all the same.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the helper waits for the thread that initialises the driver to subscribe to CUPTI.
const SUBSCRIBING: Duration = Duration::from_secs(5);

/// Whether a helper thread is there.
static RUNNING: AtomicBool = AtomicBool::new(false);
/// How far the beginning has come.
static STAGE: Mutex<Stage> = Mutex::new(Stage::Idle);
static NEWS: Condvar = Condvar::new();

enum Stage {
    Idle,
    /// For the helper: where the socket is, where the starting thread's block holds its id, and
    /// whether that thread waits.
    Ordered(Order),
    /// The helper is at work.
    Working,
    /// For the thread that waits: it is to subscribe to CUPTI.
    Subscribe,
    /// The answer to whoever started the helper: 0, or an `errno`.
    Done(c_int),
}

struct Order {
    path: Vec<u8>,
    places: Vec<u32>,
    patient: bool,
}

fn stage() -> MutexGuard<'static, Stage> {
    STAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn proceed(to: Stage) {
    *stage() = to;
    NEWS.notify_all();
}

/// Waits until `look` has seen what it is looking for, or nothing for too long.
fn await_stage<T>(patience: Duration, look: impl Fn(&Stage) -> Option<T>) -> Option<T> {
    let until = Instant::now() + patience;
    let mut now = stage();
    loop {
        if let Some(found) = look(&now) {
            return Some(found);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let woken = NEWS.wait_timeout(now, left);
        now = woken.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Starts the helper and, if `patient`, waits until the hooks are in place. 0, or an `errno`.
pub fn start(path: &[u8], patient: bool) -> c_int {
    if RUNNING.swap(true, Ordering::AcqRel) {
        return libc::EBUSY;
    }
    // A panic is caught where it happens; it must not be printed into the program's output. The
    // hook is that of this library's own copy of the standard library.
    panic::set_hook(Box::new(|_| {}));
    proceed(Stage::Ordered(Order {
        path: path.to_vec(),
        places: thread::id_places(),
        patient,
    }));
    match spawn() {
        0 if patient => wait(),
        0 => 0,
        error => {
            RUNNING.store(false, Ordering::Release);
            error
        }
    }
}

/// Whether the helper thread is there.
pub fn is_running() -> bool {
    RUNNING.load(Ordering::Acquire)
}

fn wait() -> c_int {
    loop {
        let next = await_stage(PATIENCE, |stage| match stage {
            Stage::Subscribe => Some(None),
            Stage::Done(answer) => Some(Some(*answer)),
            _ => None,
        });
        match next {
            Some(None) => {
                driver_layer::begin();
                proceed(Stage::Working);
            }
            Some(Some(answer)) => return answer,
            None => return libc::ETIMEDOUT,
        }
    }
}

/// A thread with every signal blocked: the program's handlers run on its own threads.
fn spawn() -> c_int {
    extern "C" fn body(_: *mut c_void) -> *mut c_void {
        let answer = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(())) => 0,
            Ok(Err(error)) => error.raw_os_error().unwrap_or(libc::EPROTO),
            Err(_) => libc::EIO,
        };
        proceed(Stage::Done(answer));
        RUNNING.store(false, Ordering::Release);
        ptr::null_mut()
    }

    // SAFETY: a new thread that shares nothing with this one but the statics above; masks and
    // attributes are initialised by the calls before they are used.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let mut attributes = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut id = std::mem::zeroed();
        let error = libc::pthread_create(&mut id, &attributes, body, ptr::null_mut());
        libc::pthread_attr_destroy(&mut attributes);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        error
    }
}

/// In the child of a fork nobody listens: the hooks do nothing there.
extern "C" fn in_child() {
    live::forget();
    RUNNING.store(false, Ordering::Release);
}

fn once_a_process() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::AcqRel) {
        // SAFETY: a function without arguments; glibc forgets it when this library is unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

fn work() -> std::io::Result<()> {
    // SAFETY: names the calling thread.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"vramscope".as_ptr()) };
    let Stage::Ordered(order) = std::mem::replace(&mut *stage(), Stage::Working) else {
        return Err(std::io::Error::from_raw_os_error(libc::EINVAL));
    };
    thread::calibrate(&order.places, &thread::id_places());
    once_a_process();
    let subscribe = || {
        if !order.patient {
            driver_layer::begin();
            return;
        }
        proceed(Stage::Subscribe);
        let subscribed = |stage: &Stage| matches!(stage, Stage::Working).then_some(());
        await_stage(SUBSCRIBING, subscribed);
    };
    session::run(&order.path, subscribe, || proceed(Stage::Done(0)))
}

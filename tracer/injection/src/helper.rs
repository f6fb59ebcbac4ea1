//! The thread that talks to vramscope. It is the only one of ours in the target, asleep but for
//! messages, and everything that takes locks or memory happens on it.

use std::{
    ffi::{CStr, CString, c_int, c_void},
    os::fd::{AsRawFd as _, OwnedFd},
    panic::{self, AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use vramscope_ring::{Parts, Writer};
use vramscope_wire::{
    self as wire, vs_hello, vs_hook_report, vs_left, vs_plain, vs_setup, vs_shared,
};

use crate::{
    got::{self, Pointers},
    live::{self, Counters, Executing, Live},
    native::{self, FindObject, Rules, Unwinder},
    objects,
    record::{self, Hook},
    report,
    socket::Socket,
    tables::{CodeTable, StackCache},
    thread,
};

/// How long a program waits at its start for the hooks. Without them it goes on all the same.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the end waits for threads in our code before it reports them.
const LEAVING: Duration = Duration::from_secs(2);
/// Between two looks at them.
const REST: Duration = Duration::from_millis(2);

/// Whether a helper thread is there.
static RUNNING: AtomicBool = AtomicBool::new(false);
/// Answer of the helper to whoever started it.
static STARTED: Mutex<Option<c_int>> = Mutex::new(None);
static TOLD: Condvar = Condvar::new();
/// Where the socket is, and where the starting thread's block holds its id.
static ORDERS: Mutex<(Vec<u8>, Vec<u32>)> = Mutex::new((Vec::new(), Vec::new()));

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the helper and, if wanted, waits until the hooks are in place. 0, or an `errno`.
pub fn start(path: &[u8], patient: bool) -> c_int {
    if RUNNING.swap(true, Ordering::AcqRel) {
        return libc::EBUSY;
    }
    // A panic is caught where it happens; it must not be printed into the program's output. The
    // hook is that of this library's own copy of the standard library.
    panic::set_hook(Box::new(|_| {}));
    *lock(&ORDERS) = (path.to_vec(), thread::id_places());
    *lock(&STARTED) = None;
    match spawn() {
        0 if patient => wait(),
        0 => 0,
        error => {
            RUNNING.store(false, Ordering::Release);
            error
        }
    }
}

fn wait() -> c_int {
    let until = Instant::now() + PATIENCE;
    let mut started = lock(&STARTED);
    loop {
        if let Some(answer) = *started {
            return answer;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return libc::ETIMEDOUT;
        }
        started = TOLD
            .wait_timeout(started, left)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
}

fn answer(value: c_int) {
    let mut started = lock(&STARTED);
    if started.is_none() {
        *started = Some(value);
    }
    TOLD.notify_all();
}

/// A thread with every signal blocked: the program's handlers run on its own threads.
fn spawn() -> c_int {
    extern "C" fn body(_: *mut c_void) -> *mut c_void {
        let result = catch_unwind(AssertUnwindSafe(run));
        answer(match result {
            Ok(Ok(())) => 0,
            Ok(Err(error)) => error.raw_os_error().unwrap_or(libc::EPROTO),
            Err(_) => libc::EIO,
        });
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
    static DONE: AtomicU32 = AtomicU32::new(0);
    if DONE.swap(1, Ordering::AcqRel) == 0 {
        // SAFETY: a function without arguments; glibc forgets it when this library is unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

fn run() -> std::io::Result<()> {
    // SAFETY: names the calling thread.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"vramscope".as_ptr()) };
    let (path, places) = std::mem::take(&mut *lock(&ORDERS));
    thread::calibrate(&places, &thread::id_places());
    once_a_process();
    let socket = Socket::connect(&path)?;
    let text = own_range();
    socket.send(&vs_hello {
        message: wire::vs_message_VS_HELLO,
        protocol: wire::VS_PROTOCOL,
        text_start: text.start as u64,
        text_end: text.end as u64,
    })?;
    let (setup, bytes, memory) = socket.receive::<vs_setup>()?;
    let memory = match memory {
        Some(memory)
            if bytes == size_of::<vs_setup>() && setup.message == wire::vs_message_VS_SETUP =>
        {
            memory
        }
        _ => return Err(std::io::Error::from_raw_os_error(libc::EPROTO)),
    };
    let shared = Shared::map(&memory)?;
    drop(memory);
    let mut session = Session::begin(&socket, &setup, shared)?;
    answer(0);
    loop {
        match socket.receive::<vs_plain>() {
            Ok((message, _, _)) if message.message == wire::vs_message_VS_RESCAN => {
                session.pointers.scan();
                // A library may have gone and another one come in its place.
                live::forget_rules();
                if socket.send(&session.report()).is_err() {
                    break;
                }
            }
            Ok((message, _, _)) if message.message == wire::vs_message_VS_LEAVE => {
                let inside = session.end();
                // Whether it arrives or not, there is nothing left to do.
                let _ = socket.send(&vs_left {
                    message: wire::vs_message_VS_LEFT,
                    inside: inside as u32,
                });
                return Ok(());
            }
            Ok((_, 0, _)) | Err(_) => break,
            Ok(_) => {}
        }
    }
    session.end();
    Ok(())
}

/// Where this library lies.
fn own_range() -> std::ops::Range<usize> {
    let mut range = 0..0;
    let ours = record::trampoline(Hook::Memory);
    objects::each(&mut |object| {
        if object.contains(ours) {
            range = object.range();
        }
    });
    range
}

/// The memory that is shared with vramscope.
struct Shared {
    start: *mut c_void,
    bytes: usize,
}

impl Shared {
    fn map(memory: &OwnedFd) -> std::io::Result<Shared> {
        // SAFETY: a descriptor of ours; the result is checked. The reader has sealed the memory
        // against shrinking, so that it stays readable to its end.
        unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            if libc::fstat(memory.as_raw_fd(), &mut status) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            let bytes = status.st_size as usize;
            let start = libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                // Every page now: a page fault in the middle of an allocation costs more than the
                // record.
                libc::MAP_SHARED | libc::MAP_POPULATE,
                memory.as_raw_fd(),
                0,
            );
            if start == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
            // A fork's child has no business with it.
            libc::madvise(start, bytes, libc::MADV_DONTFORK);
            Ok(Shared { start, bytes })
        }
    }

    /// The ring and the counters in it. They are good until the memory is unmapped, which the
    /// session does after the last thread has left it.
    fn parts(&self) -> std::io::Result<(Writer<'static>, &'static Counters, vs_shared)> {
        let damaged = || std::io::Error::from_raw_os_error(libc::EPROTO);
        if self.bytes < wire::VS_SHARED_BYTES as usize {
            return Err(damaged());
        }
        let shared = self.start.cast::<vs_shared>();
        // SAFETY: mapped, page-aligned, and at least wire::VS_SHARED_BYTES long, which is more than the
        // struct; all its fields are integers. From here on the words that both sides change are
        // used as atomics only.
        unsafe {
            let header = shared.read();
            let words = header.ring_words as usize;
            let room = (self.bytes - wire::VS_SHARED_BYTES as usize) / 8;
            if header.magic != wire::VS_SHARED_MAGIC
                || header.protocol != wire::VS_PROTOCOL
                || words > room
            {
                return Err(damaged());
            }
            let ring = self.start.byte_add(wire::VS_SHARED_BYTES as usize);
            let parts = Parts {
                head: &*(&raw const (*shared).head).cast::<AtomicU64>(),
                tail: &*(&raw const (*shared).tail).cast::<AtomicU64>(),
                words: std::slice::from_raw_parts(ring.cast::<AtomicU64>(), words),
            };
            let counters = &*(&raw const (*shared).counters).cast();
            Ok((Writer::new(parts).ok_or_else(damaged)?, counters, header))
        }
    }
}

struct Session {
    pointers: Pointers,
    shared: Option<Shared>,
    native: vs_hook_report,
    step: bool,
}

impl Session {
    fn begin(socket: &Socket, setup: &vs_setup, shared: Shared) -> std::io::Result<Session> {
        let (ring, counters, header) = shared.parts()?;
        // SAFETY: `Py_IsFinalizing` takes nothing and gives an int, under either of its names.
        let is_finalizing = [c"Py_IsFinalizing", c"_Py_IsFinalizing"]
            .into_iter()
            .find_map(got::symbol_anywhere)
            .map(|address| unsafe {
                std::mem::transmute::<usize, extern "C" fn() -> i32>(address)
            });
        let wants_native = setup.flags & wire::vs_setup_flag_VS_SETUP_NATIVE != 0;
        let unwinder = wants_native.then(unwinder).flatten();
        let native = match (wants_native, &unwinder) {
            (false, _) => report::entry(wire::vs_hook_state_VS_HOOK_UNWANTED, 0, ""),
            (true, Some(_)) => report::entry(wire::vs_hook_state_VS_HOOK_PLACED, 0, ""),
            (true, None) => report::entry(
                wire::vs_hook_state_VS_HOOK_FAILED,
                0,
                "the process's C library has no _dl_find_object: glibc 2.35 has it",
            ),
        };
        live::publish(Box::new(Live {
            ring,
            counters,
            tsc: setup.flags & wire::vs_setup_flag_VS_SETUP_TSC != 0,
            python: header.python,
            interpreter: header.interpreter_start..header.interpreter_end,
            is_finalizing,
            unwinder,
            codes: CodeTable::new(),
            stacks: StackCache::new(),
            epoch: AtomicU64::new(1),
            next_code: AtomicU32::new(1),
            next_stack: AtomicU32::new(1),
            executing: Executing::default(),
        }));
        let step = symbol(setup);
        let mut session = Session {
            step: step.is_some(),
            native,
            pointers: Pointers::new(step),
            shared: Some(shared),
        };
        session.pointers.scan();
        if let Err(error) = socket.send(&session.report()) {
            session.end();
            return Err(error);
        }
        Ok(session)
    }

    fn report(&self) -> vramscope_wire::vs_hooked {
        let cupti = report::entry(wire::vs_hook_state_VS_HOOK_UNWANTED, 0, "");
        report::hooked(&self.pointers, cupti, self.native, self.step)
    }

    /// Undoes everything; how many threads are still in our code.
    fn end(&mut self) -> u64 {
        self.pointers.restore();
        let mut ended = live::take();
        let until = Instant::now() + LEAVING;
        loop {
            ended = match ended.map(live::Ended::free) {
                Some(Err(still)) => Some(still),
                _ => None,
            };
            let inside = live::threads_inside();
            if (inside == 0 && ended.is_none()) || Instant::now() >= until {
                if ended.is_none()
                    && let Some(shared) = self.shared.take()
                {
                    // SAFETY: our mapping; with the session freed nothing refers to it any more.
                    unsafe { libc::munmap(shared.start, shared.bytes) };
                }
                // A session that could not be freed is left where it is: a thread uses it.
                return inside;
            }
            std::thread::sleep(REST);
        }
    }
}

/// What unwinding needs of the C library.
fn unwinder() -> Option<Unwinder> {
    if let Some(end) = got::symbol_anywhere(c"__libc_stack_end") {
        // SAFETY: a variable of the dynamic linker's, a pointer.
        native::set_main_stack_end(unsafe { *(end as *const usize) });
    }
    let find_object = got::symbol_anywhere(c"_dl_find_object")?;
    Some(Unwinder {
        rules: Rules::new(),
        // SAFETY: the function of this name has this type in every glibc that has it.
        find_object: unsafe { std::mem::transmute::<usize, FindObject>(find_object) },
    })
}

/// The function that marks a step, if one was named.
fn symbol(setup: &vs_setup) -> Option<CString> {
    let bytes: Vec<u8> = setup.step_symbol.iter().map(|byte| *byte as u8).collect();
    let name = CStr::from_bytes_until_nul(&bytes).ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}

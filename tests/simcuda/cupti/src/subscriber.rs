//! Subscribers: who gets callbacks, and for which functions.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use simcuda_common::log;

use crate::activity;
use crate::callback;
use crate::driver::driver;
use crate::ids::{DOMAINS, IDS};
use crate::result::{
    Code, INVALID_PARAMETER, MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, NOT_INITIALIZED, finish,
};
use crate::version::{SEVERAL_SUBSCRIBERS, version};

/// `CUpti_CallbackFunc`
pub type Callback = unsafe extern "C" fn(*mut c_void, c_int, u32, *const c_void);

/// How many there can be at once.
pub const MOST: usize = 4;

/// One subscriber. Its handle is its number, never an address.
#[derive(Debug)]
pub struct Subscriber {
    handle: usize,
    pub callback: Callback,
    user: usize,
    /// "CUPTI for NAME", or just "CUPTI" for who gave no name.
    name: CString,
    shared: bool,
    enabled: [[AtomicU64; IDS / 64]; DOMAINS as usize + 1],
}

impl Subscriber {
    pub fn user(&self) -> *mut c_void {
        self.user as *mut c_void
    }

    pub fn wants(&self, domain: u32, id: u32) -> bool {
        self.word(domain, id)
            .is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    fn word(&self, domain: u32, id: u32) -> Option<(&AtomicU64, u64)> {
        let words = self.enabled.get(domain as usize).filter(|_| domain != 0)?;
        Some((words.get(id as usize / 64)?, 1 << (id % 64)))
    }

    fn enable(&self, domain: u32, id: u32, on: bool) -> Result<(), Code> {
        let (word, bit) = self.word(domain, id).ok_or(INVALID_PARAMETER)?;
        if on {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
        Ok(())
    }

    fn enable_domain(&self, domain: u32, on: bool) -> Result<(), Code> {
        let words = self.enabled.get(domain as usize).filter(|_| domain != 0);
        for word in words.ok_or(INVALID_PARAMETER)? {
            word.store(if on { u64::MAX } else { 0 }, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// What any subscriber wants, so that a call that nobody wants costs a look at one word.
static WANTED: [[AtomicU64; IDS / 64]; DOMAINS as usize + 1] =
    [const { [const { AtomicU64::new(0) }; IDS / 64] }; DOMAINS as usize + 1];

/// Whether anybody wants to know of a function.
pub fn anybody_wants(domain: u32, id: u32) -> bool {
    let word = WANTED
        .get(domain as usize)
        .and_then(|words| words.get(id as usize / 64));
    word.is_some_and(|word| word.load(Ordering::SeqCst) & (1 << (id % 64)) != 0)
}

/// To be called after every change of what is wanted.
fn update_wanted() {
    let subscribers = SUBSCRIBERS.lock().expect("no panics");
    for (domain, words) in WANTED.iter().enumerate() {
        for (index, word) in words.iter().enumerate() {
            let all = subscribers
                .iter()
                .map(|one| one.enabled[domain][index].load(Ordering::Relaxed));
            word.store(all.fold(0, |sum, bits| sum | bits), Ordering::SeqCst);
        }
    }
}

/// The subscribers there are, in the order of subscribing.
static SUBSCRIBERS: Mutex<Vec<Arc<Subscriber>>> = Mutex::new(Vec::new());

/// Those subscribers, for a walk without the lock: callbacks may subscribe and unsubscribe.
pub fn all() -> [Option<Arc<Subscriber>>; MOST] {
    let subscribers = SUBSCRIBERS.lock().expect("no panics");
    std::array::from_fn(|index| subscribers.get(index).cloned())
}

fn by_handle(handle: usize) -> Result<Arc<Subscriber>, Code> {
    let subscribers = SUBSCRIBERS.lock().expect("no panics");
    let found = subscribers.iter().find(|known| known.handle == handle);
    found.cloned().ok_or(INVALID_PARAMETER)
}

/// Sets or removes the driver's hook, as somebody needs it or nobody does.
pub fn update_hook() -> Result<(), Code> {
    let driver = driver().ok_or(NOT_INITIALIZED)?;
    let needed = !SUBSCRIBERS.lock().expect("no panics").is_empty() || activity::any_enabled();
    driver.set_hook(needed.then_some(callback::visit));
    Ok(())
}

struct Request {
    callback: Callback,
    user: usize,
    name: Option<String>,
    shared: bool,
}

/// Makes a subscriber, or not. With either, the name of the first one that was there.
fn subscribe(request: Request) -> (Result<usize, Code>, CString) {
    let mut first = CString::default();
    let made = make(request, &mut first);
    (made, first)
}

fn make(request: Request, holder: &mut CString) -> Result<usize, Code> {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    driver().ok_or(NOT_INITIALIZED)?;
    let mut subscribers = SUBSCRIBERS.lock().expect("no panics");
    if let Some(first) = subscribers.first() {
        holder.clone_from(&first.name);
        let side_by_side = request.shared
            && subscribers.iter().all(|subscriber| subscriber.shared)
            && subscribers.len() < MOST;
        if !side_by_side {
            log!(
                "CUPTI: a subscriber is refused: {:?} holds the subscription",
                first.name
            );
            return Err(MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
        }
    }
    let name = match request.name {
        // 53 bytes of the user's, ten of CUPTI's and the zero are 64.
        Some(name) => format!("CUPTI for {}", name.get(..53).unwrap_or(&name)),
        None => "CUPTI".to_owned(),
    };
    // A number that no other handle of the process looks like.
    let handle = 0xC0F7_0000_0000 | (NEXT.fetch_add(1, Ordering::Relaxed) << 4);
    log!("CUPTI: {name:?} subscribes");
    subscribers.push(Arc::new(Subscriber {
        handle,
        callback: request.callback,
        user: request.user,
        name: CString::new(name).unwrap_or_default(),
        shared: request.shared,
        enabled: [const { [const { AtomicU64::new(0) }; IDS / 64] }; DOMAINS as usize + 1],
    }));
    drop(subscribers);
    update_hook()?;
    Ok(handle)
}

/// All subscribers go, and with them the hook.
pub fn remove_all() {
    SUBSCRIBERS.lock().expect("no panics").clear();
    update_wanted();
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(
    handle: *mut usize,
    callback: Option<Callback>,
    user: *mut c_void,
) -> c_int {
    let (false, Some(callback)) = (handle.is_null(), callback) else {
        return INVALID_PARAMETER.0;
    };
    let request = Request {
        callback,
        user: user as usize,
        name: None,
        shared: false,
    };
    finish(subscribe(request).0.map(|number| {
        // SAFETY: the caller gave a place for a handle.
        unsafe { handle.write(number) };
    }))
}

/// `CUpti_SubscriberParams`
#[repr(C)]
struct Parameters {
    size: usize,
    name: *const c_char,
    holder: *mut c_char,
    holder_size: usize,
    /// From CUDA 13.2 on; the struct ends before it in what is older.
    allow_multiple: u8,
    padding: [u8; 7],
}

const SHORT: usize = std::mem::offset_of!(Parameters, allow_multiple);

/// Not exported by the library of CUDA 12.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe_v2(
    handle: *mut usize,
    callback: Option<Callback>,
    user: *mut c_void,
    parameters: *const c_void,
) -> c_int {
    let (false, Some(callback)) = (handle.is_null(), callback) else {
        return INVALID_PARAMETER.0;
    };
    let mut request = Request {
        callback,
        user: user as usize,
        name: None,
        shared: false,
    };
    let (mut holder, mut holder_size) = (std::ptr::null_mut(), 0);
    if !parameters.is_null() {
        let parameters: *const Parameters = parameters.cast();
        // SAFETY: the caller's struct has `size` bytes, of which the first field is always there.
        unsafe {
            let size = (&raw const (*parameters).size).read();
            if size < SHORT {
                return INVALID_PARAMETER.0;
            }
            let name = (&raw const (*parameters).name).read();
            if !name.is_null() {
                request.name = Some(CStr::from_ptr(name).to_string_lossy().into_owned());
            }
            holder = (&raw const (*parameters).holder).read();
            holder_size = (&raw const (*parameters).holder_size).read();
            if version() >= SEVERAL_SUBSCRIBERS && size >= size_of::<Parameters>() {
                request.shared = (&raw const (*parameters).allow_multiple).read() != 0;
            }
        }
    }
    let (outcome, first) = subscribe(request);
    if !first.is_empty() {
        // Fails only where the caller gave no room.
        let _ = simcuda_common::ffi::store_text(holder, holder_size, &first.to_string_lossy());
    }
    finish(outcome.map(|number| {
        // SAFETY: the caller gave a place for a handle.
        unsafe { handle.write(number) };
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiUnsubscribe(handle: usize) -> c_int {
    let mut subscribers = SUBSCRIBERS.lock().expect("no panics");
    let before = subscribers.len();
    subscribers.retain(|subscriber| subscriber.handle != handle);
    let gone = subscribers.len() < before;
    drop(subscribers);
    update_wanted();
    log!("CUPTI: a subscriber goes");
    if !gone {
        return INVALID_PARAMETER.0;
    }
    finish(update_hook())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableCallback(on: u32, handle: usize, domain: c_int, id: u32) -> c_int {
    let done = by_handle(handle).and_then(|found| found.enable(domain as u32, id, on != 0));
    update_wanted();
    finish(done)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableDomain(on: u32, handle: usize, domain: c_int) -> c_int {
    let done = by_handle(handle).and_then(|found| found.enable_domain(domain as u32, on != 0));
    update_wanted();
    finish(done)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableAllDomains(on: u32, handle: usize) -> c_int {
    let done = by_handle(handle).and_then(|found| {
        (1..=DOMAINS).try_for_each(|domain| found.enable_domain(domain, on != 0))
    });
    update_wanted();
    finish(done)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCallbackState(
    on: *mut u32,
    handle: usize,
    domain: c_int,
    id: u32,
) -> c_int {
    let outcome = by_handle(handle).and_then(|found| {
        if on.is_null() || found.word(domain as u32, id).is_none() {
            return Err(INVALID_PARAMETER);
        }
        // SAFETY: the caller gave a place for a number.
        unsafe { on.write(u32::from(found.wants(domain as u32, id))) };
        Ok(())
    });
    finish(outcome)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSupportedDomains(count: *mut usize, table: *mut *const u32) -> c_int {
    static TABLE: [u32; DOMAINS as usize] = [1, 2, 3, 4, 5, 6];
    if count.is_null() || table.is_null() {
        return INVALID_PARAMETER.0;
    }
    // SAFETY: the caller gave both places.
    unsafe {
        count.write(TABLE.len());
        table.write(TABLE.as_ptr());
    }
    0
}

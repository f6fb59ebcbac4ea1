//! The one simulated driver of the process.

use std::ffi::{CString, c_int, c_uint};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, RwLock};

use simcuda_common::code::{INVALID_DEVICE, NO_DEVICE, NOT_INITIALIZED, OUT_OF_MEMORY};
use simcuda_common::ffi::Out;
use simcuda_common::log;
use simcuda_common::settings::Settings;
use simcuda_common::usage::{OwnUsage, Usage};

use crate::arena::Arena;
use crate::callers::Callers;
use crate::context::Context;
use crate::device::SimulatedDevice;
use crate::event::Event;
use crate::graph::{Graph, GraphExec, UserObject};
use crate::known::Known;
use crate::ledger::Ledger;
use crate::module::{Function, Link, Module};
use crate::peer::Multicast;
use crate::pool::Pool;
use crate::registry::{Kind, Registry};
use crate::stream::{Stream, Streams};
use crate::types::Device;
use crate::vmm::{Physical, PhysicalMemory};

/// How often things happened; printed at exit with `SIMCUDA_STATS=1`.
#[derive(Debug, Default)]
pub struct Counters {
    pub allocations: AtomicU64,
    pub frees: AtomicU64,
    pub launches: AtomicU64,
    pub copies: AtomicU64,
}

impl Counters {
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Everything the simulation knows.
///
/// Lock order, outermost first: a pool's state, `ledger`, `arena`, a device's account.
#[derive(Debug)]
pub struct Driver {
    pub settings: Settings,
    pub devices: Vec<SimulatedDevice>,
    /// The bounds of `arena`, readable without its lock.
    pub device_addresses: Range<usize>,
    pub arena: Mutex<Arena>,
    /// Held for reading while memory is copied, so that none is unmapped meanwhile.
    pub ledger: RwLock<Ledger>,
    pub physical_memory: Mutex<PhysicalMemory>,
    pub contexts: Registry<Context>,
    pub streams: Streams,
    pub events: Registry<Event>,
    pub graphs: Registry<Graph>,
    pub graph_execs: Registry<GraphExec>,
    pub user_objects: Registry<UserObject>,
    pub physical: Registry<Physical>,
    pub multicasts: Registry<Multicast>,
    pub pools: Registry<Pool>,
    pub modules: Registry<Module>,
    pub functions: Registry<Function>,
    pub links: Registry<Link>,
    pub known: Known,
    pub callers: Callers,
    pub counters: Counters,
}

static DRIVER: OnceLock<Result<Driver, c_int>> = OnceLock::new();
static INITIALISED: AtomicBool = AtomicBool::new(false);
/// Set in a child process: like the real driver's, the parent's state is of no use there.
static FORKED: AtomicBool = AtomicBool::new(false);
static INJECTED: AtomicBool = AtomicBool::new(false);

/// The driver, once `cuInit` has succeeded in this very process.
pub fn driver() -> Result<&'static Driver, c_int> {
    if !INITIALISED.load(Ordering::Acquire) || FORKED.load(Ordering::Relaxed) {
        return Err(NOT_INITIALIZED);
    }
    match DRIVER.get() {
        Some(Ok(driver)) => Ok(driver),
        _ => Err(NOT_INITIALIZED),
    }
}

impl Driver {
    fn start() -> Result<Self, c_int> {
        let settings = Settings::from_env().map_err(|error| {
            eprintln!("simcuda: {error}");
            NOT_INITIALIZED
        })?;
        if settings.visible.is_empty() {
            return Err(NO_DEVICE);
        }
        let arena = Arena::reserve().ok_or_else(|| {
            eprintln!("simcuda: cannot reserve address space for device memory (see `ulimit -v`)");
            OUT_OF_MEMORY
        })?;
        let usage = register_usage(&settings);
        let devices = settings
            .visible
            .iter()
            .map(|&index| {
                let shares_capacity = settings.group.is_some();
                SimulatedDevice::new(settings.devices[index].clone(), usage, shares_capacity)
            })
            .collect();
        Ok(Self {
            settings,
            devices,
            device_addresses: arena.bounds(),
            arena: Mutex::new(arena),
            ledger: RwLock::default(),
            physical_memory: Mutex::default(),
            contexts: Registry::new(Kind::Context),
            streams: Streams {
                created: Registry::new(Kind::Stream),
                legacy: Stream::built_in(1),
                per_thread: Stream::built_in(2),
            },
            events: Registry::new(Kind::Event),
            graphs: Registry::new(Kind::Graph),
            graph_execs: Registry::new(Kind::GraphExec),
            user_objects: Registry::new(Kind::UserObject),
            physical: Registry::new(Kind::Physical),
            multicasts: Registry::new(Kind::Multicast),
            pools: Registry::new(Kind::Pool),
            modules: Registry::new(Kind::Module),
            functions: Registry::new(Kind::Function),
            links: Registry::new(Kind::Link),
            known: Known::default(),
            callers: Callers::default(),
            counters: Counters::default(),
        })
    }

    /// The device of that ordinal.
    pub fn device(&self, ordinal: Device) -> Result<&SimulatedDevice, c_int> {
        usize::try_from(ordinal)
            .ok()
            .and_then(|index| self.devices.get(index))
            .ok_or(INVALID_DEVICE)
    }

    /// Whether the address lies where device memory lies, live or not.
    pub fn is_device_address(&self, address: usize) -> bool {
        self.device_addresses.contains(&address)
    }
}

fn register_usage(settings: &Settings) -> Option<OwnUsage> {
    match Usage::open(settings.group.as_deref()) {
        Ok(usage) => {
            let own = usage.register();
            if own.is_none() {
                log!("the table of processes is full: this one will be missing in NVML");
            }
            own
        }
        Err(error) => {
            log!("the use of other processes is unknown: {error}");
            None
        }
    }
}

/// Loads the library that `CUDA_INJECTION64_PATH` names and lets it initialise, as the
/// real driver does at its own initialisation.
fn inject() {
    let Ok(path) = std::env::var("CUDA_INJECTION64_PATH") else {
        return;
    };
    if path.is_empty() || INJECTED.swap(true, Ordering::AcqRel) {
        return;
    }
    let Ok(c_path) = CString::new(path.as_str()) else {
        return;
    };
    // SAFETY: dlopen and dlsym get C strings; running the library's constructors and its
    // `InitializeInjection` is what the user asked for.
    let result = unsafe {
        let library = libc::dlopen(c_path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            let reason = std::ffi::CStr::from_ptr(libc::dlerror()).to_string_lossy();
            log!("CUDA_INJECTION64_PATH={path}: {reason}");
            return;
        }
        let symbol = libc::dlsym(library, c"InitializeInjection".as_ptr());
        std::mem::transmute::<*mut libc::c_void, Option<extern "C" fn() -> c_int>>(symbol)
            .map(|initialise| initialise())
    };
    match result {
        Some(result) => log!("CUDA_INJECTION64_PATH={path}: InitializeInjection returned {result}"),
        None => log!("CUDA_INJECTION64_PATH={path}: no InitializeInjection in it"),
    }
}

extern "C" fn after_fork_in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

extern "C" fn print_statistics() {
    let Ok(driver) = driver() else { return };
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let used: Vec<u64> = driver.devices.iter().map(SimulatedDevice::used).collect();
    // `try_read`: a thread that never ends may hold the lock.
    let live = driver.ledger.try_read().map_or(0, |ledger| ledger.len());
    eprintln!(
        "[simcuda {}] allocations {} frees {} launches {} copies {} live {live} used {used:?}",
        std::process::id(),
        count(&driver.counters.allocations),
        count(&driver.counters.frees),
        count(&driver.counters.launches),
        count(&driver.counters.copies),
    );
}

fn initialise() -> Result<(), c_int> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(NOT_INITIALIZED);
    }
    let started = DRIVER.get_or_init(|| {
        let driver = Driver::start()?;
        // SAFETY: both handlers are functions of this library, which is never unloaded.
        unsafe {
            libc::pthread_atfork(None, None, Some(after_fork_in_child));
            if std::env::var_os("SIMCUDA_STATS").is_some() {
                libc::atexit(print_statistics);
            }
        }
        log!("cuInit: {} device(s)", driver.devices.len());
        Ok(driver)
    });
    started.as_ref().map(|_| ()).map_err(|code| *code)?;
    INITIALISED.store(true, Ordering::Release);
    inject();
    Ok(())
}

crate::driver_api! {
    fn cuInit(_flags: c_uint) {
        initialise()
    }

    fn cuDriverGetVersion(version: Out<c_int>) {
        // Works before `cuInit`.
        let version_number = match driver() {
            Ok(driver) => driver.settings.driver_version,
            Err(_) => Settings::from_env().map_or(13020, |settings| settings.driver_version),
        };
        version.set(version_number)
    }
}

//! Simulated `libnvidia-ml.so.1`.
//!
//! Knows the machine from the same settings as the driver, and the use of each process
//! from the table that the drivers of all processes keep. `CUDA_VISIBLE_DEVICES` does
//! not apply to NVML.
#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use simcuda_common::ffi::{Out, store_text, text};
use simcuda_common::settings::{DeviceSettings, Settings, uuid_text};
use simcuda_common::usage::{ProcessUsage, Usage};

/// `nvmlReturn_t`
type Code = c_int;
const SUCCESS: Code = 0;
const UNINITIALIZED: Code = 1;
const INVALID_ARGUMENT: Code = 2;
const NOT_SUPPORTED: Code = 3;
const NOT_FOUND: Code = 6;
const INSUFFICIENT_SIZE: Code = 7;

type Outcome = Result<(), Code>;
/// `nvmlDevice_t`: the device's index plus one.
type DeviceHandle = usize;

const DRIVER_VERSION: &str = "595.00";

/// `nvmlMemory_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryV2 {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `nvmlProcessInfo_v1_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProcessInfoV1 {
    pid: c_uint,
    used: u64,
}

/// `nvmlProcessInfo_v2_t`, also what the third version of the call gives
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProcessInfo {
    pid: c_uint,
    used: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// `nvmlPciInfo_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PciInfo {
    legacy_bus_id: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem_id: c_uint,
    bus_id: [c_char; 32],
}

/// `nvmlUtilization_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

const _: () = {
    assert!(size_of::<Memory>() == 24);
    assert!(size_of::<MemoryV2>() == 40);
    assert!(size_of::<ProcessInfoV1>() == 16);
    assert!(size_of::<ProcessInfo>() == 24);
    assert!(size_of::<PciInfo>() == 68);
};

struct Machine {
    settings: Settings,
    usage: Option<Usage>,
}

static MACHINE: OnceLock<Result<Machine, Code>> = OnceLock::new();

fn initialise() -> Outcome {
    let machine = MACHINE.get_or_init(|| {
        let settings = Settings::from_env().map_err(|error| {
            eprintln!("simcuda: {error}");
            INVALID_ARGUMENT
        })?;
        let usage = Usage::open(settings.group.as_deref()).ok();
        Ok(Machine { settings, usage })
    });
    machine.as_ref().map(|_| ()).map_err(|code| *code)
}

fn machine() -> Result<&'static Machine, Code> {
    MACHINE
        .get()
        .ok_or(UNINITIALIZED)?
        .as_ref()
        .map_err(|code| *code)
}

fn device(handle: DeviceHandle) -> Result<&'static DeviceSettings, Code> {
    let index = handle.checked_sub(1).ok_or(INVALID_ARGUMENT)?;
    machine()?
        .settings
        .devices
        .get(index)
        .ok_or(INVALID_ARGUMENT)
}

fn processes(handle: DeviceHandle) -> Result<Vec<ProcessUsage>, Code> {
    let index = device(handle)?.index;
    Ok(machine()?
        .usage
        .map_or_else(Vec::new, |usage| usage.processes(index)))
}

/// Total, free and used bytes. Processes that do not share capacity (no
/// `SIMCUDA_GROUP`) can use more together than there is.
fn memory(handle: DeviceHandle) -> Result<Memory, Code> {
    let total = device(handle)?.memory;
    let sum: u64 = processes(handle)?.iter().map(|process| process.bytes).sum();
    let used = sum.min(total);
    Ok(Memory {
        total,
        free: total - used,
        used,
    })
}

/// Stores the list if there is room, and in any case its length.
fn store_processes<T>(
    handle: DeviceHandle,
    count: Out<c_uint>,
    list: Out<T>,
    convert: impl Fn(ProcessUsage) -> T,
) -> Outcome {
    let processes = processes(handle)?;
    let room = count.get().map_err(|_| INVALID_ARGUMENT)? as usize;
    store(count, processes.len() as c_uint)?;
    if processes.len() > room {
        return Err(INSUFFICIENT_SIZE);
    }
    for (index, process) in processes.into_iter().enumerate() {
        store(
            Out::new(list.pointer().wrapping_add(index)),
            convert(process),
        )?;
    }
    Ok(())
}

fn store<T>(place: Out<T>, value: T) -> Outcome {
    place.set(value).map_err(|_| INVALID_ARGUMENT)
}

fn handle_of(found: impl Fn(&DeviceSettings) -> bool, place: Out<DeviceHandle>) -> Outcome {
    let index = machine()?
        .settings
        .devices
        .iter()
        .position(found)
        .ok_or(NOT_FOUND)?;
    store(place, index + 1)
}

fn bus_id(device: &DeviceSettings) -> String {
    format!("00000000:{:02X}:00.0", device.index + 1)
}

fn pci_info(device: &DeviceSettings) -> PciInfo {
    let mut info = PciInfo {
        legacy_bus_id: [0; 16],
        domain: 0,
        bus: device.index as c_uint + 1,
        device: 0,
        device_id: 0x20B2_10DE,
        subsystem_id: 0,
        bus_id: [0; 32],
    };
    let text = bus_id(device);
    let legacy = &text[4..];
    info.bus_id
        .iter_mut()
        .zip(text.bytes())
        .for_each(|(place, byte)| *place = byte as c_char);
    info.legacy_bus_id
        .iter_mut()
        .zip(legacy.bytes())
        .for_each(|(place, byte)| *place = byte as c_char);
    info
}

/// Defines exported functions whose body has the type [`Outcome`].
macro_rules! nvml_api {
    ($( fn $name:ident ( $( $argument:ident : $type:ty ),* $(,)? ) $body:block )*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name( $( $argument: $type ),* ) -> Code {
                let outcome = || -> Outcome { $body };
                match outcome() {
                    Ok(()) => SUCCESS,
                    Err(code) => code,
                }
            }
        )*
    };
}

nvml_api! {
    fn nvmlInit() { initialise() }
    fn nvmlInit_v2() { initialise() }
    fn nvmlInitWithFlags(_flags: c_uint) { initialise() }
    fn nvmlShutdown() { machine().map(|_| ()) }

    fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) {
        machine()?;
        store_text(version, length as usize, DRIVER_VERSION).map_err(|_| INVALID_ARGUMENT)
    }

    fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint) {
        machine()?;
        store_text(version, length as usize, "13.595.00").map_err(|_| INVALID_ARGUMENT)
    }

    fn nvmlSystemGetCudaDriverVersion(version: Out<c_int>) {
        store(version, machine()?.settings.driver_version)
    }

    fn nvmlSystemGetCudaDriverVersion_v2(version: Out<c_int>) {
        store(version, machine()?.settings.driver_version)
    }

    fn nvmlDeviceGetCount(count: Out<c_uint>) {
        store(count, machine()?.settings.devices.len() as c_uint)
    }

    fn nvmlDeviceGetCount_v2(count: Out<c_uint>) {
        store(count, machine()?.settings.devices.len() as c_uint)
    }

    fn nvmlDeviceGetHandleByIndex(index: c_uint, handle: Out<DeviceHandle>) {
        device(index as DeviceHandle + 1)?;
        store(handle, index as DeviceHandle + 1)
    }

    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, handle: Out<DeviceHandle>) {
        device(index as DeviceHandle + 1)?;
        store(handle, index as DeviceHandle + 1)
    }

    fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, handle: Out<DeviceHandle>) {
        let wanted = text(uuid).map_err(|_| INVALID_ARGUMENT)?;
        handle_of(|device| uuid_text(&device.uuid) == wanted, handle)
    }

    fn nvmlDeviceGetHandleByPciBusId(bus: *const c_char, handle: Out<DeviceHandle>) {
        let wanted = text(bus).map_err(|_| INVALID_ARGUMENT)?;
        // The domain has four or eight digits.
        let tail = wanted.split_once(':').ok_or(INVALID_ARGUMENT)?.1.to_ascii_uppercase();
        handle_of(|device| bus_id(device).ends_with(&format!(":{tail}")), handle)
    }

    fn nvmlDeviceGetHandleByPciBusId_v2(bus: *const c_char, handle: Out<DeviceHandle>) {
        let wanted = text(bus).map_err(|_| INVALID_ARGUMENT)?;
        let tail = wanted.split_once(':').ok_or(INVALID_ARGUMENT)?.1.to_ascii_uppercase();
        handle_of(|device| bus_id(device).ends_with(&format!(":{tail}")), handle)
    }

    fn nvmlDeviceGetIndex(handle: DeviceHandle, index: Out<c_uint>) {
        store(index, device(handle)?.index as c_uint)
    }

    fn nvmlDeviceGetName(handle: DeviceHandle, name: *mut c_char, length: c_uint) {
        store_text(name, length as usize, &device(handle)?.name).map_err(|_| INVALID_ARGUMENT)
    }

    fn nvmlDeviceGetUUID(handle: DeviceHandle, uuid: *mut c_char, length: c_uint) {
        store_text(uuid, length as usize, &uuid_text(&device(handle)?.uuid)).map_err(|_| INVALID_ARGUMENT)
    }

    fn nvmlDeviceGetPciInfo_v3(handle: DeviceHandle, info: Out<PciInfo>) {
        store(info, pci_info(device(handle)?))
    }

    fn nvmlDeviceGetCudaComputeCapability(
        handle: DeviceHandle, major: Out<c_int>, minor: Out<c_int>,
    ) {
        let capability = device(handle)?.capability;
        store(major, capability.0)?;
        store(minor, capability.1)
    }

    fn nvmlDeviceGetMemoryInfo(handle: DeviceHandle, info: Out<Memory>) {
        store(info, memory(handle)?)
    }

    fn nvmlDeviceGetMemoryInfo_v2(handle: DeviceHandle, info: Out<MemoryV2>) {
        let version = info.get().map_err(|_| INVALID_ARGUMENT)?.version;
        let memory = memory(handle)?;
        store(info, MemoryV2 { version, total: memory.total, reserved: 0, free: memory.free, used: memory.used })
    }

    fn nvmlDeviceGetUtilizationRates(handle: DeviceHandle, utilization: Out<Utilization>) {
        device(handle)?;
        store(utilization, Utilization { gpu: 0, memory: 0 })
    }

    fn nvmlDeviceGetComputeRunningProcesses(
        handle: DeviceHandle, count: Out<c_uint>, list: Out<ProcessInfoV1>,
    ) {
        store_processes(handle, count, list, |process| ProcessInfoV1 { pid: process.pid, used: process.bytes })
    }

    fn nvmlDeviceGetComputeRunningProcesses_v2(
        handle: DeviceHandle, count: Out<c_uint>, list: Out<ProcessInfo>,
    ) {
        store_processes(handle, count, list, whole_gpu)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3(
        handle: DeviceHandle, count: Out<c_uint>, list: Out<ProcessInfo>,
    ) {
        store_processes(handle, count, list, whole_gpu)
    }

    // There are no graphics processes.
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(
        handle: DeviceHandle, count: Out<c_uint>, _list: Out<ProcessInfo>,
    ) {
        device(handle)?;
        store(count, 0)
    }

    fn nvmlDeviceGetP2PStatus(
        first: DeviceHandle, second: DeviceHandle, _which: c_int, status: Out<c_int>,
    ) {
        device(first)?;
        device(second)?;
        store(status, 0)
    }

    fn nvmlDeviceGetNvLinkState(
        _handle: DeviceHandle, _link: c_uint, _active: Out<c_int>,
    ) {
        Err(NOT_SUPPORTED)
    }
    fn nvmlDeviceGetNvLinkRemoteDeviceType(
        _handle: DeviceHandle, _link: c_uint, _kind: Out<c_int>,
    ) {
        Err(NOT_SUPPORTED)
    }
    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(
        _handle: DeviceHandle, _link: c_uint, _info: Out<PciInfo>,
    ) {
        Err(NOT_SUPPORTED)
    }
    fn nvmlDeviceGetGpuFabricInfoV(_handle: DeviceHandle, _info: *mut c_void) { Err(NOT_SUPPORTED) }
}

/// Instance ids of a device that is not partitioned are all ones.
fn whole_gpu(process: ProcessUsage) -> ProcessInfo {
    ProcessInfo {
        pid: process.pid,
        used: process.bytes,
        gpu_instance: c_uint::MAX,
        compute_instance: c_uint::MAX,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(code: Code) -> *const c_char {
    let text = match code {
        SUCCESS => c"Success",
        UNINITIALIZED => c"Uninitialized",
        INVALID_ARGUMENT => c"Invalid Argument",
        NOT_SUPPORTED => c"Not Supported",
        NOT_FOUND => c"Not Found",
        INSUFFICIENT_SIZE => c"Insufficient Size",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

//! Devices: what they are and how much of their memory is taken.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::Mutex;

use simcuda_common::code::{INVALID_VALUE, OUT_OF_MEMORY, Outcome};
use simcuda_common::ffi::{Out, store_text};
use simcuda_common::settings::DeviceSettings;
use simcuda_common::usage::OwnUsage;

use crate::driver::driver;
use crate::types::{Device, Handle, Uuid};

/// One simulated device, as this process uses it.
#[derive(Debug)]
pub struct SimulatedDevice {
    pub settings: DeviceSettings,
    account: Mutex<Account>,
    usage: Option<OwnUsage>,
    /// Whether the capacity is shared with the other processes of the group.
    shares_capacity: bool,
    pub state: Mutex<DeviceState>,
}

#[derive(Debug, Default)]
struct Account {
    used: u64,
}

/// What belongs to a device besides its memory.
#[derive(Debug, Default)]
pub struct DeviceState {
    pub primary_context: Option<Handle>,
    pub primary_retained: u32,
    pub primary_flags: c_uint,
    pub default_pool: Option<Handle>,
    pub current_pool: Option<Handle>,
}

impl SimulatedDevice {
    pub fn new(settings: DeviceSettings, usage: Option<OwnUsage>, shares_capacity: bool) -> Self {
        Self {
            settings,
            account: Mutex::default(),
            usage,
            shares_capacity,
            state: Mutex::default(),
        }
    }

    /// Charges `bytes`, or says that they are not there.
    pub fn take(&self, bytes: usize) -> Outcome {
        let mut account = self.account.lock().expect("no panics");
        let wanted = account
            .used
            .checked_add(bytes as u64)
            .ok_or(OUT_OF_MEMORY)?;
        if wanted > self.settings.memory.saturating_sub(self.used_by_others()) {
            return Err(OUT_OF_MEMORY);
        }
        account.used = wanted;
        self.publish(wanted);
        Ok(())
    }

    pub fn give_back(&self, bytes: usize) {
        let mut account = self.account.lock().expect("no panics");
        account.used -= bytes as u64;
        self.publish(account.used);
    }

    /// Bytes that this process has taken.
    pub fn used(&self) -> u64 {
        self.account.lock().expect("no panics").used
    }

    pub fn free(&self) -> u64 {
        self.settings
            .memory
            .saturating_sub(self.used())
            .saturating_sub(self.used_by_others())
    }

    fn used_by_others(&self) -> u64 {
        match self.usage {
            Some(usage) if self.shares_capacity => usage.others(self.settings.index),
            _ => 0,
        }
    }

    fn publish(&self, used: u64) {
        if let Some(usage) = self.usage {
            usage.publish(self.settings.index, used);
        }
    }
}

/// The values of `CUdevice_attribute` that are not zero: those of an A100, except that
/// what the simulation cannot do is said to be absent.
fn attribute(attribute: c_int, device: &SimulatedDevice) -> c_int {
    let (major, minor) = device.settings.capability;
    match attribute {
        // Grids and blocks.
        1..=3 => 1024,
        4 => 64,
        5 => i32::MAX,
        6 | 7 => 65535,
        8 => 49152,                               // shared memory per block
        9 => 65536,                               // constant memory
        10 => 32,                                 // warp size
        11 => i32::MAX,                           // pitch
        12 | 82 => 65536,                         // registers per block, per multiprocessor
        13 => 1_410_000,                          // clock, kHz
        14 => 512,                                // texture alignment
        15 => 1,                                  // copy and execution overlap
        16 => 108,                                // multiprocessors
        19 => 1,                                  // host memory can be mapped
        30 => 512,                                // surface alignment
        31 => 1,                                  // concurrent kernels
        33 => device.settings.index as c_int + 1, // PCI bus
        36 => 1_593_000,                          // memory clock, kHz
        37 => 5120,                               // memory bus width
        38 => 40 << 20,                           // L2 cache
        39 => 2048,                               // threads per multiprocessor
        40 => 3,                                  // copy engines
        41 => 1,                                  // unified addressing
        51 => 32,                                 // texture pitch alignment
        75 => major,
        76 => minor,
        78..=80 => 1,   // stream priorities, global and local L1 cache
        81 => 167_936,  // shared memory per multiprocessor
        83 => 1,        // managed memory
        89..=91 => 1,   // concurrent managed access, preemption, registered host pointers
        95 => 1,        // cooperative launch
        97 => 166_912,  // shared memory per block, opt-in
        99 => 1,        // host memory can be registered
        102 | 103 => 1, // virtual memory management, shareable by file descriptors
        106 => 32,      // blocks per multiprocessor
        111 => 1024,    // reserved shared memory per block
        115 => 1,       // memory pools
        _ => 0,
    }
}

crate::driver_api! {
    fn cuDeviceGetCount(count: Out<c_int>) {
        count.set(driver()?.devices.len() as c_int)
    }

    fn cuDeviceGet(device: Out<Device>, ordinal: c_int) {
        driver()?.device(ordinal)?;
        device.set(ordinal)
    }

    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: Device) {
        let length = usize::try_from(length).map_err(|_| INVALID_VALUE)?;
        store_text(name, length, &driver()?.device(device)?.settings.name)
    }

    fn cuDeviceGetUuid, cuDeviceGetUuid_v2(uuid: Out<Uuid>, device: Device) {
        uuid.set(Uuid { bytes: driver()?.device(device)?.settings.uuid })
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: Device) {
        bytes.set(driver()?.device(device)?.settings.memory as usize)
    }

    fn cuDeviceGetAttribute(value: Out<c_int>, which: c_int, device: Device) {
        value.set(attribute(which, driver()?.device(device)?))
    }

    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: Device) {
        let capability = driver()?.device(device)?.settings.capability;
        major.set(capability.0)?;
        minor.set(capability.1)
    }

    fn cuDeviceGetPCIBusId(text: *mut c_char, length: c_int, device: Device) {
        let index = driver()?.device(device)?.settings.index;
        let length = usize::try_from(length).map_err(|_| INVALID_VALUE)?;
        store_text(text, length, &format!("0000:{:02X}:00.0", index + 1))
    }

    fn cuDeviceGetByPCIBusId(device: Out<Device>, text: *const c_char) {
        let text = simcuda_common::ffi::text(text)?;
        let bus = text.rsplit(':').nth(1).and_then(|bus| usize::from_str_radix(bus, 16).ok());
        let ordinal = driver()?
            .devices
            .iter()
            .position(|device| Some(device.settings.index + 1) == bus)
            .ok_or(INVALID_VALUE)?;
        device.set(ordinal as Device)
    }

    fn cuDeviceCanAccessPeer(can: Out<c_int>, device: Device, peer: Device) {
        driver()?.device(device)?;
        driver()?.device(peer)?;
        can.set(c_int::from(device != peer))
    }

    // Rank 0 is best; access, atomics and arrays are there between any two devices.
    fn cuDeviceGetP2PAttribute(value: Out<c_int>, which: c_int, device: Device, peer: Device) {
        driver()?.device(device)?;
        driver()?.device(peer)?;
        const PERFORMANCE_RANK: c_int = 1;
        value.set(c_int::from(which != PERFORMANCE_RANK))
    }
}

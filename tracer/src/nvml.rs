//! What NVIDIA's management library says of the devices' memory.
//!
//! Asked once a second on a thread of its own: a troubled driver can keep a call for seconds, and
//! the ring must not wait for it.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    sync::Arc,
    time::Duration,
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use nvml_wrapper::{Device, Nvml, enums::device::UsedGpuMemory, error::NvmlError};
use vramscope_events::{Bytes, DeviceId, DeviceUser, Event, Pid, Record, Tid};

use crate::{session::now, target};

/// Names the library to load, where the system's own is not the right one.
const LIBRARY_VARIABLE: &str = "VRAMSCOPE_NVML";
const EVERY: Duration = Duration::from_secs(1);

/// One device as the traced process numbers it.
enum Visible {
    /// Its number in NVML.
    Index(u32),
    /// Its UUID or the beginning of it.
    Uuid(String),
}

/// Asks for the memory of the devices that a process sees.
pub struct Watch {
    nvml: Nvml,
    pid: u32,
    visible: Vec<Visible>,
    /// The other processes as they were told last, by device.
    told: Vec<Arc<[DeviceUser]>>,
}

impl Watch {
    /// Loads the library. `environment` is that of the process: it decides how the process numbers
    /// its devices.
    ///
    /// # Errors
    /// NVML's own words: no library, no driver.
    pub fn open(pid: u32, environment: &HashMap<String, String>) -> Result<Watch, NvmlError> {
        let named: Option<OsString> = std::env::var_os(LIBRARY_VARIABLE);
        let nvml = match &named {
            Some(path) => Nvml::builder().lib_path(path).init()?,
            None => Nvml::init()?,
        };
        let count = nvml.device_count()?;
        let visible = visible(
            environment.get("CUDA_VISIBLE_DEVICES").map(String::as_str),
            count,
        );
        let told = visible.iter().map(|_| Arc::default()).collect();
        Ok(Watch {
            nvml,
            pid,
            visible,
            told,
        })
    }

    /// Asks and tells until `stop` is dropped or nobody listens; a last time at the end, so that the
    /// last figures are of when the last events are.
    pub fn run(mut self, stop: &Receiver<()>, records: &Sender<Vec<Record>>) {
        let mut last = false;
        while records.send(self.ask()).is_ok() && !last {
            last = !matches!(stop.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout));
        }
    }

    fn ask(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        let mut told = std::mem::take(&mut self.told);
        for (number, visible) in self.visible.iter().enumerate() {
            let device = match visible {
                Visible::Index(index) => self.nvml.device_by_index(*index),
                Visible::Uuid(uuid) => self.nvml.device_by_uuid(uuid.as_str()),
            };
            let mut push = |event| {
                records.push(Record {
                    time: now(),
                    process: Pid(self.pid),
                    thread: Tid(0),
                    event,
                });
            };
            let id = DeviceId(number as u16);
            let Ok((memory, users)) =
                device.and_then(|device| Ok((device.memory_info()?, users(&device))))
            else {
                continue;
            };
            push(Event::DeviceMemory {
                device: id,
                total: memory.total,
                free: memory.free,
                used_by_process: users.get(&self.pid).copied().flatten(),
            });
            let others = self.others(&users, &told[number]);
            if told[number] != others {
                told[number] = Arc::clone(&others);
                push(Event::DeviceUsers {
                    device: id,
                    users: others,
                });
            }
        }
        self.told = told;
        records
    }

    /// The other processes. Their command lines are looked up once.
    fn others(
        &self,
        users: &BTreeMap<u32, Option<Bytes>>,
        known: &[DeviceUser],
    ) -> Arc<[DeviceUser]> {
        let others = users.iter().filter(|(pid, _)| **pid != self.pid);
        others
            .map(|(pid, bytes)| {
                let known = known.iter().find(|known| known.pid.0 == *pid);
                DeviceUser {
                    pid: Pid(*pid),
                    command: match known {
                        Some(known) => Arc::clone(&known.command),
                        None => target::command_of(*pid).unwrap_or_default().into(),
                    },
                    bytes: *bytes,
                }
            })
            .collect()
    }
}

/// What each process uses of a device, where NVML tells it. One that draws and computes is listed
/// twice, with all that it uses each time.
fn users(device: &Device<'_>) -> BTreeMap<u32, Option<Bytes>> {
    let compute = device.running_compute_processes().unwrap_or_default();
    let graphics = device.running_graphics_processes().unwrap_or_default();
    let mut users = BTreeMap::new();
    for process in graphics.into_iter().chain(compute) {
        let bytes = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        let known = users.entry(process.pid).or_insert(None);
        *known = bytes.max(*known);
    }
    users
}

/// The devices in the process's order. CUDA numbers devices by speed unless `CUDA_DEVICE_ORDER` is
/// `PCI_BUS_ID`, NVML by bus; on machines with equal devices the two agree.
fn visible(variable: Option<&str>, count: u32) -> Vec<Visible> {
    let all = || (0..count).map(Visible::Index).collect();
    match variable {
        None => all(),
        // The first entry that names no device ends the list (CUDA programming guide).
        Some(list) => list
            .split(',')
            .map(str::trim)
            .map_while(|entry| match entry.parse::<u32>() {
                Ok(index) => (index < count).then_some(Visible::Index(index)),
                Err(_) => (entry.starts_with("GPU-") || entry.starts_with("MIG-"))
                    .then(|| Visible::Uuid(entry.to_owned())),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(variable: Option<&str>, count: u32) -> Vec<String> {
        visible(variable, count)
            .into_iter()
            .map(|visible| match visible {
                Visible::Index(index) => index.to_string(),
                Visible::Uuid(uuid) => uuid,
            })
            .collect()
    }

    #[test]
    fn devices_are_numbered_as_the_process_does() {
        assert_eq!(numbers(None, 2), ["0", "1"]);
        assert_eq!(numbers(Some("1,0"), 2), ["1", "0"]);
        assert_eq!(numbers(Some("1,7,0"), 2), ["1"]);
        assert_eq!(numbers(Some("GPU-12ab, 1"), 2), ["GPU-12ab", "1"]);
        assert!(numbers(Some("-1"), 2).is_empty());
        assert!(numbers(Some(""), 2).is_empty());
    }
}

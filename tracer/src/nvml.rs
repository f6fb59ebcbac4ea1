//! What NVIDIA's management library says of the devices' memory.
//!
//! Asked once a second on a thread of its own: a troubled driver can keep a call for seconds, and
//! the ring must not wait for it.

use std::{collections::HashMap, ffi::OsString, time::Duration};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use nvml_wrapper::{Device, Nvml, enums::device::UsedGpuMemory, error::NvmlError};
use vramscope_events::{DeviceId, Event, Pid, Record, Tid};

use crate::session::now;

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
        Ok(Watch { nvml, pid, visible })
    }

    /// Asks and tells until `stop` is dropped or nobody listens.
    pub fn run(self, stop: &Receiver<()>, records: &Sender<Vec<Record>>) {
        loop {
            if records.send(self.ask()).is_err() {
                return;
            }
            match stop.recv_timeout(EVERY) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    }

    fn ask(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for (number, visible) in self.visible.iter().enumerate() {
            let device = match visible {
                Visible::Index(index) => self.nvml.device_by_index(*index),
                Visible::Uuid(uuid) => self.nvml.device_by_uuid(uuid.as_str()),
            };
            let Ok(event) = device.and_then(|device| self.event(number as u16, &device)) else {
                continue;
            };
            records.push(Record {
                time: now(),
                process: Pid(self.pid),
                thread: Tid(0),
                event,
            });
        }
        records
    }

    fn event(&self, number: u16, device: &Device<'_>) -> Result<Event, NvmlError> {
        let memory = device.memory_info()?;
        let used_by_process = device
            .running_compute_processes()
            .ok()
            .and_then(|processes| {
                processes
                    .into_iter()
                    .find(|process| process.pid == self.pid)
            })
            .and_then(|process| match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            });
        Ok(Event::DeviceMemory {
            device: DeviceId(number),
            total: memory.total,
            free: memory.free,
            used_by_process,
        })
    }
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

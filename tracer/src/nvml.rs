//! What NVIDIA's management library says of the devices' memory.
//!
//! Asked once a second on a thread of its own: a troubled driver can keep a call for seconds, and
//! the ring must not wait for it.

use std::{
    collections::HashMap,
    ffi::OsString,
    sync::{Arc, Mutex},
    time::Duration,
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use nvml_wrapper::{Device, Nvml, enums::device::UsedGpuMemory, error::NvmlError};
use vramscope_events::{DeviceId, Event, Pid, Record, Tid};

use crate::{board::lock, session::now};

/// Names the library to load, where the system's own is not the right one.
const LIBRARY_VARIABLE: &str = "VRAMSCOPE_NVML";
const EVERY: Duration = Duration::from_secs(1);

/// One device as a traced process numbers it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Visible {
    /// Its number in NVML.
    Index(u32),
    /// Its UUID or the beginning of it.
    Uuid(String),
}

/// A process, and the devices that it sees.
#[derive(Clone, Debug)]
struct Process {
    pid: Pid,
    visible: Vec<Visible>,
}

/// The processes whose devices are asked for.
#[derive(Clone, Debug)]
pub struct Watched {
    processes: Arc<Mutex<Vec<Process>>>,
    count: u32,
}

impl Watched {
    /// Adds a process. `environment` is its own: it decides how it numbers its devices.
    pub fn add(&self, pid: Pid, environment: &HashMap<String, String>) {
        let variable = environment.get("CUDA_VISIBLE_DEVICES").map(String::as_str);
        let visible = visible(variable, self.count);
        let mut processes = lock(&self.processes);
        processes.retain(|process| process.pid != pid);
        processes.push(Process { pid, visible });
    }

    /// Forgets a process that has ended.
    pub fn remove(&self, pid: Pid) {
        lock(&self.processes).retain(|process| process.pid != pid);
    }
}

/// Asks for the memory of the devices that processes see.
pub struct Watch {
    nvml: Nvml,
    watched: Watched,
}

impl Watch {
    /// Loads the library. Nobody is watched yet.
    ///
    /// # Errors
    /// NVML's own words: no library, no driver.
    pub fn open() -> Result<Watch, NvmlError> {
        let named: Option<OsString> = std::env::var_os(LIBRARY_VARIABLE);
        let nvml = match &named {
            Some(path) => Nvml::builder().lib_path(path).init()?,
            None => Nvml::init()?,
        };
        let count = nvml.device_count()?;
        let watched = Watched {
            processes: Arc::default(),
            count,
        };
        Ok(Watch { nvml, watched })
    }

    /// Who is watched; can be changed at any time.
    pub fn watched(&self) -> Watched {
        self.watched.clone()
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
        // Each device is asked once, however many processes see it.
        let mut asked: Vec<(Visible, Option<Use>)> = Vec::new();
        // A troubled driver keeps calls for long: nobody is to wait for the list meanwhile.
        let watched = lock(&self.watched.processes).clone();
        for process in &watched {
            for (number, visible) in process.visible.iter().enumerate() {
                let found = match asked.iter().position(|(device, _)| device == visible) {
                    Some(index) => index,
                    None => {
                        let answer = self.usage(visible).ok();
                        asked.push((visible.clone(), answer));
                        asked.len() - 1
                    }
                };
                let Some(usage) = &asked[found].1 else {
                    continue;
                };
                records.push(Record {
                    time: now(),
                    process: process.pid,
                    thread: Tid(0),
                    event: Event::DeviceMemory {
                        device: DeviceId(number as u16),
                        total: usage.total,
                        free: usage.free,
                        used_by_process: usage.by_process(process.pid),
                    },
                });
            }
        }
        records
    }

    fn usage(&self, visible: &Visible) -> Result<Use, NvmlError> {
        let device: Device<'_> = match visible {
            Visible::Index(index) => self.nvml.device_by_index(*index),
            Visible::Uuid(uuid) => self.nvml.device_by_uuid(uuid.as_str()),
        }?;
        let memory = device.memory_info()?;
        let processes = device.running_compute_processes().unwrap_or_default();
        Ok(Use {
            total: memory.total,
            free: memory.free,
            processes: processes
                .into_iter()
                .filter_map(|process| match process.used_gpu_memory {
                    UsedGpuMemory::Used(bytes) => Some((Pid(process.pid), bytes)),
                    UsedGpuMemory::Unavailable => None,
                })
                .collect(),
        })
    }
}

/// What a device says of itself; in bytes.
struct Use {
    total: u64,
    free: u64,
    processes: Vec<(Pid, u64)>,
}

impl Use {
    fn by_process(&self, pid: Pid) -> Option<u64> {
        let found = self.processes.iter().find(|(of, _)| *of == pid);
        found.map(|(_, bytes)| *bytes)
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

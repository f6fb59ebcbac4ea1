//! What NVIDIA's management library says of the devices' memory.
//!
//! Asked once a second on a thread of its own: a troubled driver can keep a call for seconds, and
//! the ring must not wait for it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded, select};
use nvml_wrapper::{Device, Nvml, enums::device::UsedGpuMemory, error::NvmlError};
use vramscope_events::{Bytes, DeviceId, DeviceUser, Event, Pid, Record, Tid};

use crate::{board::lock, session::now, target};

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
    /// Makes the watch ask at once: what a newcomer uses before it is traced is told apart.
    newcomer: Sender<()>,
}

impl Watched {
    /// Adds a process. `environment` is its own: it decides how it numbers its devices.
    pub fn add(&self, pid: Pid, environment: &HashMap<String, String>) {
        let variable = environment.get("CUDA_VISIBLE_DEVICES").map(String::as_str);
        let visible = visible(variable, self.count);
        let mut processes = lock(&self.processes);
        processes.retain(|process| process.pid != pid);
        processes.push(Process { pid, visible });
        drop(processes);
        // One that waits to be seen is enough.
        let _ = self.newcomer.try_send(());
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
    /// The other processes as they were told last, by process and its device.
    told: HashMap<(Pid, DeviceId), Arc<[DeviceUser]>>,
    /// Command lines of processes on the devices.
    commands: HashMap<Pid, Arc<str>>,
    newcomers: Receiver<()>,
}

impl Watch {
    /// Loads the library. Nobody is watched yet.
    ///
    /// # Errors
    /// NVML's own words: no library, no driver.
    pub fn open() -> Result<Watch, NvmlError> {
        let named = std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty());
        let nvml = match &named {
            Some(path) => Nvml::builder().lib_path(path).init()?,
            None => Nvml::init()?,
        };
        let count = nvml.device_count()?;
        let (newcomer, newcomers) = bounded(1);
        let watched = Watched {
            processes: Arc::default(),
            count,
            newcomer,
        };
        Ok(Watch {
            nvml,
            watched,
            told: HashMap::new(),
            commands: HashMap::new(),
            newcomers,
        })
    }

    /// Who is watched; can be changed at any time.
    pub fn watched(&self) -> Watched {
        self.watched.clone()
    }

    /// Asks and tells until `stop` is dropped or nobody listens; a last time at the end, so that the
    /// last figures are of when the last events are.
    pub fn run(mut self, stop: &Receiver<()>, records: &Sender<Vec<Record>>) {
        let mut last = false;
        while records.send(self.ask()).is_ok() && !last {
            select! {
                recv(stop) -> _ => last = true,
                recv(self.newcomers) -> _ => {}
                default(EVERY) => {}
            }
        }
    }

    fn ask(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        // Each device is asked once, however many processes see it.
        let mut asked: Vec<(Visible, Option<Use>)> = Vec::new();
        // A troubled driver keeps calls for long: nobody is to wait for the list meanwhile.
        let watched = lock(&self.watched.processes).clone();
        for visible in watched.iter().flat_map(|process| &process.visible) {
            if !asked.iter().any(|(device, _)| device == visible) {
                asked.push((visible.clone(), self.usage(visible).ok()));
            }
        }
        let uses = || asked.iter().filter_map(|(_, usage)| usage.as_ref());
        // Where the driver tells who is on a device, the others have nothing to do with it: a rank
        // sees the devices of all ranks, and so does each of its workers.
        let listed = |pid| uses().any(|usage| usage.users.contains_key(&pid));
        let tells = watched.iter().any(|process| listed(process.pid));
        for process in &watched {
            for (number, visible) in process.visible.iter().enumerate() {
                let found = asked.iter().find(|(device, _)| device == visible);
                if let Some((_, Some(usage))) = found
                    && (!tells || usage.users.contains_key(&process.pid))
                {
                    self.tell(process.pid, DeviceId(number as u16), usage, &mut records);
                }
            }
        }
        // A process number may be used again.
        self.commands
            .retain(|pid, _| uses().any(|usage| usage.users.contains_key(pid)));
        records
    }

    fn tell(&mut self, pid: Pid, device: DeviceId, usage: &Use, records: &mut Vec<Record>) {
        let mut push = |event| {
            records.push(Record {
                time: now(),
                process: pid,
                thread: Tid(0),
                event,
            });
        };
        push(Event::DeviceMemory {
            device,
            total: usage.total,
            free: usage.free,
            used_by_process: usage.users.get(&pid).copied().flatten(),
        });
        let others = usage.users.iter().filter(|(other, _)| **other != pid);
        let users: Arc<[DeviceUser]> = others
            .map(|(pid, bytes)| DeviceUser {
                pid: *pid,
                command: self.command(*pid),
                bytes: *bytes,
            })
            .collect();
        let told = self.told.entry((pid, device)).or_default();
        if *told != users {
            *told = Arc::clone(&users);
            push(Event::DeviceUsers { device, users });
        }
    }

    fn command(&mut self, pid: Pid) -> Arc<str> {
        let known = self.commands.entry(pid);
        Arc::clone(known.or_insert_with(|| target::command_of(pid.0).unwrap_or_default().into()))
    }

    fn usage(&self, visible: &Visible) -> Result<Use, NvmlError> {
        let device: Device<'_> = match visible {
            Visible::Index(index) => self.nvml.device_by_index(*index),
            Visible::Uuid(uuid) => self.nvml.device_by_uuid(uuid.as_str()),
        }?;
        let memory = device.memory_info()?;
        Ok(Use {
            total: memory.total,
            free: memory.free,
            users: users(&device),
        })
    }
}

/// What a device says of itself; in bytes.
struct Use {
    total: Bytes,
    free: Bytes,
    /// What each process has taken, where that is told.
    users: BTreeMap<Pid, Option<Bytes>>,
}

/// A process that draws and computes is listed twice, with all that it uses each time.
fn users(device: &Device<'_>) -> BTreeMap<Pid, Option<Bytes>> {
    let compute = device.running_compute_processes().unwrap_or_default();
    let graphics = device.running_graphics_processes().unwrap_or_default();
    let mut users = BTreeMap::new();
    for process in graphics.into_iter().chain(compute) {
        let bytes = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        let known = users.entry(Pid(process.pid)).or_insert(None);
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

//! The BPF programs in the kernel: loading, placing probes, taking them off.

use std::{mem, num::NonZeroU32};

use aya::{
    Ebpf, EbpfLoader,
    maps::{Array, HashMap as BpfHashMap, MapData, PerCpuArray, RingBuf},
    programs::{
        ProgramError, UProbe,
        uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeLink, UProbeScope},
    },
};
use vramscope_bpf::{Cookie, MAX_PROCESSES, map, program};
use vramscope_events::{ProbeState, ProbeView};
use vramscope_wire as wire;

use crate::{
    closing::{self, Link},
    error::AttachError,
    plan::Probe,
    pod::PythonValue,
    python::no_python,
};

/// The ring's size: at the 64 bytes of an event it holds a million of them, about a second of the
/// fastest allocation loop that PyTorch can run.
pub const DEFAULT_RING_BYTES: u32 = 64 << 20;

/// The programs, loaded, and the probes that were placed.
pub struct Loaded {
    bpf: Ebpf,
    /// By the index of the process.
    links: Vec<(u16, UProbeLink)>,
    /// Those that every block passes.
    hot_links: Vec<(u16, UProbeLink)>,
    /// Of the walks that were configured.
    generation: u32,
    /// Whether the programs can wait for memory.
    pub sleepable: bool,
}

/// The maps that the reader needs.
pub struct ReaderMaps {
    /// Records.
    pub ring: RingBuf<MapData>,
    /// Counters.
    pub counters: PerCpuArray<MapData, u64>,
    /// Known code objects: (address, process) -> (id, first traceable byte).
    pub codes: BpfHashMap<MapData, [u64; 2], [u32; 2]>,
}

impl Loaded {
    /// Loads the programs; sleepable ones where the kernel knows them.
    ///
    /// # Errors
    /// [`AttachError::Load`] with the verifier's last words.
    pub fn new(ring_bytes: u32) -> Result<Loaded, AttachError> {
        match Self::load(vramscope_bpf::SLEEPABLE, ring_bytes) {
            Ok(bpf) => Ok(Self::with(bpf, true)),
            Err(sleepable) => match Self::load(vramscope_bpf::PLAIN, ring_bytes) {
                Ok(bpf) => Ok(Self::with(bpf, false)),
                Err(plain) => Err(AttachError::Load {
                    detail: format!("{plain}; sleepable: {sleepable}"),
                }),
            },
        }
    }

    fn with(bpf: Ebpf, sleepable: bool) -> Loaded {
        Loaded {
            bpf,
            links: Vec::new(),
            hot_links: Vec::new(),
            generation: 0,
            sleepable,
        }
    }

    fn load(object: &[u8], ring_bytes: u32) -> Result<Ebpf, String> {
        let mut bpf = EbpfLoader::new()
            .map_max_entries(map::RING, ring_bytes)
            .load(object)
            .map_err(|error| chain(&error))?;
        for (name, program) in bpf.programs_mut() {
            let program: &mut UProbe = program
                .try_into()
                .map_err(|error: ProgramError| format!("{name}: {error}"))?;
            program.load().map_err(|error| match &error {
                ProgramError::LoadError { verifier_log, .. } => {
                    format!("{name}: {error}: {}", last_lines(&verifier_log.to_string()))
                }
                _ => format!("{name}: {}", chain(&error)),
            })?;
        }
        Ok(bpf)
    }

    /// Tells the programs how to walk the Python of process `index`.
    ///
    /// # Errors
    /// [`AttachError::Load`] when the kernel refuses.
    pub fn set_python(
        &mut self,
        index: u16,
        mut python: wire::vs_python,
    ) -> Result<(), AttachError> {
        debug_assert!(index < MAX_PROCESSES);
        self.generation = self.generation.wrapping_add(1);
        python.generation = self.generation;
        let map = self
            .bpf
            .map_mut(map::PYTHONS)
            .ok_or_else(|| missing(map::PYTHONS))?;
        let mut pythons: Array<_, PythonValue> =
            Array::try_from(map).map_err(|error| load_error(&error))?;
        pythons
            .set(u32::from(index), PythonValue(python), 0)
            .map_err(|error| load_error(&error))
    }

    /// Tells the programs which NVTX range marks a step.
    ///
    /// # Errors
    /// [`AttachError::StepOn`] for a name that is too long, [`AttachError::Load`] when the kernel
    /// refuses.
    pub fn set_range(&mut self, name: &str) -> Result<(), AttachError> {
        let mut padded = [0u8; wire::VS_RANGE_BYTES as usize];
        if name.is_empty() || name.len() >= padded.len() || name.contains('\0') {
            return Err(AttachError::StepOn {
                reason: format!(
                    "the name of an NVTX range has 1 to {} bytes, `{name}` has {}",
                    padded.len() - 1,
                    name.len()
                ),
            });
        }
        padded[..name.len()].copy_from_slice(name.as_bytes());
        let map = self
            .bpf
            .map_mut(map::STEP_RANGE)
            .ok_or_else(|| missing(map::STEP_RANGE))?;
        let mut range: Array<_, [u8; wire::VS_RANGE_BYTES as usize]> =
            Array::try_from(map).map_err(|error| load_error(&error))?;
        range.set(0, padded, 0).map_err(|error| load_error(&error))
    }

    /// Takes the maps for reading out; once.
    ///
    /// # Errors
    /// [`AttachError::Load`] when one is missing or was taken before.
    pub fn reader_maps(&mut self) -> Result<ReaderMaps, AttachError> {
        let mut take = |name| self.bpf.take_map(name).ok_or_else(|| missing(name));
        Ok(ReaderMaps {
            ring: RingBuf::try_from(take(map::RING)?).map_err(|error| load_error(&error))?,
            counters: PerCpuArray::try_from(take(map::COUNTERS)?)
                .map_err(|error| load_error(&error))?,
            codes: BpfHashMap::try_from(take(map::CODES)?).map_err(|error| load_error(&error))?,
        })
    }

    /// Places the planned probes on process `pid`, and says of each how it went.
    pub fn place(&mut self, pid: NonZeroU32, index: u16, probes: &[Probe]) -> Vec<ProbeView> {
        probes
            .iter()
            .map(|probe| {
                let mut view = probe.view.clone();
                if let Err(reason) = self.place_one(pid, index, probe) {
                    view.state = ProbeState::Failed {
                        reason: format!("{reason}: {}", probe.consequence),
                    };
                }
                view
            })
            .collect()
    }

    /// Places all attachments of a probe, or none: an entry without its return would leave calls
    /// open.
    fn place_one(&mut self, pid: NonZeroU32, index: u16, probe: &Probe) -> Result<(), String> {
        let before = (self.links.len(), self.hot_links.len());
        let placed = self.place_all(pid, index, probe);
        if placed.is_err() {
            self.links.truncate(before.0);
            self.hot_links.truncate(before.1);
        }
        placed
    }

    fn place_all(&mut self, pid: NonZeroU32, index: u16, probe: &Probe) -> Result<(), String> {
        for attachment in &probe.attachments {
            let loaded = self
                .bpf
                .program_mut(attachment.program)
                .ok_or_else(|| format!("no program {}", attachment.program))?;
            let loaded: &mut UProbe = loaded
                .try_into()
                .map_err(|error: ProgramError| chain(&error))?;
            let cookie = Cookie {
                process: index,
                function: attachment.function,
                stack_delta: attachment.stack_delta,
            };
            let point = UProbeAttachPoint {
                location: UProbeAttachLocation::AbsoluteOffset(attachment.file_offset),
                cookie: Some(cookie.bits()),
            };
            let link = loaded
                .attach(point, &attachment.file, UProbeScope::OneProcess(pid))
                .and_then(|id| loaded.take_link(id))
                .map_err(|error| chain(&error))?;
            if attachment.program == program::TENSOR_MEMORY {
                self.hot_links.push((index, link));
            } else {
                self.links.push((index, link));
            }
        }
        Ok(())
    }

    /// Takes the probes off that every block passes: from here on nothing comes but the driver's
    /// calls. The kernel waits for running programs at each probe; the others can go while the user
    /// reads the report.
    pub fn silence(&mut self) {
        closing::close(self.hot_links.drain(..).map(|(_, link)| link).collect());
    }

    /// The probes of process `index`, to be taken off by closing them; it has none from here on.
    pub fn take_links(&mut self, index: u16) -> Vec<Link> {
        let mut taken = Vec::new();
        for links in [&mut self.hot_links, &mut self.links] {
            let (its, others) = mem::take(links)
                .into_iter()
                .partition(|(of, _)| *of == index);
            *links = others;
            taken.extend(its);
        }
        taken.into_iter().map(|(_, link)| link).collect()
    }

    /// Clears what the programs know of process `index`, whose probes are off: another one can have
    /// the index. The code objects are cleared by the reader, which has their map.
    ///
    /// # Errors
    /// [`AttachError::Load`] when the kernel refuses.
    pub fn clear(&mut self, index: u16) -> Result<(), AttachError> {
        self.set_python(index, no_python())?;
        let mut executing: Array<_, [u64; 2]> =
            Array::try_from(self.map(map::EXECUTING)?).map_err(|error| load_error(&error))?;
        executing
            .set(u32::from(index), [0; 2], 0)
            .map_err(|error| load_error(&error))?;
        // struct execution: the stack pointer, then the stack's id and the process.
        let mut executions: BpfHashMap<_, u64, [u64; 2]> =
            BpfHashMap::try_from(self.map(map::EXECUTIONS)?).map_err(|error| load_error(&error))?;
        remove_where(&mut executions, |_, [_, who]| who >> 32 == u64::from(index));
        // struct driver_call: four words, then function, process and device.
        let mut calls: BpfHashMap<_, u64, [u64; 5]> =
            BpfHashMap::try_from(self.map(map::DRIVER_CALLS)?)
                .map_err(|error| load_error(&error))?;
        remove_where(&mut calls, |_, [.., who]| {
            who >> 16 & 0xffff == u64::from(index)
        });
        Ok(())
    }

    fn map(&mut self, name: &str) -> Result<&mut aya::maps::Map, AttachError> {
        self.bpf.map_mut(name).ok_or_else(|| missing(name))
    }

    /// Takes all probes off.
    pub fn detach(&mut self) {
        let links = self.hot_links.drain(..).chain(self.links.drain(..));
        closing::close(links.map(|(_, link)| link).collect());
    }
}

/// Removes the entries that are meant. A map that changes meanwhile may keep one of them.
pub fn remove_where<K: aya::Pod, V: aya::Pod>(
    map: &mut BpfHashMap<impl std::borrow::BorrowMut<MapData>, K, V>,
    mut meant: impl FnMut(&K, V) -> bool,
) {
    let keys: Vec<K> = map
        .iter()
        .filter_map(Result::ok)
        .filter(|(key, value)| meant(key, *value))
        .map(|(key, _)| key)
        .collect();
    for key in keys {
        // It may have gone by itself.
        let _ = map.remove(&key);
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.detach();
    }
}

fn missing(name: &str) -> AttachError {
    AttachError::Load {
        detail: format!("map {name} is not there"),
    }
}

fn load_error(error: &dyn std::error::Error) -> AttachError {
    AttachError::Load {
        detail: chain(error),
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn last_lines(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(6)..].join(" | ")
}

//! The BPF programs in the kernel: loading, placing probes, taking them off.

use std::num::NonZeroU32;

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
    error::AttachError,
    native::Native,
    plan::Probe,
    pod::{NativeValue, PythonValue, RulesValue},
};

/// The ring's size: at the 64 bytes of an event it holds a million of them, about a second of the
/// fastest allocation loop that PyTorch can run.
pub const DEFAULT_RING_BYTES: u32 = 64 << 20;

/// The programs, loaded, and the probes that were placed.
pub struct Loaded {
    bpf: Ebpf,
    links: Vec<UProbeLink>,
    /// The one that every block passes.
    hot_link: Option<UProbeLink>,
    /// Whether the programs can wait for memory.
    pub sleepable: bool,
    /// Processes whose machine code is unwound, so far.
    unwound: u64,
}

/// The maps that the reader needs.
pub struct ReaderMaps {
    /// Records.
    pub ring: RingBuf<MapData>,
    /// Counters.
    pub counters: PerCpuArray<MapData, u64>,
    /// Known code objects: (address, process) -> (id, first traceable byte).
    pub codes: BpfHashMap<MapData, [u64; 2], [u32; 2]>,
    /// What unwinding needs, by process.
    pub natives: Array<MapData, NativeValue>,
    /// Unwind rules, by set.
    pub rules: Array<MapData, RulesValue>,
}

impl Loaded {
    /// Loads the programs; sleepable ones where the kernel knows them.
    ///
    /// # Errors
    /// [`AttachError::Load`] with the verifier's last words.
    pub fn new(ring_bytes: u32) -> Result<Loaded, AttachError> {
        match Self::load(vramscope_bpf::SLEEPABLE, ring_bytes) {
            Ok(bpf) => Ok(Loaded {
                bpf,
                links: Vec::new(),
                hot_link: None,
                sleepable: true,
                unwound: 0,
            }),
            Err(sleepable) => match Self::load(vramscope_bpf::PLAIN, ring_bytes) {
                Ok(bpf) => Ok(Loaded {
                    bpf,
                    links: Vec::new(),
                    hot_link: None,
                    sleepable: false,
                    unwound: 0,
                }),
                Err(plain) => Err(AttachError::Load {
                    detail: format!("{plain}; sleepable: {sleepable}"),
                }),
            },
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
    pub fn set_python(&mut self, index: u16, python: wire::vs_python) -> Result<(), AttachError> {
        debug_assert!(index < MAX_PROCESSES);
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

    /// Tells the programs how to unwind the machine code of process `index`. `interpreter` is where
    /// its interpreter's code lies, `loader_state` where its dynamic loader says what it is at; 0
    /// where that is not known.
    ///
    /// # Errors
    /// [`AttachError::Load`] when the kernel refuses.
    pub fn set_native(
        &mut self,
        index: u16,
        native: Native,
        interpreter: std::ops::Range<u64>,
        loader_state: u64,
    ) -> Result<(), AttachError> {
        debug_assert!(index < MAX_PROCESSES);
        self.unwound += 1;
        let value = wire::vs_native {
            interpreter_start: interpreter.start,
            interpreter_end: interpreter.end,
            // Counted up from there for each library that goes.
            epoch: self.unwound << 32,
            loader_state,
            mode: native.mode(),
            unloading: 0,
        };
        let map = self
            .bpf
            .map_mut(map::NATIVES)
            .ok_or_else(|| missing(map::NATIVES))?;
        let mut natives: Array<_, NativeValue> =
            Array::try_from(map).map_err(|error| load_error(&error))?;
        natives
            .set(u32::from(index), NativeValue(value), 0)
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
            natives: Array::try_from(take(map::NATIVES)?).map_err(|error| load_error(&error))?,
            rules: Array::try_from(take(map::RULES)?).map_err(|error| load_error(&error))?,
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
        let before = self.links.len();
        let placed = self.place_all(pid, index, probe);
        if placed.is_err() {
            self.links.truncate(before);
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
                self.hot_link = Some(link);
            } else {
                self.links.push(link);
            }
        }
        Ok(())
    }

    /// Takes the probe off that every block passes: from here on nothing comes but the driver's
    /// calls. The kernel waits for running programs at each probe, some 35 to 120 ms, one after
    /// the other; the others can go while the user reads the report.
    pub fn silence(&mut self) {
        self.hot_link = None;
    }

    /// Takes all probes off.
    pub fn detach(&mut self) {
        self.hot_link = None;
        self.links.clear();
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

//! The BPF programs in the kernel, and their maps.

use std::os::fd::AsFd as _;

use aya::{
    Btf, Ebpf, EbpfLoader,
    maps::{Array, HashMap as BpfHashMap, Map, MapData, PerCpuArray, RingBuf},
    programs::{ProgramError, UProbe},
};
use vramscope_bpf::{MAX_PROCESSES, map};
use vramscope_wire as wire;

use crate::{
    error::AttachError,
    multi::Programs,
    native::Native,
    placing::Links,
    pod::{NativeValue, PythonValue, RulesValue},
    python::no_python,
};

/// The ring's size: at the 64 bytes of an event it holds a million of them, about a second of the
/// fastest allocation loop that PyTorch can run.
pub const DEFAULT_RING_BYTES: u32 = 64 << 20;

/// The programs, loaded, and the probes that were placed.
pub struct Loaded {
    pub(crate) bpf: Ebpf,
    /// For many places at once, where the kernel can do that.
    pub(crate) many: Option<Programs>,
    pub(crate) links: Links,
    /// Of the walks that were configured.
    generation: u32,
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
    /// How often a process's code was replaced; the reader's to write.
    pub replaced: Array<MapData, u64>,
    /// Unwind rules, by set.
    pub rules: Array<MapData, RulesValue>,
}

impl Loaded {
    /// Loads the programs; sleepable ones where the kernel knows them, for links of many probes
    /// where it knows those and `many` are wanted.
    ///
    /// # Errors
    /// [`AttachError::Load`] with the verifier's last words.
    pub fn new(ring_bytes: u32, many: bool) -> Result<Loaded, AttachError> {
        let kernel = Btf::from_sys_fs().map_err(|error| load_error(&error))?;
        let load = |object| Self::load(object, ring_bytes, many, &kernel);
        let sleepable = load(vramscope_bpf::SLEEPABLE);
        let (loaded, sleepable) = match sleepable {
            Ok(loaded) => (loaded, true),
            Err(sleepable) => match load(vramscope_bpf::PLAIN) {
                Ok(loaded) => (loaded, false),
                Err(plain) => {
                    return Err(AttachError::Load {
                        detail: format!("{plain}; sleepable: {sleepable}"),
                    });
                }
            },
        };
        let (bpf, many) = loaded;
        Ok(Loaded {
            bpf,
            many,
            links: Links::default(),
            generation: 0,
            sleepable,
            unwound: 0,
        })
    }

    fn load(
        object: &[u8],
        ring_bytes: u32,
        many: bool,
        kernel: &Btf,
    ) -> Result<(Ebpf, Option<Programs>), String> {
        let mut bpf = EbpfLoader::new()
            .btf(Some(kernel))
            .map_max_entries(map::RING, ring_bytes)
            .load(object)
            .map_err(|error| chain(&error))?;
        if many && let Ok(programs) = Programs::load(object, &bpf, kernel) {
            return Ok((bpf, Some(programs)));
        }
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
        Ok((bpf, None))
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
        let mut natives: Array<_, NativeValue> =
            Array::try_from(self.map(map::NATIVES)?).map_err(|error| load_error(&error))?;
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
        // The other processes' are written later.
        let natives = match self.map(map::NATIVES)? {
            Map::Array(natives) => natives.fd().as_fd().try_clone_to_owned(),
            _ => return Err(missing(map::NATIVES)),
        };
        let natives = natives.map_err(|error| load_error(&error))?;
        let natives = MapData::from_fd(natives).map_err(|error| load_error(&error))?;
        let mut take = |name| self.bpf.take_map(name).ok_or_else(|| missing(name));
        Ok(ReaderMaps {
            ring: RingBuf::try_from(take(map::RING)?).map_err(|error| load_error(&error))?,
            counters: PerCpuArray::try_from(take(map::COUNTERS)?)
                .map_err(|error| load_error(&error))?,
            codes: BpfHashMap::try_from(take(map::CODES)?).map_err(|error| load_error(&error))?,
            natives: Array::try_from(Map::Array(natives)).map_err(|error| load_error(&error))?,
            replaced: Array::try_from(take(map::REPLACED)?).map_err(|error| load_error(&error))?,
            rules: Array::try_from(take(map::RULES)?).map_err(|error| load_error(&error))?,
        })
    }

    /// Clears what the programs know of process `index`, whose probes are off: another one can have
    /// the index. The code objects are cleared by the reader, which has their map.
    ///
    /// # Errors
    /// [`AttachError::Load`] when the kernel refuses.
    pub fn clear(&mut self, index: u16) -> Result<(), AttachError> {
        self.set_python(index, no_python())?;
        self.set_native(index, Native::Never, 0..0, 0)?;
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
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
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

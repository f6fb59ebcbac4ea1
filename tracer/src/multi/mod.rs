//! Many probes in one link (Linux 6.6 and later).
//!
//! A link for each probe is slow to take off: the kernel waits for running programs at each, some
//! 75 ms, and lets no two waits overlap. With one link for all places of a program in a file it
//! waits once for them, and links that are closed at the same time wait together. The loader's
//! crate cannot make such links yet, nor load programs for them; this module does, with the crate's
//! own reader of object files and on the maps that it made.

mod sys;

use std::{
    collections::HashMap,
    ffi::CString,
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use aya::{Btf, Ebpf, maps::Map};
use aya_obj::{Features, Object, ProgramSection, btf::BtfFeatures};

/// The programs, loaded for links of many probes.
pub struct Programs {
    programs: HashMap<String, Program>,
    /// The programs' types; they refer to it.
    _types: OwnedFd,
}

struct Program {
    fd: OwnedFd,
    returns: bool,
}

/// A place to probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// What the program is told of it.
    pub cookie: u64,
}

impl Programs {
    /// Loads the programs of an object file whose maps have been made for `bpf`. `kernel`: the
    /// types of the running kernel.
    ///
    /// # Errors
    /// In words; older kernels do not know such programs.
    pub fn load(object: &[u8], bpf: &Ebpf, kernel: &Btf) -> Result<Programs, String> {
        let mut object = Object::parse(object).map_err(words)?;
        // Whoever knows these links knows all that types can say.
        let known = BtfFeatures::new(true, true, true, true, true, true, true, true);
        let types = object.fixup_and_sanitize_btf(&known).map_err(words)?;
        let types = types.ok_or("the programs have no types")?.to_bytes();
        let types = sys::load_types(&types).map_err(words)?;
        object.relocate_btf(kernel).map_err(words)?;
        let maps = std::mem::take(&mut object.maps);
        let mut made: Vec<(&str, RawFd, &aya_obj::Map)> = Vec::new();
        for (name, map) in &maps {
            let fd = bpf.map(name).and_then(descriptor);
            made.push((name, fd.ok_or_else(|| format!("no map {name}"))?, map));
        }
        let sections = object
            .functions
            .keys()
            .map(|(section, _)| *section)
            .collect();
        object
            .relocate_maps(made.into_iter(), &sections)
            .map_err(words)?;
        object.relocate_calls(&sections).map_err(words)?;
        object.sanitize_functions(&Features::new(
            true,
            true,
            true,
            true,
            true,
            true,
            true,
            Some(known),
        ));
        let mut programs = HashMap::new();
        for (name, program) in &object.programs {
            let (sleepable, returns) = match program.section {
                ProgramSection::UProbe { sleepable } => (sleepable, false),
                ProgramSection::URetProbe { sleepable } => (sleepable, true),
                _ => continue,
            };
            let function = &object.functions[&program.function_key()];
            let mut log = Vec::new();
            let load = |log: &mut [u8]| {
                let types = types.as_fd();
                sys::load_program(function, name, &program.license, types, sleepable, log)
            };
            let loaded = load(&mut log).or_else(|_| {
                log = vec![0; LOG_BYTES];
                load(&mut log)
            });
            let fd = loaded.map_err(|error| {
                let log = log.split(|byte| *byte == 0).next().unwrap_or_default();
                format!("{name}: {error}: {}", String::from_utf8_lossy(log))
            })?;
            programs.insert(name.clone(), Program { fd, returns });
        }
        Ok(Programs {
            programs,
            _types: types,
        })
    }

    /// Has a program run at places of a file, in one process. Closing what is returned takes the
    /// probes off.
    ///
    /// # Errors
    /// In words.
    pub fn attach(
        &self,
        program: &str,
        file: &Path,
        places: &[Place],
        pid: u32,
    ) -> Result<OwnedFd, String> {
        let found = self.programs.get(program);
        let program = found.ok_or_else(|| format!("no program {program}"))?;
        let file = CString::new(file.as_os_str().as_bytes()).map_err(words)?;
        let offsets: Vec<u64> = places.iter().map(|place| place.offset).collect();
        let cookies: Vec<u64> = places.iter().map(|place| place.cookie).collect();
        let fd = program.fd.as_fd();
        sys::attach(fd, &file, &offsets, &cookies, pid, program.returns).map_err(words)
    }
}

/// Room for the verifier's words.
const LOG_BYTES: usize = 1 << 20;

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A map's descriptor, of the kinds that our programs use.
fn descriptor(map: &Map) -> Option<RawFd> {
    match map {
        Map::Array(map)
        | Map::HashMap(map)
        | Map::LruHashMap(map)
        | Map::PerCpuArray(map)
        | Map::PerCpuHashMap(map)
        | Map::PerCpuLruHashMap(map)
        | Map::ProgramArray(map)
        | Map::RingBuf(map) => Some(map.fd().as_fd().as_raw_fd()),
        _ => None,
    }
}

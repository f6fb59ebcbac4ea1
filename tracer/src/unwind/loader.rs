//! The probe that tells when libraries go.

use std::{fs::File, path::PathBuf};

use object::{
    LittleEndian,
    elf::{FileHeader64, PT_LOAD, SHT_DYNSYM},
    read::{
        ReadCache,
        elf::{FileHeader as _, ProgramHeader as _, Sym as _},
    },
};
use vramscope_bpf::program;
use vramscope_events::{ProbeState, ProbeView};
use vramscope_python::{Mapping, Process};

use crate::{
    library::Library,
    plan::{Attachment, Probe},
    planner,
};

const NAME: &str = "the dynamic loader's _dl_debug_state";
const CONSEQUENCE: &str = "where a library is unloaded and another one comes in its place, machine code may get its names";
/// `r_state` in `struct r_debug` (glibc's `<link.h>`): behind an int and two pointers.
const STATE_AT: u64 = 24;

/// What glibc's dynamic loader offers to debuggers.
#[derive(Debug)]
struct Loader {
    path: PathBuf,
    file: PathBuf,
    /// Where `_dl_debug_state` begins in the file.
    entry: u64,
    /// Where `_r_debug.r_state` lies in the process.
    state: u64,
}

/// The probe, and where the loader's state lies in the process; 0 where there is none.
pub fn probe(process: &Process, mappings: &[Mapping]) -> (Probe, u64) {
    let mut probe = Probe {
        view: ProbeView {
            name: NAME.into(),
            state: ProbeState::Attached,
            cost_note: "once a library that comes or goes".into(),
        },
        consequence: CONSEQUENCE,
        attachments: Vec::new(),
    };
    match find(process, mappings) {
        Ok(loader) => {
            attach(&mut probe, &loader);
            (probe, loader.state)
        }
        Err(reason) => {
            probe.view.state = ProbeState::Absent {
                consequence: format!("{reason}: {CONSEQUENCE}"),
            };
            probe.view.cost_note.clear();
            (probe, 0)
        }
    }
}

fn attach(probe: &mut Probe, loader: &Loader) {
    let code = crate::library::code_at(&loader.file, loader.entry, 16).unwrap_or_default();
    let place = planner::place(&code, &[]);
    probe.attachments.push(Attachment {
        program: program::LOADER_STATE,
        file: loader.file.clone(),
        file_offset: loader.entry + place.offset,
        function: 0,
        stack_delta: place.stack_delta,
    });
    probe.view.cost_note = format!(
        "{}: {}, {}",
        loader.path.display(),
        place.note(),
        probe.view.cost_note
    );
}

fn find(process: &Process, mappings: &[Mapping]) -> Result<Loader, String> {
    let is_loader = |name: &str| name.starts_with("ld-linux") || name.starts_with("ld-2.");
    let library = Library::find(process, mappings, is_loader)
        .map_err(|error| error.to_string())?
        .ok_or("the process has no dynamic loader of glibc's")?;
    let first = mappings
        .iter()
        .find(|mapping| mapping.path.as_ref() == Some(&library.path))
        .ok_or("the dynamic loader is not mapped")?;
    let file = File::open(&library.file).map_err(|error| error.to_string())?;
    let (entry, state) =
        symbols(file, first).map_err(|error| format!("{}: {error}", library.path.display()))?;
    Ok(Loader {
        path: library.path,
        file: library.file,
        entry,
        state,
    })
}

/// Where `_dl_debug_state` is in the file, and `_r_debug.r_state` in the process.
fn symbols(file: File, first: &Mapping) -> Result<(u64, u64), String> {
    let data = &ReadCache::new(file);
    let words = |error: object::Error| error.to_string();
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(data).map_err(words)?;
    let segments = header.program_headers(endian, data).map_err(words)?;
    let loaded = || {
        segments
            .iter()
            .filter(|segment| segment.p_type(endian) == PT_LOAD)
    };
    let sections = header.sections(endian, data).map_err(words)?;
    let symbols = sections.symbols(endian, data, SHT_DYNSYM).map_err(words)?;
    let address = |wanted: &[u8]| {
        symbols
            .iter()
            .find(|symbol| {
                symbols.symbol_name(endian, symbol).ok() == Some(wanted)
                    && symbol.st_value(endian) != 0
            })
            .map(|symbol| symbol.st_value(endian))
            .ok_or_else(|| format!("it exports no {}", String::from_utf8_lossy(wanted)))
    };
    let entry = address(b"_dl_debug_state")?;
    let entry = loaded()
        .find_map(|segment| {
            let into = entry.checked_sub(segment.p_vaddr(endian))?;
            (into < segment.p_filesz(endian)).then(|| segment.p_offset(endian) + into)
        })
        .ok_or("its _dl_debug_state lies outside of it")?;
    let start = loaded()
        .find(|segment| segment.p_offset(endian) <= first.offset)
        .map(|segment| first.offset - segment.p_offset(endian) + segment.p_vaddr(endian))
        .ok_or("its first part is not loaded")?;
    let bias = first.start.wrapping_sub(start);
    let state = bias
        .wrapping_add(address(b"_r_debug")?)
        .wrapping_add(STATE_AT);
    Ok((entry, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_loader_is_consistent() {
        let process = Process::open(std::process::id()).unwrap();
        let mappings = process.mappings().unwrap();
        let Ok(loader) = find(&process, &mappings) else {
            println!("SKIP: our_own_loader_is_consistent: not glibc");
            return;
        };
        let state = process
            .read_u32(vramscope_python::Address(loader.state))
            .unwrap();
        let version = process
            .read_u32(vramscope_python::Address(loader.state - STATE_AT))
            .unwrap();
        assert_eq!(state, 0, "RT_CONSISTENT");
        assert!((1..=2).contains(&version), "{version}");
    }
}

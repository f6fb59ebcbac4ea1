//! A library that the process has mapped: its symbols, and the file to put probes on.

use std::{
    collections::HashMap,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use object::{
    Endianness,
    elf::{FileHeader64, PT_LOAD, STT_FUNC},
    read::{
        ReadCache, ReadRef,
        elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _, Sym as _},
    },
};
use vramscope_python::{Mapping, Process};

/// More than any function that a probe is put on; more than one prologue is never needed.
const MAX_FUNCTION_BYTES: u64 = 1 << 20;

/// A mapped library could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// Its file could not be opened.
    #[error("{path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is no ELF file that we can read.
    #[error("{path}: not a readable 64-bit ELF file: {source}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: object::Error,
    },
    /// It has gone from the process or its file system.
    #[error("{name} is mapped, but its file cannot be opened any more")]
    Unreachable {
        /// Its name.
        name: String,
    },
}

/// A function in a library.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its linker name.
    pub symbol: String,
    /// Where it begins in the file: what the kernel wants to be told.
    pub file_offset: u64,
    /// Its machine code, as far as the symbol tells its size.
    pub code: Vec<u8>,
}

/// A library that a process has mapped.
#[derive(Clone, Debug)]
pub struct Library {
    /// Its path as the process sees it.
    pub path: PathBuf,
    /// A path by which we can open the very file that is mapped.
    pub file: PathBuf,
}

impl Library {
    /// The first mapped library whose file name satisfies `wanted`.
    ///
    /// # Errors
    /// [`LibraryError::Unreachable`] when it is mapped but its file cannot be opened.
    pub fn find(
        process: &Process,
        mappings: &[Mapping],
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Option<Library>, LibraryError> {
        let Some((name, mapping)) = mappings.iter().find_map(|mapping| {
            let name = mapping.file_name()?;
            wanted(name).then_some((name, mapping))
        }) else {
            return Ok(None);
        };
        let file = process
            .openable(mapping)
            .ok_or_else(|| LibraryError::Unreachable {
                name: name.to_owned(),
            })?;
        Ok(Some(Library {
            path: mapping.path.clone().unwrap_or_default(),
            file,
        }))
    }

    /// Every library and program that the process runs code of, once.
    pub fn all(process: &Process, mappings: &[Mapping]) -> Vec<Library> {
        let mut found: Vec<Library> = Vec::new();
        for mapping in mappings
            .iter()
            .filter(|mapping| mapping.permissions.execute)
        {
            let Some(path) = &mapping.path else { continue };
            if found.iter().any(|known| known.path == *path) {
                continue;
            }
            if let Some(file) = process.openable(mapping) {
                found.push(Library {
                    path: path.clone(),
                    file,
                });
            }
        }
        found
    }

    /// The exported functions whose linker names satisfy `wanted`, by name.
    ///
    /// # Errors
    /// [`LibraryError::Open`] and [`LibraryError::Parse`].
    pub fn functions(
        &self,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<HashMap<String, Function>, LibraryError> {
        self.functions_in(object::elf::SHT_DYNSYM, wanted)
    }

    /// Like [`Library::functions`], of those that are not exported, where the file still names
    /// them.
    ///
    /// # Errors
    /// As there.
    pub fn local_functions(
        &self,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<HashMap<String, Function>, LibraryError> {
        self.functions_in(object::elf::SHT_SYMTAB, wanted)
    }

    fn functions_in(
        &self,
        table: u32,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<HashMap<String, Function>, LibraryError> {
        let file = File::open(&self.file).map_err(|source| LibraryError::Open {
            path: self.path.clone(),
            source,
        })?;
        // libtorch is half a gigabyte: read the parts that are asked for, not the file.
        let cache = ReadCache::new(file);
        functions(&cache, table, wanted).map_err(|source| LibraryError::Parse {
            path: self.path.clone(),
            source,
        })
    }
}

/// Reads a function at a file offset of a file, as far as `bytes` go.
///
/// # Errors
/// [`LibraryError::Open`] when the file cannot be read there.
pub fn code_at(path: &Path, file_offset: u64, bytes: usize) -> Result<Vec<u8>, LibraryError> {
    use std::os::unix::fs::FileExt as _;
    let open = |source| LibraryError::Open {
        path: path.to_owned(),
        source,
    };
    let mut code = vec![0; bytes];
    let got = File::open(path)
        .and_then(|file| file.read_at(&mut code, file_offset))
        .map_err(open)?;
    code.truncate(got);
    Ok(code)
}

fn functions<'a>(
    data: impl ReadRef<'a>,
    table: u32,
    wanted: impl Fn(&str) -> bool,
) -> object::Result<HashMap<String, Function>> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let segments = header.program_headers(endian, data)?;
    let file_offset = |address: u64| {
        segments
            .iter()
            .filter(|segment| segment.p_type(endian) == PT_LOAD)
            .find_map(|segment| {
                let into = address.checked_sub(segment.p_vaddr(endian))?;
                (into < segment.p_filesz(endian)).then(|| segment.p_offset(endian) + into)
            })
    };
    let sections = header.sections(endian, data)?;
    let symbols = sections.symbols(endian, data, table)?;
    let mut found = HashMap::new();
    if symbols.is_empty() {
        return Ok(found);
    }
    // In one read: there are a hundred thousand names in libtorch.
    let names = sections.section(symbols.string_section())?;
    let names = names.data(endian, data)?;
    for symbol in symbols.iter() {
        let address = symbol.st_value(endian);
        if address == 0 || symbol.st_type() != STT_FUNC {
            continue;
        }
        let Some(name) = name_at(names, symbol.st_name(endian)) else {
            continue;
        };
        if !wanted(name) {
            continue;
        }
        let Some(offset) = file_offset(address) else {
            continue;
        };
        let size = symbol.st_size(endian).clamp(1, MAX_FUNCTION_BYTES);
        // A symbol that points out of the file is damage that some other probe may do without.
        let Ok(code) = data.read_bytes_at(offset, size) else {
            continue;
        };
        found.insert(
            name.to_owned(),
            Function {
                symbol: name.to_owned(),
                file_offset: offset,
                code: code.to_vec(),
            },
        );
    }
    Ok(found)
}

fn name_at(names: &[u8], at: u32) -> Option<&str> {
    let name = names.get(at as usize..)?;
    let name = &name[..name.iter().position(|byte| *byte == 0)?];
    std::str::from_utf8(name).ok()
}

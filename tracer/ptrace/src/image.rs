//! A program or library that a process has mapped: its symbols and its code.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use object::{
    elf::{self, FileHeader64},
    endian::LittleEndian,
    read::{
        ReadCache, ReadRef as _,
        elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _, Sym as _},
    },
};
use vramscope_python::{Mapping, Process};

use crate::error::{Error, Result};

/// The granularity of mappings.
const PAGE: u64 = 4096;

/// A mapped ELF file.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pid: u32,
    name: String,
    file: PathBuf,
    /// Where its first executable mapping begins, and at which offset of the file.
    code: (u64, u64),
}

impl Image {
    /// The first image whose executable mapping satisfies `wanted`.
    pub(crate) fn find(
        process: &Process,
        mappings: &[Mapping],
        wanted: impl Fn(&Mapping) -> bool,
    ) -> Option<Image> {
        let mapping = mappings
            .iter()
            .find(|mapping| mapping.permissions.execute && wanted(mapping))?;
        Some(Image {
            pid: process.pid(),
            name: mapping.path.as_ref()?.display().to_string(),
            file: process.openable(mapping)?,
            code: (mapping.start, mapping.offset),
        })
    }

    /// The image of this path, as the process sees it.
    pub(crate) fn at(process: &Process, mappings: &[Mapping], path: &Path) -> Result<Image> {
        Image::find(process, mappings, |mapping| {
            mapping.path.as_deref() == Some(path)
        })
        .ok_or_else(|| Error::Library {
            pid: process.pid(),
            library: path.display().to_string(),
            reason: "it is not mapped, or its file cannot be opened".into(),
        })
    }

    /// Its path as the process sees it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The address of an exported function; None where it exports none of that name.
    pub(crate) fn function(&self, symbol: &str) -> Result<Option<u64>> {
        self.parse(|data, header, bias| {
            let sections = header.section_headers(LittleEndian, data)?;
            for section in sections.iter() {
                if section.sh_type(LittleEndian) != elf::SHT_DYNSYM {
                    continue;
                }
                let symbols: &[elf::Sym64<LittleEndian>] =
                    section.data_as_array(LittleEndian, data)?;
                let Some(names) = sections.get(section.sh_link(LittleEndian) as usize) else {
                    continue;
                };
                let names = names.data(LittleEndian, data)?;
                let found = symbols.iter().find(|entry| {
                    !entry.is_undefined(LittleEndian)
                        && entry.st_value(LittleEndian) != 0
                        && entry.st_type() == elf::STT_FUNC
                        && names
                            .get(entry.st_name(LittleEndian) as usize..)
                            .and_then(|name| name.strip_prefix(symbol.as_bytes()))
                            .is_some_and(|rest| rest.first() == Some(&0))
                });
                if let Some(found) = found {
                    return Ok(Some(bias.wrapping_add(found.st_value(LittleEndian))));
                }
            }
            Ok(None)
        })
    }

    /// Its machine code and where that lies in the process.
    pub(crate) fn code(&self) -> Result<(Vec<u8>, u64)> {
        self.parse(|data, header, bias| {
            for segment in header.program_headers(LittleEndian, data)? {
                if is_code(segment) {
                    let bytes = segment.data(LittleEndian, data).unwrap_or_default();
                    let at = bias.wrapping_add(segment.p_vaddr(LittleEndian));
                    return Ok((bytes.to_vec(), at));
                }
            }
            Ok((Vec::new(), 0))
        })
    }

    fn parse<T>(
        &self,
        read: impl FnOnce(&ReadCache<File>, &FileHeader64<LittleEndian>, u64) -> object::Result<T>,
    ) -> Result<T> {
        let fail = |reason: String| Error::Library {
            pid: self.pid,
            library: self.name.clone(),
            reason,
        };
        let file = File::open(&self.file).map_err(|error| fail(error.to_string()))?;
        let data = ReadCache::new(file);
        match data.read_bytes_at(0, 20) {
            Ok(start) if start.starts_with(&elf::ELFMAG) && start[4] == elf::ELFCLASS64 => {}
            _ => return Err(fail("it is no 64-bit ELF file".into())),
        }
        let header =
            FileHeader64::<LittleEndian>::parse(&data).map_err(|error| fail(error.to_string()))?;
        let bias = self
            .bias(&data, header)
            .map_err(|error| fail(error.to_string()))?
            .ok_or_else(|| fail("its mappings do not fit its file: replaced since?".into()))?;
        read(&data, header, bias).map_err(|error| fail(error.to_string()))
    }

    /// What to add to an address of the file to have it in memory.
    fn bias(
        &self,
        data: &ReadCache<File>,
        header: &FileHeader64<LittleEndian>,
    ) -> object::Result<Option<u64>> {
        let (start, offset) = self.code;
        Ok(header
            .program_headers(LittleEndian, data)?
            .iter()
            .filter(|segment| is_code(segment))
            .find_map(|segment| {
                let first = segment.p_offset(LittleEndian);
                let end = first.saturating_add(segment.p_filesz(LittleEndian));
                ((first & !(PAGE - 1))..end).contains(&offset).then(|| {
                    let address = segment
                        .p_vaddr(LittleEndian)
                        .wrapping_sub(first)
                        .wrapping_add(offset);
                    start.wrapping_sub(address)
                })
            }))
    }
}

fn is_code(segment: &elf::ProgramHeader64<LittleEndian>) -> bool {
    segment.p_type(LittleEndian) == elf::PT_LOAD && segment.p_flags(LittleEndian) & elf::PF_X != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_libc() {
        let process = Process::open(std::process::id()).unwrap();
        let mappings = process.mappings().unwrap();
        let libc = Image::find(&process, &mappings, |mapping| {
            mapping.file_name() == Some("libc.so.6")
        });
        let Some(libc) = libc else { return };
        let address = libc.function("getpid").unwrap().unwrap();
        assert!(mappings.iter().any(|mapping| {
            mapping.permissions.execute && (mapping.start..mapping.end).contains(&address)
        }));
        assert_eq!(libc.function("no_such_function").unwrap(), None);
        assert!(crate::landing::Landing::find(&libc.code().unwrap().0).is_some());
    }
}

//! A private copy of a file's symbol tables.
//!
//! Whoever reads symbols maps the file, and a mapping of a file that somebody cuts or writes over
//! meanwhile ends the reader with SIGBUS. So the tables, and nothing else, are read in pieces into
//! memory of our own, each to its place: a file of the same length with holes where code and data
//! were, which nobody else can change.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::FileExt as _,
};

use nix::sys::memfd::{MFdFlags, memfd_create};
use object::{
    LittleEndian,
    elf::{FileHeader64, ProgramHeader64, SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB, SectionHeader64},
    pod::{from_bytes, slice_from_all_bytes},
};

/// Sections that are looked at; linkers write about forty.
const MAX_SECTIONS: usize = 1 << 16;
/// The largest tables that are read, together; PyTorch's have 100 MB, with all that a debug package
/// holds five times as much.
pub const MAX_BYTES: u64 = 1 << 30;

/// A copy of symbol tables.
#[derive(Debug)]
pub struct Tables {
    /// An ELF file as long as the other one, in memory.
    pub file: File,
    /// What it takes of memory.
    pub bytes: u64,
}

/// Copies the symbol tables of a file.
///
/// # Errors
/// The file cannot be read, or is no ELF file of 64 bits; it has more than [`MAX_BYTES`] of tables;
/// there is no memory. Tables that lie outside of the file are holes.
pub fn copy(file: &File) -> io::Result<Tables> {
    let length = file.metadata()?.len();
    let memory = memfd_create("vramscope-symbols", MFdFlags::MFD_CLOEXEC)?;
    let mut tables = Tables {
        file: File::from(memory),
        bytes: 0,
    };
    tables.file.set_len(length)?;
    for (offset, bytes) in parts(file)? {
        let end = offset.saturating_add(bytes).min(length);
        let Some(bytes) = end.checked_sub(offset).filter(|bytes| *bytes > 0) else {
            continue;
        };
        tables.bytes += bytes;
        if tables.bytes > MAX_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("more than {MAX_BYTES} bytes of symbols"),
            ));
        }
        let mut from = file;
        from.seek(SeekFrom::Start(offset))?;
        (&tables.file).seek(SeekFrom::Start(offset))?;
        io::copy(&mut from.take(bytes), &mut &tables.file)?;
    }
    Ok(tables)
}

type Header = FileHeader64<LittleEndian>;
type Program = ProgramHeader64<LittleEndian>;
type Section = SectionHeader64<LittleEndian>;

fn broken() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

/// The header of a file, and those of its sections as bytes.
fn sections(file: &File) -> io::Result<(Header, Vec<u8>)> {
    let endian = LittleEndian;
    let mut bytes = [0; size_of::<Header>()];
    file.read_exact_at(&mut bytes, 0)?;
    let (header, _) = from_bytes::<Header>(&bytes).map_err(|()| broken())?;
    let at = header.e_shoff.get(endian);
    let count = match header.e_shnum.get(endian) {
        // More than the field can hold: the first section has the number (System V ABI, "ELF
        // Header").
        0 if at != 0 => {
            let mut first = [0; size_of::<Section>()];
            file.read_exact_at(&mut first, at)?;
            let (first, _) = from_bytes::<Section>(&first).map_err(|()| broken())?;
            usize::try_from(first.sh_size.get(endian)).map_err(|_| broken())?
        }
        count => count.into(),
    };
    if count > MAX_SECTIONS {
        return Err(broken());
    }
    let mut bytes = vec![0; count * size_of::<Section>()];
    file.read_exact_at(&mut bytes, at)?;
    Ok((*header, bytes))
}

/// What of a file says where its symbols are, and they: offset and bytes.
fn parts(file: &File) -> io::Result<Vec<(u64, u64)>> {
    let endian = LittleEndian;
    let (header, bytes) = sections(file)?;
    let sections = slice_from_all_bytes::<Section>(&bytes).map_err(|()| broken())?;
    let programs = u64::from(header.e_phnum.get(endian)) * size_of::<Program>() as u64;
    let tables = sections.iter().filter_map(|section| {
        let kind = section.sh_type.get(endian);
        let is_table = [SHT_SYMTAB, SHT_DYNSYM, SHT_STRTAB].contains(&kind);
        is_table.then(|| (section.sh_offset.get(endian), section.sh_size.get(endian)))
    });
    let heads = [
        (0, size_of::<Header>() as u64),
        (header.e_phoff.get(endian), programs),
        (header.e_shoff.get(endian), bytes.len() as u64),
    ];
    Ok(heads.into_iter().chain(tables).collect())
}

/// What a section of this name holds, if that is at most so much.
pub fn section(file: &File, name: &str, most: u64) -> Option<Vec<u8>> {
    let endian = LittleEndian;
    let (header, bytes) = sections(file).ok()?;
    let sections = slice_from_all_bytes::<Section>(&bytes).ok()?;
    let names = sections.get(usize::from(header.e_shstrndx.get(endian)))?;
    let names = names.sh_offset.get(endian);
    let mut found = vec![0; name.len() + 1];
    let section = sections.iter().find(|section| {
        let at = names.checked_add(section.sh_name.get(endian).into());
        let read = at.is_some_and(|at| file.read_exact_at(&mut found, at).is_ok());
        read && found.strip_suffix(&[0]) == Some(name.as_bytes())
    })?;
    let length = section.sh_size.get(endian);
    let mut bytes = vec![0; usize::try_from(length).ok().filter(|_| length <= most)?];
    file.read_exact_at(&mut bytes, section.sh_offset.get(endian))
        .ok()?;
    Some(bytes)
}

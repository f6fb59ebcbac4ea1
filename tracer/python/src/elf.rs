//! The few facts needed of an ELF file: its segments and some symbols.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use object::elf::{self, FileHeader64};
use object::endian::LittleEndian;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::read::{ReadCache, ReadRef};

/// A part of the file that is loaded into memory (PT_LOAD).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Where it is loaded, before the load bias is added.
    pub address: u64,
    pub memory_size: u64,
    pub file_offset: u64,
    pub file_size: u64,
    pub writable: bool,
    pub executable: bool,
}

impl Segment {
    /// Whether a mapping at this file offset can be of this segment: mappings
    /// begin at page boundaries, segments anywhere.
    fn covers_mapping_at(&self, file_offset: u64) -> bool {
        const PAGE: u64 = 4096;
        let start = self.file_offset & !(PAGE - 1);
        (start..self.file_offset.saturating_add(self.file_size)).contains(&file_offset)
    }
}

/// Where to look for symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolTables {
    /// What the file exports: short, and there in stripped files too.
    Dynamic,
    /// What it exports, then all that it defines, which can be very much.
    All,
}

/// An ELF file of this machine's kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elf {
    pub segments: Vec<Segment>,
    symbols: HashMap<&'static str, u64>,
}

impl Elf {
    /// Reads the segments and the addresses of those of the wanted symbols
    /// that the file defines. None when it is not an ELF file for x86-64.
    ///
    /// # Errors
    /// What the system or the parser said.
    pub(crate) fn read(
        path: &Path,
        wanted: &[&'static str],
        tables: SymbolTables,
    ) -> Result<Option<Self>, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Ok(None);
        }
        let data = ReadCache::new(file);
        match data.read_bytes_at(0, 4) {
            Ok(magic) if magic == elf::ELFMAG => {}
            _ => return Ok(None),
        }
        let header = FileHeader64::<LittleEndian>::parse(&data).map_err(|e| e.to_string())?;
        if header.e_machine(LittleEndian) != elf::EM_X86_64 {
            return Ok(None);
        }
        Self::from_header(header, &data, wanted, tables)
            .map(Some)
            .map_err(|error| error.to_string())
    }

    fn from_header<'data, R: ReadRef<'data>>(
        header: &FileHeader64<LittleEndian>,
        data: R,
        wanted: &[&'static str],
        tables: SymbolTables,
    ) -> Result<Self, object::Error> {
        let endian = LittleEndian;
        let mut parsed = Self::default();
        for segment in header.program_headers(endian, data)? {
            if segment.p_type(endian) == elf::PT_LOAD {
                parsed.segments.push(Segment {
                    address: segment.p_vaddr(endian),
                    memory_size: segment.p_memsz(endian),
                    file_offset: segment.p_offset(endian),
                    file_size: segment.p_filesz(endian),
                    writable: segment.p_flags(endian) & elf::PF_W != 0,
                    executable: segment.p_flags(endian) & elf::PF_X != 0,
                });
            }
        }
        let tables: &[_] = match tables {
            SymbolTables::Dynamic => &[elf::SHT_DYNSYM],
            SymbolTables::All => &[elf::SHT_DYNSYM, elf::SHT_SYMTAB],
        };
        for &table in tables {
            if parsed.symbols.len() == wanted.len() {
                break;
            }
            let sections = header.section_headers(endian, data)?;
            for section in sections.iter().filter(|s| s.sh_type(endian) == table) {
                let symbols: &[elf::Sym64<LittleEndian>] = section.data_as_array(endian, data)?;
                let Some(strings) = sections.get(section.sh_link(endian) as usize) else {
                    continue;
                };
                let names = strings.data(endian, data)?;
                parsed.find_symbols(symbols, names, wanted);
            }
        }
        Ok(parsed)
    }

    fn find_symbols(
        &mut self,
        symbols: &[elf::Sym64<LittleEndian>],
        names: &[u8],
        wanted: &[&'static str],
    ) {
        let endian = LittleEndian;
        for symbol in symbols {
            if symbol.is_undefined(endian) || symbol.st_value(endian) == 0 {
                continue;
            }
            let Some(name) = names.get(symbol.st_name(endian) as usize..) else {
                continue;
            };
            let found = wanted.iter().find(|wanted| {
                name.strip_prefix(wanted.as_bytes())
                    .is_some_and(|rest| rest.first() == Some(&0))
            });
            if let Some(found) = found {
                self.symbols
                    .entry(found)
                    .or_insert_with(|| symbol.st_value(endian));
            }
        }
    }

    /// The address of a symbol, before the load bias is added.
    pub(crate) fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.get(name).copied()
    }

    /// What to add to an address of the file to have it in memory, given one
    /// of the file's executable mappings.
    pub(crate) fn load_bias(&self, mapping_start: u64, mapping_offset: u64) -> Option<u64> {
        let segment = self
            .segments
            .iter()
            .find(|s| s.executable && s.covers_mapping_at(mapping_offset))?;
        let address = segment
            .address
            .wrapping_sub(segment.file_offset)
            .wrapping_add(mapping_offset);
        Some(mapping_start.wrapping_sub(address))
    }

    /// Where in the file the byte at this address is (before the bias).
    pub(crate) fn file_offset(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let into = address.checked_sub(segment.address)?;
            (into < segment.file_size).then(|| segment.file_offset.wrapping_add(into))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bias_and_offsets_of_a_shifted_segment() {
        let elf = Elf {
            segments: vec![Segment {
                address: 0x3240,
                memory_size: 0x2000,
                file_offset: 0x2240,
                file_size: 0x1800,
                writable: false,
                executable: true,
            }],
            symbols: HashMap::new(),
        };
        assert_eq!(
            elf.load_bias(0x7f00_0000_3000, 0x2000),
            Some(0x7f00_0000_0000)
        );
        // A mapping split by mprotect begins inside the segment.
        assert_eq!(
            elf.load_bias(0x7f00_0000_4000, 0x3000),
            Some(0x7f00_0000_0000)
        );
        assert_eq!(elf.load_bias(0x7f00_0000_4000, 0x9000), None);
        assert_eq!(elf.file_offset(0x3250), Some(0x2250));
        assert_eq!(elf.file_offset(0x3240 + 0x1800), None);
    }

    #[test]
    fn own_executable() {
        let path = std::env::current_exe().unwrap();
        let elf = Elf::read(&path, &["main", "no_such_symbol"], SymbolTables::All)
            .unwrap()
            .unwrap();
        assert!(elf.symbol("main").is_some());
        assert_eq!(elf.symbol("no_such_symbol"), None);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/elf.rs");
        assert!(
            Elf::read(&source, &[], SymbolTables::All)
                .unwrap()
                .is_none()
        );
    }
}

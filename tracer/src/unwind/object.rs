//! Unwind rules out of a library's file.
//!
//! Read in place, a few bytes at a time: the tables of PyTorch's libraries take a hundred megabytes,
//! and a mapping of a file that somebody then cuts would end us. Nothing in the file is believed:
//! what points out of it, is too large or not of the kind that linkers write has no rule.

use std::{fs::File, os::unix::fs::FileExt as _};

use object::{
    LittleEndian,
    elf::{ELFMAG, EM_X86_64, FileHeader64, PF_X, PT_GNU_EH_FRAME, PT_LOAD, ProgramHeader64},
    pod::{from_bytes, slice_from_all_bytes},
};
use vramscope_unwind::{
    Rule,
    gimli::{BaseAddresses, EhFrame, EhFrameOffset, LittleEndian as Little, UnwindSection as _},
    rule_of,
};

/// Program headers that are looked at; linkers write about ten.
const MAX_SEGMENTS: usize = 128;
/// Longest entries that are read; real ones have some hundred bytes, the longest ten thousand.
const MAX_FDE: usize = 1 << 18;
const MAX_CIE: usize = 1 << 12;

/// The header of the search table, as every linker for x86-64 writes it: version 1, the frames'
/// address as `DW_EH_PE_pcrel | sdata4`, the count as `udata4`, entries as `datarel | sdata4`
/// (Linux Standard Base, 10.6.2).
const TABLE_HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// A part of the file that is loaded into memory. Addresses are those of the file, before the load
/// bias.
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    offset: u64,
    bytes: u64,
    code: bool,
}

/// A library or program with its unwind information.
#[derive(Debug)]
pub struct CodeFile {
    file: File,
    segments: Vec<Segment>,
    /// The search table: address of its header, entries in it.
    table: Option<(u64, u64)>,
}

impl CodeFile {
    /// Looks at a file. `None` when it is no ELF file for x86-64.
    pub fn new(file: File) -> Option<CodeFile> {
        let mut header = [0; size_of::<FileHeader64<LittleEndian>>()];
        file.read_exact_at(&mut header, 0).ok()?;
        let (header, _) = from_bytes::<FileHeader64<LittleEndian>>(&header).ok()?;
        let endian = LittleEndian;
        if header.e_ident.magic != ELFMAG || header.e_machine.get(endian) != EM_X86_64 {
            return None;
        }
        let count = usize::from(header.e_phnum.get(endian)).min(MAX_SEGMENTS);
        let mut bytes = vec![0; count * size_of::<ProgramHeader64<LittleEndian>>()];
        file.read_exact_at(&mut bytes, header.e_phoff.get(endian))
            .ok()?;
        let headers = slice_from_all_bytes::<ProgramHeader64<LittleEndian>>(&bytes).ok()?;
        let segments = headers
            .iter()
            .filter(|header| header.p_type.get(endian) == PT_LOAD)
            .map(|header| Segment {
                address: header.p_vaddr.get(endian),
                offset: header.p_offset.get(endian),
                bytes: header.p_filesz.get(endian),
                code: header.p_flags.get(endian) & PF_X != 0,
            })
            .collect();
        let table = headers
            .iter()
            .find(|header| header.p_type.get(endian) == PT_GNU_EH_FRAME)
            .map(|header| header.p_vaddr.get(endian));
        let mut file = CodeFile {
            file,
            segments,
            table: None,
        };
        file.table = table.and_then(|address| {
            let head = file.bytes::<4>(address)?;
            let count = u32::from_le_bytes(file.bytes(address.checked_add(8)?)?);
            (head == TABLE_HEADER).then_some((address, count.into()))
        });
        Some(file)
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The address of what lies at an offset of the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let holds = |segment: &&Segment| {
            offset
                .checked_sub(segment.offset)
                .is_some_and(|into| into < segment.bytes)
        };
        // Segments may share a page of the file; what runs is code.
        let segments = || self.segments.iter();
        let segment = segments()
            .filter(|segment| segment.code)
            .find(holds)
            .or_else(|| segments().find(holds))?;
        Some((offset - segment.offset).wrapping_add(segment.address))
    }

    /// How the function at `address` finds its caller; [`Rule::END`] where that is not known.
    pub fn rule(&self, address: u64) -> Rule {
        self.find(address).unwrap_or(Rule::END)
    }

    fn find(&self, address: u64) -> Option<Rule> {
        let entry_at = self.entry_of(address)?;
        let entry = self.record(entry_at, MAX_FDE)?;
        // Where the common part lies is told by its distance from the field that tells it.
        let distance = u32::from_le_bytes(*entry.get(4..)?.first_chunk()?);
        let common_at = entry_at.checked_add(4)?.checked_sub(distance.into())?;
        let mut section = self.record(common_at, MAX_CIE)?;
        let offset = section.len();
        section.extend(&entry);
        let new_distance = u32::try_from(offset + 4).ok()?;
        section
            .get_mut(offset + 4..offset + 8)?
            .copy_from_slice(&new_distance.to_le_bytes());
        // Both together are a section whose second entry lies where it did, which is what its
        // addresses are relative to.
        let base = entry_at.wrapping_sub(offset as u64);
        let mut frames = EhFrame::new(&section, Little);
        frames.set_address_size(8);
        let bases = BaseAddresses::default().set_eh_frame(base);
        let entry = frames
            .fde_from_offset(&bases, EhFrameOffset(offset), EhFrame::cie_from_offset)
            .ok()?;
        rule_of(&entry, &frames, &bases, address)
    }

    /// Where the entry of the last function at or before `address` lies.
    fn entry_of(&self, address: u64) -> Option<u64> {
        let (header, count) = self.table?;
        let relative = |value: i32| header.wrapping_add_signed(value.into());
        let entry = |index: u64| -> Option<(u64, u64)> {
            let bytes = self.bytes::<8>(header.checked_add(12)?.checked_add(8 * index)?)?;
            let [a, b, c, d, e, f, g, h] = bytes;
            Some((
                relative(i32::from_le_bytes([a, b, c, d])),
                relative(i32::from_le_bytes([e, f, g, h])),
            ))
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if entry(middle)?.0 <= address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(entry(low.checked_sub(1)?)?.1)
    }

    /// An entry of `.eh_frame`: its length and what follows.
    fn record(&self, address: u64, most: usize) -> Option<Vec<u8>> {
        let length = u32::from_le_bytes(self.bytes(address)?) as usize;
        // 0 ends the section; all ones announce a longer length, which no x86-64 compiler writes.
        if !(4..=most).contains(&length) {
            return None;
        }
        let mut record = vec![0; 4 + length];
        self.read(address, &mut record)?;
        Some(record)
    }

    fn bytes<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes)?;
        Some(bytes)
    }

    /// Reads what is loaded at an address.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        let offset = self.segments.iter().find_map(|segment| {
            let into = address.checked_sub(segment.address)?;
            (into < segment.bytes).then(|| segment.offset.checked_add(into))?
        })?;
        self.file.read_exact_at(bytes, offset).ok()
    }
}

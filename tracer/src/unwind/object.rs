//! Unwind rules out of a library's file.
//!
//! Read in place, a few bytes at a time: the tables of PyTorch's libraries take a hundred megabytes,
//! and a mapping of a file that somebody then cuts would end us. Nothing in the file is believed:
//! what points out of it, is too large or not of the kind that linkers write has no rule.

use std::{
    fs::File,
    os::unix::fs::{FileExt as _, MetadataExt as _},
};

use object::{
    LittleEndian,
    elf::{
        ELFMAG, EM_X86_64, FileHeader64, PF_X, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE, ProgramHeader64,
    },
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
/// Notes that are looked through for the build id; linkers put it first or second.
const MAX_NOTES: usize = 1 << 12;

/// The header of the search table, as every linker for x86-64 writes it: version 1, the frames'
/// address as `DW_EH_PE_pcrel | sdata4`, the count as `udata4`, entries as `datarel | sdata4`
/// (Linux Standard Base, 10.6.2).
const TABLE_HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// What tells a file from another one that comes in its place, and from what it was before it was
/// written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Identity {
    /// Of a file as it is now.
    pub fn of(file: &File) -> Option<Identity> {
        let data = file.metadata().ok()?;
        Some(Identity {
            device: data.dev(),
            inode: data.ino(),
            bytes: data.size(),
            // Not when its names or its rights changed: it stays itself when it is deleted.
            changed: (data.mtime(), data.mtime_nsec()),
        })
    }
}

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
    /// What tells it from other builds (`NT_GNU_BUILD_ID`); empty where it has none.
    build_id: Vec<u8>,
    /// As it was when it was opened.
    identity: Option<Identity>,
}

impl CodeFile {
    /// Looks at a file. `None` when it is no ELF file for x86-64.
    pub fn new(file: File) -> Option<CodeFile> {
        let identity = Identity::of(&file);
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
            build_id: Vec::new(),
            identity,
        };
        file.build_id = headers
            .iter()
            .filter(|header| header.p_type.get(endian) == PT_NOTE)
            .find_map(|header| {
                let bytes = header.p_filesz.get(endian).min(MAX_NOTES as u64);
                let mut notes = vec![0; bytes as usize];
                let at = header.p_offset.get(endian);
                file.file.read_exact_at(&mut notes, at).ok()?;
                build_id(&notes)
            })
            .unwrap_or_default();
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

    /// What it was when it was opened; `None` once it has been written to.
    pub fn identity(&self) -> Option<Identity> {
        self.identity
            .filter(|identity| Identity::of(&self.file) == Some(*identity))
    }

    /// What tells it from other builds; empty where it has none.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
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

/// The build id among notes: three words (the lengths of name and text, the kind), then both, each
/// filled up to four bytes (System V ABI, "Note Section").
fn build_id(notes: &[u8]) -> Option<Vec<u8>> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let mut rest = notes;
    loop {
        let (head, behind) = rest.split_at_checked(12)?;
        let word = |at: usize| {
            let bytes = head.get(at..)?.first_chunk()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let (name, text) = (word(0)? as usize, word(4)? as usize);
        let (name_bytes, behind) = behind.split_at_checked(name.checked_next_multiple_of(4)?)?;
        if word(8)? == NT_GNU_BUILD_ID && name_bytes == b"GNU\0" {
            return behind.get(..text).map(<[u8]>::to_vec);
        }
        rest = behind.get(text.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crossbeam_channel::unbounded;
    use vramscope_events::{Event, FrameId, Pid};
    use vramscope_unwind::Cfa;

    use super::*;
    use crate::unwind::{
        code::module_of,
        names::{Nameless, name_frames},
    };

    fn bytes() -> Vec<u8> {
        // Small, and with everything in it: what this test was linked with.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let library = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .find(|path| path.contains("libgcc_s"))
            .expect("Rust programs unwind with libgcc_s");
        std::fs::read(library).unwrap()
    }

    fn open(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// Addresses of code, some of them in the middle of instructions.
    fn addresses(file: &CodeFile) -> impl Iterator<Item = u64> {
        let code = file.segments.iter().find(|segment| segment.code);
        let (start, bytes) = code.map_or((0, 0), |code| (code.address, code.bytes));
        (0..200).map(move |index| start.wrapping_add(index * (bytes / 200)))
    }

    #[test]
    fn a_library_has_rules_for_its_code() {
        let file = CodeFile::new(open(&bytes())).unwrap();
        let rules: Vec<Rule> = addresses(&file).map(|address| file.rule(address)).collect();
        let known = rules.iter().filter(|rule| rule.cfa != Cfa::End).count();
        assert!(known > 150, "{known} of {}", rules.len());
        assert!(rules.iter().any(|rule| rule.bp_at.is_some()));
        assert_eq!(file.rule(u64::MAX), Rule::END);
    }

    #[test]
    fn other_files_are_refused() {
        for bytes in [&b""[..], b"#!/bin/sh\n", &[0x7f; 64], &bytes()[..40]] {
            assert!(CodeFile::new(open(bytes)).is_none());
        }
        let mut cut = bytes();
        cut.truncate(4096);
        // Its code and its tables are gone; its head is there.
        let file = CodeFile::new(open(&cut)).unwrap();
        assert!(addresses(&file).all(|address| file.rule(address) == Rule::END));
    }

    /// Bits flipped where they matter most, numbers that are too large, files that end early: rules
    /// and names come, or do not come, and nothing else happens.
    #[test]
    fn damaged_files_do_no_harm() {
        // xorshift64 (Marsaglia, 2003).
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let runs = std::env::var("VRAMSCOPE_FUZZ_RUNS").map_or(300, |runs| runs.parse().unwrap());
        let whole = bytes();
        let sound = CodeFile::new(open(&whole)).unwrap();
        let tables: Vec<(usize, usize)> = (sound.segments.iter())
            .filter(|segment| !segment.code)
            .map(|segment| (segment.offset as usize, segment.bytes as usize))
            .chain([(0, 1024), (whole.len() - 4096, 4096)])
            .filter(|(start, bytes)| *bytes > 8 && start + bytes <= whole.len())
            .collect();
        let (records, named) = unbounded();
        let (mut asked, mut refused, mut ends) = (0_u64, 0_u64, 0_u64);
        for _ in 0..runs {
            let mut bytes = whole.clone();
            for _ in 0..1 + random() % 40 {
                let (start, length) = tables[random() as usize % tables.len()];
                let at = start + random() as usize % (length - 8);
                match random() % 3 {
                    0 => bytes[at] ^= 1 << (random() % 8),
                    1 => bytes[at..at + 4].fill(0xff),
                    _ => bytes[at..at + 8].copy_from_slice(&random().to_le_bytes()),
                }
            }
            if random() % 8 == 0 {
                bytes.truncate(random() as usize % bytes.len());
            }
            let Some(file) = CodeFile::new(open(&bytes)) else {
                refused += 1;
                continue;
            };
            let of_sound: Vec<u64> = addresses(&sound).collect();
            for address in addresses(&file).chain(of_sound) {
                ends += u64::from(file.rule(address) == Rule::END);
            }
            let module = module_of(file);
            let (names, nameless) = unbounded();
            for _ in 0..8 {
                asked += 1;
                let one = Nameless {
                    id: FrameId(asked as u32),
                    process: Pid(1),
                    module: module.clone(),
                    offset: random() % (2 * whole.len() as u64),
                };
                names.send(one).unwrap();
            }
            drop(names);
            name_frames(&nameless, &records);
        }
        drop(records);
        let all = named.iter().flatten();
        let count = all
            .filter(|record| matches!(&record.event, Event::Frame { frame, .. } if !frame.function.is_empty()))
            .count();
        assert_eq!(count as u64, asked);
        assert!(
            asked > 0 && refused > 0 && ends > 0,
            "{asked} {refused} {ends}"
        );
        println!(
            "{runs} files, {refused} refused, {ends} rules missing, {asked} functions asked for"
        );
    }
}

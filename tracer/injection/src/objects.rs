//! The libraries of this process, and the pointers in them that refer to other libraries' symbols.

use core::{
    ffi::{CStr, c_char, c_int, c_void},
    slice,
};

use libc::{Elf64_Phdr, Elf64_Rela, Elf64_Sym, dl_phdr_info, size_t};

/// A library that is loaded. Only while [`each`] calls back: after it, it may be gone.
pub struct Object<'a> {
    /// What is added to its addresses.
    pub base: usize,
    /// The path it was loaded by, empty for the program itself.
    pub path: &'a CStr,
    headers: &'a [Elf64_Phdr],
}

/// A pointer in an object that the dynamic linker fills with a symbol's address.
pub struct Reference<'a> {
    /// The symbol.
    pub name: &'a CStr,
    /// Where the pointer lies.
    pub slot: usize,
}

// ELF for x86-64 (System V ABI, AMD64 supplement, 4.4) and the generic ABI's dynamic section.
const PT_DYNAMIC: u32 = 2;
const PT_LOAD: u32 = 1;
const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_STRSZ: i64 = 10;
const DT_JMPREL: i64 = 23;
const R_X86_64_64: u64 = 1;
const R_X86_64_GLOB_DAT: u64 = 6;
const R_X86_64_JUMP_SLOT: u64 = 7;

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// Calls `work` with every loaded object, under the dynamic linker's lock: none can go meanwhile.
/// A panic of `work` ends the walk.
pub fn each(work: &mut dyn FnMut(&Object<'_>)) {
    struct Context<'a>(&'a mut dyn FnMut(&Object<'_>));

    unsafe extern "C" fn visit(info: *mut dl_phdr_info, _: size_t, data: *mut c_void) -> c_int {
        let call = || {
            // SAFETY: dl_iterate_phdr gives a valid description of an object that is loaded.
            let info = unsafe { &*info };
            // SAFETY: `data` is the Context below, which outlives the walk.
            let context = unsafe { &mut *data.cast::<Context<'_>>() };
            if info.dlpi_phdr.is_null() {
                return;
            }
            // SAFETY: the table has that many entries.
            let headers =
                unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
            let path = if info.dlpi_name.is_null() {
                c""
            } else {
                // SAFETY: a C string of the dynamic linker's.
                unsafe { CStr::from_ptr(info.dlpi_name) }
            };
            (context.0)(&Object {
                base: info.dlpi_addr as usize,
                path,
                headers,
            });
        };
        // Nothing may unwind into the C library.
        c_int::from(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err())
    }

    let mut context = Context(work);
    // SAFETY: `visit` has the type that is asked for, the context outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut context).cast()) };
}

impl Object<'_> {
    /// The name of its file.
    pub fn file_name(&self) -> &[u8] {
        let path = self.path.to_bytes();
        path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
    }

    /// Whether `address` lies in it.
    pub fn contains(&self, address: usize) -> bool {
        self.loads().any(|range| range.contains(&address))
    }

    fn loads(&self) -> impl Iterator<Item = core::ops::Range<usize>> {
        let loads = self
            .headers
            .iter()
            .filter(|header| header.p_type == PT_LOAD);
        loads.map(|header| {
            let start = self.base.wrapping_add(header.p_vaddr as usize);
            start..start.wrapping_add(header.p_memsz as usize)
        })
    }

    /// Calls `work` with every pointer that is filled with the address of a symbol, itself and not
    /// a place in it.
    pub fn references(&self, work: &mut dyn FnMut(Reference<'_>)) {
        let Some(dynamic) = self.headers.iter().find(|h| h.p_type == PT_DYNAMIC) else {
            return;
        };
        let (mut strings, mut string_bytes, mut symbols) = (0, 0, 0);
        let (mut plt, mut plt_bytes, mut rela, mut rela_bytes) = (0, 0, 0, 0);
        let mut at = self.base.wrapping_add(dynamic.p_vaddr as usize) as *const Dynamic;
        loop {
            // SAFETY: the dynamic section of a loaded object is mapped and ends with DT_NULL.
            let entry = unsafe { &*at };
            let value = entry.value as usize;
            match entry.tag {
                DT_NULL => break,
                DT_STRTAB => strings = self.absolute(value),
                DT_STRSZ => string_bytes = value,
                DT_SYMTAB => symbols = self.absolute(value),
                DT_JMPREL => plt = self.absolute(value),
                DT_PLTRELSZ => plt_bytes = value,
                DT_RELA => rela = self.absolute(value),
                DT_RELASZ => rela_bytes = value,
                _ => {}
            }
            // SAFETY: not at its end yet.
            at = unsafe { at.add(1) };
        }
        if strings == 0 || symbols == 0 {
            return;
        }
        for (table, bytes) in [(plt, plt_bytes), (rela, rela_bytes)] {
            if table == 0 {
                continue;
            }
            // SAFETY: the relocation table of a loaded object is mapped, as long as it says.
            let entries = unsafe {
                slice::from_raw_parts(table as *const Elf64_Rela, bytes / size_of::<Elf64_Rela>())
            };
            for entry in entries {
                let symbol = (entry.r_info >> 32) as usize;
                let kind = entry.r_info & 0xffff_ffff;
                let whole = entry.r_addend == 0;
                let pointer = matches!(kind, R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT)
                    || (kind == R_X86_64_64 && whole);
                if symbol == 0 || !pointer {
                    continue;
                }
                // SAFETY: a relocation's symbol is in the symbol table, its name in the strings.
                let name = unsafe { (*(symbols as *const Elf64_Sym).add(symbol)).st_name } as usize;
                if name >= string_bytes {
                    continue;
                }
                // SAFETY: as above; the string table ends with a zero byte.
                let name = unsafe { CStr::from_ptr((strings + name) as *const c_char) };
                work(Reference {
                    name,
                    slot: self.base.wrapping_add(entry.r_offset as usize),
                });
            }
        }
    }

    /// glibc turns the addresses of the dynamic section into absolute ones, but not in all objects
    /// (the vDSO's lies in read-only memory).
    fn absolute(&self, value: usize) -> usize {
        if value < self.base {
            self.base.wrapping_add(value)
        } else {
            value
        }
    }
}

//! Finding the interpreter in a process.

use std::path::PathBuf;

use crate::debug_offsets::{self, DebugOffsets};
use crate::elf::{Elf, SymbolTables};
use crate::error::{FindError, ReadError};
use crate::maps::Mapping;
use crate::offsets::Offsets;
use crate::process::{Address, Process};
use crate::python_version::{Version, version_in_data, version_in_name};
use crate::tables::{self, Layout};

/// An interpreter that runs in a process.
#[derive(Clone, Debug)]
pub struct Python {
    /// Its exact version.
    pub version: Version,
    /// The file that it comes from, as the process sees it: libpython, the
    /// `python3` program or whatever program has Python built in.
    pub path: PathBuf,
    /// The same file, as this process can open it (through `/proc/PID`).
    pub object: PathBuf,
    /// What to add to an address of the file to have it in the process.
    pub load_bias: u64,
    /// `_PyRuntime`.
    pub runtime: Address,
    /// Its layout.
    pub offsets: Offsets,
    /// Where the layout comes from.
    pub offsets_source: OffsetsSource,
    /// Walks with this layout have been compared with Python's own tracebacks.
    pub tested: bool,
    /// The pthread key under which each thread keeps its `PyThreadState`.
    /// None where the layout does not tell it, or it is not in use.
    pub tss_key: Option<u32>,
    /// Where code objects are freed.
    pub code_dealloc: CodeDealloc,
}

/// Where the numbers of [`Python::offsets`] come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OffsetsSource {
    /// The table of this version.
    Table,
    /// The process's own `_Py_DebugOffsets` (3.13+).
    Process {
        /// Where it disagrees with the table and was followed:
        /// (field, table's number, its own number).
        differences: Vec<(&'static str, Option<u32>, Option<u32>)>,
    },
}

/// The function that CPython calls with a code object that is to be freed:
/// after it, the same address may hold another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeDealloc {
    /// In the process's memory.
    pub address: Address,
    /// The file that holds it, as this process can open it.
    pub object: PathBuf,
    /// Offset of its first instruction in that file, as a uprobe takes it.
    pub file_offset: u64,
}

const RUNTIME: &str = "_PyRuntime";
const CODE_TYPE: &str = "PyCode_Type";
const VERSION: &str = "Py_Version";
/// Exported by builds with `Py_REF_DEBUG`, which `Py_DEBUG` implies, alone.
const DEBUG_BUILD: &str = "_Py_NegativeRefcount";

const SYMBOLS: [&str; 4] = [RUNTIME, CODE_TYPE, VERSION, DEBUG_BUILD];

/// Finds the interpreter that runs in a process.
///
/// Looked at are the files with executable mappings, those with Python's usual
/// names first; any that defines `_PyRuntime` is an interpreter. Where there
/// are several, the one that has been started is taken.
///
/// # Errors
/// [`FindError`] says why there is none, and what to do.
pub fn find(process: &Process) -> Result<Python, FindError> {
    let modules = modules(&process.mappings()?);
    let files = modules.len();
    let mut fallback: Option<FindError> = None;
    for module in modules {
        match module.interpreter(process) {
            Ok(Some(python)) => return Ok(python),
            Ok(None) => {}
            Err(FindError::Read(error @ (ReadError::Gone { .. } | ReadError::Denied { .. }))) => {
                return Err(error.into());
            }
            Err(error) => {
                fallback.get_or_insert(error);
            }
        }
    }
    Err(fallback.unwrap_or_else(|| FindError::NotPython {
        pid: process.pid(),
        executable: process.executable(),
        files,
    }))
}

/// A file with an executable mapping.
struct Module {
    mapping: Mapping,
    path: PathBuf,
    named_version: Option<(u8, u8, String)>,
}

/// Every mapped file once: libpython first, then programs called python, then
/// the others in the order of their addresses.
fn modules(mappings: &[Mapping]) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    for mapping in mappings {
        let Some(path) = &mapping.path else { continue };
        let is_known = modules
            .iter()
            .any(|module| module.path == *path && module.mapping.inode == mapping.inode);
        if !mapping.permissions.execute || is_known {
            continue;
        }
        let named_version = mapping.file_name().and_then(version_in_name);
        modules.push(Module {
            mapping: mapping.clone(),
            path: path.clone(),
            named_version: named_version.map(|(major, minor, abi)| (major, minor, abi.to_owned())),
        });
    }
    modules.sort_by_key(|module| {
        let name = module.mapping.file_name().unwrap_or_default();
        match () {
            () if name.starts_with("libpython") => 0,
            () if name.starts_with("python") => 1,
            () => 2,
        }
    });
    modules
}

/// A function in whichever file it lies.
fn elsewhere(process: &Process, address: Address) -> Result<Option<CodeDealloc>, ReadError> {
    let mappings = process.mappings()?;
    let mapping = mappings.iter().find(|mapping| {
        mapping.permissions.execute && (mapping.start..mapping.end).contains(&address.0)
    });
    Ok(mapping.and_then(|mapping| {
        Some(CodeDealloc {
            address,
            object: process.openable(mapping)?,
            file_offset: address.0 - mapping.start + mapping.offset,
        })
    }))
}

impl Module {
    /// The interpreter of this file; None when the file is something else.
    fn interpreter(&self, process: &Process) -> Result<Option<Python>, FindError> {
        let pid = process.pid();
        let path = || self.path.clone();
        let file_error = |detail| FindError::File {
            pid,
            path: path(),
            detail,
        };
        let Some(object) = process.openable(&self.mapping) else {
            return self.only_if_named_python(file_error("it is there no more".to_owned()));
        };
        let tables = if self.is_named_python() || process.runs(&self.path) {
            SymbolTables::All
        } else {
            SymbolTables::Dynamic
        };
        let elf = match Elf::read(&object, &SYMBOLS, tables) {
            Ok(Some(elf)) => elf,
            Ok(None) => return Ok(None),
            Err(detail) => return self.only_if_named_python(file_error(detail)),
        };
        let missing = |missing| FindError::NoSymbols {
            pid,
            path: path(),
            missing,
        };
        let Some(runtime) = elf.symbol(RUNTIME) else {
            self.refuse_old_names(pid)?;
            return self.only_if_named_python(missing(RUNTIME));
        };
        let Some(bias) = elf.load_bias(self.mapping.start, self.mapping.offset) else {
            return Err(file_error(
                "its mapping fits none of its segments".to_owned(),
            ));
        };
        let runtime = Address(runtime.wrapping_add(bias));
        let Some(version) = self.version(process, &elf, bias)? else {
            return Err(self.without_version(process, runtime)?);
        };
        if elf.symbol(DEBUG_BUILD).is_some() {
            return Err(self.unsupported(pid, version, "a debug build"));
        }
        let (layout, offsets_source) = self.layout(process, version, runtime)?;
        let offsets = layout.offsets;
        if !is_started(process, runtime, &offsets)? {
            return Err(FindError::NotInitialised {
                pid,
                version: version.to_string(),
                path: path(),
            });
        }
        let code_type = elf.symbol(CODE_TYPE).ok_or_else(|| missing(CODE_TYPE))?;
        let code_type = Address(code_type.wrapping_add(bias));
        let dealloc = process.read_pointer(code_type.field(offsets.type_dealloc))?;
        let code_dealloc = match elf.file_offset(dealloc.0.wrapping_sub(bias)) {
            Some(file_offset) => CodeDealloc {
                address: dealloc,
                object: object.clone(),
                file_offset,
            },
            // A tool in the process stands before it: every call passes there as well.
            None => elsewhere(process, dealloc)?.ok_or_else(|| {
                file_error(format!(
                    "tp_dealloc {dealloc} lies neither in it nor in another file"
                ))
            })?,
        };
        Ok(Some(Python {
            version,
            path: path(),
            object,
            load_bias: bias,
            runtime,
            tss_key: tss_key(process, runtime, &offsets)?,
            offsets,
            offsets_source,
            tested: layout.tested,
            code_dealloc,
        }))
    }

    /// 3.11 and later export their version as a number. Before, it is in the
    /// text that the interpreter made at start for `sys.version`.
    fn version(
        &self,
        process: &Process,
        elf: &Elf,
        bias: u64,
    ) -> Result<Option<Version>, ReadError> {
        if let Some(address) = elf.symbol(VERSION) {
            let hex = process.read_u32(Address(address.wrapping_add(bias)))?;
            return Ok(Some(Version::from_hex(hex)));
        }
        for segment in elf.segments.iter().filter(|segment| segment.writable) {
            const LIMIT: u64 = 64 << 20;
            let mut data = vec![0; segment.memory_size.min(LIMIT) as usize];
            let start = Address(segment.address.wrapping_add(bias));
            let got = process.read_some(start, &mut data)?;
            if let Some(version) = version_in_data(&data[..got]) {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    /// No text for `sys.version` has been made: most likely because nothing
    /// has been started. The file's name tells which layout to look with.
    fn without_version(&self, process: &Process, runtime: Address) -> Result<FindError, ReadError> {
        let pid = process.pid();
        let path = self.path.clone();
        if let Some((major, minor, _)) = &self.named_version
            && let Some(layout) = tables::layout(Version::new(*major, *minor, 0))
            && !is_started(process, runtime, &layout.offsets)?
        {
            let version = format!("{major}.{minor}");
            return Ok(FindError::NotInitialised { pid, version, path });
        }
        Ok(FindError::UnknownVersion { pid, path })
    }

    fn layout(
        &self,
        process: &Process,
        version: Version,
        runtime: Address,
    ) -> Result<(Layout, OffsetsSource), FindError> {
        let abi = self.named_version.as_ref().map_or("", |name| &name.2);
        if abi.contains('t') {
            return Err(self.unsupported(process.pid(), version, "a free-threaded build"));
        }
        let Some(mut layout) = tables::layout(version) else {
            let why = if version < Version::new(3, 8, 0) {
                "too old"
            } else {
                "newer than this program"
            };
            return Err(self.unsupported(process.pid(), version, why));
        };
        if version < Version::new(3, 13, 0) {
            return Ok((layout, OffsetsSource::Table));
        }
        let bytes = process.read_vec(runtime, debug_offsets::size())?;
        match DebugOffsets::parse(version, &bytes) {
            Ok(own) if own.free_threaded => {
                Err(self.unsupported(process.pid(), version, "a free-threaded build"))
            }
            Ok(own) => {
                let offsets = own.apply(&layout.offsets);
                let differences = debug_offsets::differences(&layout.offsets, &offsets);
                layout.offsets = offsets;
                Ok((layout, OffsetsSource::Process { differences }))
            }
            Err(detail) if layout.needs_debug_offsets => Err(FindError::StrangeLayout {
                pid: process.pid(),
                version,
                path: self.path.clone(),
                detail,
            }),
            Err(_) => Ok((layout, OffsetsSource::Table)),
        }
    }

    fn unsupported(&self, pid: u32, version: Version, why: &'static str) -> FindError {
        FindError::Unsupported {
            pid,
            version: version.to_string(),
            why,
            path: self.path.clone(),
        }
    }

    /// Interpreters before 3.7 have no `_PyRuntime` at all.
    fn refuse_old_names(&self, pid: u32) -> Result<(), FindError> {
        match &self.named_version {
            Some((major, minor, _)) if (*major, *minor) < (3, 7) => Err(FindError::Unsupported {
                pid,
                version: format!("{major}.{minor}"),
                why: "too old",
                path: self.path.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn is_named_python(&self) -> bool {
        let name = self.mapping.file_name().unwrap_or_default();
        name.starts_with("python") || name.starts_with("libpython")
    }

    /// A file that is no interpreter is an error only if it should be one. (A
    /// `python3` program that is a front for libpython should not; but
    /// libpython is looked at before it, and the first error is the one told.)
    fn only_if_named_python(&self, error: FindError) -> Result<Option<Python>, FindError> {
        if self.is_named_python() {
            Err(error)
        } else {
            Ok(None)
        }
    }
}

/// Whether there is an interpreter in the runtime's list.
fn is_started(process: &Process, runtime: Address, offsets: &Offsets) -> Result<bool, ReadError> {
    let newest = process.read_pointer(runtime.field(offsets.runtime_interpreters))?;
    Ok(!newest.is_null())
}

/// The pthread key of the thread state, if the runtime says that it is made.
fn tss_key(
    process: &Process,
    runtime: Address,
    offsets: &Offsets,
) -> Result<Option<u32>, ReadError> {
    // PTHREAD_KEYS_MAX of glibc and musl is 1024 and 128.
    const KEYS: u32 = 1024;
    let Some(key_at) = offsets.runtime_tss_key else {
        return Ok(None);
    };
    let key = process.read_u32(runtime.field(key_at))?;
    let is_initialised = process.read_u32(runtime.field(key_at.wrapping_sub(4)))?;
    Ok((is_initialised == 1 && key < KEYS).then_some(key))
}

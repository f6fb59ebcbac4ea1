//! Machine-code frames: from addresses in a process to functions of its libraries.
//!
//! Symbol tables of half a gigabyte take seconds to read, and a ring does not wait: a frame gets its
//! number at once and its name from a thread of its own, later in the same stream.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use blazesym::symbolize::{
    Input, Symbolized, Symbolizer,
    source::{Elf, Source},
};
use crossbeam_channel::{Receiver, Sender};
use rustc_hash::FxHashMap;
use vramscope_events::{Event, Frame, FrameId, FrameKind, Pid, Record, Tid};
use vramscope_python::{Mapping, Process, Python};

use crate::session::now;

/// Names looked up in one go.
const BATCH: usize = 256;

/// A frame that has no name yet.
#[derive(Debug)]
pub struct Nameless {
    id: FrameId,
    process: Pid,
    /// The library as the process sees it, and where we can open it.
    module: Arc<Module>,
    offset: u64,
}

/// A file with code in it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Module {
    path: PathBuf,
    openable: Option<PathBuf>,
}

/// The code of one process.
#[derive(Debug, Default)]
pub struct CodeMap {
    /// Executable mappings, by address.
    mappings: Vec<(Mapping, Arc<Module>)>,
    frames: FxHashMap<u64, FrameId>,
    interpreter: Option<PathBuf>,
}

/// What an address stands for in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Ours, or of the library that calls us: not the program's doing.
    Observer,
    /// The Python interpreter's.
    Interpreter,
    /// The program's.
    Program,
}

impl CodeMap {
    /// The frames of a stack that say what Python's frames do not: what stands before the
    /// interpreter, innermost first; all of them where there are no Python frames. `next` gives
    /// numbers to new frames, which are then told to `names`.
    pub fn frames(
        &mut self,
        process: &Process,
        python: Option<&Python>,
        addresses: impl Iterator<Item = u64>,
        below_python: bool,
        next: &mut impl FnMut() -> FrameId,
        names: &Sender<Nameless>,
    ) -> Vec<FrameId> {
        let mut frames = Vec::new();
        let mut begun = false;
        for address in addresses {
            // A return address is behind its call.
            let call = address.wrapping_sub(1);
            let role = self.role(process, python, call);
            if role == Role::Observer && !begun {
                continue;
            }
            begun = true;
            if role == Role::Interpreter && below_python {
                break;
            }
            frames.push(self.frame(process, call, next, names));
        }
        frames
    }

    fn frame(
        &mut self,
        process: &Process,
        address: u64,
        next: &mut impl FnMut() -> FrameId,
        names: &Sender<Nameless>,
    ) -> FrameId {
        if let Some(id) = self.frames.get(&address) {
            return *id;
        }
        let id = next();
        let (module, offset) = match self.find(process, address) {
            Some((mapping, module)) => {
                (Arc::clone(module), address - mapping.start + mapping.offset)
            }
            None => (
                Arc::new(Module {
                    path: PathBuf::from("[unknown]"),
                    openable: None,
                }),
                address,
            ),
        };
        // Without the other thread the frame stays unnamed, which is what it shows as.
        let _ = names.send(Nameless {
            id,
            process: Pid(process.pid()),
            module,
            offset,
        });
        self.frames.insert(address, id);
        id
    }

    fn role(&mut self, process: &Process, python: Option<&Python>, address: u64) -> Role {
        if self.interpreter.is_none() {
            self.interpreter = python.map(|python| python.path.clone());
        }
        let interpreter = self.interpreter.clone();
        let Some((mapping, module)) = self.find(process, address) else {
            return Role::Program;
        };
        let name = mapping.file_name().unwrap_or_default();
        if name.starts_with("libvramscope_") || name.starts_with("libcupti.so") {
            Role::Observer
        } else if Some(&module.path) == interpreter.as_ref() {
            Role::Interpreter
        } else {
            Role::Program
        }
    }

    fn find(&mut self, process: &Process, address: u64) -> Option<&(Mapping, Arc<Module>)> {
        if self.index(address).is_none() {
            // A library that came since. One that does not exist is asked for once a new address.
            self.read(process);
        }
        self.index(address).map(|index| &self.mappings[index])
    }

    fn index(&self, address: u64) -> Option<usize> {
        let behind = self
            .mappings
            .partition_point(|(mapping, _)| mapping.start <= address);
        let index = behind.checked_sub(1)?;
        (address < self.mappings[index].0.end).then_some(index)
    }

    fn read(&mut self, process: &Process) {
        let mut modules: HashMap<PathBuf, Arc<Module>> = HashMap::new();
        // A process that is gone keeps the map that it had.
        let Ok(mappings) = process.mappings() else {
            return;
        };
        self.mappings = mappings
            .into_iter()
            .filter(|mapping| mapping.permissions.execute)
            .filter_map(|mapping| {
                let path = mapping.path.clone()?;
                let module = modules.entry(path.clone()).or_insert_with(|| {
                    Arc::new(Module {
                        openable: openable(process, &mapping, &path),
                        path,
                    })
                });
                let module = Arc::clone(module);
                Some((mapping, module))
            })
            .collect();
    }
}

/// Where a library's file can be read, also after the process has ended where that is possible.
fn openable(process: &Process, mapping: &Mapping, path: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let ours = std::fs::metadata(path).is_ok_and(|file| file.ino() == mapping.inode);
    if ours && !mapping.deleted {
        return Some(path.to_owned());
    }
    process.openable(mapping)
}

/// Names frames until nobody asks any more.
pub fn name_frames(nameless: &Receiver<Nameless>, records: &Sender<Vec<Record>>) {
    let symbolizer = Symbolizer::new();
    while let Ok(first) = nameless.recv() {
        let mut waiting = vec![first];
        waiting.extend(nameless.try_iter().take(BATCH - 1));
        let mut by_module: HashMap<Arc<Module>, Vec<Nameless>> = HashMap::new();
        for one in waiting {
            by_module
                .entry(Arc::clone(&one.module))
                .or_default()
                .push(one);
        }
        let named = by_module
            .iter()
            .flat_map(|(module, frames)| name_of_module(&symbolizer, module, frames))
            .collect();
        if records.send(named).is_err() {
            return;
        }
    }
}

fn name_of_module(symbolizer: &Symbolizer, module: &Module, frames: &[Nameless]) -> Vec<Record> {
    let offsets: Vec<u64> = frames.iter().map(|frame| frame.offset).collect();
    let symbols = module.openable.as_ref().and_then(|file| {
        let mut elf = Elf::new(file);
        elf.debug_syms = false;
        symbolizer
            .symbolize(&Source::Elf(elf), Input::FileOffset(&offsets))
            .ok()
    });
    let mut symbols = symbols.into_iter().flatten();
    frames
        .iter()
        .map(|frame| {
            let function = match symbols.next() {
                Some(Symbolized::Sym(symbol)) => symbol.name.into_owned(),
                _ => format!("{}+{:#x}", file_name(&module.path), frame.offset),
            };
            Record {
                time: now(),
                process: frame.process,
                thread: Tid(0),
                event: Event::Frame {
                    id: frame.id,
                    frame: Arc::new(Frame {
                        kind: FrameKind::Native,
                        file: module.path.to_string_lossy().into(),
                        function: function.into(),
                        line: 0,
                    }),
                },
            }
        })
        .collect()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

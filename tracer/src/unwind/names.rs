//! Names of machine-code frames.
//!
//! Symbol tables of half a gigabyte take seconds to read, and a ring does not wait: a frame gets its
//! number at once and its name from a thread of its own, later in the same stream.

use std::{
    collections::HashMap,
    fs::File,
    os::{fd::AsRawFd as _, unix::fs::OpenOptionsExt as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use blazesym::symbolize::{
    Input, Symbolized, Symbolizer,
    source::{Elf, Source},
};
use crossbeam_channel::{Receiver, Sender};
use vramscope_events::{Event, Frame, FrameId, FrameKind, Pid, Record, Tid};

use super::{code::Module, object::CodeFile};
use crate::session::now;

/// Names looked up in one go.
const BATCH: usize = 256;

/// A frame that has no name yet.
#[derive(Debug)]
pub struct Nameless {
    /// Its number.
    pub id: FrameId,
    /// In which process.
    pub process: Pid,
    /// The file that it is in.
    pub module: Arc<Module>,
    /// Where in the file, in bytes.
    pub offset: u64,
}

/// Names frames until nobody asks any more.
pub fn name_frames(nameless: &Receiver<Nameless>, records: &Sender<Vec<Record>>) {
    let mut symbolizer = Symbolizer::new();
    while let Ok(first) = nameless.recv() {
        let mut waiting = vec![first];
        waiting.extend(nameless.try_iter().take(BATCH - 1));
        let mut by_module: HashMap<*const Module, Vec<Nameless>> = HashMap::new();
        for one in waiting {
            by_module
                .entry(Arc::as_ptr(&one.module))
                .or_default()
                .push(one);
        }
        let named = by_module
            .values()
            .flat_map(|frames| name_of_module(&mut symbolizer, &frames[0].module, frames))
            .collect();
        if records.send(named).is_err() {
            return;
        }
    }
}

/// Looks functions up: in the file that holds what was stripped off, where there is one, then in the
/// file itself.
fn symbols(symbolizer: &mut Symbolizer, frames: &[Nameless]) -> Vec<Option<String>> {
    let module = &frames[0].module;
    let Some(object) = &module.object else {
        return Vec::new();
    };
    let addresses: Vec<Option<u64>> = (frames.iter())
        .map(|frame| object.address(frame.offset))
        .collect();
    let mut names = vec![None; addresses.len()];
    let stripped_off = stripped_off(object, frames[0].process);
    let files = [stripped_off.as_ref(), Some(object)];
    for file in files.into_iter().flatten() {
        let missing: Vec<(usize, u64)> = (names.iter().zip(&addresses))
            .enumerate()
            .filter(|(_, (name, _))| Option::is_none(name))
            .filter_map(|(index, (_, address))| Some((index, (*address)?)))
            .collect();
        let wanted: Vec<u64> = missing.iter().map(|(_, address)| *address).collect();
        let found = look_up(symbolizer, file.file(), &wanted);
        for ((index, _), name) in missing.iter().zip(found) {
            names[*index] = name;
        }
    }
    names
}

/// Looks addresses up in one file. It is foreign: should it make the parser panic, it has no symbols.
fn look_up(symbolizer: &mut Symbolizer, file: &File, addresses: &[u64]) -> Vec<Option<String>> {
    // The very file that is open, wherever its name leads by now.
    let mut elf = Elf::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    elf.debug_syms = false;
    let source = Source::Elf(elf);
    let found = catch_unwind(AssertUnwindSafe(|| {
        let found = symbolizer.symbolize(&source, Input::VirtOffset(addresses));
        let names = found.into_iter().flatten().map(|found| match found {
            Symbolized::Sym(symbol) => Some(symbol.name.into_owned()),
            Symbolized::Unknown(_) => None,
        });
        names
            .map(|name| name.filter(|name| !name.is_empty()))
            .collect()
    }));
    found.unwrap_or_else(|_| {
        *symbolizer = Symbolizer::new();
        Vec::new()
    })
}

/// The file with the symbols that were stripped off another one, where debug packages put it: by the
/// build id, which both have. In the process's own root first.
fn stripped_off(object: &CodeFile, process: Pid) -> Option<CodeFile> {
    let (first, rest) = object.build_id().split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("usr/lib/debug/.build-id/{first:02x}/{rest}.debug");
    let roots = [format!("/proc/{}/root", process.0), String::new()];
    roots.iter().find_map(|root| {
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open(format!("{root}/{path}")).ok()?;
        let file = file
            .metadata()
            .is_ok_and(|data| data.is_file())
            .then_some(file)?;
        CodeFile::new(file).filter(|file| file.build_id() == object.build_id())
    })
}

fn name_of_module(
    symbolizer: &mut Symbolizer,
    module: &Module,
    frames: &[Nameless],
) -> Vec<Record> {
    let mut symbols = symbols(symbolizer, frames).into_iter();
    frames
        .iter()
        .map(|frame| {
            let function = symbols
                .next()
                .flatten()
                .unwrap_or_else(|| format!("{}+{:#x}", file_name(&module.path), frame.offset));
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

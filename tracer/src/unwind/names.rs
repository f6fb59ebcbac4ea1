//! Names of machine-code frames.
//!
//! Symbol tables of half a gigabyte take seconds to read, and a ring does not wait: a frame gets its
//! number at once and its name from a thread of its own, later in the same stream.

use std::{
    collections::HashMap,
    os::fd::AsRawFd as _,
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

use super::code::Module;
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

/// Looks functions up; none where the file has no symbols. It is foreign: should it make the parser
/// panic, it has none either.
fn symbols(symbolizer: &mut Symbolizer, module: &Module, offsets: &[u64]) -> Vec<Option<String>> {
    let Some(object) = &module.object else {
        return Vec::new();
    };
    // The very file that was mapped, wherever its name leads by now.
    let mut elf = Elf::new(format!("/proc/self/fd/{}", object.file().as_raw_fd()));
    elf.debug_syms = false;
    let source = Source::Elf(elf);
    let found = catch_unwind(AssertUnwindSafe(|| {
        let found = symbolizer.symbolize(&source, Input::FileOffset(offsets));
        let names = found.into_iter().flatten().map(|found| match found {
            Symbolized::Sym(symbol) => Some(symbol.name.into_owned()),
            Symbolized::Unknown(_) => None,
        });
        names.collect()
    }));
    found.unwrap_or_else(|_| {
        *symbolizer = Symbolizer::new();
        Vec::new()
    })
}

fn name_of_module(
    symbolizer: &mut Symbolizer,
    module: &Module,
    frames: &[Nameless],
) -> Vec<Record> {
    let offsets: Vec<u64> = frames.iter().map(|frame| frame.offset).collect();
    let mut symbols = symbols(symbolizer, module, &offsets).into_iter();
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

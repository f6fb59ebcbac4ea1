//! Names of machine-code frames.
//!
//! Symbol tables of half a gigabyte take seconds to read, and a ring does not wait: a frame gets its
//! number at once and its name from a thread of its own, later in the same stream.

use std::{collections::HashMap, os::fd::AsRawFd as _, path::Path, sync::Arc};

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
    let symbolizer = Symbolizer::new();
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
            .flat_map(|frames| name_of_module(&symbolizer, &frames[0].module, frames))
            .collect();
        if records.send(named).is_err() {
            return;
        }
    }
}

fn name_of_module(symbolizer: &Symbolizer, module: &Module, frames: &[Nameless]) -> Vec<Record> {
    let offsets: Vec<u64> = frames.iter().map(|frame| frame.offset).collect();
    let symbols = module.object.as_ref().and_then(|object| {
        // The very file that was mapped, wherever its name leads by now.
        let mut elf = Elf::new(format!("/proc/self/fd/{}", object.file().as_raw_fd()));
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

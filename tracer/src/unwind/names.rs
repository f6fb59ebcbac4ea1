//! Names of machine-code frames.
//!
//! Symbol tables of half a gigabyte take seconds to read, and a ring does not wait: a frame gets its
//! number at once and its name from a thread of its own, later in the same stream.

use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use vramscope_events::{Event, Frame, FrameId, FrameKind, Pid, Record, Tid};

use super::{code::Module, separate::Separate, symbols::Symbols};
use crate::session::now;

/// Names looked up in one go.
const BATCH: usize = 256;
/// Names are asked for when a program does something for the first time, many at once. After so
/// long without a question the symbols are let go: those of PyTorch take 200 MB.
const QUIET: Duration = Duration::from_secs(60);

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

/// Where names come from.
#[derive(Default)]
struct Sources {
    symbols: Symbols,
    separate: Separate,
}

/// Names frames until nobody asks any more.
pub fn name_frames(nameless: &Receiver<Nameless>, records: &Sender<Vec<Record>>) {
    let mut sources = Sources::default();
    loop {
        let first = match nameless.recv_timeout(QUIET) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => {
                sources.symbols.forget();
                sources.separate.forget();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
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
            .flat_map(|frames| name_of_module(&mut sources, &frames[0].module, frames))
            .collect();
        if records.send(named).is_err() {
            return;
        }
    }
}

/// Looks functions up: in the file that holds what was stripped off, where there is one, then in the
/// file itself.
fn functions(sources: &mut Sources, frames: &[Nameless]) -> Vec<Option<String>> {
    let module = &frames[0].module;
    let Some(object) = &module.object else {
        return Vec::new();
    };
    let addresses: Vec<Option<u64>> = (frames.iter())
        .map(|frame| object.address(frame.offset))
        .collect();
    let mut names = vec![None; addresses.len()];
    // In the process's own root first.
    let roots = [
        format!("/proc/{}/root", frames[0].process.0).into(),
        "/".into(),
    ];
    let stripped_off = sources.separate.of(object, &module.path, &roots);
    let files = [stripped_off.as_deref(), Some(object)];
    for file in files.into_iter().flatten() {
        let missing: Vec<(usize, u64)> = (names.iter().zip(&addresses))
            .enumerate()
            .filter(|(_, (name, _))| Option::is_none(name))
            .filter_map(|(index, (_, address))| Some((index, (*address)?)))
            .collect();
        let wanted: Vec<u64> = missing.iter().map(|(_, address)| *address).collect();
        let found = sources.symbols.look_up(file, &wanted);
        for ((index, _), name) in missing.iter().zip(found) {
            names[*index] = name;
        }
    }
    names
}

fn name_of_module(sources: &mut Sources, module: &Module, frames: &[Nameless]) -> Vec<Record> {
    let mut functions = functions(sources, frames).into_iter();
    frames
        .iter()
        .map(|frame| {
            let function = functions
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

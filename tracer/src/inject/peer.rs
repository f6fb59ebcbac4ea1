//! One injected process: the greeting, its hooks, the parting.

use std::{
    collections::HashMap,
    io,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::{Sender, bounded};
use vramscope_events::{Pid, ProbeState, ProbeView, Record};
use vramscope_python::{FindError, Mapping, Process, Python};
use vramscope_wire as wire;
use vramscope_wire::{
    VS_PROTOCOL, VS_SYMBOL_BYTES, vs_hello, vs_hook_report, vs_hooked, vs_left,
    vs_message_VS_HELLO, vs_message_VS_HOOKED, vs_message_VS_LEAVE, vs_message_VS_LEFT,
    vs_message_VS_REPLACED, vs_message_VS_RESCAN, vs_message_VS_SETUP, vs_plain, vs_python,
    vs_setup,
};

use super::{
    clock,
    reader::{News, Peer},
    shared::Shared,
    socket::Connection,
};
use crate::{
    board::{Board, lock},
    native::Native,
    nvml::Watch,
    python::walk_configuration,
    target,
    unwind::{code::CodeMap, mapped},
};

/// How long an answer may take. A process that is stopped gives none.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often the process is looked at for libraries that came later.
const LOOK: Duration = Duration::from_millis(250);
/// How often the wish to end is looked at.
const TICK: Duration = Duration::from_millis(20);

/// What a user is told of a hook: the name, and what is missing without it. In the order of
/// `enum vs_hook`.
const HOOKS: [(&str, &str); 7] = [
    (
        "CPython code_dealloc",
        "a code object that takes a freed one's place may pass for it",
    ),
    (
        "torch::autograd::Engine::execute",
        "steps are not counted by backward(), and what autograd threads allocate is not charged to \
         the line that called backward()",
    ),
    (
        "CUPTI callbacks",
        "the driver layer is not seen: segments, workspaces, other libraries' memory",
    ),
    (
        "c10::reportOutOfMemoryToProfiler",
        "requests that PyTorch could not serve are not told",
    ),
    (
        "c10::reportMemoryUsageToProfiler",
        "the blocks of PyTorch's caching allocator are not seen: no lines, no verdict",
    ),
    ("the function of --step-on", "no step is counted"),
    (
        "machine-code frames",
        "the operators of PyTorch between the Python lines and the allocations are not shown",
    ),
];
/// `vs_hook_VS_HOOK_CUPTI` in [`HOOKS`].
const CUPTI: usize = 2;
/// `vs_hook_VS_HOOK_MEMORY` in [`HOOKS`].
const MEMORY: usize = 4;

/// What the user is told when CUPTI changes hands.
const CUPTI_GONE: &str = "a profiler in the process (torch.profiler) took CUPTI over: while it has it, the driver's \
     allocations are not seen; the tensors are";
const CUPTI_BACK: &str =
    "the profiler in the process is done with CUPTI: the driver's allocations are seen again";

/// What the hooks of a session have in common.
#[derive(Clone, Debug)]
pub struct Wishes {
    /// Bytes of a process's ring.
    pub ring_bytes: usize,
    /// Whether to use CUPTI.
    pub cupti: bool,
    /// Whether to unwind machine code too.
    pub native: Native,
    /// Whether to ask NVML for the devices' memory.
    pub watch_devices: bool,
    /// The function that marks a step, by its linker name.
    pub step_symbol: Option<String>,
}

/// A process after its greeting.
pub struct Greeted {
    connection: Connection,
    process: Process,
    environment: HashMap<String, String>,
    code: Vec<Mapping>,
    news: Sender<News>,
}

/// Greets a library: it gets its memory, places its hooks and tells of them.
///
/// # Errors
/// The other end is no library of ours, or is gone, or its process cannot be read.
pub fn greet(
    connection: Connection,
    wishes: &Wishes,
    board: &Mutex<Board>,
    news: Sender<News>,
) -> io::Result<(Greeted, Peer)> {
    let hello: vs_hello = answer(&connection)?;
    if hello.message != vs_message_VS_HELLO || hello.protocol != VS_PROTOCOL {
        return Err(io::Error::other(
            "the library in the process is of another version of vramscope",
        ));
    }
    let (pid, _) = connection.peer()?;
    let process = Process::open(pid).map_err(io::Error::other)?;
    let mappings = process.mappings().map_err(io::Error::other)?;
    let environment = target::environment(pid);
    let mut notes = Vec::new();
    let (python, walk) = interpreter(&process, &mut notes)?;
    if target::uses_async_backend(&environment) {
        notes.push(target::ASYNC_NOTE.to_owned());
    }
    let tsc = clock::trusted();
    let shared = Shared::new(
        wishes.ring_bytes,
        &walk,
        CodeMap::interpreter(&mappings, python.as_ref()),
    )?;
    let setup = vs_setup {
        message: vs_message_VS_SETUP,
        flags: flags(tsc, wishes),
        step_symbol: symbol(wishes.step_symbol.as_deref()),
    };
    connection.send(&setup, Some(shared.descriptor()))?;
    let hooked: vs_hooked = answer(&connection)?;
    if hooked.message != vs_message_VS_HOOKED {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let mut posted = lock(board);
    posted.notes.extend(notes);
    drop(posted);
    post(board, &hooked);
    let info = target::info(pid, &mappings, python.as_ref());
    let greeted = Greeted {
        code: code(&process),
        news,
        connection,
        process: process.clone(),
        environment,
    };
    let peer = Peer {
        tsc,
        info,
        process,
        python,
        shared,
    };
    Ok((greeted, peer))
}

fn interpreter(
    process: &Process,
    notes: &mut Vec<String>,
) -> io::Result<(Option<Python>, vs_python)> {
    match vramscope_python::find(process) {
        Ok(python) => {
            let (walk, _) = walk_configuration(process, &python).map_err(io::Error::other)?;
            if !python.tested {
                notes.push(target::untested_note(&python));
            }
            Ok((Some(python), walk))
        }
        Err(error) => {
            let what = match &error {
                FindError::NotPython { .. } => "allocations have no Python lines",
                _ => "its Python cannot be walked, allocations have no lines",
            };
            notes.push(format!("{error}: {what}"));
            Ok((None, crate::python::no_python()))
        }
    }
}

fn flags(tsc: bool, wishes: &Wishes) -> u32 {
    let mut flags = 0;
    if wishes.cupti {
        flags |= wire::vs_setup_flag_VS_SETUP_CUPTI;
    }
    if tsc {
        flags |= wire::vs_setup_flag_VS_SETUP_TSC;
    }
    match wishes.native {
        Native::Never => {}
        Native::New => flags |= wire::vs_setup_flag_VS_SETUP_NATIVE,
        Native::Always => {
            flags |= wire::vs_setup_flag_VS_SETUP_NATIVE;
            flags |= wire::vs_setup_flag_VS_SETUP_NATIVE_WHOLE;
        }
    }
    flags
}

/// A message that has to come.
fn answer<M: super::shared::Message>(connection: &Connection) -> io::Result<M> {
    connection
        .receive(PATIENCE)?
        .ok_or_else(|| io::Error::from(io::ErrorKind::TimedOut))
}

fn symbol(name: Option<&str>) -> [std::ffi::c_char; VS_SYMBOL_BYTES as usize] {
    let mut bytes = [0; VS_SYMBOL_BYTES as usize];
    // The last byte stays zero; a longer name matches nothing and is told as absent.
    let room = bytes.len() - 1;
    for (to, from) in bytes[..room].iter_mut().zip(name.unwrap_or("").bytes()) {
        *to = from as std::ffi::c_char;
    }
    bytes
}

impl Greeted {
    /// Looks after the process until `stop`: libraries that come later get their hooks, the
    /// devices' memory is asked for. Then everything is undone; how many threads were still in the
    /// library's code, `None` when the process did not answer.
    pub fn keep(
        mut self,
        stop: &AtomicBool,
        wishes: &Wishes,
        board: &Mutex<Board>,
        sender: &Sender<Vec<Record>>,
    ) -> Option<u32> {
        let (watching, watch_stop) = bounded(0);
        let watch = if wishes.watch_devices {
            match Watch::open() {
                Ok(watch) => {
                    watch
                        .watched()
                        .add(Pid(self.process.pid()), &self.environment);
                    let sender = sender.clone();
                    std::thread::Builder::new()
                        .name("device-memory".into())
                        .spawn(move || watch.run(&watch_stop, &sender))
                        .ok()
                }
                Err(error) => {
                    lock(board).notes.push(target::nvml_note(&error));
                    None
                }
            }
        } else {
            None
        };
        let mut last_look = Instant::now();
        let mut gone = false;
        while !stop.load(Ordering::Acquire) && !gone {
            gone = self.news(TICK, board).is_err();
            if last_look.elapsed() >= LOOK {
                last_look = Instant::now();
                gone = !self.process.is_running() || self.look().is_err();
            }
        }
        let inside = if gone { None } else { self.part(board) };
        // The last figures are asked for when the last events are there.
        drop(watching);
        if let Some(watch) = watch {
            // One that panicked has nothing left to hand over.
            let _ = watch.join();
        }
        inside
    }

    fn look(&mut self) -> io::Result<()> {
        let code = code(&self.process);
        if code == self.code {
            return Ok(());
        }
        let replaced = mapped::has_gone(&self.code, &code);
        let same_files = files(&self.code).eq(files(&code));
        self.code = code;
        if !replaced && same_files {
            // A compiler at run time made code: there is no file to learn from.
            return Ok(());
        }
        if replaced {
            // Before the library sends its stacks anew: they are to get their new names.
            let (done, is_done) = bounded(0);
            let pid = Pid(self.process.pid());
            if self.news.send(News::Replaced { pid, done }).is_ok() {
                // It ends without a word when the reader does.
                let _ = is_done.recv();
            }
        }
        let rescan = vs_plain {
            message: match replaced {
                true => vs_message_VS_REPLACED,
                false => vs_message_VS_RESCAN,
            },
            pad: 0,
        };
        // The answer comes among the news.
        self.connection.send(&rescan, None)
    }

    /// Takes over what the library tells by itself or was asked for.
    fn news(&self, patience: Duration, board: &Mutex<Board>) -> io::Result<()> {
        if let Some(hooked) = self.connection.receive::<vs_hooked>(patience)? {
            post(board, &hooked);
            if hooked.message == wire::vs_message_VS_CUPTI {
                let state = hooked.hooks[CUPTI].state;
                let note = if state == wire::vs_hook_state_VS_HOOK_PLACED {
                    CUPTI_BACK
                } else {
                    CUPTI_GONE
                };
                lock(board).notes.push(note.to_owned());
            }
        }
        Ok(())
    }

    fn part(&self, board: &Mutex<Board>) -> Option<u32> {
        let leave = vs_plain {
            message: vs_message_VS_LEAVE,
            pad: 0,
        };
        self.connection.send(&leave, None).ok()?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match self.connection.receive::<vs_left>(PATIENCE) {
                Ok(Some(left)) if left.message == vs_message_VS_LEFT => {
                    let detail = text(&left.detail);
                    if !detail.is_empty() {
                        lock(board).notes.push(format!("CUPTI: {detail}"));
                    }
                    return Some(left.inside);
                }
                // Something that was under way before.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                _ => return None,
            }
        }
        None
    }
}

/// What of it comes from files.
fn files(code: &[Mapping]) -> impl Iterator<Item = &Mapping> {
    code.iter().filter(|mapping| mapping.path.is_some())
}

/// The code that a process has mapped, or made.
fn code(process: &Process) -> Vec<Mapping> {
    let mut mappings = process.mappings().unwrap_or_default();
    mappings.retain(|mapping| mapping.permissions.execute);
    mappings
}

fn post(board: &Mutex<Board>, hooked: &vs_hooked) {
    let mut board = lock(board);
    board.probes = HOOKS
        .iter()
        .zip(&hooked.hooks)
        .filter(|(_, report)| report.state != wire::vs_hook_state_VS_HOOK_UNWANTED)
        .map(|((name, consequence), report)| view(name, consequence, report))
        .collect();
    board.tensor_layer |= hooked.hooks[MEMORY].state == wire::vs_hook_state_VS_HOOK_PLACED;
    board.version += 1;
}

fn view(name: &str, consequence: &str, report: &vs_hook_report) -> ProbeView {
    let detail = text(&report.detail);
    let (state, cost_note) = match report.state {
        wire::vs_hook_state_VS_HOOK_PLACED => {
            let note = match report.places {
                _ if !detail.is_empty() => detail,
                0 => "unwound in the process".to_owned(),
                1 => "1 pointer of its callers".to_owned(),
                places => format!("{places} pointers of its callers"),
            };
            (ProbeState::Attached, note)
        }
        wire::vs_hook_state_VS_HOOK_FAILED => (
            ProbeState::Failed {
                reason: format!("{detail}: {consequence}"),
            },
            String::new(),
        ),
        _ => (
            ProbeState::Absent {
                consequence: format!("nothing in the process calls it: {consequence}"),
            },
            String::new(),
        ),
    };
    ProbeView {
        name: name.to_owned(),
        state,
        cost_note,
    }
}

fn text(bytes: &[std::ffi::c_char]) -> String {
    let bytes = bytes.iter().map(|byte| *byte as u8);
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

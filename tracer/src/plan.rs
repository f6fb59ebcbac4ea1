//! Which probes go where in one process.

mod ahead;
mod calls;

use vramscope_bpf::program;
use vramscope_events::{ProbeState, ProbeView};
use vramscope_python::{Mapping, Process, Python};

use crate::{
    library::{Function, Library, LibraryError, code_at},
    planner::{self, ARGUMENTS, Place},
    target,
};
pub use ahead::Ahead;
use calls::{CALLS, Call, Kind};

/// A probe to be placed: where, which program, and what its program must know.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The BPF program.
    pub program: &'static str,
    /// The file to put it on.
    pub file: std::path::PathBuf,
    /// Where in the file, in bytes.
    pub file_offset: u64,
    /// `enum vs_driver_function`, or 0.
    pub function: u16,
    /// Bytes pushed before it.
    pub stack_delta: u16,
}

/// A planned probe: one entry for the user, one or more attachments for the kernel.
#[derive(Clone, Debug)]
pub struct Probe {
    /// What the user is told.
    pub view: ProbeView,
    /// What cannot be told without it.
    pub consequence: &'static str,
    /// What has to be attached; empty when absent. All or none.
    pub attachments: Vec<Attachment>,
}

impl Probe {
    /// Whether it watches the driver.
    pub fn is_driver(&self) -> bool {
        let mut attachments = self.attachments.iter();
        attachments.any(|attachment| attachment.program == program::DRIVER_ENTER)
    }
}

/// The plan for one process, in the order of attaching: what invalidates comes before what
/// records.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The probes.
    pub probes: Vec<Probe>,
    /// Whether the caching allocator's report function is there.
    pub tensor_layer: bool,
    /// Whether libcuda is mapped.
    pub driver_layer: bool,
    /// How many of the [`LIBRARIES`] are mapped.
    pub libraries: usize,
    /// The file that the driver's probes go on: device and inode.
    pub driver_file: Option<(u64, u64)>,
    /// Keeps that file open where no process may have it mapped yet.
    pub ahead: Option<Ahead>,
}

/// PyTorch's allocator.
const ALLOCATOR: &str = "libc10.so";
/// PyTorch's autograd engine.
const AUTOGRAD: &str = "libtorch_cpu.so";
/// The CUDA driver.
const DRIVER_LIBRARY: &str = "libcuda.so";
/// The libraries that are probed, by the beginnings of their file names.
pub const LIBRARIES: [&str; 3] = [ALLOCATOR, DRIVER_LIBRARY, AUTOGRAD];

const TENSOR_MEMORY: &str = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";
const TENSOR_OOM: &str = "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE";
const ENGINE_EXECUTE: &str = "_ZN5torch8autograd6Engine7executeE";

/// What marks a step, where the user named a place in machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOn {
    /// A function, by its linker name.
    Symbol(String),
    /// An NVTX range, by its name.
    Nvtx(String),
}

/// The probe for a place that the user named. Its state says so where there is none.
pub fn step_probe(process: &Process, mappings: &[Mapping], on: &StepOn) -> Probe {
    let (symbol, program, kept) = match on {
        StepOn::Symbol(symbol) => (symbol.as_str(), program::STEP_SYMBOL, &[][..]),
        StepOn::Nvtx(_) => ("nvtxRangePushA", program::STEP_NVTX, &ARGUMENTS[..1]),
    };
    let consequence = "no step is counted";
    let mut attachments = Vec::new();
    let mut notes = Vec::new();
    for library in Library::all(process, mappings) {
        // Exported, or named in the file all the same: PyTorch carries NVTX inside it.
        let exported = library.functions(|name| name == symbol);
        let found = match exported {
            Ok(found) if !found.is_empty() => Ok(found),
            _ => library.local_functions(|name| name == symbol),
        };
        for function in found.into_iter().flatten().map(|(_, function)| function) {
            let place = planner::place(&function.code, kept);
            attachments.push(at(&library, &function, program, &place));
            notes.push(format!("{}: {}", library.path.display(), place.note()));
        }
    }
    if attachments.is_empty() {
        let reason = format!("no library of the process has a function {symbol}");
        return absent(symbol, &reason, consequence);
    }
    planned(symbol, notes.join("; "), consequence, attachments)
}

/// Plans the probes for a process.
pub fn plan(process: &Process, mappings: &[Mapping], python: Option<&Python>) -> Plan {
    let mut plan = Plan {
        libraries: libraries(mappings),
        ..Plan::default()
    };
    if let Some(python) = python {
        plan.probes.push(code_freed(python));
    }
    plan.backward(process, mappings);
    plan.driver(process, mappings);
    plan.tensor(process, mappings);
    plan
}

/// How many of the [`LIBRARIES`] a process has mapped.
pub fn libraries(mappings: &[Mapping]) -> usize {
    let mapped = LIBRARIES
        .iter()
        .filter(|library| is_mapped(mappings, library));
    mapped.count()
}

fn is_mapped(mappings: &[Mapping], library: &str) -> bool {
    let mut names = mappings.iter().filter_map(Mapping::file_name);
    names.any(|name| name.starts_with(library))
}

impl Plan {
    fn backward(&mut self, process: &Process, mappings: &[Mapping]) {
        let name = "torch::autograd::Engine::execute";
        let consequence = "steps are not counted by backward(), and what autograd threads allocate is not \
             charged to the line that called backward()";
        let found = functions(process, mappings, AUTOGRAD, |symbol| {
            symbol.starts_with(ENGINE_EXECUTE)
        });
        let probe = match found {
            Ok((library, mut functions)) => match functions.pop() {
                Some(function) => execute(&library, &function, name, consequence),
                None => absent(name, "libtorch_cpu.so does not export it", consequence),
            },
            Err(reason) => absent(name, &reason, consequence),
        };
        self.probes.push(probe);
    }

    fn driver(&mut self, process: &Process, mappings: &[Mapping]) {
        let one_device = target::sees_one_device(process.pid());
        let wanted = |call: &&Call| call.kind != Kind::Contexts || !one_device;
        let is_called = |symbol: &str| {
            let mut calls = CALLS.iter().filter(wanted);
            calls.any(|call| call.symbols.contains(&symbol))
        };
        let found = functions(process, mappings, DRIVER_LIBRARY, is_called);
        self.driver_layer = found.is_ok();
        // One that is mapped and cannot be read is not another file of its name.
        let found = match found {
            Err(reason) if !is_mapped(mappings, DRIVER_LIBRARY) => {
                self.driver_ahead(process, is_called).ok_or(reason)
            }
            found => found,
        };
        let library = found.as_ref().ok().map(|(library, _)| library);
        self.driver_file = library.and_then(ahead::identity);
        for call in CALLS.iter().filter(wanted) {
            let consequence = call.kind.consequence();
            let probe = match &found {
                Err(reason) => absent(call.name, reason, consequence),
                Ok((library, functions)) => {
                    let exported: Vec<_> = functions
                        .iter()
                        .filter(|function| call.symbols.contains(&function.symbol.as_str()))
                        .collect();
                    if exported.is_empty() {
                        absent(call.name, "libcuda does not export it", consequence)
                    } else {
                        driver(library, &exported, call)
                    }
                }
            };
            self.probes.push(probe);
        }
    }

    /// The driver that is not loaded yet, where a framework is that will load it.
    fn driver_ahead(
        &mut self,
        process: &Process,
        wanted: impl Fn(&str) -> bool,
    ) -> Option<(Library, Vec<Function>)> {
        if self.libraries == 0 {
            return None;
        }
        let ahead = ahead::driver(process)?;
        let functions = ahead.library.functions(wanted).ok()?;
        let library = ahead.library.clone();
        self.ahead = Some(ahead);
        Some((library, functions.into_values().collect()))
    }

    fn tensor(&mut self, process: &Process, mappings: &[Mapping]) {
        let found = functions(process, mappings, ALLOCATOR, |symbol| {
            symbol == TENSOR_MEMORY || symbol == TENSOR_OOM
        });
        let probes: [(&str, &str, &'static str, &'static str); 2] = [
            (
                "c10::reportOutOfMemoryToProfiler",
                TENSOR_OOM,
                program::TENSOR_OOM,
                "requests that PyTorch could not serve are not told",
            ),
            (
                "c10::reportMemoryUsageToProfiler",
                TENSOR_MEMORY,
                program::TENSOR_MEMORY,
                "the blocks of PyTorch's caching allocator are not seen: no lines, no verdict",
            ),
        ];
        for (name, symbol, program, consequence) in probes {
            let probe = match &found {
                Err(reason) => absent(name, reason, consequence),
                Ok((library, functions)) => {
                    match functions.iter().find(|function| function.symbol == symbol) {
                        None => absent(name, "libc10.so does not export it", consequence),
                        Some(function) => {
                            self.tensor_layer |= symbol == TENSOR_MEMORY;
                            single(library, function, name, program, consequence)
                        }
                    }
                }
            };
            self.probes.push(probe);
        }
    }
}

/// A mapped library and those of its functions that are wanted; in words why there are none.
fn functions(
    process: &Process,
    mappings: &[Mapping],
    name: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<(Library, Vec<Function>), String> {
    let is_it = |file: &str| {
        file == name
            || file
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.'))
    };
    let library = Library::find(process, mappings, is_it)
        .map_err(|error: LibraryError| error.to_string())?
        .ok_or_else(|| format!("{name} is not loaded"))?;
    let functions = library
        .functions(wanted)
        .map_err(|error| error.to_string())?;
    Ok((library, functions.into_values().collect()))
}

fn absent(name: &str, reason: &str, consequence: &'static str) -> Probe {
    Probe {
        view: ProbeView {
            name: name.to_owned(),
            state: ProbeState::Absent {
                consequence: format!("{reason}: {consequence}"),
            },
            cost_note: String::new(),
        },
        consequence,
        attachments: Vec::new(),
    }
}

fn planned(
    name: &str,
    cost_note: String,
    consequence: &'static str,
    attachments: Vec<Attachment>,
) -> Probe {
    Probe {
        view: ProbeView {
            name: name.to_owned(),
            state: ProbeState::Attached,
            cost_note,
        },
        consequence,
        attachments,
    }
}

fn at(library: &Library, function: &Function, program: &'static str, place: &Place) -> Attachment {
    Attachment {
        program,
        file: library.file.clone(),
        file_offset: function.file_offset + place.offset,
        function: 0,
        stack_delta: place.stack_delta,
    }
}

fn single(
    library: &Library,
    function: &Function,
    name: &str,
    program: &'static str,
    consequence: &'static str,
) -> Probe {
    let place = planner::place(&function.code, &ARGUMENTS[..5]);
    let attachment = at(library, function, program, &place);
    planned(name, place.note(), consequence, vec![attachment])
}

fn execute(library: &Library, function: &Function, name: &str, consequence: &'static str) -> Probe {
    let place = planner::place(&function.code, &[]);
    let mut attachments = vec![at(library, function, program::BACKWARD_ENTER, &place)];
    let mut note = format!("{}, once a backward()", place.note());
    match planner::returns(&function.code) {
        Some(returns) if !returns.is_empty() => {
            attachments.extend(returns.iter().map(|offset| Attachment {
                program: program::BACKWARD_LEAVE,
                file: library.file.clone(),
                file_offset: function.file_offset + offset,
                function: 0,
                stack_delta: 0,
            }));
        }
        _ => note.push_str("; its end is not seen, the next call ends it"),
    }
    planned(name, note, consequence, attachments)
}

fn driver(library: &Library, functions: &[&Function], call: &Call) -> Probe {
    let mut attachments = Vec::new();
    let mut notes = Vec::new();
    // Several names may stand for one function.
    let mut placed = Vec::new();
    for function in functions {
        if placed.contains(&function.file_offset) {
            continue;
        }
        placed.push(function.file_offset);
        let place = planner::place(&function.code, &ARGUMENTS[..5]);
        let mut enter = at(library, function, program::DRIVER_ENTER, &place);
        enter.function = call.function as u16;
        attachments.push(enter);
        notes.push(place.note());
        if call.returns {
            // A return probe sits on the entry: only there does the stack hold the address.
            attachments.push(Attachment {
                program: program::DRIVER_LEAVE,
                file: library.file.clone(),
                file_offset: function.file_offset,
                function: call.function as u16,
                stack_delta: 0,
            });
        }
    }
    notes.dedup();
    let mut note = notes.join("; ");
    if call.returns {
        note.push_str(", and its return");
    }
    planned(call.name, note, call.kind.consequence(), attachments)
}

fn code_freed(python: &Python) -> Probe {
    let name = "CPython code_dealloc";
    let consequence = "a code object that takes a freed one's place may pass for it";
    let dealloc = &python.code_dealloc;
    // Its size is not known (it is a static function); a prologue is all that is looked at.
    match code_at(&dealloc.object, dealloc.file_offset, 64) {
        Err(error) => absent(name, &error.to_string(), consequence),
        Ok(code) => {
            let place = planner::place(&code, &ARGUMENTS[..1]);
            let attachment = Attachment {
                program: program::CODE_FREED,
                file: dealloc.object.clone(),
                file_offset: dealloc.file_offset + place.offset,
                function: 0,
                stack_delta: place.stack_delta,
            };
            planned(
                name,
                format!("{}, once a code object", place.note()),
                consequence,
                vec![attachment],
            )
        }
    }
}

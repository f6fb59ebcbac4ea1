//! What lies where in a process.

use std::{
    collections::HashMap,
    fs::File,
    ops::Range,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use crossbeam_channel::Sender;
use rustc_hash::FxHashMap;
use vramscope_events::{FrameId, Pid};
use vramscope_python::{Mapping, Process, Python};
use vramscope_unwind::Rule;

use super::{
    mapped::{self, Mapped, index, overlapping},
    merge::{Native, Role},
    names::Nameless,
    object::{CodeFile, Identity},
};
use crate::library::Library;

/// Files that are held open though nothing maps them any more.
const KEPT_MODULES: usize = 128;

/// A file with code in it.
#[derive(Debug)]
pub struct Module {
    number: u32,
    /// Its path as the process sees it.
    pub path: PathBuf,
    /// The very file that is mapped, where it could be opened: it stays readable when it is deleted
    /// or unloaded, and its inode is not given to another one.
    pub object: Option<CodeFile>,
}

/// Where the interpreter runs Python frames: offsets in its file.
#[derive(Debug, Default)]
struct Evaluation {
    path: PathBuf,
    code: Vec<Range<u64>>,
}

/// The code of one process.
#[derive(Debug)]
pub struct CodeMap {
    process: Process,
    evaluation: Option<Evaluation>,
    /// The time whose mappings these are; see `vs_native.epoch`.
    epoch: Option<u64>,
    /// The process has moved on: these mappings are all there will be of that time.
    closed: bool,
    /// Something of that time was asked for and is not known.
    missed: bool,
    /// Code was found to be replaced that nobody has told of yet.
    replaced: bool,
    /// Executable mappings, by address.
    mappings: Vec<Mapped>,
    /// Those that were there from the beginning, and at every look since.
    steady: Vec<Mapping>,
    /// What is known of addresses.
    frames: FxHashMap<u64, Native>,
    rules: FxHashMap<u64, Rule>,
    /// Frames by module and offset: an address may come to mean something else, these do not.
    places: FxHashMap<(u32, u64), FrameId>,
    modules: HashMap<(PathBuf, Option<Identity>), Arc<Module>>,
    next_module: u32,
}

/// Asks in which epoch a process is now; `None` where nobody counts.
pub type Now<'a> = &'a dyn Fn() -> Option<u64>;

impl CodeMap {
    /// The code of a process. No file is read before it is asked for, but for the interpreter's
    /// symbols.
    pub fn new(process: Process, python: Option<&Python>) -> CodeMap {
        let mut map = CodeMap {
            process,
            evaluation: python.map(evaluation),
            epoch: None,
            closed: false,
            missed: false,
            replaced: false,
            mappings: Vec::new(),
            steady: Vec::new(),
            frames: FxHashMap::default(),
            rules: FxHashMap::default(),
            places: FxHashMap::default(),
            modules: HashMap::new(),
            next_module: 0,
        };
        map.steady = map.executable().unwrap_or_default();
        map
    }

    /// Where the interpreter's code is mapped.
    pub fn interpreter(mappings: &[Mapping], python: Option<&Python>) -> Range<u64> {
        let code = python.and_then(|python| {
            mappings.iter().find(|mapping| {
                mapping.permissions.execute && mapping.path.as_ref() == Some(&python.path)
            })
        });
        code.map_or(0..0, |mapping| mapping.start..mapping.end)
    }

    /// Turns to addresses of an epoch; whether anything of it can be told. When code was unloaded
    /// since, and nobody had looked before, only what was never seen to be missing is known.
    pub fn enter(&mut self, epoch: u64, now: Now<'_>) -> bool {
        if self.epoch == Some(epoch) {
            return true;
        }
        let Some(mut mappings) = self.read() else {
            return false;
        };
        self.closed = now().is_some_and(|now| now != epoch);
        if self.closed {
            mappings = self.steady.iter().cloned().map(Mapped::new).collect();
        }
        self.replaced = false;
        self.epoch = Some(epoch);
        self.frames.clear();
        self.rules.clear();
        self.mappings = mappings;
        self.prune();
        true
    }

    /// Looks whether what is mapped at these addresses by now is other code than was known there. If
    /// so, the time of those mappings is over; where nobody counts times, a new one begins.
    pub fn is_replaced(&mut self, addresses: Range<u64>) -> bool {
        let known = !overlapping(&self.mappings, &addresses).is_empty()
            || self.frames.keys().any(|known| addresses.contains(known));
        if known
            && !self.closed
            && let Some(now) = self.read()
        {
            self.look_for_replaced(&now, &addresses);
            if self.epoch.is_none() {
                self.mappings = now;
            }
        }
        std::mem::take(&mut self.replaced)
    }

    fn look_for_replaced(&mut self, now: &[Mapped], addresses: &Range<u64>) {
        let asked = self.frames.keys().copied();
        if !mapped::is_replaced(&self.mappings, now, addresses, asked) {
            return;
        }
        self.frames.clear();
        self.rules.clear();
        if self.epoch.is_some() {
            self.replaced = true;
            self.close();
        }
    }

    /// What comes yet of this time can be told where nothing ever changed.
    fn close(&mut self) {
        self.closed = true;
        self.mappings = self.steady.iter().cloned().map(Mapped::new).collect();
    }

    /// Whether an address of code that is gone was asked for since this was asked last.
    pub fn take_missed(&mut self) -> bool {
        std::mem::take(&mut self.missed)
    }

    /// How the function of an address finds its caller; `None` for code that is gone.
    pub fn rule(&mut self, address: u64, now: Now<'_>) -> Option<Rule> {
        if let Some(rule) = self.rules.get(&address) {
            return Some(*rule);
        }
        let rule = self.read_rule(address, now)?;
        self.rules.insert(address, rule);
        Some(rule)
    }

    fn read_rule(&mut self, address: u64, now: Now<'_>) -> Option<Rule> {
        let Some((module, offset)) = self.find(address, now) else {
            return (!self.closed).then_some(Rule::END);
        };
        let rule = module.object.as_ref().and_then(|object| {
            let address = object.address(offset)?;
            Some(object.rule(address))
        });
        Some(rule.unwrap_or(Rule::END))
    }

    /// The frame of an address to return to. `next` gives numbers to new frames, which are then told
    /// to `names`.
    pub fn frame(
        &mut self,
        address: u64,
        now: Now<'_>,
        next: &mut impl FnMut() -> FrameId,
        names: &Sender<Nameless>,
    ) -> Native {
        // A return address is behind its call.
        let address = address.wrapping_sub(1);
        if let Some(known) = self.frames.get(&address) {
            return *known;
        }
        let (module, offset) = self
            .find(address, now)
            .unwrap_or_else(|| (self.unknown(), address));
        let id = *self
            .places
            .entry((module.number, offset))
            .or_insert_with(|| {
                let id = next();
                // Without the other thread the frame stays unnamed, which is what it shows as.
                let _ = names.send(Nameless {
                    id,
                    process: Pid(self.process.pid()),
                    module: Arc::clone(&module),
                    offset,
                });
                id
            });
        let native = (id, self.role(&module.path, offset));
        self.frames.insert(address, native);
        native
    }

    fn role(&self, path: &Path, offset: u64) -> Role {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        if name.starts_with("libvramscope_") || name.starts_with("libcupti.so") {
            return Role::Observer;
        }
        if let Some(evaluation) = &self.evaluation
            && evaluation.path == path
        {
            return match evaluation.code.iter().any(|code| code.contains(&offset)) {
                true => Role::Evaluation,
                false => Role::Interpreter,
            };
        }
        // The program that does nothing but call the interpreter in its library.
        let program = name.strip_prefix("python").unwrap_or("-");
        if program
            .chars()
            .all(|c| c.is_ascii_digit() || c == '.' || c == 't')
        {
            return Role::Interpreter;
        }
        let system = ["libc.so.", "libpthread.so.", "ld-linux"];
        match system.iter().any(|prefix| name.starts_with(prefix)) {
            true => Role::System,
            false => Role::Program,
        }
    }

    fn unknown(&mut self) -> Arc<Module> {
        let path = PathBuf::from("[unknown]");
        let key = (path.clone(), None);
        let number = &mut self.next_module;
        let module = self
            .modules
            .entry(key)
            .or_insert_with(|| new_module(number, path, None));
        Arc::clone(module)
    }

    /// The file of an address, and where in it that is.
    fn find(&mut self, address: u64, now: Now<'_>) -> Option<(Arc<Module>, u64)> {
        let index = match index(&self.mappings, address) {
            Some(index) => index,
            None => {
                // A library that came since. One that does not exist is asked for once an address.
                self.refresh(now);
                let index = index(&self.mappings, address);
                self.missed |= index.is_none() && self.closed;
                index?
            }
        };
        let mapped = &self.mappings[index];
        let offset = address - mapped.mapping.start + mapped.mapping.offset;
        if let Some(module) = mapped.module.get() {
            return Some((Arc::clone(module), offset));
        }
        let module = self.module(&self.mappings[index].mapping.clone())?;
        // Nobody else has filled it.
        let _ = self.mappings[index].module.set(Arc::clone(&module));
        Some((module, offset))
    }

    fn module(&mut self, mapping: &Mapping) -> Option<Arc<Module>> {
        let path = mapping.path.clone()?;
        // What lies at the path by now may be a pipe that nobody writes to.
        let file = self.process.openable(mapping).and_then(|openable| {
            let mut options = File::options();
            options.read(true).custom_flags(libc::O_NONBLOCK);
            options.open(openable).ok()
        });
        let file = file.filter(|file| file.metadata().is_ok_and(|data| data.is_file()));
        let identity = file.as_ref().and_then(Identity::of);
        let number = &mut self.next_module;
        let module = self
            .modules
            .entry((path.clone(), identity))
            .or_insert_with(|| new_module(number, path, file.and_then(CodeFile::new)));
        Some(Arc::clone(module))
    }

    fn refresh(&mut self, now: Now<'_>) {
        if self.closed {
            return;
        }
        let mappings = self.read();
        if self.epoch.is_some() && now().is_some_and(|now| Some(now) != self.epoch) {
            self.closed = true;
            return;
        }
        if let Some(mappings) = mappings {
            self.look_for_replaced(&mappings, &(0..u64::MAX));
            if !self.closed {
                self.mappings = mappings;
            }
        }
    }

    /// What is mapped now. `None` once the process is gone: it keeps the mappings that it had.
    fn read(&mut self) -> Option<Vec<Mapped>> {
        let mappings = self.executable()?;
        let there = |steady: &Mapping| {
            let at = mappings.binary_search_by_key(&steady.start, |mapping| mapping.start);
            at.is_ok_and(|at| mappings[at] == *steady)
        };
        self.steady.retain(there);
        Some(mappings.into_iter().map(Mapped::new).collect())
    }

    fn executable(&self) -> Option<Vec<Mapping>> {
        let mut mappings = self.process.mappings().ok()?;
        mappings.retain(|mapping| mapping.permissions.execute && mapping.path.is_some());
        Some(mappings)
    }

    /// Lets go of files that went, when there are many.
    fn prune(&mut self) {
        if self.modules.len() <= KEPT_MODULES {
            return;
        }
        let mapped: Vec<_> = self
            .mappings
            .iter()
            .filter_map(|mapped| mapped.mapping.path.as_ref())
            .collect();
        self.modules
            .retain(|(path, _), module| Arc::strong_count(module) > 1 || mapped.contains(&path));
        let kept: Vec<u32> = self.modules.values().map(|module| module.number).collect();
        self.places.retain(|(module, _), _| kept.contains(module));
    }
}

fn new_module(number: &mut u32, path: PathBuf, object: Option<CodeFile>) -> Arc<Module> {
    *number += 1;
    Arc::new(Module {
        number: *number,
        path,
        object,
    })
}

/// A module of its own, for tests.
#[cfg(test)]
pub fn module_of(object: CodeFile) -> Arc<Module> {
    new_module(&mut 0, PathBuf::from("/damaged.so"), Some(object))
}

/// Finds the function that runs Python frames, with the parts that a compiler moved away from it.
fn evaluation(python: &Python) -> Evaluation {
    const NAME: &str = "_PyEval_EvalFrameDefault";
    let library = Library {
        path: python.path.clone(),
        file: python.object.clone(),
    };
    let is_it = |name: &str| {
        name.strip_prefix(NAME)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    // A stripped one has but the exported part; calls from the other parts are then not known, and
    // the numbers do not fit.
    let found = [library.functions(is_it), library.local_functions(is_it)];
    let code = found
        .into_iter()
        .flatten()
        .flatten()
        .map(|(_, function)| {
            function.file_offset..function.file_offset + function.code.len() as u64
        })
        .collect();
    Evaluation {
        path: python.path.clone(),
        code,
    }
}

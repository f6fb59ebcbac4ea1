//! A process that functions can be run in.

use std::{
    ffi::OsString,
    ops::Range,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use vramscope_python::{Address, Mapping, Process, ReadError};

use crate::{
    borrow::Borrowed,
    error::{Error, Result},
    frame::Argument,
    halted::{Halted, Refusal, on_a_thread},
    image::Image,
    landing::Landing,
    status,
};

/// glibc's `RTLD_NOW` (bits/dlfcn.h).
const RTLD_NOW: u64 = 2;
/// The longest text of `dlerror` that is read.
const LONGEST_REASON: usize = 1024;
/// How much of each thread's stack is searched for return addresses.
const SEARCHED_STACK: usize = 256 * 1024;

/// A running process with glibc that we may trace.
#[derive(Clone, Debug)]
pub struct Tracee {
    process: Process,
    libc: Image,
    landing: Landing,
}

/// A library that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// What `dlopen` returned.
    pub handle: u64,
    /// Its path, as the process sees it.
    pub path: PathBuf,
    /// Where it is mapped.
    pub range: Range<u64>,
    /// The thread that loaded it.
    pub thread: u32,
}

impl Tracee {
    /// Looks whether functions can be run in a process. Stops nothing.
    ///
    /// # Errors
    /// It is gone, a zombie, stopped, traced by somebody else, not ours to trace, or no program on
    /// x86-64 with glibc.
    pub fn open(pid: u32) -> Result<Tracee> {
        status::check(pid)?;
        let process = Process::open(pid)?;
        // Of one that ends meanwhile there is less and less to be seen.
        let ended = |error| match status::has_ended(pid) {
            true => ReadError::Gone { pid }.into(),
            false => error,
        };
        Tracee::of(process).map_err(ended)
    }

    fn of(process: Process) -> Result<Tracee> {
        let pid = process.pid();
        let mappings = process.mappings()?;
        let libc =
            Image::find(&process, &mappings, is_glibc).ok_or_else(|| Error::Unsupported {
                pid,
                what: what_it_runs_on(&process, &mappings),
            })?;
        let (code, at) = libc.code()?;
        let landing = Landing::find(&code).ok_or_else(|| Error::Unsupported {
            pid,
            what: format!("{}, a build in which no way back was found", libc.name()),
        })?;
        Ok(Tracee {
            process,
            libc,
            landing: landing.at(at),
        })
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether the process has ended; its parent may not know yet.
    pub fn has_ended(&self) -> bool {
        !self.process.is_running() || status::has_ended(self.pid())
    }

    /// The process, to read its memory.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The address of a function of libc (or of libdl or libpthread, which were libraries of their
    /// own before glibc 2.34).
    ///
    /// # Errors
    /// [`Error::NoSymbol`], or the files cannot be read.
    pub fn function(&self, name: &str) -> Result<u64> {
        if let Some(address) = self.libc.function(name)? {
            return Ok(address);
        }
        let mappings = self.process.mappings()?;
        for older in ["libdl", "libpthread"] {
            let image = Image::find(&self.process, &mappings, |mapping| {
                mapping
                    .file_name()
                    .and_then(|file| file.strip_prefix(older))
                    .is_some_and(|rest| rest.starts_with(['.', '-']))
            });
            if let Some(address) = image
                .map(|image| image.function(name))
                .transpose()?
                .flatten()
            {
                return Ok(address);
            }
        }
        Err(self.no_symbol(self.libc.name(), name))
    }

    /// The address of an exported function of a loaded library, by the path that the process knows
    /// it by.
    ///
    /// # Errors
    /// [`Error::Library`] and [`Error::NoSymbol`].
    pub fn symbol(&self, library: &Path, name: &str) -> Result<u64> {
        let image = Image::at(&self.process, &self.process.mappings()?, library)?;
        image
            .function(name)?
            .ok_or_else(|| self.no_symbol(image.name(), name))
    }

    /// The address of an exported function of the library that is mapped in a range.
    ///
    /// # Errors
    /// [`Error::Library`] and [`Error::NoSymbol`].
    pub fn symbol_in(&self, range: &Range<u64>, name: &str) -> Result<u64> {
        let inside = |mapping: &Mapping| range.contains(&mapping.start);
        let image = Image::find(&self.process, &self.process.mappings()?, inside);
        let image = image.ok_or_else(|| Error::Library {
            pid: self.pid(),
            library: format!("what is mapped at {:#x}", range.start),
            reason: "it is not mapped, or its file cannot be opened".into(),
        })?;
        image
            .function(name)?
            .ok_or_else(|| self.no_symbol(image.name(), name))
    }

    fn no_symbol(&self, library: &str, symbol: &str) -> Error {
        Error::NoSymbol {
            pid: self.pid(),
            library: library.to_owned(),
            symbol: symbol.to_owned(),
        }
    }

    /// Runs a function of the process on one of its waiting threads, and gives what it returned.
    ///
    /// All signals that can be are blocked meanwhile, also in threads that the function starts. The
    /// deadline covers the search for a thread and the run.
    ///
    /// # Errors
    /// No thread could be borrowed in time, or the function crashed or hangs: see [`Error`].
    pub fn call(
        &self,
        address: u64,
        arguments: &[Argument<'_>],
        deadline: Duration,
    ) -> Result<u64> {
        self.borrow(deadline, |thread, start| {
            thread.call(address, arguments, start, deadline)
        })
    }

    /// Loads a library by its path, as the process sees it (`dlopen`, `RTLD_NOW`).
    ///
    /// # Errors
    /// As [`Tracee::call`]; [`Error::Loader`] with the process's own reason.
    pub fn load(&self, path: &Path, deadline: Duration) -> Result<Loaded> {
        let dlopen = self.function("dlopen")?;
        let dlerror = self.function("dlerror")?;
        let mut name = path.as_os_str().as_bytes().to_vec();
        name.push(0);
        let (handle, thread) = self.borrow(deadline, |thread, start| {
            let arguments = [Argument::Bytes(&name), Argument::Word(RTLD_NOW)];
            let handle = thread.call(dlopen, &arguments, start, deadline)?;
            if handle != 0 {
                return Ok((handle, thread.thread()));
            }
            // The reason is kept for each thread.
            let reason = thread.call(dlerror, &[], start, deadline)?;
            Err(Error::Loader {
                pid: self.pid(),
                path: path.to_owned(),
                reason: self.text(reason),
            })
        })?;
        let (path, range) = self.where_loaded(handle, path)?;
        Ok(Loaded {
            handle,
            path,
            range,
            thread,
        })
    }

    /// Gives a library back (`dlclose`). The caller has made sure that nothing of the process leads
    /// into it any more ([`Tracee::nobody_inside`]).
    ///
    /// # Errors
    /// As [`Tracee::call`]; [`Error::Unload`].
    pub fn unload(&self, handle: u64, deadline: Duration) -> Result<()> {
        let dlclose = self.function("dlclose")?;
        // An `int`: the upper half of the register means nothing.
        let answer = self.call(dlclose, &[Argument::Word(handle)], deadline)? as i32;
        if answer == 0 {
            return Ok(());
        }
        Err(Error::Unload {
            pid: self.pid(),
            handle,
            answer,
        })
    }

    /// Whether no thread executes code in the range or will return to it: each is stopped for some
    /// ten microseconds, one after the other, its instruction pointer is looked at and its stack is
    /// searched for return addresses: those behind a call instruction in the range. What an old call
    /// has left on a stack counts as well, so false may mean "not yet".
    ///
    /// Whether a thread may enter the range afterwards is for the caller to know.
    ///
    /// # Errors
    /// A thread could not be stopped.
    pub fn nobody_inside(&self, range: &Range<u64>) -> Result<bool> {
        let code = self.code_in(range)?;
        let mappings = self.process.mappings()?;
        on_a_thread(|| {
            let mut seen = Vec::new();
            // Threads may be born meanwhile, by threads that were not looked at yet.
            loop {
                let threads = status::threads(self.pid())?;
                let Some(&thread) = threads.iter().find(|thread| !seen.contains(*thread)) else {
                    return Ok(true);
                };
                seen.push(thread);
                let halted = match Halted::stop(self.pid(), thread) {
                    Ok(halted) => halted,
                    Err(Refusal::Thread(_)) if !threads_has(self.pid(), thread) => continue,
                    // It cannot be stopped, so nothing is known of it.
                    Err(Refusal::Thread(_)) => return Ok(false),
                    Err(Refusal::Process(error)) => return Err(error),
                };
                let inside = self.leads_into(&code, &mappings, &halted);
                halted.let_go()?;
                if inside {
                    return Ok(false);
                }
            }
        })
    }

    /// The machine code that is mapped in a range, with its addresses.
    fn code_in(&self, range: &Range<u64>) -> Result<Vec<(u64, Vec<u8>)>> {
        let mut code = Vec::new();
        for mapping in self.process.mappings()? {
            let start = mapping.start.max(range.start);
            let end = mapping.end.min(range.end);
            if mapping.permissions.execute && start < end {
                let bytes = self
                    .process
                    .read_vec(Address(start), (end - start) as usize)?;
                code.push((start, bytes));
            }
        }
        Ok(code)
    }

    fn leads_into(&self, code: &[(u64, Vec<u8>)], mappings: &[Mapping], halted: &Halted) -> bool {
        let registers = &halted.registers;
        let from = registers.rsp & !7;
        let mut stack = vec![0; stack_above(mappings, registers.rsp, registers.fs_base)];
        let got = self
            .process
            .read_some(Address(from), &mut stack)
            .unwrap_or_default();
        let offset = |(start, bytes): &(u64, Vec<u8>), address: u64| {
            let into = usize::try_from(address.checked_sub(*start)?).ok()?;
            (into < bytes.len()).then_some(into)
        };
        code.iter().any(|part| {
            offset(part, registers.rip).is_some()
                || stack[..got].chunks_exact(8).any(|word| {
                    let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
                    offset(part, word).is_some_and(|into| follows_a_call(&part.1[..into]))
                })
        })
    }

    fn borrow<T: Send>(
        &self,
        deadline: Duration,
        work: impl FnOnce(&mut Borrowed<'_>, Instant) -> Result<T> + Send,
    ) -> Result<T> {
        on_a_thread(|| {
            let start = Instant::now();
            let mut thread = Borrowed::any(&self.process, self.landing, start, deadline)?;
            let done = work(&mut thread, start);
            match done {
                // The thread is under way, or gone: nothing to give back.
                Err(Error::Hangs { .. } | Error::Read(_)) => done,
                _ => {
                    thread.give_back()?;
                    done
                }
            }
        })
    }

    /// Where the loader has put it: a handle points to the loader's `struct link_map` (link.h), which
    /// begins with the address that was added to all of the file's, the name, and the dynamic
    /// section.
    fn where_loaded(&self, handle: u64, asked: &Path) -> Result<(PathBuf, Range<u64>)> {
        let map = Address(handle);
        let dynamic = self.process.read_u64(map.field(16))?;
        let name = self.process.read_u64(map.field(8))?;
        let path = PathBuf::from(OsString::from_vec(self.bytes(name)));
        let mappings = self.process.mappings()?;
        let of_file = mappings
            .iter()
            .find(|mapping| (mapping.start..mapping.end).contains(&dynamic))
            .map(|mapping| (mapping.inode, mapping.path.clone()))
            .ok_or_else(|| Error::Library {
                pid: self.pid(),
                library: asked.display().to_string(),
                reason: "the loader's entry leads to no mapping".into(),
            })?;
        let parts = || {
            mappings
                .iter()
                .filter(|mapping| (mapping.inode, &mapping.path) == (of_file.0, &of_file.1))
        };
        let start = parts().map(|part| part.start).min().unwrap_or(dynamic);
        let end = parts().map(|part| part.end).max().unwrap_or(dynamic);
        Ok((path, start..end))
    }

    fn text(&self, address: u64) -> String {
        match self.bytes(address) {
            bytes if bytes.is_empty() => "it gave no reason".into(),
            bytes => String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    fn bytes(&self, address: u64) -> Vec<u8> {
        let mut bytes = vec![0; LONGEST_REASON];
        let got = self
            .process
            .read_some(Address(address), &mut bytes)
            .unwrap_or_default();
        bytes.truncate(got);
        let end = bytes.iter().position(|byte| *byte == 0);
        bytes.truncate(end.unwrap_or(got));
        bytes
    }
}

/// How much of the stack above `rsp` is searched: not beyond its end, where other data lies. It ends with
/// its mapping; a thread's control block, which `fs` points to, lies at the upper end of the stack
/// that glibc gave it, and what is mapped next to it may be one mapping with it.
fn stack_above(mappings: &[Mapping], rsp: u64, fs_base: u64) -> usize {
    let own = mappings
        .iter()
        .find(|mapping| (mapping.start..mapping.end).contains(&rsp));
    let Some(own) = own else {
        // A mapping that is younger than our list.
        return SEARCHED_STACK;
    };
    let end = match (rsp..own.end).contains(&fs_base) {
        true => fs_base,
        false => own.end,
    };
    usize::try_from(end - (rsp & !7)).map_or(SEARCHED_STACK, |above| above.min(SEARCHED_STACK))
}

fn threads_has(pid: u32, thread: u32) -> bool {
    status::Status::read(pid, thread).is_some_and(|status| !matches!(status.state, 'Z' | 'X'))
}

/// Whether machine code ends with a call: `e8` with an offset, or `ff /2` in any of its lengths.
fn follows_a_call(code: &[u8]) -> bool {
    let back = |length: usize| code.len().checked_sub(length).map(|at| &code[at..]);
    back(5).is_some_and(|call| call[0] == 0xe8)
        || (2..=7)
            .any(|length| back(length).is_some_and(|call| call[0] == 0xff && call[1] >> 3 & 7 == 2))
}

fn is_glibc(mapping: &Mapping) -> bool {
    mapping
        .file_name()
        .is_some_and(|name| name == "libc.so.6" || is_versioned_glibc(name))
}

/// `libc-2.31.so`, as the file was called before glibc 2.34.
fn is_versioned_glibc(name: &str) -> bool {
    name.strip_prefix("libc-")
        .and_then(|rest| rest.strip_suffix(".so"))
        .is_some_and(|version| version.starts_with("2."))
}

fn what_it_runs_on(process: &Process, mappings: &[Mapping]) -> String {
    let names = || mappings.iter().filter_map(Mapping::file_name);
    if names().any(|name| name.starts_with("ld-musl") || name.starts_with("libc.musl")) {
        return "musl".into();
    }
    if names().any(|name| name.starts_with("ld-linux.so")) {
        return "32-bit code".into();
    }
    let mut libraries = names().filter(|name| name.contains(".so")).peekable();
    if libraries.peek().is_some() && libraries.all(|name| name.starts_with("ld")) {
        return "no C library yet: it is only starting, try again".into();
    }
    if names().any(|name| name.contains(".so")) {
        return "a C library that is not glibc".into();
    }
    format!(
        "no shared C library: {} is linked statically",
        process.executable()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_other_code() {
        assert!(follows_a_call(&[0x90, 0xe8, 1, 2, 3, 4]));
        assert!(follows_a_call(&[0xff, 0xd0])); // call *%rax
        assert!(follows_a_call(&[0x41, 0xff, 0x54, 0x24, 0x08])); // call *8(%r12)
        assert!(!follows_a_call(&[0xff, 0xe0])); // jmp *%rax
        assert!(!follows_a_call(&[]));
    }

    #[test]
    fn names_of_glibc() {
        assert!(is_versioned_glibc("libc-2.31.so"));
        assert!(!is_versioned_glibc("libc-client.so"));
    }
}

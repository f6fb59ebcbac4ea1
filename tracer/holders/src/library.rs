//! The agent's library: found here, passed into the process through memory, taken out again.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use object::{Object as _, read::elf::ElfFile64};
use vramscope_ptrace::{Argument, Loaded, Tracee};
use vramscope_python::Address;

use crate::{
    DEADLINE,
    error::{Error, system},
};

/// The library's file name.
pub(crate) const LIBRARY: &str = "libvramscope_agent.so";
/// Its name in the process: that of the memory it comes from.
const NAME: &[u8] = b"vramscope-agent\0";
const MAPPED: &str = "/memfd:vramscope-agent";
/// `MFD_CLOEXEC`.
const CLOSE_ON_EXEC: u64 = 1;
/// The thread's name in the process.
const THREAD: &str = "vramscope-agent";
/// How long the library may take to become unused.
const UNLOAD_PATIENCE: Duration = Duration::from_secs(5);
/// How soon we look again whether the thread has ended, and how late at most: nothing tells it, and
/// each look stops every thread for a moment.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
const LOOK_LATER: Duration = Duration::from_millis(200);
/// The identity of a build lies at the beginning of its file.
const HEAD: usize = 4096;

/// The library in a process.
#[derive(Debug)]
pub(crate) struct Library {
    pub loaded: Loaded,
    /// Libraries of other builds that are there as well.
    pub strangers: usize,
}

/// Where our library lies: beside the program.
pub(crate) fn find() -> Result<PathBuf, Error> {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new(""));
    let looked: Vec<PathBuf> = ["deps", "", "../deps", "../lib", "../lib/vramscope"]
        .iter()
        .map(|inside| folder.join(inside).join(LIBRARY))
        .collect();
    looked
        .iter()
        .find(|path| path.exists())
        .cloned()
        .ok_or(Error::NoLibrary { looked })
}

impl Library {
    /// Loads the library, or finds the same build of it there.
    pub(crate) fn into(tracee: &Tracee, file: &Path) -> Result<Library, Error> {
        let pid = tracee.pid();
        let bytes = fs::read(file).map_err(system(pid, "reading the agent's library"))?;
        let stayed = stayed(tracee)?;
        let build = build_id(&bytes);
        let mut strangers = 0;
        for range in &stayed {
            let ours = build.as_ref().is_some_and(|build| {
                let mut head = vec![0; HEAD];
                let got = tracee.process().read_some(Address(range.start), &mut head);
                let head = &head[..got.unwrap_or_default()];
                head.windows(build.len()).any(|part| part == build)
            });
            if !ours {
                strangers += 1;
                continue;
            }
            let handle = tracee.symbol_in(range, "vramscope_agent_handle")?;
            let handle = tracee.call(handle, &[], DEADLINE)?;
            // One that was loaded and never begun cannot be taken out: nobody knows its handle.
            if handle != 0 {
                return Ok(Library {
                    loaded: Loaded {
                        handle,
                        path: MAPPED.into(),
                        range: range.clone(),
                        thread: 0,
                    },
                    strangers,
                });
            }
        }
        Ok(Library {
            loaded: load(tracee, &bytes)?,
            strangers,
        })
    }

    /// The address of one of its functions.
    pub(crate) fn function(&self, tracee: &Tracee, name: &str) -> Result<u64, Error> {
        Ok(tracee.symbol_in(&self.loaded.range, name)?)
    }

    /// Waits for the agent's thread to end (0 where it is not known) and takes the library out;
    /// whether it is gone.
    pub(crate) fn unload(&self, tracee: &Tracee, thread: u32) -> bool {
        let start = Instant::now();
        let mut pause = LOOK_AGAIN;
        // What an earlier call has left on a stack may look like a way back for a while.
        while has_thread(tracee.pid(), thread)
            || !tracee.nobody_inside(&self.loaded.range).unwrap_or(false)
        {
            if start.elapsed() > UNLOAD_PATIENCE || tracee.has_ended() {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LOOK_LATER);
        }
        tracee.unload(self.loaded.handle, DEADLINE).is_ok()
    }
}

/// Where libraries of earlier questions are mapped.
fn stayed(tracee: &Tracee) -> Result<Vec<std::ops::Range<u64>>, Error> {
    let mappings = (tracee.process().mappings()).map_err(vramscope_ptrace::Error::from)?;
    let mut found: Vec<(u64, std::ops::Range<u64>)> = Vec::new();
    for mapping in &mappings {
        let path = mapping.path.as_deref().and_then(Path::to_str);
        if !path.is_some_and(|path| path.starts_with(MAPPED)) {
            continue;
        }
        match found.iter_mut().find(|(inode, _)| *inode == mapping.inode) {
            Some((_, range)) => {
                range.start = range.start.min(mapping.start);
                range.end = range.end.max(mapping.end);
            }
            None => found.push((mapping.inode, mapping.start..mapping.end)),
        }
    }
    Ok(found.into_iter().map(|(_, range)| range).collect())
}

fn build_id(file: &[u8]) -> Option<Vec<u8>> {
    let file = ElfFile64::<object::LittleEndian>::parse(file).ok()?;
    file.build_id().ok()?.map(<[u8]>::to_vec)
}

fn load(tracee: &Tracee, bytes: &[u8]) -> Result<Loaded, Error> {
    let pid = tracee.pid();
    let create = tracee.function("memfd_create")?;
    let close = tracee.function("close")?;
    let arguments = [Argument::Bytes(NAME), Argument::Word(CLOSE_ON_EXEC)];
    let descriptor = tracee.call(create, &arguments, DEADLINE)? as i32;
    if descriptor < 0 {
        return Err(Error::Refused {
            pid,
            reason: "memfd_create failed there: has it run out of descriptors? `ls \
                     /proc/PID/fd | wc -l`"
                .replace("PID", &pid.to_string()),
        });
    }
    let file = format!("/proc/{pid}/fd/{descriptor}");
    let loaded = fs::write(&file, bytes)
        .and_then(|()| fs::metadata(&file))
        .map_err(system(pid, "passing the library"))
        .and_then(|file| {
            use std::os::unix::fs::MetadataExt as _;
            Ok(tracee.load(&own_path(descriptor, file.ino()), DEADLINE)?)
        });
    // The mapping stays.
    tracee.call(
        close,
        &[Argument::Word(descriptor.cast_unsigned().into())],
        DEADLINE,
    )?;
    loaded
}

/// The path of a descriptor, written as no other file's is: the loader takes a path that it knows for
/// the library that it has by it, and numbers of descriptors come again.
fn own_path(descriptor: i32, inode: u64) -> PathBuf {
    let mut path = String::from("/proc/self/fd");
    for bit in (0..64).filter(|bit| inode >> bit != 0) {
        path.push_str(if inode >> bit & 1 == 1 { "/." } else { "/" });
    }
    format!("{path}/{descriptor}").into()
}

/// Whether the agent's thread is still there: this one, or any where it is not known.
fn has_thread(pid: u32, thread: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().any(|one| {
        let is_agent =
            fs::read_to_string(one.path().join("comm")).is_ok_and(|name| name.trim_end() == THREAD);
        is_agent && (thread == 0 || own_number(&one.path()).is_none_or(|own| own == thread))
    })
}

/// A thread's id in its own pid namespace.
fn own_number(task: &Path) -> Option<u32> {
    let status = fs::read_to_string(task.join("status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_has_a_path_of_its_own() {
        let paths: std::collections::HashSet<PathBuf> =
            (0..5_000).map(|inode| own_path(37, inode)).collect();
        let words = |path: &PathBuf| path.to_str().unwrap().to_owned();
        let texts: std::collections::HashSet<String> = (0..5_000)
            .map(|inode| words(&own_path(37, inode)))
            .collect();
        assert_eq!(texts.len(), 5_000);
        // All of them are the same file.
        assert_eq!(paths.len(), 1);
        assert!(texts.iter().all(|text| text.ends_with("/37")));
    }
}

//! Where a process will find the driver that it has not loaded yet.
//!
//! PyTorch loads libcuda with the first tensor on a device, and allocates in the same breath. Probes
//! that are placed when the kernel tells of the new library can miss the first segments; those that
//! are on its file before anybody has it mapped miss none. So the file is looked for as the dynamic
//! loader would: `LD_LIBRARY_PATH`, the loader's cache, the default folders (ld.so(8)). Should the
//! process load another file after all, that one is probed when it does.

use std::{
    fs::File,
    io::Read as _,
    os::{
        fd::{AsFd, AsRawFd as _, OwnedFd},
        unix::fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use vramscope_python::Process;

use crate::{library::Library, target};

/// By what name everybody asks for it.
const DRIVER: &str = "libcuda.so.1";
const CACHE: &str = "/etc/ld.so.cache";
/// More than any such cache, and little enough to read.
const MAX_CACHE_BYTES: u64 = 16 << 20;
/// What the loader has built in, on all distributions together.
const DEFAULT_FOLDERS: [&str; 5] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/usr/lib",
];

/// A library that is not loaded.
#[derive(Clone, Debug)]
pub struct Ahead {
    /// It; its file can be opened as long as this exists.
    pub library: Library,
    _held: Arc<OwnedFd>,
}

/// The driver that a process would load now. `None` where there is none to be found.
pub fn driver(process: &Process) -> Option<Ahead> {
    let pid = process.pid();
    let root = File::open(format!("/proc/{pid}/root")).ok()?;
    let environment = target::environment(pid);
    let listed = environment.get("LD_LIBRARY_PATH").map_or("", |list| list);
    // Relative to a folder that the process may leave: those are not followed.
    let folders = listed
        .split([':', ';'])
        .filter(|folder| folder.starts_with('/'));
    let cached = || {
        let cache = read_cache(&root).unwrap_or_default();
        in_cache(&cache, DRIVER).map(PathBuf::from)
    };
    folders
        .map(|folder| Path::new(folder).join(DRIVER))
        .chain(std::iter::once_with(cached).flatten())
        .chain(DEFAULT_FOLDERS.map(|folder| Path::new(folder).join(DRIVER)))
        .find_map(|path| {
            let held = regular(&root, &path)?;
            Some(Ahead {
                library: Library {
                    file: format!("/proc/self/fd/{}", held.as_raw_fd()).into(),
                    path,
                },
                _held: Arc::new(held),
            })
        })
}

/// A file as the process would find it, links followed inside its root. Nothing is opened but names
/// (`O_PATH`): in its place may lie whatever waits for a reader.
fn regular(root: impl AsFd, path: &Path) -> Option<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT);
    let found = openat2(root, path, how).ok()?;
    let kind = nix::sys::stat::fstat(&found).ok()?.st_mode & libc::S_IFMT;
    (kind == libc::S_IFREG).then_some(found)
}

fn read_cache(root: &File) -> Option<Vec<u8>> {
    let found = regular(root, Path::new(CACHE))?;
    let by_name = format!("/proc/self/fd/{}", found.as_raw_fd());
    let mut bytes = Vec::new();
    let file = File::open(by_name).ok()?;
    file.take(MAX_CACHE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Which file, that is.
pub fn identity(library: &Library) -> Option<(u64, u64)> {
    let file = std::fs::metadata(&library.file).ok()?;
    Some((file.dev(), file.ino()))
}

/// The path of a library in the loader's cache (glibc's `sysdeps/generic/dl-cache.h`: a header of 48
/// bytes, entries of 24, strings by their offset from the header).
fn in_cache<'a>(cache: &'a [u8], name: &str) -> Option<&'a str> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    /// `FLAG_ELF_LIBC6 | FLAG_X8664_LIB64`
    const X86_64: u32 = 0x303;
    // Older distributions keep a table of the old form before it.
    let begin = cache.windows(MAGIC.len()).position(|at| at == MAGIC)?;
    let cache = &cache[begin..];
    let number = |at: usize| {
        let bytes = cache.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let text = |at: u32| {
        let rest = cache.get(at as usize..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    };
    let entries = cache.get(HEADER..)?.len() / ENTRY;
    let count = entries.min(number(MAGIC.len())? as usize);
    (0..count).find_map(|entry| {
        let at = HEADER + entry * ENTRY;
        let fits = number(at)? == X86_64 && text(number(at + 4)?)? == name;
        fits.then(|| text(number(at + 8)?)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        process::{Child, Command},
    };

    use super::*;

    struct Sleeper(Child);

    impl Sleeper {
        fn with(libraries: &str) -> Sleeper {
            let mut command = Command::new("sleep");
            let command = command.arg("60").env("LD_LIBRARY_PATH", libraries);
            let sleeper = Sleeper(command.spawn().unwrap());
            // The kernel lays the environment out a moment after execve(2) is past failing.
            while target::environment(sleeper.0.id()).is_empty() {
                std::thread::yield_now();
            }
            sleeper
        }

        fn driver(&self) -> Option<Ahead> {
            driver(&Process::open(self.0.id()).unwrap())
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn the_first_folder_that_has_it_is_taken_and_what_is_no_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| folder.path().join(name);
        for name in ["waits", "none", "link", "real", "later"] {
            fs::create_dir(of(name)).unwrap();
        }
        // Whoever opened it would wait for ever.
        let pipe = of("waits").join(DRIVER);
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(of("real").join("libcuda.so.580"), b"the driver").unwrap();
        std::os::unix::fs::symlink(of("real").join("libcuda.so.580"), of("link").join(DRIVER))
            .unwrap();
        fs::write(of("later").join(DRIVER), b"another").unwrap();
        let list = ["waits", "none", "link", "later"].map(|name| of(name).display().to_string());
        let sleeper = Sleeper::with(&format!("relative:{}", list.join(":")));
        let found = sleeper.driver().expect("a driver");
        assert_eq!(found.library.path, of("link").join(DRIVER));
        assert_eq!(fs::read(&found.library.file).unwrap(), b"the driver");
        let real = fs::metadata(of("real").join("libcuda.so.580")).unwrap();
        assert_eq!(identity(&found.library), Some((real.dev(), real.ino())));
    }

    #[test]
    fn a_driver_that_is_mapped_and_cannot_be_read_is_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::copy("/proc/self/exe", folder.path().join(DRIVER)).unwrap();
        let sleeper = Sleeper::with(folder.path().to_str().unwrap());
        let process = Process::open(sleeper.0.id()).unwrap();
        let mut mappings = process.mappings().unwrap();
        let mut gone = mappings[0].clone();
        gone.inode = 0;
        gone.path = Some("/nowhere/libc10.so".into());
        mappings.push(gone.clone());
        let plan = |mappings: &[vramscope_python::Mapping]| {
            let plan = crate::plan::plan(&process, mappings, None);
            (plan.ahead.is_some(), plan.driver_file.is_some())
        };
        assert_eq!(plan(&mappings), (true, true));
        gone.path = Some("/nowhere/libcuda.so.1".into());
        // No address has a mapping by which it could be reached either.
        (gone.start, gone.end) = (4096, 8192);
        mappings.push(gone);
        assert_eq!(plan(&mappings), (false, false));
    }

    #[test]
    fn the_loaders_cache_is_read_as_its_own_tool_reads_it() {
        let Ok(cache) = fs::read(CACHE) else {
            panic!("{CACHE}: every machine with glibc has one");
        };
        let listed = Command::new("/sbin/ldconfig").arg("-p").output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let mut seen = std::collections::HashSet::new();
        for line in listed.lines() {
            let Some((name, path)) = line.trim().split_once(" (libc6,x86-64) => ") else {
                continue;
            };
            // The first of a name is what the loader takes.
            if seen.insert(name) {
                assert_eq!(in_cache(&cache, name), Some(path), "{name}");
            }
        }
        assert!(seen.contains("libc.so.6"), "{listed}");
        assert_eq!(in_cache(&cache, "libnobody-has-it.so.1"), None);
        // A table of the old form before it, as on older distributions.
        let old = [b"ld.so-1.7.0\0\0\0\0\0".as_slice(), &cache].concat();
        assert_eq!(
            in_cache(&old, "libc.so.6"),
            in_cache(&cache, "libc.so.6"),
            "with the old form before it"
        );
    }

    #[test]
    fn a_damaged_cache_names_no_library_that_is_not_in_it() {
        let cache = fs::read(CACHE).unwrap();
        let whole = in_cache(&cache, "libc.so.6");
        for length in (0..cache.len()).step_by(7) {
            let found = in_cache(&cache[..length], "libc.so.6");
            assert!(found.is_none() || found == whole, "{length}: {found:?}");
        }
        let mut torn = cache.clone();
        for at in 20..cache.len().min(4000) {
            torn[at] = 0xff;
            // Whatever it answers, it answers.
            let _ = in_cache(&torn, "libc.so.6");
        }
        // All that follows the magic is now nonsense.
        assert_eq!(in_cache(&torn[..4000], "libc.so.6"), None);
    }
}

//! Who a process is, as a person would name it.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use vramscope_events::{Pid, ProcessInfo, Role};
use vramscope_python::{Mapping, Python};

/// Collects what is worth saying of a process. What cannot be read stays empty.
pub fn info(pid: u32, mappings: &[Mapping], python: Option<&Python>) -> ProcessInfo {
    let environment = environment(pid);
    ProcessInfo {
        pid: Pid(pid),
        command: command(pid),
        python: python.map(|python| python.version.to_string()),
        torch: torch_version(pid, mappings),
        role: role(pid, &command(pid), None, &environment),
        rank: environment.get("RANK").and_then(|rank| rank.parse().ok()),
        directory: fs::read_link(format!("/proc/{pid}/cwd")).ok(),
        root: other_root(pid),
    }
}

/// The command line, arguments separated by spaces; the name where there is none.
pub fn command(pid: u32) -> String {
    command_of(pid).unwrap_or_else(|| "?".into())
}

/// The same; `None` where neither can be read: no such process in our pid namespace.
pub fn command_of(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    if !words.is_empty() {
        return Some(words.join(" "));
    }
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .ok()
        .map(|name| format!("[{}]", name.trim_end()))
}

/// The command line for a sentence: one line, not too long.
pub fn short_command(pid: u32) -> String {
    const CHARACTERS: usize = 80;
    let command = command(pid);
    let mut short: String = (command.chars().take(CHARACTERS))
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect();
    if command.chars().count() > CHARACTERS {
        short.push('…');
    }
    short
}

/// What a process is among others. `copy_of`: who it is a copy of, by fork(2) alone.
pub fn role(
    pid: u32,
    command: &str,
    copy_of: Option<u32>,
    environment: &HashMap<String, String>,
) -> Role {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if name.trim_end() == LOADER_NAME {
        return Role::Loader;
    }
    // A launcher gives its ranks their numbers, and has none itself.
    let launches = LAUNCHERS.iter().any(|launcher| {
        command
            .split_whitespace()
            .take(LAUNCHER_WORDS)
            .any(|word| word == *launcher || word.ends_with(&format!("/{launcher}")))
    });
    if launches && !environment.contains_key("LOCAL_RANK") {
        return Role::Launcher;
    }
    if copy_of.is_some() || command.contains("--multiprocessing-fork") {
        return Role::Child;
    }
    Role::Program
}

/// What PyTorch (2.5 and later) calls the first thread of a `DataLoader`'s worker.
const LOADER_NAME: &str = "pt_data_worker";
/// Programs and modules that start a distributed run, by name.
const LAUNCHERS: [&str; 7] = [
    "torchrun",
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate",
    "deepspeed",
    "mpirun",
    "srun",
];
/// Words of a command line among which they are.
const LAUNCHER_WORDS: usize = 6;

/// The environment that the process was started with.
pub fn environment(pid: u32) -> HashMap<String, String> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&bytes)
        .split('\0')
        .filter_map(|entry| entry.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Whether a process certainly sees a single device: by its environment, else by the machine.
pub fn sees_one_device(pid: u32) -> bool {
    match environment(pid).get("CUDA_VISIBLE_DEVICES") {
        Some(list) => {
            list.split(',')
                .filter(|name| !name.trim().is_empty())
                .count()
                == 1
        }
        None => fs::read_dir("/proc/driver/nvidia/gpus").is_ok_and(|gpus| gpus.count() == 1),
    }
}

/// Whether the process asked for PyTorch's cudaMallocAsync backend (either name of the variable).
pub fn uses_async_backend(environment: &HashMap<String, String>) -> bool {
    ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"]
        .iter()
        .filter_map(|name| environment.get(*name))
        .any(|options| options.replace(' ', "").contains("backend:cudaMallocAsync"))
}

/// What to know of a process for which [`uses_async_backend`] holds.
pub const ASYNC_NOTE: &str = "its allocator is cudaMallocAsync, which does not report tensors: the \
                              driver's allocations are shown instead, and they are right to the byte";

/// What to know where NVML cannot be asked.
pub fn nvml_note(error: &impl std::fmt::Display) -> String {
    format!(
        "the capacity of the device is unknown, so the time to OOM is too: NVML: {error}; say it \
         with --capacity, such as --capacity 80G"
    )
}

/// What to know of a Python whose stacks nobody has compared.
pub fn untested_note(python: &Python) -> String {
    format!(
        "Python {} is known from its published layout only; its stacks were never compared with a \
         running one",
        python.version
    )
}

/// All descendants, nearest first.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut waiting = vec![pid];
    while let Some(parent) = waiting.pop() {
        for child in children(parent) {
            if !found.contains(&child) {
                found.push(child);
                waiting.push(child);
            }
        }
    }
    found
}

/// Whether this is the first process of the machine, which all others descend from; the first one
/// of a container is not.
pub fn is_first_of_all(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // PROC_PID_INIT_INO in the kernel: the number of the pid namespace that all others are in.
    const ALL: u64 = 0xEFFF_FFFC;
    pid == 1 && fs::metadata("/proc/self/ns/pid").is_ok_and(|namespace| namespace.ino() == ALL)
}

/// The processes that have this number in a pid namespace below ours: in a container.
pub fn numbered_inside(number: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<u32> = pids
        .filter(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status"));
            status.is_ok_and(|status| innermost_number(&status) == Some(number))
        })
        .collect();
    found.sort_unstable();
    found
}

/// A process's number in its own pid namespace, where that is not ours.
fn innermost_number(status: &str) -> Option<u32> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().skip(1).last()?.parse().ok()
}

/// The processes that a process has started and that run.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let mut found: Vec<u32> = tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    found.sort_unstable();
    found
}

/// `torch/version.py` beside the libraries says `__version__ = '2.8.0+cu128'`.
fn torch_version(pid: u32, mappings: &[Mapping]) -> Option<String> {
    let library = mappings
        .iter()
        .find(|mapping| mapping.file_name() == Some("libc10.so"))?
        .path
        .as_deref()?;
    let version = library.parent()?.parent()?.join("version.py");
    let inside = version.strip_prefix("/").unwrap_or(&version);
    let text = fs::read_to_string(Path::new(&format!("/proc/{pid}/root")).join(inside)).ok()?;
    quoted_version(&text)
}

fn quoted_version(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("__version__"))?;
    let quote = line.find(['\'', '"'])?;
    let rest = &line[quote + 1..];
    Some(rest[..rest.find(['\'', '"'])?].to_owned())
}

/// The way to the process's files, where its root directory is not ours.
fn other_root(pid: u32) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let identity = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    let theirs = identity(&root)?;
    (Some(theirs) != identity(Path::new("/"))).then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let text = "from typing import Optional\n__version__ = '2.8.0+cu128'\ndebug = False\n";
        assert_eq!(quoted_version(text), Some("2.8.0+cu128".into()));
        assert_eq!(quoted_version("__version__ = 3"), None);
        assert_eq!(quoted_version(""), None);
    }

    #[test]
    fn numbers_inside() {
        let status = |line: &str| format!("Name:\tpython\nNSpid:\t{line}\nNSpgid:\t7\n");
        assert_eq!(innermost_number(&status("4121\t17")), Some(17));
        assert_eq!(innermost_number(&status("4121\t17\t1")), Some(1));
        assert_eq!(innermost_number(&status("4121")), None);
        assert_eq!(innermost_number("Name:\tpython\n"), None);
    }

    #[test]
    fn we_have_a_command_line_and_our_own_root() {
        let pid = std::process::id();
        assert!(command(pid).contains("vramscope_tracer"));
        assert_eq!(other_root(pid), None);
        assert!(descendants(u32::MAX).is_empty());
    }
}

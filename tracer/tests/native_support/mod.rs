//! Libraries whose functions call each other, and what is seen of them.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use vramscope_events::{Event, Frame, FrameId, FrameKind, Record, StackId};
use vramscope_tracer::kernel;

/// Libraries, and how they are built.
pub const LIBRARIES: [(&str, &[&str]); 4] = [
    ("fp", &["-O2", "-fno-omit-frame-pointer"]),
    ("nofp", &["-O2", "-fomit-frame-pointer"]),
    ("plain", &["-O0"]),
    ("deleted", &["-O2", "-fomit-frame-pointer"]),
];

/// Says that a stack goes on.
pub const CUT: &str = "[not unwound further]";

/// Functions, innermost first.
pub type Stack = Vec<String>;

pub fn why_not() -> Option<String> {
    kernel::checks()
        .into_iter()
        .find(|check| check.standing == kernel::Standing::Missing)
        .map(|check| check.to_string())
}

pub fn interpreter(version: &str) -> Option<PathBuf> {
    let home = std::env::var_os("HOME")?;
    let versions = Path::new(&home).join(".pyenv/versions");
    let mut found: Vec<PathBuf> = std::fs::read_dir(versions)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with(&format!("{version}."))
        })
        .map(|entry| entry.path().join(format!("bin/python{version}")))
        .collect();
    found.push(format!("/usr/bin/python{version}").into());
    found.push(format!("/usr/local/bin/python{version}").into());
    found.into_iter().find(|path| path.exists())
}

pub fn build(directory: &Path) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let build = |name: &str, source: &str, options: &[&str]| {
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-Wl,-rpath,$ORIGIN", "-L"])
            .arg(directory)
            .arg("-o")
            .arg(directory.join(name))
            .arg(sources.join(source))
            .args(options)
            .status()
            .expect("a C compiler");
        assert!(status.success());
    };
    build("libc10.so", "python_stacks/libc10.c", &["-O1"]);
    build(
        "libcore.so",
        "native_stacks/core.c",
        &["-O2", "-l:libc10.so"],
    );
    for (prefix, options) in LIBRARIES {
        let prefix_option = format!("-DPREFIX={prefix}");
        let options = [options, &[&prefix_option, "-l:libcore.so"]].concat();
        build(
            &format!("libchain_{prefix}.so"),
            "native_stacks/chain.c",
            &options,
        );
    }
}

/// What has come of a session's records.
#[derive(Default)]
pub struct Seen {
    pub frames: HashMap<FrameId, Arc<Frame>>,
    pub stacks: HashMap<StackId, Arc<[FrameId]>>,
    pub events: HashMap<u64, StackId>,
    pub lost: u64,
}

impl Seen {
    pub fn take(&mut self, record: Record) {
        match record.event {
            Event::Frame { id, frame } => drop(self.frames.insert(id, frame)),
            Event::Stack { id, frames } => drop(self.stacks.insert(id, frames)),
            Event::Alloc(alloc) => drop(self.events.insert(alloc.address.0, alloc.stack)),
            Event::Lost { count, .. } => self.lost += count,
            _ => {}
        }
    }

    pub fn frames(&self, number: u64) -> Option<impl Iterator<Item = &Frame>> {
        let stack = self.stacks.get(self.events.get(&number)?)?;
        Some(
            stack
                .iter()
                .filter_map(|id| self.frames.get(id).map(Arc::as_ref)),
        )
    }

    /// All functions of an event's stack.
    pub fn whole(&self, number: u64) -> Option<Stack> {
        let frames = self.frames(number)?;
        Some(frames.map(|frame| frame.function.to_string()).collect())
    }

    /// The chain's own functions: what stands before the Python function that began it, without
    /// those that lead from one to the other.
    pub fn chain(&self, number: u64) -> Option<Stack> {
        let mut chain = Vec::new();
        let mut begun = false;
        for frame in self.frames(number)? {
            let own = match frame.kind {
                FrameKind::Python => {
                    begun |= &*frame.function == "one";
                    ["inner", "outer"].contains(&&*frame.function)
                }
                FrameKind::Native => {
                    frame.file.contains("libchain_")
                        || &*frame.function == CUT
                        || ["by_sort", "compare"].contains(&&*frame.function)
                }
                FrameKind::Backward => false,
            };
            if begun {
                return Some(chain);
            }
            if own {
                chain.push(frame.function.to_string());
            }
        }
        None
    }
}

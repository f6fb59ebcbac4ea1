//! The committed bindings against NVIDIA's headers: made again and compared for the newest, and
//! sizes, offsets and numbers checked by the C compiler for both majors.
//!
//! The headers come from PyPI wheels, into `${XDG_CACHE_HOME:-~/.cache}/vramscope/cupti-headers`.
//! `VRAMSCOPE_BLESS=1` writes the bindings anew; where the crate already uses what they lack, with
//! `CUPTI_INCLUDE` set to the folder of the headers.

#[path = "../src/generate.rs"]
mod generate;
#[path = "../src/wanted.rs"]
mod wanted;

use std::env;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Wheels with headers, and the folder below which both keep them.
struct Release {
    name: &'static str,
    wheels: [&'static str; 2],
    /// What the bindings have and these headers do not.
    lacks: &'static [&'static str],
}

const NEWEST: Release = Release {
    name: "13.5",
    wheels: ["nvidia-cuda-cupti==13.5.25", "nvidia-cuda-runtime==13.5.37"],
    lacks: &[],
};

const OTHERS: [Release; 3] = [
    Release {
        name: "13.2",
        wheels: ["nvidia-cuda-cupti==13.2.86", "nvidia-cuda-runtime==13.2.86"],
        lacks: &SINCE_13_5,
    },
    Release {
        name: "12.9",
        wheels: [
            "nvidia-cuda-cupti-cu12==12.9.79",
            "nvidia-cuda-runtime-cu12==12.9.79",
        ],
        lacks: &SINCE_13,
    },
    Release {
        name: "12.8",
        wheels: [
            "nvidia-cuda-cupti-cu12==12.8.90",
            "nvidia-cuda-runtime-cu12==12.8.90",
        ],
        lacks: &SINCE_13,
    },
];

/// What came after CUDA 13.2: `reserved` shrank for a new member.
const SINCE_13_5: [&str; 2] = [
    "CUmemPoolProps_st::gpuDirectRDMACapable",
    "CUmemPoolProps_st::reserved",
];

/// What came after CUDA 12.
const SINCE_13: [&str; 6] = [
    SINCE_13_5[0],
    SINCE_13_5[1],
    "CUpti_SubscriberParams",
    "cuMulticastBindAddr_v2",
    "cuMulticastBindMem_v2",
    // There by another name: cudaGraphAddNode_v2_v12030.
    "cudaGraphAddNode_v12030",
];

fn cache() -> PathBuf {
    let base = env::var_os("XDG_CACHE_HOME").map_or_else(
        || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache"),
        PathBuf::from,
    );
    base.join("vramscope/cupti-headers")
}

/// Folders with the headers of a release; fetched once. Says why there are none.
fn headers(release: &Release) -> Result<Vec<PathBuf>, String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = cache().join(release.name);
    if !folder.join("complete").exists() {
        fetch(release, &folder)?;
    }
    let candidates = [
        "nvidia/cu13/include",
        "nvidia/cuda_cupti/include",
        "nvidia/cuda_runtime/include",
    ];
    Ok(candidates
        .iter()
        .map(|path| folder.join(path))
        .filter(|path| path.is_dir())
        .collect())
}

fn fetch(release: &Release, folder: &Path) -> Result<(), String> {
    let new = cache().join(format!("new.{}.{}", release.name, std::process::id()));
    let _ = std::fs::remove_dir_all(&new);
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "install",
    ])
    .args([
        "--no-deps",
        "--no-compile",
        "--only-binary",
        ":all:",
        "--target",
    ])
    .arg(&new)
    .args(release.wheels);
    run(&mut pip)?;
    // The libraries in the wheels are of no use here.
    let mut find = Command::new("find");
    find.arg(&new).args(["-name", "*.so*", "-delete"]);
    run(&mut find)?;
    std::fs::write(new.join("complete"), "").map_err(|error| error.to_string())?;
    match std::fs::rename(&new, folder) {
        // Somebody else was faster.
        Err(_) if folder.join("complete").exists() => {
            std::fs::remove_dir_all(&new).map_err(|error| error.to_string())
        }
        done => done.map_err(|error| error.to_string()),
    }
}

fn run(command: &mut Command) -> Result<Output, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        Ok(output)
    } else {
        let messages = String::from_utf8_lossy(&output.stderr);
        Err(format!("{command:?}: {}", messages.trim()))
    }
}

/// The folders, or `None` after saying that the test is skipped.
fn headers_or_skip(test: &str, release: &Release) -> Option<Vec<PathBuf>> {
    match headers(release) {
        Ok(folders) => Some(folders),
        Err(reason) => {
            let reason = reason.lines().next_back().unwrap_or_default().to_owned();
            // Past the test runner's capture, so that the test command can count it.
            let _ = writeln!(
                std::io::stderr(),
                "SKIP: {test}: no headers of CUPTI {}: {reason}",
                release.name
            );
            None
        }
    }
}

fn committed() -> String {
    std::fs::read_to_string("bindings/cupti.rs").expect("the repository holds bindings/cupti.rs")
}

#[test]
fn the_committed_bindings_are_those_of_the_newest_headers() {
    let Some(folders) = headers_or_skip("bindings", &NEWEST) else {
        return;
    };
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let version = folders
        .iter()
        .find_map(|folder| generate::version_of(folder));
    assert!(version >= Some(wanted::OLDEST_HEADERS), "{version:?}");
    let made =
        generate::bindings(&folders, Path::new("headers"), true).expect("bindgen reads them");
    if env::var_os("VRAMSCOPE_BLESS").is_some() {
        std::fs::write("bindings/cupti.rs", &made).expect("bindings/ is writable");
    }
    let committed = committed();
    let different = made
        .lines()
        .zip(committed.lines())
        .position(|(made, committed)| made != committed);
    assert!(
        made == committed,
        "bindings/cupti.rs differs from what bindgen makes of CUPTI {}, first in line {:?}; \
         VRAMSCOPE_BLESS=1 writes it anew",
        NEWEST.name,
        different.map(|line| line + 1),
    );
}

#[test]
fn no_text_of_the_headers_is_carried_over() {
    let committed = committed();
    for mark in ["//", "/*", "#[doc", "NVIDIA", "Copyright"] {
        assert!(
            !committed.contains(mark),
            "bindings/cupti.rs holds {mark:?}"
        );
    }
}

/// The part of `text` between two marks.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let rest = &text[text.find(start)? + start.len()..];
    rest.find(end).map(|at| &rest[..at])
}

/// What the bindings say, as C assertions, and how many of them. Left out: what `lacks` names.
fn assertions(bindings: &str, lacks: &[&str]) -> (String, usize) {
    // Long lines are broken by rustfmt.
    let text = bindings.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut source = String::from("#include \"wanted.h\"\n");
    // Where the parameters of a node that allocates or frees stand in the union.
    for (node, member) in [
        ("CUgraphNodeParams", "alloc"),
        ("CUgraphNodeParams", "free"),
        ("struct cudaGraphNodeParams", "alloc"),
        ("struct cudaGraphNodeParams", "free"),
    ] {
        writeln!(
            source,
            "_Static_assert(offsetof({node}, {member}) == 16, \"{node}\");"
        )
        .expect("a string");
    }
    let mut count = 0;
    for part in text.split("[\"").skip(1) {
        let number = between(part, "- ", "usize");
        let (Some(title), Some(number)) = (part.split('"').next(), number) else {
            continue;
        };
        // Parts without a name, the functions' table, and what is a struct to no C compiler.
        if title.contains("__bindgen") || lacks.iter().any(|name| title.contains(name)) {
            continue;
        }
        let (what, name) = title.split_once(": ").map_or_else(
            || title.rsplit_once(" of ").expect("bindgen's titles"),
            |(_, field)| ("Offset", field),
        );
        let expression = match what {
            "Size" => format!("sizeof({name})"),
            "Alignment" => format!("_Alignof({name})"),
            _ => {
                let (name, field) = name.split_once("::").expect("a field of a struct");
                format!("offsetof({name}, {})", field.trim_end_matches('_'))
            }
        };
        let struct_name = name.split("::").next().unwrap_or(name);
        let expression = if is_tag_only(struct_name) {
            expression.replacen(struct_name, &format!("struct {struct_name}"), 1)
        } else {
            expression
        };
        writeln!(
            source,
            "_Static_assert({expression} == {number}, \"{title}\");"
        )
        .expect("a string");
        count += 1;
    }
    for part in text.split("pub const ").skip(1) {
        let Some((name, value)) = part
            .split(';')
            .next()
            .and_then(|item| item.split_once(" = "))
        else {
            continue;
        };
        let name = name.split(':').next().unwrap_or(name);
        if lacks.iter().any(|lacking| name.contains(lacking)) {
            continue;
        }
        writeln!(source, "_Static_assert({name} == {value}, \"{name}\");").expect("a string");
        count += 1;
    }
    (source, count)
}

/// Whether C knows the struct by its tag alone.
fn is_tag_only(name: &str) -> bool {
    name.ends_with("_st") || (name.starts_with("cuda") && !name.ends_with("_params"))
}

#[test]
fn sizes_offsets_and_numbers_are_those_of_the_c_compiler() {
    let bindings = committed();
    for release in [&NEWEST].into_iter().chain(&OTHERS) {
        let Some(folders) = headers_or_skip("layouts", release) else {
            continue;
        };
        let (source, count) = assertions(&bindings, release.lacks);
        assert!(
            count > 300,
            "only {count} assertions were found in the bindings"
        );
        if let Err(messages) = compile(release, &source, &folders) {
            panic!("the bindings do not fit CUPTI {}: {messages}", release.name);
        }
        println!(
            "CUPTI {}: {count} sizes, offsets and numbers agree",
            release.name
        );
    }
}

/// Lets the C compiler check a source that includes the headers.
fn compile(release: &Release, source: &str, folders: &[PathBuf]) -> Result<Output, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("layouts-{}-{}-{number}.c", release.name, std::process::id());
    let file = env::temp_dir().join(name);
    std::fs::write(&file, source).expect("the temporary folder is writable");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-fsyntax-only", "-Iheaders"])
        .arg(&file);
    for folder in folders {
        cc.arg("-I").arg(folder);
    }
    let result = run(&mut cc);
    std::fs::remove_file(&file).expect("it was just written");
    result
}

#[test]
fn the_simulated_cupti_has_the_ids_of_the_headers() {
    let table = std::fs::read_to_string("../../tests/simcuda/cupti/ids.txt").expect("it is there");
    for (major, release) in [("13", &NEWEST), ("12", &OTHERS[2])] {
        let Some(folders) = headers_or_skip("ids", release) else {
            continue;
        };
        let mut source = String::from("#include \"wanted.h\"\n");
        let mut count = 0;
        for line in table.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [of, domain, _, callback, id] = fields[..] else {
                panic!("{line}");
            };
            if of == major {
                let prefix = if domain == "driver" {
                    wanted::DRIVER_ID
                } else {
                    wanted::RUNTIME_ID
                };
                writeln!(
                    source,
                    "_Static_assert({prefix}{callback} == {id}, \"{callback}\");"
                )
                .expect("a string");
                count += 1;
            }
        }
        assert!(count > 400, "only {count} ids for CUDA {major}");
        if let Err(messages) = compile(release, &source, &folders) {
            panic!("ids.txt does not fit CUPTI {}: {messages}", release.name);
        }
        println!("CUPTI {}: {count} ids agree", release.name);
    }
}

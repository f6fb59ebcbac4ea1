//! Where libcupti is.

use std::io;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// Majors of CUDA whose CUPTI is known, newest first.
const MAJORS: [u32; 2] = [13, 12];
/// `dlopen`: only a library that is there already (Linux, all architectures).
const RTLD_NOLOAD: i32 = 4;

/// No CUPTI can be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is nowhere.
    #[error(
        "no libcupti is loaded, and none is found as {}; \
         it comes with PyTorch's wheels and with CUDA toolkits", tried.join(", ")
    )]
    NotFound {
        /// Names and paths that were tried.
        tried: Vec<String>,
    },
    /// The process has one, and it cannot be taken.
    #[error("{} is loaded and cannot be used: {reason}", path.display())]
    Unusable {
        /// The library.
        path: PathBuf,
        /// What the dynamic linker or the library says.
        reason: String,
    },
    /// The memory map of the process cannot be read.
    #[error("/proc/self/maps: {0}")]
    Maps(#[from] io::Error),
}

/// An opened library.
pub(crate) struct Found {
    pub library: Library,
    pub path: PathBuf,
    /// Whether the process had it already.
    pub reused: bool,
}

/// The copy that the process has, or one that fits its CUDA runtime.
pub(crate) fn find() -> Result<Found, LoadError> {
    let mapped = mapped_files()?;
    let named = |prefix: &'static str| {
        mapped
            .iter()
            .filter(move |path| file_name(path).starts_with(prefix))
    };
    // Two copies in one process would each believe that they are alone: never load a second.
    let first_error = match named("libcupti.so").next() {
        Some(path) => match open(path, RTLD_NOLOAD) {
            Ok(library) => {
                return Ok(Found {
                    library,
                    path: path.clone(),
                    reused: true,
                });
            }
            Err(error) => Some(LoadError::Unusable {
                path: path.clone(),
                reason: error.to_string(),
            }),
        },
        None => None,
    };
    if let Some(error) = first_error {
        return Err(error);
    }
    let runtimes: Vec<&PathBuf> = named("libcudart.so").collect();
    let mut tried = Vec::new();
    for candidate in candidates(&runtimes) {
        if let Ok(library) = open(&candidate, 0) {
            return Ok(Found {
                library,
                path: candidate,
                reused: false,
            });
        }
        tried.push(candidate.display().to_string());
    }
    Err(LoadError::NotFound { tried })
}

fn open(path: &Path, flags: i32) -> Result<Library, libloading::Error> {
    // SAFETY: the constructors of NVIDIA's library run, as they do for every CUPTI tool; with
    // RTLD_NOLOAD nothing runs.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | flags) }
}

/// Files that are mapped executable, in order of address, each once.
fn mapped_files() -> io::Result<Vec<PathBuf>> {
    let maps = std::fs::read("/proc/self/maps")?;
    Ok(files_of(&String::from_utf8_lossy(&maps)))
}

fn files_of(maps: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for line in maps.lines() {
        let mut fields = line.splitn(6, ' ');
        let executable = fields.nth(1).is_some_and(|access| access.contains('x'));
        let path = fields.nth(3).map_or("", str::trim_start);
        if executable
            && path.starts_with('/')
            && files.iter().all(|known| known.as_os_str() != path)
        {
            files.push(PathBuf::from(path));
        }
    }
    files
}

fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("")
}

/// Names and paths to try: the major of the process's CUDA runtime first, by name, then beside
/// that runtime as the wheels and the toolkits lay it out.
fn candidates(runtimes: &[&PathBuf]) -> Vec<PathBuf> {
    let mut majors = MAJORS.to_vec();
    let used = |major: u32| {
        let name = format!("libcudart.so.{major}");
        runtimes
            .iter()
            .any(|path| file_name(path).starts_with(&name))
    };
    majors.sort_by_key(|major| !used(*major));
    if runtimes
        .iter()
        .any(|_| MAJORS.iter().any(|major| used(*major)))
    {
        // CUPTI of another major than the runtime's describes other arguments.
        majors.retain(|major| used(*major));
    }
    let names: Vec<String> = majors
        .iter()
        .map(|major| format!("libcupti.so.{major}"))
        .collect();
    let folders: Vec<&Path> = runtimes.iter().filter_map(|path| path.parent()).collect();
    let beside = folders.iter().flat_map(|folder| {
        [
            "",
            "../../cuda_cupti/lib",
            "../extras/CUPTI/lib64",
            "../../../extras/CUPTI/lib64",
        ]
        .map(|place| folder.join(place))
    });
    let beside: Vec<PathBuf> = beside
        .flat_map(|folder| {
            names
                .iter()
                .map(move |name| folder.join(name))
                .collect::<Vec<_>>()
        })
        .collect();
    names.iter().map(PathBuf::from).chain(beside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_spaces_and_a_deleted_file_are_read_as_they_stand() {
        let maps = "7f00-7f01 r--p 00000000 08:01 12                 /opt/a b/libcupti.so.12\n\
                    7f01-7f02 r-xp 00001000 08:01 12                 /opt/a b/libcupti.so.12\n\
                    7f02-7f03 r-xp 00002000 08:01 12                 /opt/a b/libcupti.so.12\n\
                    7f03-7f04 rw-p 00000000 00:00 0 \n\
                    7f04-7f05 r-xp 00000000 00:00 0                  [vdso]\n\
                    7f05-7f06 r--p 00000000 08:01 13                 /data/libcudart.so.12\n";
        assert_eq!(files_of(maps), [PathBuf::from("/opt/a b/libcupti.so.12")]);
    }

    #[test]
    fn the_runtime_decides_the_major() {
        let of = |path: &str| -> Vec<String> {
            candidates(&[&PathBuf::from(path)])
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        };
        let wheel = of("/site/nvidia/cuda_runtime/lib/libcudart.so.12");
        assert_eq!(wheel[0], "libcupti.so.12");
        let beside = "/site/nvidia/cuda_runtime/lib/../../cuda_cupti/lib/libcupti.so.12";
        assert!(wheel.contains(&beside.to_owned()), "{wheel:?}");
        assert!(wheel.iter().all(|path| !path.ends_with("13")), "{wheel:?}");
        let wheel = of("/site/nvidia/cu13/lib/libcudart.so.13");
        assert_eq!(
            wheel[..2],
            ["libcupti.so.13", "/site/nvidia/cu13/lib/libcupti.so.13"]
        );
        let none = candidates(&[]);
        assert_eq!(
            none,
            [
                PathBuf::from("libcupti.so.13"),
                PathBuf::from("libcupti.so.12")
            ]
        );
    }
}

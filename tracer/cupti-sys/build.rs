//! Takes the committed bindings, or makes new ones where headers are at hand.
//!
//! `CUPTI_INCLUDE` names folders with `cupti.h`, `cuda.h` and `cuda_runtime_api.h`, separated by
//! colons; without it a toolkit that `CUDA_HOME` or `CUDA_PATH` names is looked at.

#[path = "src/generate.rs"]
mod generate;
#[path = "src/wanted.rs"]
mod wanted;

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    for variable in ["CUPTI_INCLUDE", "CUDA_HOME", "CUDA_PATH"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    for file in [
        "bindings/cupti.rs",
        "headers",
        "src/generate.rs",
        "src/wanted.rs",
    ] {
        println!("cargo:rerun-if-changed={file}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("cupti.rs");
    let bindings = match (asked_for(), toolkit()) {
        (Some(folders), _) => from_headers(&folders).unwrap_or_else(|reason| {
            panic!(
                "CUPTI_INCLUDE={}: {reason}; unset it to use the committed bindings",
                env::var("CUPTI_INCLUDE").unwrap_or_default()
            )
        }),
        (None, Some(folders)) => from_headers(&folders).unwrap_or_else(|_| committed()),
        (None, None) => committed(),
    };
    std::fs::write(out, bindings).expect("OUT_DIR is writable");
}

fn committed() -> String {
    std::fs::read_to_string("bindings/cupti.rs").expect("the repository holds bindings/cupti.rs")
}

fn asked_for() -> Option<Vec<PathBuf>> {
    let value = env::var_os("CUPTI_INCLUDE").filter(|value| !value.is_empty())?;
    Some(env::split_paths(&value).collect())
}

/// The folders of a toolkit, where CUPTI lies apart from the rest.
fn toolkit() -> Option<Vec<PathBuf>> {
    let home = env::var_os("CUDA_HOME").or_else(|| env::var_os("CUDA_PATH"))?;
    let home = PathBuf::from(home);
    let folders = vec![home.join("extras/CUPTI/include"), home.join("include")];
    folders
        .iter()
        .any(|folder| folder.join("cupti.h").exists())
        .then_some(folders)
}

fn from_headers(folders: &[PathBuf]) -> Result<String, String> {
    let version = folders
        .iter()
        .find_map(|folder| generate::version_of(folder));
    match version {
        None => return Err("no folder in it holds cupti_version.h".to_owned()),
        Some(version) if version < wanted::OLDEST_HEADERS => {
            return Err(format!(
                "these are the headers of CUPTI {version}, and at least {} is needed",
                wanted::OLDEST_HEADERS
            ));
        }
        Some(_) => {}
    }
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    generate::bindings(&folders, Path::new("headers"), false).map_err(|error| error.to_string())
}

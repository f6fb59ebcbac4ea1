//! Where the library for injection is.

use std::path::{Path, PathBuf};

/// Its file's name.
pub const NAME: &str = "libvramscope_injection.so";
/// Names it, where it is elsewhere.
pub const VARIABLE: &str = "VRAMSCOPE_INJECTION";

/// Finds it: `given`, where the variable says, beside the executable, or in `../lib/vramscope`.
///
/// # Errors
/// The places where it is not.
pub fn find(given: Option<&Path>) -> Result<PathBuf, Vec<PathBuf>> {
    let named = given
        .map(Path::to_owned)
        .or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from));
    let places = match named {
        Some(path) => vec![path],
        None => std::env::current_exe()
            .ok()
            .as_deref()
            .and_then(Path::parent)
            .map(|folder| {
                vec![
                    folder.join(NAME),
                    folder.join("../lib/vramscope").join(NAME),
                ]
            })
            .unwrap_or_default(),
    };
    let found = places.iter().find(|path| path.is_file());
    found
        .and_then(|path| path.canonicalize().ok())
        .ok_or(places)
}

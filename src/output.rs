//! Writing results: whole, or not at all.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// Writes to standard output.
///
/// # Errors
/// Whatever the other end says; a closed pipe is told apart by its kind.
pub fn stdout(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Refuses a file that is there, before the work for it is done.
///
/// # Errors
/// It is there, and `force` does not say that it may go.
pub fn check_free(path: &Path, force: bool) -> anyhow::Result<()> {
    if !force && path != Path::new("-") && path.exists() {
        anyhow::bail!(
            "{} is there already\n  write over it with --force, or name another file",
            path.display()
        );
    }
    Ok(())
}

/// Writes a file, or standard output for `-`. A file appears whole or not at all, and one that is
/// there is not touched unless `force` says so.
///
/// # Errors
/// The file is there, or could not be written; with the way out.
pub fn file(path: &Path, bytes: &[u8], force: bool) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return Ok(stdout(bytes)?);
    }
    check_free(path, force)?;
    let unfinished = unfinished(path);
    let written = write_whole(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // The error that counts is the one that is reported.
        let _ = fs::remove_file(&unfinished);
    }
    written.with_context(|| {
        format!(
            "{} could not be written ({} bytes)",
            path.display(),
            bytes.len()
        )
    })
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

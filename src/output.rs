//! Writing results: whole, or not at all.

use std::{
    fs::{self, OpenOptions},
    io::{self, BufWriter, Write},
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
    write(path, bytes).with_context(|| {
        format!(
            "{} could not be written ({} bytes)",
            path.display(),
            bytes.len()
        )
    })
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, |out| out.write_all(bytes))
}

/// Like [`file`], but `write` writes into it as it goes.
///
/// # Errors
/// As [`file`], and what `write` says.
pub fn stream<T>(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if path == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        let done = write(&mut out)?;
        out.flush()?;
        return Ok(done);
    }
    check_free(path, force)?;
    let mut done = None;
    let mut failed = None;
    let written = replace(path, |out| match write(out) {
        Ok(result) => {
            done = Some(result);
            Ok(())
        }
        Err(error) => {
            failed = Some(error);
            Err(io::Error::other("see the cause"))
        }
    });
    if let Some(error) = failed {
        return Err(error.context(format!("{} could not be written", path.display())));
    }
    written.with_context(|| format!("{} could not be written", path.display()))?;
    done.with_context(|| format!("{} could not be written", path.display()))
}

/// Writes a file under another name and gives it its own when it is whole. What is there and no
/// file (a device, a pipe) is written to, never replaced; a link stays one.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let place = match fs::metadata(path) {
        Ok(there) if !there.is_file() => {
            let mut out = BufWriter::new(OpenOptions::new().write(true).open(path)?);
            write(&mut out)?;
            return out.flush();
        }
        Ok(_) => fs::canonicalize(path)?,
        Err(_) => path.to_owned(),
    };
    let unfinished = unfinished(&place);
    let written = write_whole(&unfinished, write).and_then(|()| fs::rename(&unfinished, &place));
    if written.is_err() {
        // The error that counts is the one that is reported.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Makes a folder with files: all of them or none. One that is there is not touched unless `force`
/// says so; then the files in it that have the same names are replaced.
///
/// # Errors
/// The folder is there, or could not be made, and what `write` says.
pub fn folder<T>(
    path: &Path,
    force: bool,
    write: impl FnOnce(&Path) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    check_free(path, force)?;
    let unfinished = unfinished(path);
    let made = fs::create_dir(&unfinished)
        .map_err(anyhow::Error::from)
        .and_then(|()| write(&unfinished))
        .and_then(|done| {
            if !path.exists() {
                fs::rename(&unfinished, path)?;
                return Ok(done);
            }
            for entry in fs::read_dir(&unfinished)? {
                let entry = entry?;
                fs::rename(entry.path(), path.join(entry.file_name()))?;
            }
            Ok(done)
        });
    if unfinished.exists() {
        // The error that counts is the one that is reported.
        let _ = fs::remove_dir_all(&unfinished);
    }
    made.with_context(|| format!("{} could not be written", path.display()))
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.into_inner()?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::unix::fs::FileTypeExt as _, thread};

    use super::*;

    #[test]
    fn a_pipe_is_written_to_and_a_link_stays_one() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let reader = {
            let pipe = pipe.clone();
            thread::spawn(move || {
                let mut text = String::new();
                fs::File::open(pipe)
                    .unwrap()
                    .read_to_string(&mut text)
                    .unwrap();
                text
            })
        };
        file(&pipe, b"through", true).unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());

        let (target, link) = (
            directory.path().join("target"),
            directory.path().join("link"),
        );
        file(&target, b"old", false).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(file(&link, b"new", false).is_err(), "it is there");
        file(&link, b"new", true).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            3,
            "nothing is left over"
        );
    }
}

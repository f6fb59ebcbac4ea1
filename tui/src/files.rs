//! What the keys `w` and `f` write: the collector's own report and flamegraph of the view on the
//! screen, never over a file that is there.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
};

use vramscope_collector::{
    escape,
    flamegraph::{self, Weight},
    report::{self, text},
};

use crate::app::{App, Note};

/// Names that are tried before giving up.
const MAX_TRIES: u32 = 1000;

/// Writes the report, with every site.
pub fn write_report(app: &App, directory: &Path) -> Note {
    let options = report::Options {
        grouping: app.query.grouping,
        top: None,
    };
    let layout = text::Layout {
        width: 120,
        ..text::Layout::default()
    };
    let content = text::report(&app.view, options, layout);
    written("report", directory, &stem(app), "txt", &content)
}

/// Writes a flamegraph of the survivors of the device looked at.
pub fn write_flamegraph(app: &App, directory: &Path) -> Note {
    let Some((process, device)) = app.process().zip(app.device()) else {
        return Note {
            text: "no flamegraph yet: waiting for the first allocation".into(),
            failed: true,
        };
    };
    match flamegraph::svg(&app.view, process, device, Weight::Bytes) {
        Ok(content) => {
            let stem = format!("{}-gpu{}-survivors", stem(app), device.device);
            written("flamegraph", directory, &stem, "svg", &content)
        }
        Err(error) => Note {
            text: format!("no flamegraph: {error}"),
            failed: true,
        },
    }
}

/// `vramscope-4121-step1482`: says what it is of and sorts by age.
fn stem(app: &App) -> String {
    match app.process() {
        Some(process) => format!("vramscope-{}-step{}", process.info.pid, process.steps.count),
        None => "vramscope".into(),
    }
}

fn written(what: &str, directory: &Path, stem: &str, extension: &str, content: &str) -> Note {
    match write_new(directory, stem, extension, content) {
        Ok(path) => Note {
            text: format!("{what} written to {}", path.display()),
            failed: false,
        },
        Err((path, error)) => Note {
            text: format!(
                "{what} not written to {}: {error}; start vramscope where you may write",
                escape::text(&path.to_string_lossy())
            ),
            failed: true,
        },
    }
}

/// Writes a file that was not there: `stem.txt`, else `stem-2.txt`, and so on.
fn write_new(
    directory: &Path,
    stem: &str,
    extension: &str,
    content: &str,
) -> Result<PathBuf, (PathBuf, io::Error)> {
    let mut path = directory.join(format!("{stem}.{extension}"));
    for number in 2..MAX_TRIES {
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                return match file.write_all(content.as_bytes()) {
                    Ok(()) => Ok(std::path::absolute(&path).unwrap_or(path)),
                    Err(error) => Err((path, error)),
                };
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                path = directory.join(format!("{stem}-{number}.{extension}"));
            }
            Err(error) => return Err((path, error)),
        }
    }
    Err((path, io::ErrorKind::AlreadyExists.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_overwritten() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let write = |content: &str| write_new(directory.path(), "run", "txt", content);
        let first = write("one").expect("written");
        let second = write("two").expect("written");
        assert_ne!(first, second);
        assert_eq!(std::fs::read_to_string(&first).expect("readable"), "one");
        assert_eq!(std::fs::read_to_string(&second).expect("readable"), "two");
        assert!(first.is_absolute());
    }

    #[test]
    fn failures_name_the_path() {
        let note = written("report", Path::new("/nowhere/at/all"), "run", "txt", "");
        assert!(note.failed);
        assert!(
            note.text.contains("/nowhere/at/all/run.txt"),
            "{}",
            note.text
        );
    }
}

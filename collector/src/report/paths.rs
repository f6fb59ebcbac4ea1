//! Paths as short as they stay clear.

use std::path::Path;

use crate::{
    escape,
    view::{FrameView, ProcessInfo},
};

/// A file for people: relative to the process's working directory, or from the package on for
/// what is installed (`torch/nn/modules/linear.py`), or from the module on for the standard
/// library. Not escaped, not cut.
pub fn short<'a>(file: &'a str, info: &ProcessInfo) -> &'a str {
    for installed in ["/site-packages/", "/dist-packages/"] {
        if let Some(at) = file.rfind(installed) {
            return &file[at + installed.len()..];
        }
    }
    if let Some(directory) = &info.directory
        && let Some(rest) = relative(file, directory)
    {
        return rest;
    }
    if let Some(at) = file.find("/lib/python3.") {
        let rest = &file[at + "/lib/python3.".len()..];
        if let Some((_, module)) = rest.split_once('/') {
            return module;
        }
    }
    file
}

fn relative<'a>(file: &'a str, directory: &Path) -> Option<&'a str> {
    let rest = file.strip_prefix(directory.to_str()?)?;
    let rest = rest.strip_prefix('/')?;
    (!rest.is_empty()).then_some(rest)
}

/// `train.py:27`, or the file alone where the line is unknown; safe to print, at most `columns`
/// wide, cut at the front so that the line number stays.
pub fn place(frame: &FrameView, info: &ProcessInfo, columns: usize) -> String {
    let file = short(&frame.file, info);
    match frame.line {
        0 => escape::line_end(file, columns),
        line => {
            let line = format!(":{line}");
            let room = columns.saturating_sub(line.len());
            let file = escape::line_end(file, room);
            escape::line_end(&format!("{file}{line}"), columns)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortens_what_everybody_knows() {
        let info = ProcessInfo {
            directory: Some("/home/mira/probe".into()),
            ..ProcessInfo::default()
        };
        for (file, shown) in [
            ("/home/mira/probe/train.py", "train.py"),
            ("/home/mira/probe/lib/metrics.py", "lib/metrics.py"),
            ("/home/mira/probes/x.py", "/home/mira/probes/x.py"),
            (
                "/opt/venv/lib/python3.12/site-packages/torch/nn/linear.py",
                "torch/nn/linear.py",
            ),
            ("/usr/lib/python3.12/copy.py", "copy.py"),
            ("/usr/lib/python3.12/json/decoder.py", "json/decoder.py"),
            ("<ipython-input-3>", "<ipython-input-3>"),
            ("", ""),
        ] {
            assert_eq!(short(file, &info), shown);
        }
    }
}

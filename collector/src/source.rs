//! Text of source lines, read when first shown.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use rustc_hash::FxHashMap;

use crate::view::ProcessInfo;

/// Files above this are not read: no one writes them by hand.
const MAX_FILE: u64 = 4 << 20;
/// Bytes of text kept; beyond it, files read earlier are forgotten.
const MAX_CACHE: usize = 16 << 20;
/// Longest line shown, in bytes.
const MAX_LINE: usize = 240;

/// Reads lines of source files as a traced process sees them.
#[derive(Debug, Default)]
pub(crate) struct SourceCache {
    files: FxHashMap<PathBuf, Option<Arc<str>>>,
    bytes: usize,
    /// Seconds since the epoch: a file changed later is not what the process runs.
    newest: Option<u64>,
    /// Nothing is read: the stream brings the lines.
    closed: bool,
}

impl SourceCache {
    /// A cache that distrusts files changed after `session_start` (seconds since the Unix epoch).
    pub fn new(session_start: u64) -> SourceCache {
        SourceCache {
            newest: (session_start > 0).then_some(session_start),
            ..SourceCache::default()
        }
    }

    /// A cache that reads nothing.
    pub fn closed() -> SourceCache {
        SourceCache {
            closed: true,
            ..SourceCache::default()
        }
    }

    /// Line `line` (from 1) of `file`, trimmed; `None` where it cannot be read or has changed.
    pub fn line(&mut self, process: &ProcessInfo, file: &str, line: u32) -> Option<Arc<str>> {
        if self.closed || file.starts_with('<') || line == 0 {
            return None;
        }
        let path = real_path(process, file)?;
        let text = self.text(path)?;
        let line = text.lines().nth(line as usize - 1)?.trim();
        let mut end = line.len().min(MAX_LINE);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        (end > 0).then(|| line[..end].into())
    }

    fn text(&mut self, path: PathBuf) -> Option<Arc<str>> {
        if let Some(known) = self.files.get(&path) {
            return known.clone();
        }
        let text = read(&path, self.newest);
        let size = text.as_ref().map_or(0, |text| text.len());
        if self.bytes + size > MAX_CACHE {
            self.files.clear();
            self.bytes = 0;
        }
        self.bytes += size;
        self.files.insert(path, text.clone());
        text
    }
}

fn read(path: &Path, newest: Option<u64>) -> Option<Arc<str>> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE {
        return None;
    }
    if let (Some(newest), Ok(changed)) = (newest, metadata.modified()) {
        // One second of slack: both clocks are cut to seconds.
        if changed > UNIX_EPOCH + Duration::from_secs(newest + 1) {
            return None;
        }
    }
    let bytes = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into())
}

/// Where the process's `file` lies for us.
fn real_path(process: &ProcessInfo, file: &str) -> Option<PathBuf> {
    let path = Path::new(file);
    let path = if path.is_absolute() {
        path.to_owned()
    } else {
        process.directory.as_ref()?.join(path)
    };
    Some(match &process.root {
        Some(root) => root.join(path.strip_prefix("/").unwrap_or(&path)),
        None => path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(directory: &Path) -> ProcessInfo {
        ProcessInfo {
            directory: Some(directory.to_owned()),
            ..ProcessInfo::default()
        }
    }

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("vramscope-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn lines_are_read_trimmed_and_relative_to_the_process() {
        let directory = scratch("source");
        fs::write(directory.join("a.py"), "first\n   second  \n\nlast").unwrap();
        let mut cache = SourceCache::new(0);
        let here = process(&directory);
        assert_eq!(cache.line(&here, "a.py", 2).as_deref(), Some("second"));
        assert_eq!(cache.line(&here, "a.py", 3), None);
        assert_eq!(cache.line(&here, "a.py", 4).as_deref(), Some("last"));
        assert_eq!(cache.line(&here, "a.py", 5), None);
        assert_eq!(cache.line(&here, "b.py", 1), None);
        assert_eq!(cache.line(&here, "<string>", 1), None);
        let rooted = ProcessInfo {
            root: Some(directory.clone()),
            ..ProcessInfo::default()
        };
        assert_eq!(cache.line(&rooted, "/a.py", 1).as_deref(), Some("first"));
        assert_eq!(
            cache.line(&rooted, "a.py", 1),
            None,
            "no directory to start from"
        );
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_changed_after_the_session_began_is_not_shown() {
        let directory = scratch("changed");
        fs::write(directory.join("a.py"), "new text").unwrap();
        let mut cache = SourceCache::new(1_000_000_000);
        assert_eq!(cache.line(&process(&directory), "a.py", 1), None);
        fs::remove_dir_all(directory).unwrap();
    }
}

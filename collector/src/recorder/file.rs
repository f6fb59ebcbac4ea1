//! A recording that grows in a file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use vramscope_events::Time;
use vramscope_recording::{CheckpointAt, End, Writer};

use super::{
    Options, RecorderError,
    rotate::{Rotation, Step},
    work::{Output, Why},
};

/// A file is only made smaller if it then loses a fifth of its bytes.
const WORTH: u64 = 5;

/// The file.
pub(crate) struct FileOutput {
    file: File,
    path: PathBuf,
    /// Bytes that are whole.
    length: u64,
    /// Bytes of the head.
    head: u64,
    checkpoints: Vec<CheckpointAt>,
    last: Time,
    keep_last: Option<Duration>,
    max_bytes: Option<u64>,
    rotation: Option<Rotation>,
    ended: bool,
}

impl FileOutput {
    pub fn new(options: &Options) -> Result<FileOutput, RecorderError> {
        let path = &options.path;
        may_write(path, options.force)?;
        let create = |cause| RecorderError::Create {
            path: path.clone(),
            cause,
        };
        // Whoever has the old file open keeps it.
        let file = match options.force {
            true => {
                let part = part(path);
                private(&part)
                    .and_then(|file| fs::rename(&part, path).map(|()| file))
                    .map_err(create)?
            }
            false => private(path).map_err(create)?,
        };
        Ok(FileOutput {
            file,
            path: path.clone(),
            length: 0,
            head: 0,
            checkpoints: Vec::new(),
            last: Time(0),
            keep_last: options.keep_last,
            max_bytes: options.max_bytes,
            rotation: None,
            ended: false,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        // What was written in part is not part of the file: the next write goes over it, and
        // giving up cuts it off.
        self.file.write_all_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// The checkpoint at which the file could begin, if that is worth it.
    fn cut(&self) -> Option<CheckpointAt> {
        let mut cut = None;
        if let Some(keep) = self.keep_last {
            let keep = u64::try_from(keep.as_nanos()).unwrap_or(u64::MAX);
            let from = Time(self.last.0.saturating_sub(keep));
            let old = |at: &&CheckpointAt| at.time <= from;
            cut = self.checkpoints.iter().take_while(old).last();
        }
        if let Some(max) = self.max_bytes
            && self.length > max
        {
            // To three quarters, so that it does not happen all the time.
            let target = self.length - max / 4 * 3;
            let first = self.checkpoints.iter().find(|at| at.offset >= target);
            let first = first.or(self.checkpoints.last());
            cut = cut.max_by_offset(first);
        }
        let gain = |at: &CheckpointAt| at.offset.saturating_sub(self.head);
        cut.copied().filter(|at| gain(at) > self.length / WORTH)
    }

    fn rotate(&mut self) {
        if self.rotation.is_some() {
            return;
        }
        if let Some(at) = self.cut() {
            // Where there is no room for a second file, the first one goes on.
            self.rotation = Rotation::begin(&self.path, &self.file, self.head, at).ok();
        }
    }
}

trait MaxByOffset {
    fn max_by_offset(self, other: Self) -> Self;
}

impl MaxByOffset for Option<&CheckpointAt> {
    fn max_by_offset(self, other: Self) -> Self {
        self.into_iter().chain(other).max_by_key(|at| at.offset)
    }
}

impl Output for FileOutput {
    fn begin(&mut self, head: &[u8]) -> io::Result<()> {
        self.write(head)?;
        self.head = self.length;
        Ok(())
    }

    fn append(&mut self, chunks: &[u8], last: Time) -> io::Result<()> {
        self.last = self.last.max(last);
        self.write(chunks)
    }

    fn checkpoint(&mut self, chunk: &[u8], sequence: u64, time: Time) -> io::Result<()> {
        let offset = self.length;
        self.write(chunk)?;
        self.checkpoints.push(CheckpointAt {
            offset,
            sequence,
            time,
        });
        self.rotate();
        Ok(())
    }

    fn keep(&mut self, _: Why, _: &Writer, _: Time) -> io::Result<()> {
        // The machine may be in trouble, too.
        self.file.sync_data()
    }

    fn idle(&mut self) -> bool {
        let Some(rotation) = &mut self.rotation else {
            return false;
        };
        match rotation.step(&self.file, self.length) {
            Ok(Step::More) => true,
            Ok(Step::Done(file)) => {
                let (from, head) = (rotation.from(), self.head);
                self.file = file;
                self.length = self.length - from + head;
                self.checkpoints.retain(|at| at.offset >= from);
                for at in &mut self.checkpoints {
                    at.offset = at.offset - from + head;
                }
                self.rotation = None;
                false
            }
            Err(_) => {
                self.rotation = None;
                false
            }
        }
    }

    fn end(&mut self, writer: &Writer, mut end: End) -> io::Result<u64> {
        self.rotation = None;
        end.checkpoints.clone_from(&self.checkpoints);
        let last = writer.end(&end, self.length);
        self.write(&last)?;
        self.file.sync_all()?;
        self.ended = true;
        Ok(self.length)
    }

    fn give_up(&mut self) -> u64 {
        self.rotation = None;
        // Whatever cannot be cut off, a reader passes over.
        let _ = self.file.set_len(self.length);
        self.length
    }
}

/// Whether `path` may be written to: it is not there, or it is a plain file and may be lost.
pub(crate) fn may_write(path: &Path, force: bool) -> Result<(), RecorderError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(RecorderError::Create {
            path: path.to_owned(),
            cause,
        }),
        Ok(metadata) if force && metadata.is_file() => Ok(()),
        Ok(metadata) if force => {
            let what = match metadata.is_dir() {
                true => "it is a directory",
                false => "it is no plain file",
            };
            Err(RecorderError::Create {
                path: path.to_owned(),
                cause: io::Error::new(ErrorKind::AlreadyExists, what),
            })
        }
        Ok(_) => Err(RecorderError::Exists {
            path: path.to_owned(),
        }),
    }
}

/// A new file that only we may read: it tells of another program's work.
pub(crate) fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// The name of a file that is not whole yet.
pub(crate) fn part(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

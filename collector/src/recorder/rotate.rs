//! Making a file smaller while it grows: what is to be kept is copied a little at a time to a
//! second file, which then takes the first one's place.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use vramscope_recording::CheckpointAt;

use super::file::{part, private};

/// Bytes copied at a time: records wait meanwhile.
const SLICE: u64 = 2 << 20;

/// A copy under way.
pub(crate) struct Rotation {
    file: Option<File>,
    part: PathBuf,
    path: PathBuf,
    /// From where in the old file.
    from: u64,
    copied: u64,
    head: u64,
}

/// How far it is.
pub(crate) enum Step {
    More,
    /// The new file is in its place.
    Done(File),
}

impl Rotation {
    pub fn begin(path: &Path, old: &File, head: u64, at: CheckpointAt) -> io::Result<Rotation> {
        let part = part(path);
        let file = private(&part)?;
        let rotation = Rotation {
            file: Some(file),
            part,
            path: path.to_owned(),
            from: at.offset,
            copied: 0,
            head,
        };
        let mut bytes = vec![0; head as usize];
        old.read_exact_at(&mut bytes, 0)?;
        if let Some(file) = &rotation.file {
            file.write_all_at(&bytes, 0)?;
        }
        Ok(rotation)
    }

    /// From where in the old file.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Copies a little of the first `length` bytes of `old`.
    pub fn step(&mut self, old: &File, length: u64) -> io::Result<Step> {
        let left = length - self.from - self.copied;
        let Some(file) = &self.file else {
            return Ok(Step::More);
        };
        if left > 0 {
            let mut bytes = vec![0; left.min(SLICE) as usize];
            old.read_exact_at(&mut bytes, self.from + self.copied)?;
            file.write_all_at(&bytes, self.head + self.copied)?;
            self.copied += bytes.len() as u64;
            if left > SLICE {
                return Ok(Step::More);
            }
        }
        fs::rename(&self.part, &self.path)?;
        match self.file.take() {
            Some(file) => Ok(Step::Done(file)),
            None => Ok(Step::More),
        }
    }
}

impl Drop for Rotation {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Not finished: nobody needs it.
            let _ = fs::remove_file(&self.part);
        }
    }
}

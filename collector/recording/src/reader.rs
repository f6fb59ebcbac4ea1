//! Opening a recording.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use vramscope_events::{Record, Time};

use crate::{
    checkpoint::Checkpoint,
    chunk::{FILE_MAGIC, HEADER_BYTES, Header, Kind},
    error::{Damage, DamageKind, Malformed, OpenError, ReadError},
    info::{CheckpointAt, End, FORMAT, SessionInfo},
    pieces::{Piece, Pieces, json, read_checkpoint},
    source::Source,
    walk::{Next, Walk},
    writer::{TRAILER_BYTES, TRAILER_MAGIC},
};

/// A recording, opened for reading. Nothing of its events is in memory.
#[derive(Debug)]
pub struct Recording {
    source: Arc<Source>,
    info: SessionInfo,
    /// Where the chunk after the first begins.
    start: u64,
    checkpoints: Vec<CheckpointAt>,
    span: (Time, Time),
    end: Option<End>,
    damage: Vec<Damage>,
}

/// Records that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// In the order in which they took effect.
    pub records: Vec<Record>,
    /// Events before this batch are missing (damage, rotation, or reading from the middle): forget
    /// what was live. The batch restates every definition, and every live block as an allocation
    /// at the time of its birth.
    pub restart: bool,
}

impl Recording {
    /// Opens a file. Looks at its end and, where it was not closed, at every chunk's head; reads
    /// no events.
    ///
    /// # Errors
    /// It cannot be read, is something else, or its first chunk is damaged.
    pub fn open(path: &Path) -> Result<Recording, OpenError> {
        let opened = File::open(path).and_then(|file| {
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(io::Error::from(io::ErrorKind::IsADirectory));
            }
            let length = metadata.len();
            Ok(Source::File { file, length })
        });
        let source = opened.map_err(|cause| OpenError::Io {
            path: path.to_owned(),
            cause,
        })?;
        Self::from_source(source, path)
    }

    /// The same with a file's bytes.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Recording, OpenError> {
        Self::from_source(Source::Memory(bytes), Path::new("(memory)"))
    }

    fn from_source(source: Source, path: &Path) -> Result<Recording, OpenError> {
        let (info, start) = session(&source, path)?;
        let mut recording = Recording {
            span: (info.started, info.started),
            source: Arc::new(source),
            info,
            start,
            checkpoints: Vec::new(),
            end: None,
            damage: Vec::new(),
        };
        let scanned = match recording.indexed() {
            Some(end) => {
                recording.span.1 = end.until;
                recording.checkpoints.clone_from(&end.checkpoints);
                recording.end = Some(end);
                Ok(())
            }
            None => recording.scan(),
        };
        scanned.map_err(|cause| OpenError::Io {
            path: PathBuf::from(path),
            cause,
        })?;
        if let Some(rotated) = recording.rotated() {
            recording.span.0 = rotated.time;
        }
        recording.span.1 = recording.span.1.max(recording.span.0);
        Ok(recording)
    }

    /// The first chunk.
    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// The first and the last moment that can be told of.
    pub fn span(&self) -> (Time, Time) {
        self.span
    }

    /// How it ended, where it was closed.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// What is wrong with the file, as far as its heads tell. Reading finds the rest:
    /// [`Pieces::damage`].
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.source.length()
    }

    /// Where the checkpoints are, oldest first.
    pub fn checkpoints(&self) -> &[CheckpointAt] {
        &self.checkpoints
    }

    /// Everything from the start.
    pub fn pieces(&self) -> Pieces {
        let rotated = self.rotated().is_some();
        Pieces::new(
            Arc::clone(&self.source),
            Walk::after_session(self.start),
            rotated,
        )
    }

    /// Everything from the last whole checkpoint on whose moment is not after `moment`; it comes
    /// first, as a restart. From the start where there is none.
    pub fn pieces_from(&self, moment: Time) -> Pieces {
        let before = |at: &&CheckpointAt| at.time <= moment;
        let mut candidates = self.checkpoints.iter().rev().skip_while(|at| !before(at));
        match candidates.find(|at| self.read_checkpoint(at).is_ok()) {
            Some(at) => Pieces::new(
                Arc::clone(&self.source),
                Walk::new(at.offset, at.sequence),
                true,
            ),
            None => self.pieces(),
        }
    }

    /// All records from the start, in batches.
    pub fn batches(&self) -> Batches {
        Batches {
            pieces: self.pieces(),
        }
    }

    /// Records from the last checkpoint before `moment` on; the first batch is then a restart.
    pub fn batches_from(&self, moment: Time) -> Batches {
        Batches {
            pieces: self.pieces_from(moment),
        }
    }

    /// Rotation took away what was before this checkpoint.
    fn rotated(&self) -> Option<&CheckpointAt> {
        let first = self.checkpoints.first()?;
        (first.offset == self.start && first.sequence > 1).then_some(first)
    }

    fn read_checkpoint(&self, at: &CheckpointAt) -> Result<Checkpoint, Malformed> {
        let unreadable = |_: io::Error| Malformed("it cannot be read");
        let header = self.header_at(at.offset).map_err(unreadable)?;
        let header = header.ok_or(Malformed("no chunk begins there"))?;
        if header.kind != Kind::CHECKPOINT || header.sequence != at.sequence {
            return Err(Malformed("another chunk is there"));
        }
        let mut payload = vec![0; header.stored.min(self.length() as u32) as usize];
        let place = at.offset + HEADER_BYTES as u64;
        self.source.read(&mut payload, place).map_err(unreadable)?;
        read_checkpoint(&header, &payload)
    }

    fn header_at(&self, at: u64) -> io::Result<Option<Header>> {
        let mut head = [0; HEADER_BYTES];
        let read = self.source.read(&mut head, at)?;
        if read < HEADER_BYTES {
            return Ok(None);
        }
        let header = Header::from_bytes(&head).ok();
        Ok(header.filter(|header| at + header.length() <= self.length()))
    }

    /// The index of a file that was closed.
    fn indexed(&self) -> Option<End> {
        let length = self.length();
        let at = length.checked_sub(TRAILER_BYTES as u64)?;
        let mut trailer = [0; TRAILER_BYTES];
        self.source.read(&mut trailer, at).ok()?;
        let (checked, crc) = trailer.split_at(12);
        if checked[..4] != TRAILER_MAGIC || crc32c::crc32c(checked).to_le_bytes() != *crc {
            return None;
        }
        let mut offset = [0; 8];
        offset.copy_from_slice(&checked[4..]);
        let offset = u64::from_le_bytes(offset);
        let header = self.header_at(offset).ok()??;
        if header.kind != Kind::END || offset + header.length() != at {
            return None;
        }
        let mut payload = vec![0; header.stored as usize];
        let place = offset + HEADER_BYTES as u64;
        self.source.read(&mut payload, place).ok()?;
        header.check(&payload).ok()?;
        json(&payload).ok()
    }

    /// Goes over all chunks by their heads.
    fn scan(&mut self) -> io::Result<()> {
        let mut walk = Walk::after_session(self.start);
        let mut closed = false;
        loop {
            match walk.next(&self.source)? {
                Next::Damage(damage) => self.damage.push(damage),
                Next::End => break,
                Next::Chunk(offset, header) => {
                    closed |= header.kind == Kind::END;
                    self.span.1 = self.span.1.max(Time(header.last));
                    if header.kind == Kind::CHECKPOINT {
                        self.checkpoints.push(CheckpointAt {
                            offset,
                            sequence: header.sequence,
                            time: Time(header.last),
                        });
                    }
                }
            }
        }
        if !closed && self.damage.is_empty() {
            let (at, kind) = (walk.at, DamageKind::NotClosed);
            self.damage.push(Damage { at, kind });
        }
        Ok(())
    }
}

/// The first chunk, and where the second begins.
fn session(source: &Source, path: &Path) -> Result<(SessionInfo, u64), OpenError> {
    let io = |cause| OpenError::Io {
        path: path.to_owned(),
        cause,
    };
    let damaged = |at: u64, what: &str| OpenError::Damaged {
        path: path.to_owned(),
        at,
        what: what.to_owned(),
    };
    let mut magic = [0; FILE_MAGIC.len()];
    let read = source.read(&mut magic, 0).map_err(io)?;
    if magic[..read] != FILE_MAGIC {
        // A few of the right bytes are damage, none of them is something else.
        let right = magic.iter().zip(&FILE_MAGIC).filter(|(a, b)| a == b);
        if right.count() >= FILE_MAGIC.len() / 2
            || (read > 0 && FILE_MAGIC.starts_with(&magic[..read]))
        {
            return Err(damaged(0, "the first bytes are not those of a recording"));
        }
        return Err(OpenError::NotARecording {
            path: path.to_owned(),
            found: match read {
                0 => "nothing".to_owned(),
                _ => format!("\"{}\"", magic[..read].escape_ascii()),
            },
        });
    }
    let at = FILE_MAGIC.len() as u64;
    let mut head = [0; HEADER_BYTES];
    if source.read(&mut head, at).map_err(io)? < HEADER_BYTES {
        return Err(damaged(at, "the file ends in its first chunk"));
    }
    let header = Header::from_bytes(&head).map_err(|error| damaged(at, error.0))?;
    if header.kind != Kind::SESSION || header.sequence != 0 {
        return Err(damaged(at, "the first chunk is another one"));
    }
    if at + header.length() > source.length() {
        return Err(damaged(at, "the file ends in its first chunk"));
    }
    let mut payload = vec![0; header.stored as usize];
    source
        .read(&mut payload, at + HEADER_BYTES as u64)
        .map_err(io)?;
    header
        .check(&payload)
        .map_err(|error| damaged(at, error.0))?;
    // The version first: the rest may have another form.
    #[derive(serde::Deserialize)]
    struct Version {
        format: crate::info::Format,
        #[serde(default)]
        program: String,
    }
    let version: Version = json(&payload).map_err(|error| damaged(at, error.0))?;
    if version.format.major > FORMAT.major {
        return Err(OpenError::TooNew {
            path: path.to_owned(),
            found: version.format.major,
            known: FORMAT.major,
            by: version.program,
        });
    }
    let info = json(&payload).map_err(|error| damaged(at, error.0))?;
    Ok((info, at + header.length()))
}

/// The records of a recording, in batches.
pub struct Batches {
    pieces: Pieces,
}

impl Batches {
    /// What was found to be wrong so far.
    pub fn damage(&self) -> &[Damage] {
        self.pieces.damage()
    }

    /// How far it has come, in bytes from the start of the file.
    pub fn position(&self) -> u64 {
        self.pieces.position()
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            return Some(Ok(match self.pieces.next()? {
                Err(error) => return Some(Err(error)),
                Ok(Piece::Records(records)) => Batch {
                    records,
                    restart: false,
                },
                Ok(Piece::Checkpoint {
                    checkpoint,
                    restart: true,
                }) => Batch {
                    records: checkpoint.restated(),
                    restart: true,
                },
                Ok(_) => continue,
            }));
        }
    }
}

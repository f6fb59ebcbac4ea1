//! What can be wrong with a file.

use std::{fmt, io, path::PathBuf};

use thiserror::Error;

/// The content of a chunk is not what its type says, although its checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// Why a recording cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The system says no.
    #[error("{path} cannot be read: {cause}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        cause: io::Error,
    },
    /// It is something else.
    #[error(
        "{path} is no recording of vramscope: it begins with {found}\n  make one with: vramscope \
         attach PID -o FILE",
        path = path.display()
    )]
    NotARecording {
        /// The file.
        path: PathBuf,
        /// Its first bytes, printable.
        found: String,
    },
    /// The head of the file is damaged: without it nothing else can be understood.
    #[error("{path} is damaged at byte {at}: {what}; nothing can be read", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, from the start of the file.
        at: u64,
        /// In what way.
        what: String,
    },
    /// It was written by a later version.
    #[error(
        "{path} has format {found}, this program reads {known}; read it with vramscope {by} or later",
        path = path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Major version of the file's format.
        found: u32,
        /// The newest major version that is known here.
        known: u32,
        /// The program that wrote it.
        by: String,
    },
}

impl OpenError {
    /// Whether the content is at fault, not the system.
    pub fn is_damage(&self) -> bool {
        !matches!(self, OpenError::Io { .. })
    }
}

/// Why reading cannot go on.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system says no.
    #[error("at byte {at}: {cause}")]
    Io {
        /// Where, from the start of the file.
        at: u64,
        /// The system's reason.
        #[source]
        cause: io::Error,
    },
    /// A chunk that may not be skipped is of a kind that is not known here.
    #[error(
        "at byte {at}: chunk type {kind} is of a later version of vramscope and may not be skipped"
    )]
    TooNew {
        /// Where, from the start of the file.
        at: u64,
        /// The type.
        kind: u8,
    },
}

/// Something wrong with a file that does not keep the rest from being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where, from the start of the file.
    pub at: u64,
    /// What.
    pub kind: DamageKind,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The file ends within a chunk: so many bytes of it are there.
    CutTail {
        /// Bytes that cannot be used.
        bytes: u64,
    },
    /// The file was not closed: its writer was killed, or still writes.
    NotClosed,
    /// Bytes that are no chunk, or not the chunk they were: so many up to the next whole one.
    Corrupt {
        /// Bytes that cannot be used.
        bytes: u64,
        /// What shows it.
        what: String,
    },
    /// Chunks are missing.
    Missing {
        /// How many.
        chunks: u64,
    },
    /// Events after damage that cannot be used, because what came before them is missing, up to
    /// the next checkpoint.
    Skipped {
        /// Chunks of events.
        chunks: u64,
    },
    /// The recorder could not keep up (a slow disk): it left out so many events.
    LeftOut {
        /// Events.
        events: u64,
    },
}

impl Damage {
    /// Whether bytes are not what was written. A file whose writer was killed is cut, not corrupt.
    pub fn is_corruption(&self) -> bool {
        matches!(
            self.kind,
            DamageKind::Corrupt { .. } | DamageKind::Missing { .. } | DamageKind::Skipped { .. }
        )
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match &self.kind {
            DamageKind::CutTail { bytes } => write!(
                f,
                "the file is cut at byte {at}: the last {bytes} bytes are part of a chunk and were \
                 not used"
            ),
            DamageKind::NotClosed => write!(
                f,
                "the file ends at byte {at} without an end: its recorder was killed or still runs"
            ),
            DamageKind::Corrupt { bytes, what } => write!(
                f,
                "the file is damaged at byte {at} ({what}): {bytes} bytes were not used"
            ),
            DamageKind::Missing { chunks } => {
                write!(f, "{chunks} chunks are missing before byte {at}")
            }
            DamageKind::Skipped { chunks } => write!(
                f,
                "{chunks} chunks of events before byte {at} were not used: what came before them \
                 is damaged"
            ),
            DamageKind::LeftOut { events } => write!(
                f,
                "the recorder could not keep up before byte {at} and left out {events} events"
            ),
        }
    }
}

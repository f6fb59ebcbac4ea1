//! The file format of recordings.
//!
//! A file is a sequence of chunks, each of which says what it is, where it ends and whether it is
//! whole. Events are kept in columns, losslessly; now and then a checkpoint restates everything
//! known, so that a reader can begin there. docs/recording-format.md is enough to write another
//! reader.
//!
//! This crate turns records into bytes ([`Writer`]) and a file into records ([`Recording`]). When
//! to write a chunk or a checkpoint, and what to do when the disk is full, is the caller's
//! business.
//!
//! ```
//! use vramscope_events::{Backend, Event, Pid, Record, Tid, Time};
//! use vramscope_recording::{FORMAT, Recording, SessionInfo, Settings, Writer};
//!
//! let mut writer = Writer::default();
//! let mut file = writer.session(&SessionInfo {
//!     format: FORMAT,
//!     program: "example".into(),
//!     started: Time(0),
//!     started_unix: 0,
//!     backend: Backend::Ebpf,
//!     processes: Vec::new(),
//!     probes: Vec::new(),
//!     settings: Settings::default(),
//! });
//! let record = Record {
//!     time: Time(5_000),
//!     process: Pid(1),
//!     thread: Tid(1),
//!     event: Event::ProcessExited,
//! };
//! file.extend(writer.records(std::slice::from_ref(&record)));
//!
//! let recording = Recording::from_bytes(file)?;
//! let batch = recording.batches().next().expect("one batch")?;
//! assert_eq!(batch.records, [record]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_code)]

mod checkpoint;
mod chunk;
mod columns;
mod error;
mod info;
mod pieces;
mod reader;
mod source;
mod walk;
mod wire;
mod writer;

pub use checkpoint::{Block, Checkpoint};
pub use error::{Damage, DamageKind, OpenError, ReadError};
pub use info::{CheckpointAt, End, FORMAT, Format, News, SessionInfo, Settings};
pub use pieces::{Piece, Pieces};
pub use reader::{Batch, Batches, Recording};
pub use writer::{EVENTS_A_CHUNK, Writer};

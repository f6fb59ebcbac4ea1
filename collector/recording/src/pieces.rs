//! What is in a recording, piece by piece.

use std::{io, sync::Arc};

use vramscope_events::Record;
use zstd::stream::raw::{DParameter, Decoder as Zstd, InBuffer, Operation as _, OutBuffer};

use crate::{
    checkpoint::Checkpoint,
    chunk::{CRITICAL, HEADER_BYTES, Header, Kind, ZSTD, ZSTD_CONTINUED},
    columns::Decoder,
    error::{Damage, DamageKind, Malformed, ReadError},
    info::{End, News},
    source::Source,
    walk::{Next, Walk},
};

/// zstd's window is at most 2 to this power.
const MAX_WINDOW: u32 = 24;
/// Room that is made at a time for what is decompressed.
const ROOM: usize = 1 << 20;

/// A part of a recording.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// Events, in the order in which they took effect.
    Records(Vec<Record>),
    /// Everything known at a moment.
    Checkpoint {
        /// What is known.
        checkpoint: Box<Checkpoint>,
        /// Events before it are missing: forget everything and go on from here. Otherwise it says
        /// nothing new.
        restart: bool,
    },
    /// Something that became known on the way.
    News(News),
    /// The recording was closed.
    End(End),
}

/// The pieces of a recording from some place on.
pub struct Pieces {
    source: Arc<Source>,
    walk: Walk,
    segment: Option<Segment>,
    /// Events are missing since the last checkpoint.
    broken: bool,
    /// Chunks of events that could not be used for that.
    skipped: u64,
    closed: bool,
    finished: bool,
    damage: Vec<Damage>,
}

struct Segment {
    zstd: Zstd<'static>,
    columns: Decoder,
}

impl Pieces {
    /// `broken`: whether what is before the first checkpoint cannot be used.
    pub(crate) fn new(source: Arc<Source>, walk: Walk, broken: bool) -> Pieces {
        Pieces {
            source,
            walk,
            segment: None,
            broken,
            skipped: 0,
            closed: false,
            finished: false,
            damage: Vec::new(),
        }
    }

    /// What was found to be wrong so far.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// How far it has come, in bytes from the start of the file.
    pub fn position(&self) -> u64 {
        self.walk.at
    }

    fn next_piece(&mut self) -> Result<Option<Piece>, ReadError> {
        while !self.finished {
            let at = self.walk.at;
            let next = self
                .walk
                .next(&self.source)
                .map_err(|cause| ReadError::Io { at, cause })?;
            match next {
                Next::End => {
                    self.finished = true;
                    self.tell_skipped(at);
                    let cut = |damage: &Damage| matches!(damage.kind, DamageKind::CutTail { .. });
                    if !self.closed && !self.damage.iter().any(cut) {
                        self.damaged(at, DamageKind::NotClosed);
                    }
                }
                Next::Damage(damage) => {
                    // A cut tail ends the file; nothing comes after it.
                    self.broken = true;
                    self.damage.push(damage);
                }
                Next::Chunk(at, header) => {
                    if let Some(piece) = self.chunk(at, &header)? {
                        return Ok(Some(piece));
                    }
                }
            }
        }
        Ok(None)
    }

    fn damaged(&mut self, at: u64, kind: DamageKind) {
        self.damage.push(Damage { at, kind });
    }

    fn tell_skipped(&mut self, at: u64) {
        let chunks = std::mem::take(&mut self.skipped);
        if chunks > 0 {
            self.damaged(at, DamageKind::Skipped { chunks });
        }
    }

    fn chunk(&mut self, at: u64, header: &Header) -> Result<Option<Piece>, ReadError> {
        match header.kind {
            // No need to read what cannot be used.
            Kind::EVENTS if self.broken => {
                self.skipped += 1;
                return Ok(None);
            }
            Kind::SESSION | Kind::EVENTS | Kind::CHECKPOINT => {}
            Kind::LEFT_OUT | Kind::NEWS | Kind::END => {}
            Kind(kind) if header.flags & CRITICAL != 0 => {
                return Err(ReadError::TooNew { at, kind });
            }
            _ => return Ok(None),
        }
        let mut payload = vec![0; header.stored as usize];
        let read = self.source.read(&mut payload, at + HEADER_BYTES as u64);
        read.map_err(|cause| ReadError::Io { at, cause })?;
        let taken = header
            .check(&payload)
            .and_then(|()| self.take(at, header, &payload));
        match taken {
            Ok(piece) => Ok(piece),
            Err(error) => {
                // Whatever else is damaged, the numbers are still right.
                self.broken |= matches!(header.kind, Kind::EVENTS | Kind::LEFT_OUT);
                let (bytes, what) = (header.length(), error.to_string());
                self.damaged(at, DamageKind::Corrupt { bytes, what });
                if header.kind == Kind::CHECKPOINT && self.broken {
                    self.segment = None;
                }
                Ok(None)
            }
        }
    }

    fn take(
        &mut self,
        at: u64,
        header: &Header,
        payload: &[u8],
    ) -> Result<Option<Piece>, Malformed> {
        Ok(Some(match header.kind {
            Kind::EVENTS => {
                if header.flags & ZSTD != 0 {
                    self.segment = Some(Segment::new()?);
                } else if header.flags & ZSTD_CONTINUED == 0 {
                    return Err(Malformed("events that are not compressed"));
                }
                let segment = self
                    .segment
                    .as_mut()
                    .ok_or(Malformed("events that go on with nothing"))?;
                let raw = decompress(&mut segment.zstd, payload, header.raw as usize)?;
                Piece::Records(segment.columns.decode(&raw)?)
            }
            Kind::CHECKPOINT => {
                let checkpoint = Box::new(read_checkpoint(header, payload)?);
                self.tell_skipped(at);
                let restart = std::mem::take(&mut self.broken);
                self.segment = None;
                Piece::Checkpoint {
                    checkpoint,
                    restart,
                }
            }
            Kind::LEFT_OUT => {
                let events = json(payload)?;
                self.broken = true;
                self.damaged(at, DamageKind::LeftOut { events });
                return Ok(None);
            }
            // The checksum is right: what cannot be read is of a later version.
            Kind::NEWS => Piece::News(json(payload).unwrap_or(News::Unknown)),
            Kind::END => {
                let end = json(payload)?;
                self.closed = true;
                Piece::End(end)
            }
            _ => return Ok(None),
        }))
    }
}

impl Iterator for Pieces {
    type Item = Result<Piece, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_piece().transpose();
        // Nothing comes after an error.
        self.finished |= matches!(next, Some(Err(_)));
        next
    }
}

impl Segment {
    fn new() -> Result<Segment, Malformed> {
        let mut zstd = Zstd::new().map_err(|_| Malformed("zstd has no memory"))?;
        zstd.set_parameter(DParameter::WindowLogMax(MAX_WINDOW))
            .map_err(|_| Malformed("zstd does not take its window"))?;
        Ok(Segment {
            zstd,
            columns: Decoder::default(),
        })
    }
}

/// Reads a whole checkpoint's payload.
pub(crate) fn read_checkpoint(header: &Header, payload: &[u8]) -> Result<Checkpoint, Malformed> {
    header.check(payload)?;
    let mut zstd = Zstd::new().map_err(|_| Malformed("zstd has no memory"))?;
    let raw = decompress(&mut zstd, payload, header.raw as usize)?;
    Checkpoint::decode(&raw)
}

pub(crate) fn json<T: serde::de::DeserializeOwned>(payload: &[u8]) -> Result<T, Malformed> {
    serde_json::from_slice(payload).map_err(|_| Malformed("JSON of another kind"))
}

/// Exactly `length` bytes out of `payload`, which must not hold more. Makes room only for what
/// comes.
fn decompress(zstd: &mut Zstd<'_>, payload: &[u8], length: usize) -> Result<Vec<u8>, Malformed> {
    let wrong = |_: io::Error| Malformed("zstd cannot read this");
    let mut input = InBuffer::around(payload);
    let mut raw: Vec<u8> = Vec::new();
    while raw.len() < length || input.pos() < payload.len() {
        let have = raw.len();
        // One byte more than there should be shows if there is.
        let room = (length + 1 - have).min(ROOM.max(have));
        raw.resize(have + room, 0);
        let mut output = OutBuffer::around(&mut raw[have..]);
        let before = input.pos();
        zstd.run(&mut input, &mut output).map_err(wrong)?;
        let written = output.pos();
        raw.truncate(have + written);
        if raw.len() > length || (written == 0 && input.pos() == before) {
            return Err(Malformed("zstd gives another number of bytes"));
        }
    }
    Ok(raw)
}

//! Records to chunks of bytes. Where they go, and when, is the caller's business.

use std::io::Write as _;

use vramscope_events::{Event, Record, Time};
use zstd::stream::{raw::CParameter, write::Encoder as Zstd};

use crate::{
    checkpoint::Checkpoint,
    chunk::{CRITICAL, FILE_MAGIC, Header, Kind, ZSTD, ZSTD_CONTINUED},
    columns::Encoder,
    info::{End, News, SessionInfo},
};

/// Events of a chunk at most: what is in the air while a reader works.
pub const EVENTS_A_CHUNK: usize = 16_384;
/// zstd's level for events: more costs time and gains little.
const LEVEL: i32 = 3;
/// How far back zstd looks, as a power of two: several steps of a training.
const WINDOW: u32 = 21;
/// The mark before the last 16 bytes of a closed file.
pub(crate) const TRAILER_MAGIC: [u8; 4] = *b"vrsE";
/// Bytes after the last chunk of a closed file.
pub(crate) const TRAILER_BYTES: usize = 16;

/// Makes the chunks of one recording, in order.
///
/// The file is what the methods return, one after the other, beginning with
/// [`Writer::session`]. A segment of events ends where a checkpoint is; each checkpoint begins one
/// that needs nothing before it.
#[derive(Default)]
pub struct Writer {
    sequence: u64,
    columns: Encoder,
    stream: Option<Zstd<'static, Vec<u8>>>,
    events: u64,
}

impl Writer {
    /// Events so far, definitions not counted.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The number of the next chunk.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The head of the file.
    pub fn session(&mut self, info: &SessionInfo) -> Vec<u8> {
        let mut out = FILE_MAGIC.to_vec();
        let payload = json(info);
        let time = (info.started.0, info.started.0);
        out.extend(self.chunk(Kind::SESSION, CRITICAL, time, &payload, payload.len()));
        out
    }

    /// Chunks with `records`; empty for none.
    pub fn records(&mut self, records: &[Record]) -> Vec<u8> {
        let mut out = Vec::new();
        for records in records.chunks(EVENTS_A_CHUNK) {
            let (raw, _) = self.columns.encode(records);
            let flag = if self.stream.is_some() {
                ZSTD_CONTINUED
            } else {
                ZSTD
            };
            let payload = self.compress(&raw);
            let times = || records.iter().map(|record| record.time.0);
            let span = (times().min().unwrap_or(0), times().max().unwrap_or(0));
            let definition = |record: &&Record| {
                matches!(
                    record.event,
                    Event::Frame { .. } | Event::Stack { .. } | Event::Source { .. }
                )
            };
            self.events += records.iter().filter(|record| !definition(record)).count() as u64;
            out.extend(self.chunk(Kind::EVENTS, flag | CRITICAL, span, &payload, raw.len()));
        }
        out
    }

    fn compress(&mut self, raw: &[u8]) -> Vec<u8> {
        let stream = self.stream.get_or_insert_with(|| {
            let made = Zstd::new(Vec::new(), LEVEL).and_then(|mut stream| {
                stream.set_parameter(CParameter::WindowLog(WINDOW))?;
                Ok(stream)
            });
            match made {
                Ok(stream) => stream,
                Err(error) => unreachable!("these parameters are valid: {error}"),
            }
        });
        let written = stream.write_all(raw).and_then(|()| stream.flush());
        if let Err(error) = written {
            unreachable!("compressing into memory does not fail: {error}");
        }
        std::mem::take(stream.get_mut())
    }

    /// A checkpoint: the next events need nothing before it.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Vec<u8> {
        self.columns = Encoder::default();
        self.stream = None;
        let raw = checkpoint.encode();
        let payload = match zstd::bulk::compress(&raw, LEVEL) {
            Ok(payload) => payload,
            Err(error) => unreachable!("compressing into memory does not fail: {error}"),
        };
        let time = (checkpoint.time.0, checkpoint.time.0);
        self.chunk(Kind::CHECKPOINT, ZSTD | CRITICAL, time, &payload, raw.len())
    }

    /// Says that the recorder left out so many events here; a checkpoint has to follow.
    pub fn left_out(&mut self, events: u64, time: Time) -> Vec<u8> {
        let payload = json(&events);
        let span = (time.0, time.0);
        self.chunk(Kind::LEFT_OUT, CRITICAL, span, &payload, payload.len())
    }

    /// Something that became known on the way.
    pub fn news(&mut self, news: &News, time: Time) -> Vec<u8> {
        let payload = json(news);
        let span = (time.0, time.0);
        self.chunk(Kind::NEWS, 0, span, &payload, payload.len())
    }

    /// The end of the file; `offset` is where it will stand. Nothing changes: the same recording
    /// can go on elsewhere.
    pub fn end(&self, end: &End, offset: u64) -> Vec<u8> {
        let payload = json(end);
        let span = (end.until.0, end.until.0);
        let mut out = chunk(
            self.sequence,
            Kind::END,
            CRITICAL,
            span,
            &payload,
            payload.len(),
        );
        let mut trailer = TRAILER_MAGIC.to_vec();
        trailer.extend(offset.to_le_bytes());
        trailer.extend(crc32c::crc32c(&trailer).to_le_bytes());
        out.extend(trailer);
        out
    }

    fn chunk(
        &mut self,
        kind: Kind,
        flags: u8,
        span: (u64, u64),
        payload: &[u8],
        raw: usize,
    ) -> Vec<u8> {
        let out = chunk(self.sequence, kind, flags, span, payload, raw);
        self.sequence += 1;
        out
    }
}

fn chunk(
    sequence: u64,
    kind: Kind,
    flags: u8,
    (first, last): (u64, u64),
    payload: &[u8],
    raw: usize,
) -> Vec<u8> {
    let header = Header {
        kind,
        flags,
        sequence,
        first,
        last,
        stored: u32::try_from(payload.len()).unwrap_or(u32::MAX),
        raw: u32::try_from(raw).unwrap_or(u32::MAX),
        crc: crc32c::crc32c(payload),
    };
    let mut out = header.to_bytes().to_vec();
    out.extend_from_slice(payload);
    out
}

fn json<T: serde::Serialize>(value: &T) -> Vec<u8> {
    match serde_json::to_vec(value) {
        Ok(json) => json,
        Err(error) => unreachable!("these types are always JSON: {error}"),
    }
}

//! Three tables for DuckDB, polars, pandas and the like: `events` (every allocation, free and mark
//! of a stream), `stacks` (a row a frame) and `sites` (the selection, a row a stack and
//! generation). `stack` joins them, together with `process`.
//!
//! Written column by column through the crate's low-level writer: arrow's arrays would be a dozen
//! crates more for three flat tables.

use std::{io::Write, sync::Arc};

use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type},
    errors::{ParquetError, Result},
    file::{
        properties::{EnabledStatistics, WriterProperties},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};
use vramscope_collector::HOST_DEVICE;
use vramscope_events::{Event, Layer, Record, StepMarkKind};

use crate::selection::{Selection, layer_name};

/// Rows that are held until they are written.
const ROWS: usize = 1 << 17;

/// The columns of `events`.
const EVENTS: &str = "message events {
    required int64 event (integer(64, false));
    required int64 time_ns (integer(64, false));
    required int32 process (integer(32, false));
    required int32 thread (integer(32, false));
    required binary kind (string);
    optional binary layer (string);
    optional int32 device;
    optional int64 address (integer(64, false));
    optional int64 size (integer(64, false));
    optional int32 stack (integer(32, false));
    optional int64 allocated (integer(64, false));
    optional int64 reserved (integer(64, false));
}";

/// The columns of `stacks`; `depth` 0 is the innermost frame.
const STACKS: &str = "message stacks {
    required int32 process (integer(32, false));
    required int32 stack (integer(32, false));
    required int32 depth;
    required binary function (string);
    required binary file (string);
    required int32 line (integer(32, false));
    required binary origin (string);
    required boolean user;
}";

/// The columns of `sites`.
const SITES: &str = "message sites {
    required int32 process (integer(32, false));
    optional int32 rank (integer(32, false));
    required int32 device;
    required binary layer (string);
    required int32 stack (integer(32, false));
    optional int64 generation (integer(64, false));
    required int64 bytes (integer(64, false));
    required int64 blocks (integer(64, false));
    required binary function (string);
    required binary file (string);
    required int32 line (integer(32, false));
}";

/// Writing a table failed.
#[derive(Debug, thiserror::Error)]
#[error("the Parquet table could not be written")]
pub struct Error(#[from] ParquetError);

fn file<W: Write + Send>(schema: &str, out: W) -> Result<SerializedFileWriter<W>> {
    let schema = Arc::new(parse_message_type(schema)?);
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("vramscope ", env!("CARGO_PKG_VERSION")).into());
    // Nearly every value is new: a dictionary would cost time and be thrown away, while the next
    // one is never far.
    for column in ["event", "time_ns", "address", "allocated", "reserved"] {
        properties = properties
            .set_column_dictionary_enabled(column.into(), false)
            .set_column_encoding(column.into(), Encoding::DELTA_BINARY_PACKED);
    }
    SerializedFileWriter::new(out, schema, Arc::new(properties.build()))
}

/// A column of values, some of which are missing.
#[derive(Debug)]
struct Column<T> {
    values: Vec<T>,
    /// 1 for each row that has a value, 0 for each that lacks it.
    there: Vec<i16>,
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Column {
            values: Vec::new(),
            there: Vec::new(),
        }
    }
}

impl<T> Column<T> {
    fn push(&mut self, value: Option<T>) {
        self.there.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn clear(&mut self) {
        self.values.clear();
        self.there.clear();
    }
}

/// The next column of a row group.
struct Group<'a, W: Write + Send>(SerializedRowGroupWriter<'a, W>);

impl<W: Write + Send> Group<'_, W> {
    fn numbers(&mut self, column: &Column<i64>, optional: bool) -> Result<()> {
        let mut writer = self.next()?;
        let levels = optional.then_some(&column.there[..]);
        writer
            .typed::<Int64Type>()
            .write_batch(&column.values, levels, None)?;
        writer.close()
    }

    fn small(&mut self, column: &Column<i32>, optional: bool) -> Result<()> {
        let mut writer = self.next()?;
        let levels = optional.then_some(&column.there[..]);
        writer
            .typed::<Int32Type>()
            .write_batch(&column.values, levels, None)?;
        writer.close()
    }

    fn texts(&mut self, column: &Column<ByteArray>, optional: bool) -> Result<()> {
        let mut writer = self.next()?;
        let levels = optional.then_some(&column.there[..]);
        writer
            .typed::<ByteArrayType>()
            .write_batch(&column.values, levels, None)?;
        writer.close()
    }

    fn truths(&mut self, column: &Column<bool>) -> Result<()> {
        let mut writer = self.next()?;
        writer
            .typed::<parquet::data_type::BoolType>()
            .write_batch(&column.values, None, None)?;
        writer.close()
    }

    fn close(self) -> Result<()> {
        self.0.close()?;
        Ok(())
    }

    fn next(&mut self) -> Result<parquet::file::writer::SerializedColumnWriter<'_>> {
        self.0
            .next_column()?
            .ok_or_else(|| ParquetError::General("the schema has fewer columns".into()))
    }
}

/// Text of the program itself: no copy.
fn fixed(text: &'static str) -> ByteArray {
    bytes::Bytes::from_static(text.as_bytes()).into()
}

/// Unsigned numbers are kept in signed columns; the schema says how to read them.
fn word(number: u64) -> i64 {
    number.cast_signed()
}

fn half(number: u32) -> i32 {
    number.cast_signed()
}

/// Writes `events` as the stream goes by.
pub struct Events<W: Write + Send> {
    file: SerializedFileWriter<W>,
    event: u64,
    rows: Rows,
}

#[derive(Default)]
struct Rows {
    event: Column<i64>,
    time: Column<i64>,
    process: Column<i32>,
    thread: Column<i32>,
    kind: Column<ByteArray>,
    layer: Column<ByteArray>,
    device: Column<i32>,
    address: Column<i64>,
    size: Column<i64>,
    stack: Column<i32>,
    allocated: Column<i64>,
    reserved: Column<i64>,
}

/// What an event has besides its time and place.
#[derive(Clone, Copy, Default)]
struct Values {
    layer: Option<Layer>,
    device: Option<u16>,
    address: Option<u64>,
    size: Option<u64>,
    stack: Option<u32>,
    totals: Option<vramscope_events::Totals>,
}

fn values(event: &Event) -> Option<(&'static str, Values)> {
    let none = Values::default();
    Some(match event {
        Event::Alloc(alloc) => (
            "alloc",
            Values {
                layer: Some(alloc.layer),
                device: Some(match alloc.layer {
                    Layer::Host => HOST_DEVICE.0,
                    _ => alloc.device.0,
                }),
                address: Some(alloc.address.0),
                size: Some(alloc.size),
                stack: Some(alloc.stack.0),
                totals: alloc.totals,
            },
        ),
        Event::Free(free) => (
            "free",
            Values {
                layer: Some(free.layer),
                device: free.device.map(|device| device.0),
                address: Some(free.address.0),
                size: free.size,
                stack: None,
                totals: free.totals,
            },
        ),
        Event::OutOfMemory(failed) => (
            "out_of_memory",
            Values {
                device: Some(failed.device.0),
                size: Some(failed.requested),
                stack: Some(failed.stack.0),
                totals: Some(failed.totals),
                ..none
            },
        ),
        Event::CacheEmptied { device } => (
            "cache_emptied",
            Values {
                device: Some(device.0),
                ..none
            },
        ),
        Event::StepMark(mark) => (
            match mark.kind {
                StepMarkKind::Backward => "backward",
                StepMarkKind::User => "step",
            },
            Values {
                stack: Some(mark.stack.0),
                ..none
            },
        ),
        Event::Lost { count, .. } => (
            "lost",
            Values {
                size: Some(*count),
                ..none
            },
        ),
        Event::ProcessExited => ("exited", none),
        _ => return None,
    })
}

impl<W: Write + Send> Events<W> {
    /// Begins the table.
    ///
    /// # Errors
    /// The writer's.
    pub fn new(out: W) -> std::result::Result<Events<W>, Error> {
        Ok(Events {
            file: file(EVENTS, out)?,
            event: 0,
            rows: Rows::default(),
        })
    }

    /// Takes the next records of the stream.
    ///
    /// # Errors
    /// The writer's.
    pub fn push(&mut self, batch: &[Record]) -> std::result::Result<(), Error> {
        for record in batch {
            let Some((kind, values)) = values(&record.event) else {
                continue;
            };
            let rows = &mut self.rows;
            rows.event.push(Some(word(self.event)));
            self.event += 1;
            rows.time.push(Some(word(record.time.0)));
            rows.process.push(Some(half(record.process.0)));
            rows.thread.push(Some(half(record.thread.0)));
            rows.kind.push(Some(fixed(kind)));
            rows.layer
                .push(values.layer.map(|layer| fixed(layer_name(layer))));
            rows.device.push(values.device.map(i32::from));
            rows.address.push(values.address.map(word));
            rows.size.push(values.size.map(word));
            rows.stack.push(values.stack.map(half));
            rows.allocated
                .push(values.totals.map(|totals| word(totals.allocated)));
            rows.reserved
                .push(values.totals.map(|totals| word(totals.reserved)));
            if self.rows.event.there.len() >= ROWS {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Ends the table; without it the file is not one.
    ///
    /// # Errors
    /// The writer's.
    pub fn finish(mut self) -> std::result::Result<(), Error> {
        self.flush()?;
        self.file.close()?;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let rows = &mut self.rows;
        if rows.event.there.is_empty() {
            return Ok(());
        }
        let mut group = Group(self.file.next_row_group()?);
        group.numbers(&rows.event, false)?;
        group.numbers(&rows.time, false)?;
        group.small(&rows.process, false)?;
        group.small(&rows.thread, false)?;
        group.texts(&rows.kind, false)?;
        group.texts(&rows.layer, true)?;
        group.small(&rows.device, true)?;
        group.numbers(&rows.address, true)?;
        group.numbers(&rows.size, true)?;
        group.small(&rows.stack, true)?;
        group.numbers(&rows.allocated, true)?;
        group.numbers(&rows.reserved, true)?;
        group.close()?;
        rows.clear();
        Ok(())
    }
}

impl Rows {
    fn clear(&mut self) {
        for column in [
            &mut self.event,
            &mut self.time,
            &mut self.address,
            &mut self.size,
            &mut self.allocated,
            &mut self.reserved,
        ] {
            column.clear();
        }
        for column in [
            &mut self.process,
            &mut self.thread,
            &mut self.device,
            &mut self.stack,
        ] {
            column.clear();
        }
        self.kind.clear();
        self.layer.clear();
    }
}

/// Writes `stacks`: the selection's and the events' stacks, as far as the table knows them.
///
/// # Errors
/// The writer's.
pub fn stacks<W: Write + Send>(selection: &Selection, out: W) -> std::result::Result<(), Error> {
    let mut process = Column::default();
    let mut id = Column::default();
    let mut depth = Column::default();
    let mut function = Column::default();
    let mut path = Column::default();
    let mut line = Column::default();
    let mut origin = Column::default();
    let mut user = Column::default();
    let table = &selection.table;
    for stack in &table.stacks {
        for (level, index) in stack.frames.iter().enumerate() {
            let frame = table.frame(*index);
            process.push(Some(half(stack.process.0)));
            id.push(Some(half(stack.id.0)));
            depth.push(Some(level as i32));
            function.push(Some(ByteArray::from(frame.function.as_str())));
            path.push(Some(ByteArray::from(frame.file.as_str())));
            line.push(Some(half(frame.line)));
            origin.push(Some(ByteArray::from(frame.origin.name())));
            user.push(Some(stack.user == Some(*index)));
        }
    }
    let mut file = file(STACKS, out)?;
    let mut group = Group(file.next_row_group()?);
    group.small(&process, false)?;
    group.small(&id, false)?;
    group.small(&depth, false)?;
    group.texts(&function, false)?;
    group.texts(&path, false)?;
    group.small(&line, false)?;
    group.texts(&origin, false)?;
    group.truths(&user)?;
    group.close()?;
    file.close()?;
    Ok(())
}

/// Writes `sites`: the selection.
///
/// # Errors
/// The writer's.
pub fn sites<W: Write + Send>(selection: &Selection, out: W) -> std::result::Result<(), Error> {
    let mut process = Column::default();
    let mut rank = Column::default();
    let mut device = Column::default();
    let mut layer = Column::default();
    let mut stack = Column::default();
    let mut generation = Column::default();
    let mut bytes = Column::default();
    let mut blocks = Column::default();
    let mut function = Column::default();
    let mut path = Column::default();
    let mut line = Column::default();
    for part in &selection.parts {
        for row in &part.rows {
            let own = selection.table.own_frame(row.stack);
            process.push(Some(half(part.key.process.0)));
            rank.push(part.process.rank.map(half));
            device.push(Some(i32::from(part.key.device.0)));
            layer.push(Some(ByteArray::from(layer_name(part.key.layer))));
            stack.push(Some(half(selection.table.stack(row.stack).id.0)));
            generation.push(row.generation.map(word));
            bytes.push(Some(word(row.bytes)));
            blocks.push(Some(word(row.blocks)));
            function.push(Some(ByteArray::from(own.function.as_str())));
            path.push(Some(ByteArray::from(own.file.as_str())));
            line.push(Some(half(own.line)));
        }
    }
    let mut file = file(SITES, out)?;
    let mut group = Group(file.next_row_group()?);
    group.small(&process, false)?;
    group.small(&rank, true)?;
    group.small(&device, false)?;
    group.texts(&layer, false)?;
    group.small(&stack, false)?;
    group.numbers(&generation, true)?;
    group.numbers(&bytes, false)?;
    group.numbers(&blocks, false)?;
    group.texts(&function, false)?;
    group.texts(&path, false)?;
    group.small(&line, false)?;
    group.close()?;
    file.close()?;
    Ok(())
}

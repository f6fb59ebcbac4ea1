//! Streams to export, and what the tests of all formats share.
#![allow(dead_code, reason = "each test uses a part of it")]

#[path = "../../../tests/streams_reader/mod.rs"]
pub mod streams_reader;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
};

use vramscope_collector::{Collector, Config, view::Backend};
use vramscope_events::{
    Address, Alloc, DeviceId, Event, Frame, FrameId, FrameKind, Free, Layer, LostCause,
    OutOfMemory, Pid, ProcessInfo, Record, StackId, StepMark, StepMarkKind, Tid, Time, Totals,
};
use vramscope_export::{Choice, Gather, Gathered, MOST_EVENTS, PeakFinder, Peaks, What};

pub const PID: Pid = Pid(4121);

/// A stream with what was told beside it.
pub struct Stream {
    pub name: String,
    pub info: ProcessInfo,
    pub records: Vec<Record>,
}

impl Stream {
    pub fn gather(&self, choice: Choice) -> Gathered {
        self.gather_last(choice, MOST_EVENTS)
    }

    pub fn gather_last(&self, choice: Choice, events: usize) -> Gathered {
        let mut collector = Collector::new(Config::new(Backend::Recording, Time(0), 0));
        collector.add_process(self.info.clone());
        let mut gather = Gather::new(collector, choice, events);
        for batch in self.records.chunks(97) {
            gather.push(batch);
        }
        gather.finish().expect("a selection")
    }

    pub fn peaks(&self) -> Peaks {
        let mut finder = PeakFinder::default();
        for batch in self.records.chunks(31) {
            finder.push(batch);
        }
        finder.finish()
    }

    /// With blocks, as every format can write it.
    pub fn survivors(&self) -> Gathered {
        self.gather(blocks(What::Survivors))
    }

    /// The last moment.
    pub fn end(&self) -> Time {
        let times = self.records.iter().map(|record| record.time);
        times.max().expect("a stream")
    }
}

pub fn blocks(what: What) -> Choice {
    Choice {
        what,
        blocks: true,
        ..Choice::default()
    }
}

/// Bytes and blocks alive after the records at which `until` stops, of the framework's layer: a
/// second ledger, of the plainest kind.
pub fn alive(records: &[Record], until: impl Fn(usize, &Record) -> bool) -> (u64, u64) {
    let mut live: HashMap<(Pid, u64), u64> = HashMap::new();
    for (index, record) in records.iter().enumerate() {
        if until(index, record) {
            break;
        }
        match &record.event {
            Event::Alloc(alloc) if alloc.layer == Layer::Tensor => {
                live.insert((record.process, alloc.address.0), alloc.size);
            }
            Event::Free(free) if free.layer == Layer::Tensor => {
                live.remove(&(record.process, free.address.0));
            }
            _ => {}
        }
    }
    (live.values().sum(), live.len() as u64)
}

/// Real programs' streams.
pub fn recorded(names: &[&str]) -> Vec<Stream> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/streams");
    let read = |name: &&str| {
        let stream = streams_reader::Stream::read(&folder.join(format!("{name}.json.gz")));
        // Before the program ends and gives everything back.
        let end = stream.mark(150).min(stream.len() * 9 / 10);
        Stream {
            name: (*name).into(),
            info: info(&format!("python {name}.py")),
            records: stream.records(0, end),
        }
    };
    names.iter().map(read).collect()
}

pub fn info(command: &str) -> ProcessInfo {
    ProcessInfo {
        pid: PID,
        command: command.into(),
        python: Some("3.12.4".into()),
        torch: Some("2.8.0".into()),
        rank: Some(0),
        role: vramscope_events::Role::Program,
        directory: Some("/home/mira/probe".into()),
        root: None,
    }
}

/// Writes a stream by hand.
pub struct Writer {
    pub records: Vec<Record>,
    time: u64,
    totals: Totals,
    frames: u32,
    stacks: u32,
}

impl Writer {
    pub fn new() -> Writer {
        Writer {
            records: Vec::new(),
            time: 0,
            totals: Totals::default(),
            frames: 0,
            stacks: 0,
        }
    }

    pub fn emit(&mut self, event: Event) {
        self.time += 1_000_000;
        self.records.push(Record {
            time: Time(self.time),
            process: PID,
            thread: Tid(4121),
            event,
        });
    }

    /// Defines a stack, innermost frame first: kind, file, function, line.
    pub fn stack(&mut self, frames: &[(FrameKind, &str, &str, u32)]) -> StackId {
        let mut ids = Vec::new();
        for (kind, file, function, line) in frames {
            self.frames += 1;
            let id = FrameId(self.frames);
            ids.push(id);
            self.emit(Event::Frame {
                id,
                frame: Arc::new(Frame {
                    kind: *kind,
                    file: (*file).into(),
                    function: (*function).into(),
                    line: *line,
                }),
            });
        }
        self.stacks += 1;
        let id = StackId(self.stacks);
        self.emit(Event::Stack {
            id,
            frames: ids.into(),
        });
        id
    }

    pub fn alloc(&mut self, layer: Layer, device: u16, address: u64, size: u64, stack: StackId) {
        if layer == Layer::Tensor {
            self.totals.allocated += size;
        } else {
            self.totals.reserved += size;
        }
        let totals = (layer == Layer::Tensor && device == 0).then_some(self.totals);
        self.emit(Event::Alloc(Alloc {
            layer,
            device: DeviceId(device),
            address: Address(address),
            size,
            stack,
            totals,
        }));
    }

    pub fn free(&mut self, layer: Layer, device: u16, address: u64, size: u64) {
        if layer == Layer::Tensor {
            self.totals.allocated -= size;
        }
        let totals = (layer == Layer::Tensor && device == 0).then_some(self.totals);
        let known = layer == Layer::Tensor;
        self.emit(Event::Free(Free {
            layer,
            device: known.then_some(DeviceId(device)),
            address: Address(address),
            size: known.then_some(size),
            totals,
        }));
    }

    pub fn backward(&mut self, stack: StackId) {
        self.emit(Event::StepMark(StepMark {
            kind: StepMarkKind::Backward,
            stack,
        }));
    }

    pub fn finish(self, name: &str, command: &str) -> Stream {
        Stream {
            name: name.into(),
            info: info(command),
            records: self.records,
        }
    }
}

const TORCH: &str = "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py";

/// A small training run that keeps its losses: two devices, segments of the driver, frames of
/// every kind, an out-of-memory error. What the golden files show.
pub fn small() -> Stream {
    use FrameKind::{Backward, Native, Python};
    let mut writer = Writer::new();
    let main = (Python, "/home/mira/probe/train.py", "main", 31);
    let segment = writer.stack(&[
        (Native, "/opt/venv/lib/libc10_cuda.so", "cudaMalloc", 0),
        (Python, TORCH, "Linear.__init__", 101),
        main,
    ]);
    let weights = writer.stack(&[(Python, TORCH, "Linear.__init__", 101), main]);
    let forward = writer.stack(&[
        (
            Native,
            "/opt/venv/lib/libtorch_cpu.so",
            "at::native::linear(at::Tensor const&)",
            0,
        ),
        (Python, TORCH, "Linear.forward", 125),
        (Python, "/home/mira/probe/train.py", "step", 22),
        main,
    ]);
    let kept = writer.stack(&[(Python, "/home/mira/probe/train.py", "step", 27), main]);
    let called = writer.stack(&[(Python, "/home/mira/probe/train.py", "step", 24), main]);
    let gradient = writer.stack(&[
        (Backward, "", "backward", 0),
        (Python, "/home/mira/probe/train.py", "step", 24),
        main,
    ]);
    let copied = writer.stack(&[
        (Python, "/usr/lib/python3.12/copy.py", "deepcopy", 172),
        main,
    ]);
    let mib = 1 << 20;
    let base = 0x7f00_0000_0000;
    writer.alloc(Layer::Driver, 0, base, 20 * mib, segment);
    writer.alloc(Layer::Tensor, 0, base, 4 * mib, weights);
    writer.alloc(Layer::Tensor, 1, base + (1 << 40), 2 * mib, copied);
    for step in 0..12 {
        let at = base + 8 * mib;
        writer.alloc(Layer::Tensor, 0, at, 3 * mib, forward);
        writer.backward(called);
        writer.alloc(Layer::Tensor, 0, at + 4 * mib, mib, gradient);
        writer.alloc(Layer::Tensor, 0, base + 4 * mib + step * 2048, 1536, kept);
        writer.free(Layer::Tensor, 0, at, 3 * mib);
        writer.free(Layer::Tensor, 0, at + 4 * mib, mib);
    }
    let totals = writer.totals;
    writer.emit(Event::OutOfMemory(OutOfMemory {
        device: DeviceId(0),
        requested: 64 << 30,
        totals,
        stack: forward,
    }));
    writer.finish("small", "python train.py --epochs 3")
}

/// Names that want to be something else, one stack each, with the sizes 512, 1024, …
pub const HOSTILE: [&str; 16] = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "]]></style><b>",
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd",
    "+1-1",
    "quote\" and 'single' and `tick`",
    "line\nbreak\r\nand\ttab",
    "\u{1b}[31mred\u{7}\u{9b}2J",
    "semi;colon; and space 12345",
    "a frame that ends in 42",
    "# a comment",
    "\u{202e}reversed\u{200b}\u{feff}",
    "&lt;already&gt; &amp; ${jndi:x} %n%s {{7*7}}",
    "nul\0inside, \u{2028}line separator, comma,comma",
];

pub fn hostile() -> Stream {
    let mut writer = Writer::new();
    let long = "very_long_name_".repeat(20_000);
    let names = HOSTILE.iter().copied().chain(["", &long]);
    for (index, name) in names.enumerate() {
        let kind = [FrameKind::Python, FrameKind::Native][index % 2];
        let stack = writer.stack(&[(kind, name, name, 7), (FrameKind::Python, name, "f 1", 0)]);
        let index = index as u64 + 1;
        writer.alloc(
            Layer::Tensor,
            0,
            0x7000_0000_0000 + (index << 30),
            index * 512,
            stack,
        );
    }
    writer.alloc(Layer::Tensor, 0, 0x1000, 512, StackId::EMPTY);
    writer.alloc(Layer::Tensor, 0, 0x2000, 512, StackId(9999));
    writer.emit(Event::Lost {
        count: 3,
        cause: LostCause::RingFull,
    });
    writer.finish("hostile", "=HYPERLINK(\"http://x\") <script>\n\u{1b}[2J")
}

/// Where tools for tests are kept; `scripts/setup --consumers` puts them there.
pub fn consumers() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache"),
        PathBuf::from,
    );
    cache.join("vramscope/consumers")
}

/// The Python that has the readers of several formats, or a skip.
pub fn python(test: &str) -> Option<PathBuf> {
    let python = consumers().join("bin/python");
    if !python.exists() {
        vramscope_test_support::skip(test, "no readers (`scripts/setup --consumers`)");
        return None;
    }
    Some(python)
}

/// Runs a script of `consumers/` and gives what it printed.
pub fn consume(python: &Path, script: &str, arguments: &[&Path]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/consumers")
        .join(script);
    run(Command::new(python).arg(script).args(arguments))
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&stderr);
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    assert!(
        status.success(),
        "{command:?}: {status}\n{stderr}\n{stdout}"
    );
    stdout
}

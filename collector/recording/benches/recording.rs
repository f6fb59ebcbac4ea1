//! How large recordings are and how fast they are read, printed beside the obvious alternatives.
//!
//!     cargo bench -p vramscope-recording
//!     VRAMSCOPE_RECORDING=run.vrs cargo bench -p vramscope-recording      # a recording of yours
//!     VRAMSCOPE_BENCH_EVENTS=72000000 cargo bench -p vramscope-recording  # an hour at 20,000/s

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use vramscope_collector::{
    Collector, Config,
    recorder::{Options, Recorder},
    replay::Replay,
    view::Backend,
};
use vramscope_events::{
    Address, Alloc, DeviceId, Event, Frame, FrameId, FrameKind, Free, Layer, Pid, Record, StackId,
    StepMark, StepMarkKind, Tid, Time, Totals,
};
use vramscope_recording::Recording;

const PID: Pid = Pid(4121);
/// Events a second of the made-up training.
const RATE: u64 = 20_000;
/// Records handed over at a time: 50 ms.
const BATCH: usize = 1_000;

/// A made-up training: forward keeps activations, backward frees them and makes gradients, the
/// optimizer passes temporaries; a little is kept. Sizes, addresses and times vary as they do.
struct Training {
    time: u64,
    random: u64,
    allocated: u64,
    next: u64,
    pool: Vec<Vec<u64>>,
    step: u64,
    batch: Vec<Record>,
}

impl Training {
    fn new() -> Training {
        Training {
            time: 0,
            random: 1,
            allocated: 0,
            next: 0x7f00_0000_0000,
            pool: vec![Vec::new(); 64],
            step: 0,
            batch: Vec::new(),
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn emit(&mut self, event: Event) {
        // Bursts of a few microseconds and pauses, as launches of kernels make them.
        let pause = match self.random(20) {
            0 => self.random(1_400_000_000 / RATE),
            _ => self.random(40_000),
        };
        self.time += pause * 50_000 / RATE;
        self.time = self.time / 1000 * 1000;
        self.batch.push(Record {
            time: Time(self.time),
            process: PID,
            thread: Tid(4121),
            event,
        });
    }

    fn alloc(&mut self, stack: u32, size: u64) -> (u64, u64) {
        let class = (size.ilog2() as usize).min(63);
        let address = self.pool[class].pop().unwrap_or_else(|| {
            self.next += size.next_power_of_two().max(512);
            self.next
        });
        self.allocated += size;
        let totals = Some(Totals {
            allocated: self.allocated,
            reserved: 8 << 30,
        });
        self.emit(Event::Alloc(Alloc {
            layer: Layer::Tensor,
            device: DeviceId(0),
            address: Address(address),
            size,
            stack: StackId(stack),
            totals,
        }));
        (address, size)
    }

    fn free(&mut self, (address, size): (u64, u64)) {
        self.pool[(size.ilog2() as usize).min(63)].push(address);
        self.allocated -= size;
        let totals = Some(Totals {
            allocated: self.allocated,
            reserved: 8 << 30,
        });
        self.emit(Event::Free(Free {
            layer: Layer::Tensor,
            device: Some(DeviceId(0)),
            address: Address(address),
            size: Some(size),
            totals,
        }));
    }

    fn define(&mut self) {
        for id in 1..=400u32 {
            for frame in 0..12 {
                self.emit(Event::Frame {
                    id: FrameId(id * 12 + frame),
                    frame: std::sync::Arc::new(Frame {
                        kind: FrameKind::Python,
                        file: format!("/home/mira/run/model_{frame}.py").into(),
                        function: format!("Layer{}.forward", id % 40).into(),
                        line: id,
                    }),
                });
            }
            self.emit(Event::Stack {
                id: StackId(id),
                frames: (0..12).map(|frame| FrameId(id * 12 + frame)).collect(),
            });
        }
    }

    /// About 1,000 events.
    fn step(&mut self) {
        self.step += 1;
        // Lengths of the batches vary.
        let length = 16 + self.random(8);
        let mut kept = Vec::new();
        for layer in 0..24u32 {
            for op in 0..8 {
                let size = 512 * length * u64::from(op + 1);
                let block = self.alloc(layer * 8 + op + 1, size);
                match op % 4 {
                    0 => self.free(block),
                    _ => kept.push(block),
                }
            }
        }
        self.emit(Event::StepMark(StepMark {
            kind: StepMarkKind::Backward,
            stack: StackId(399),
        }));
        let mut gradients = Vec::new();
        while let Some(block) = kept.pop() {
            let stack = 200 + kept.len() as u32 % 150;
            let temporary = self.alloc(stack, 512 * length);
            self.free(block);
            if kept.len().is_multiple_of(3) {
                gradients.push(temporary);
            } else {
                self.free(temporary);
            }
        }
        for gradient in gradients {
            let temporary = self.alloc(360, 4096);
            self.free(temporary);
            self.free(gradient);
        }
        if self.step.is_multiple_of(4) {
            self.alloc(398, 512);
        }
    }
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn config() -> Config {
    let mut config = Config::new(Backend::Ebpf, Time(0), 1_700_000_000);
    config.read_sources = false;
    config
}

/// Records the made-up training as a session would, and says how large it became.
fn record(path: &Path, events: u64) -> u64 {
    let mut training = Training::new();
    let mut collector = Collector::new(config());
    let options = Options {
        path: path.to_owned(),
        force: true,
        flight: false,
        keep_last: None,
        max_bytes: None,
    };
    let mut recorder = Recorder::start(&options, &collector.session_info("bench")).expect("a file");
    training.define();
    let mut made = 0;
    while made < events {
        while training.batch.len() < BATCH {
            training.step();
        }
        let batch = std::mem::take(&mut training.batch);
        made += batch.len() as u64;
        collector.ingest(&batch);
        recorder.take(batch, &collector);
        while recorder.waiting() > 500_000 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let summary = recorder.finish(&collector, Time(training.time), "done");
    assert_eq!((summary.left_out, summary.trouble), (0, None));
    summary.events
}

/// The same events as fixed records of 32 bytes (time, address, size, stack, kind) and of 56 (and
/// totals and thread), as they are and through zstd.
fn raw_sizes(recording: &Recording) -> [(String, u64); 4] {
    let zstd = || zstd::stream::write::Encoder::new(Vec::new(), 1).expect("memory");
    let (mut small, mut large) = (zstd(), zstd());
    let (mut small_bytes, mut large_bytes) = (0, 0);
    for batch in recording.batches() {
        for record in batch.expect("a whole file").records {
            let (kind, address, size, stack, totals) = match record.event {
                Event::Alloc(alloc) => {
                    (0u32, alloc.address, alloc.size, alloc.stack.0, alloc.totals)
                }
                Event::Free(free) => (1, free.address, free.size.unwrap_or(0), 0, free.totals),
                _ => continue,
            };
            let mut out = Vec::with_capacity(56);
            out.extend(record.time.0.to_le_bytes());
            out.extend(address.0.to_le_bytes());
            out.extend(size.to_le_bytes());
            out.extend(stack.to_le_bytes());
            out.extend(kind.to_le_bytes());
            small.write_all(&out).expect("memory");
            small_bytes += out.len() as u64;
            let totals = totals.unwrap_or_default();
            out.extend(totals.allocated.to_le_bytes());
            out.extend(totals.reserved.to_le_bytes());
            out.extend(u64::from(record.thread.0).to_le_bytes());
            large.write_all(&out).expect("memory");
            large_bytes += out.len() as u64;
        }
    }
    let small = small.finish().expect("memory").len() as u64;
    let large = large.finish().expect("memory").len() as u64;
    [
        ("records of 32 bytes".into(), small_bytes),
        ("the same, zstd -1".into(), small),
        ("records of 56 bytes".into(), large_bytes),
        ("the same, zstd -1".into(), large),
    ]
}

fn tell(name: &str, path: &Path) {
    let bytes = std::fs::metadata(path).expect("a file").len();
    let recording = Recording::open(path).expect("a recording");
    let mut events = 0;
    let mut decoded = 0;
    let started = Instant::now();
    for batch in recording.batches() {
        let batch = batch.expect("a whole file");
        decoded += batch.records.len() as u64;
        let event = |record: &&Record| matches!(record.event, Event::Alloc(_) | Event::Free(_));
        events += batch.records.iter().filter(event).count() as u64;
    }
    let decoding = started.elapsed();
    println!(
        "\n{name}: {events} allocations and frees, {:.1} MB",
        mb(bytes)
    );
    let each = |bytes: u64| bytes as f64 / events as f64;
    println!(
        "  {:<32} {:6.2} bytes an event",
        "vramscope (checkpoints included)",
        each(bytes)
    );
    if events <= 20_000_000 {
        for (name, bytes) in raw_sizes(&recording) {
            println!("  {name:<32} {:6.2} bytes an event", each(bytes));
        }
    }
    let rate = |time: Duration| decoded as f64 / time.as_secs_f64() / 1e6;
    println!("  decoded: {:.1} M events/s on one core", rate(decoding));
    // From the start, through the collector.
    let mut collector = Collector::new(Config::of_recording(recording.info()).expect("settings"));
    let started = Instant::now();
    for batch in recording.batches() {
        collector.ingest(&batch.expect("a whole file").records);
    }
    println!(
        "  with the collector: {:.1} M events/s",
        rate(started.elapsed())
    );
    // As the live view opens it.
    let started = Instant::now();
    let mut replay = Replay::open(path).expect("a recording");
    let opened = started.elapsed();
    replay.seek_end(&mut |_, _| {}).expect("a whole file");
    let view = replay.view();
    let (first, last) = replay.span();
    println!(
        "  its last moment ({:.0} s, {} checkpoints): opened in {:.1} ms, shown after {:.0} ms",
        last.seconds_since(first),
        recording.checkpoints().len(),
        opened.as_secs_f64() * 1e3,
        started.elapsed().as_secs_f64() * 1e3
    );
    let middle = Time(first.0 + (last.0 - first.0) / 2);
    let started = Instant::now();
    replay.seek(middle, &mut |_, _| {}).expect("a whole file");
    replay.view();
    println!(
        "  its middle: {:.0} ms",
        started.elapsed().as_secs_f64() * 1e3
    );
    let blocks: u64 = view.processes[0]
        .devices
        .iter()
        .map(|device| device.live_blocks)
        .sum();
    println!(
        "  memory at most {:.0} MB with {blocks} live blocks",
        peak_rss_mb()
    );
}

/// The most memory that this process had, from /proc.
fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1e3
}

fn main() {
    // `cargo test --benches` only asks whether it runs.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    if let Some(path) = std::env::var_os("VRAMSCOPE_RECORDING") {
        tell("a recording", &PathBuf::from(path));
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bench.vrs");
    let events = std::env::var("VRAMSCOPE_BENCH_EVENTS").ok();
    let events = events
        .and_then(|events| events.parse().ok())
        .unwrap_or(4_000_000);
    let started = Instant::now();
    let made = record(&path, events);
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "recorded {made} events in {seconds:.1} s ({:.2} M events/s with the collector)",
        made as f64 / seconds / 1e6
    );
    // Another process, so that the memory is that of the reader.
    let itself = std::env::current_exe().expect("a program");
    let status = std::process::Command::new(itself)
        .env("VRAMSCOPE_RECORDING", &path)
        .status();
    assert!(status.expect("it starts").success());
}

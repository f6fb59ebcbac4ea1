//! Both tracers on one process at once: event by event the same.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    thread::{self, JoinHandle},
};

use vramscope_events::{Event, Frame, FrameId, FrameKind, Layer, StackId, StepMarkKind};
use vramscope_test_support::{
    Program, Setup, TORCHES, Tool, injection_library, missing, root, skip,
};
use vramscope_tracer::{Options, Session};

/// An event as both tracers tell it: what, address, size or totals, and who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    what: &'static str,
    address: u64,
    size: u64,
    totals: Option<(u64, u64)>,
    python: Vec<(String, u32, String)>,
}

#[derive(Default)]
struct Heard {
    frames: HashMap<FrameId, Arc<Frame>>,
    stacks: HashMap<StackId, Arc<[FrameId]>>,
    events: Vec<(Layer, Told, StackId)>,
    lost: u64,
}

impl Heard {
    fn take(&mut self, event: Event) {
        let (layer, what, address, size, totals, stack) = match event {
            Event::Frame { id, frame } => {
                self.frames.insert(id, frame);
                return;
            }
            Event::Stack { id, frames } => {
                self.stacks.insert(id, frames);
                return;
            }
            Event::Lost { count, .. } => {
                self.lost += count;
                return;
            }
            Event::Alloc(alloc) => {
                let Some(totals) = alloc.totals else {
                    let what = "driver alloc";
                    let told = (
                        alloc.layer,
                        what,
                        alloc.address.0,
                        alloc.size,
                        None,
                        alloc.stack,
                    );
                    self.push(told);
                    return;
                };
                let totals = Some((totals.allocated, totals.reserved));
                (
                    alloc.layer,
                    "alloc",
                    alloc.address.0,
                    alloc.size,
                    totals,
                    alloc.stack,
                )
            }
            Event::Free(free) => {
                let totals = free
                    .totals
                    .map(|totals| (totals.allocated, totals.reserved));
                let size = free.size.unwrap_or(0);
                (
                    free.layer,
                    "free",
                    free.address.0,
                    size,
                    totals,
                    StackId::EMPTY,
                )
            }
            Event::OutOfMemory(failed) => {
                let totals = Some((failed.totals.allocated, failed.totals.reserved));
                (
                    Layer::Tensor,
                    "oom",
                    0,
                    failed.requested,
                    totals,
                    failed.stack,
                )
            }
            Event::StepMark(mark) if mark.kind == StepMarkKind::Backward => {
                (Layer::Tensor, "backward", 0, 0, None, mark.stack)
            }
            _ => return,
        };
        self.push((layer, what, address, size, totals, stack));
    }

    fn push(
        &mut self,
        (layer, what, address, size, totals, stack): (
            Layer,
            &'static str,
            u64,
            u64,
            Option<(u64, u64)>,
            StackId,
        ),
    ) {
        let told = Told {
            what,
            address,
            size,
            totals,
            python: Vec::new(),
        };
        self.events.push((layer, told, stack));
    }

    /// The memory events of a layer in their order, which is the allocator's, with the Python frames
    /// (and the mark of a backward) of their stacks.
    fn told(&self, layer: Layer) -> VecDeque<Told> {
        let of_layer = self
            .events
            .iter()
            .filter(|(of, told, _)| *of == layer && told.what != "backward");
        of_layer
            .map(|(_, told, stack)| Told {
                python: self.python(*stack),
                ..told.clone()
            })
            .collect()
    }

    /// Who called `backward()`, how often. Several threads may do so at once, under no lock: there
    /// is no order.
    fn marks(&self) -> BTreeMap<Vec<(String, u32, String)>, u64> {
        let mut marks = BTreeMap::new();
        for (_, _, stack) in self
            .events
            .iter()
            .filter(|(_, told, _)| told.what == "backward")
        {
            *marks.entry(self.python(*stack)).or_default() += 1;
        }
        marks
    }

    fn python(&self, stack: StackId) -> Vec<(String, u32, String)> {
        let frames = self
            .stacks
            .get(&stack)
            .into_iter()
            .flat_map(|ids| ids.iter());
        frames
            .map(|id| &self.frames[id])
            .filter(|frame| frame.kind != FrameKind::Native)
            .map(|frame| {
                (
                    frame.file.to_string(),
                    frame.line,
                    frame.function.to_string(),
                )
            })
            .collect()
    }
}

/// Listens until the session has ended.
fn listen(session: &Session) -> JoinHandle<Heard> {
    let records = session.records().clone();
    thread::spawn(move || {
        let mut heard = Heard::default();
        for record in records.into_iter().flatten() {
            heard.take(record.event);
        }
        heard
    })
}

fn compare(test: &str, torch: &str, script: &str) {
    let threads = script.ends_with("threads.py");
    let tool = Tool::new(env!("CARGO_BIN_EXE_vramscope"));
    if let Some(reason) = missing(&tool) {
        skip(test, &reason);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let truth = directory.path().join("truth.json");
    let script = root().join(script);
    let setup = Setup::new(torch).env("STEPS", "60").env("SLEEP", "0.002");
    let quiet = root().join("tests/programs/quiet.py");
    let arguments = [
        truth.to_str().unwrap(),
        "--from-start",
        script.to_str().unwrap(),
    ];
    let mut program = Program::start(&setup, &quiet, &arguments);
    program.expect("ready");
    let options = Options {
        watch_devices: false,
        library: Some(injection_library()),
        // Kernels before 6.6 need a link for each probe: here one of the tests does it that way.
        shared_links: torch == TORCHES[0],
        ..Options::default()
    };
    // The other order does not matter: nothing is allocated before `go`.
    let mut injected = Session::inject(program.pid(), &options).unwrap();
    let mut probed = Session::attach(program.pid(), &options).unwrap();
    let (by_library, by_kernel) = (listen(&injected), listen(&probed));
    program.say("go");
    program.expect("quiet");
    injected.detach();
    probed.detach();
    let (by_library, by_kernel) = (by_library.join().unwrap(), by_kernel.join().unwrap());
    drop((injected, probed));
    program.say("end");
    assert!(program.finish().success());

    assert_eq!((by_library.lost, by_kernel.lost), (0, 0));
    for layer in [Layer::Tensor, Layer::Driver] {
        let (mut ours, mut theirs) = (by_library.told(layer), by_kernel.told(layer));
        if threads {
            // For which of several threads that are in backward() an autograd thread works cannot
            // be told: each tracer takes the one that it saw last, if it is still there.
            for told in ours.iter_mut().chain(&mut theirs) {
                if told
                    .python
                    .first()
                    .is_none_or(|frame| frame.2 == "[backward]")
                {
                    told.python.clear();
                }
            }
        }
        let first = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        if let Some(index) = first {
            panic!(
                "{layer:?} event {index}: the library says {:#?}, the kernel {:#?}",
                ours[index], theirs[index]
            );
        }
        assert_eq!(ours.len(), theirs.len(), "{layer:?}");
        println!(
            "{}: {} events of {layer:?} alike",
            script.display(),
            ours.len()
        );
        let enough = if layer == Layer::Tensor { 50 } else { 1 };
        assert!(ours.len() > enough, "{layer:?}: {}", ours.len());
    }
    assert_eq!(by_library.marks(), by_kernel.marks());
    let with_code = by_library.frames.values();
    let native = with_code.filter(|frame| frame.kind == FrameKind::Native);
    assert!(
        native
            .into_iter()
            .any(|frame| frame.function.contains("at::")),
        "machine-code frames have names"
    );
}

#[test]
fn both_tell_the_same_of_a_transformer_on_the_newest_torch() {
    compare(
        "both_tell_the_same",
        TORCHES[0],
        "tests/programs/train/transformer.py",
    );
}

#[test]
fn both_tell_the_same_of_a_transformer_on_an_older_torch() {
    compare(
        "both_tell_the_same",
        TORCHES[1],
        "tests/programs/train/transformer.py",
    );
}

#[test]
fn both_tell_the_same_of_threads() {
    compare(
        "both_tell_the_same_of_threads",
        TORCHES[0],
        "tests/programs/train/threads.py",
    );
}

#[test]
fn both_tell_the_same_of_expandable_segments() {
    compare(
        "both_tell_the_same_of_expandable_segments",
        TORCHES[1],
        "tests/programs/special/expandable.py",
    );
}

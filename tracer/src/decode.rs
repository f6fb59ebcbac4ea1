//! Records from the ring, turned into events.
//!
//! Code objects become frames (file, function, line) and stacks of them; each is defined once, by
//! content: the same line seen through two code objects is one frame.

mod stacks;

use std::{ops::Range, sync::Arc};

use crossbeam_channel::Sender;
use rustc_hash::FxHashMap;
use vramscope_events::{
    Address, Alloc, DeviceId, Event, Frame, FrameId, FrameKind, Free, Layer, OutOfMemory, Pid,
    Record, StackId, StepMark, StepMarkKind, Tid, Time, Totals,
};
use vramscope_python::{CodeObject, LineTable, Process, Python, StrKind, decode_str, read_code};
use vramscope_wire as wire;

use crate::{
    driver::DriverBook,
    python::byte_offset,
    unwind::{code::CodeMap, names::Nameless, table::RuleTable, walk::Walk},
};

/// One traced process, as the decoder knows it.
pub struct Traced {
    /// Its id in our pid namespace.
    pub pid: Pid,
    /// For reading what did not fit into a record.
    pub process: Process,
    /// Its interpreter, where there is one.
    pub python: Option<Python>,
    driver: DriverBook,
    code: CodeMap,
}

impl Traced {
    /// A process at its attach.
    pub fn new(process: Process, python: Option<Python>) -> Traced {
        Traced {
            pid: Pid(process.pid()),
            code: CodeMap::new(process.clone(), python.as_ref()),
            process,
            python,
            driver: DriverBook::default(),
        }
    }
}

/// Tells whether a code object is still the one that an id was given to.
pub trait KnownCodes {
    /// The id under which the producer knows the code object at `address` of process `index`.
    fn id(&self, address: u64, process: u16) -> Option<u32>;

    /// In which epoch of its code the process is (`vs_native.epoch`); `None` where nobody counts.
    fn epoch(&self, process: u16) -> Option<u64>;
}

/// What was decoded beside the events, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeStats {
    /// Records of no known kind.
    pub undecodable: u64,
    /// Code objects whose names could not be had; their frames say so.
    pub nameless_codes: u64,
    /// Stacks with machine code that was unloaded before anybody could look.
    pub stale_stacks: u64,
}

/// The decoder of one session. The default knows no process yet.
#[derive(Default)]
pub struct Decoder {
    /// By index; none where no process has it.
    processes: Vec<Option<Traced>>,
    /// Of each process by itself: the same path can be another file in another container.
    frames: FxHashMap<(u16, Arc<Frame>), FrameId>,
    stacks: FxHashMap<(u16, Arc<[FrameId]>), StackId>,
    /// By the producer's id, which is of its process: (plain, charged to a backward()).
    known_stacks: FxHashMap<(u16, u32), KnownStack>,
    codes: FxHashMap<(u16, u32), Code>,
    lines: FxHashMap<(u16, u32, u32), FrameId>,
    backward_marker: Option<FrameId>,
    unknown_code: Option<FrameId>,
    driver_events: Vec<Event>,
    next_frame: u32,
    last_stack: u32,
    /// Who names machine-code frames; without one they are left out.
    names: Option<Sender<Nameless>>,
    /// Unwind rules for the kernel.
    pub rules: RuleTable,
    /// Counters.
    pub stats: DecodeStats,
}

struct KnownStack {
    plain: StackId,
    frames: Arc<[FrameId]>,
    /// Where the interpreter was called, for stacks that are all Python.
    calls: Arc<[u32]>,
    /// Whether no frame is missing.
    complete: bool,
    backward: Option<StackId>,
}

struct Code {
    object: Option<CodeObject>,
}

impl Decoder {
    /// Shows machine-code frames too, which are named through `names`.
    pub fn with_names(mut self, names: Sender<Nameless>) -> Decoder {
        self.names = Some(names);
        self
    }

    /// Adds a process; its index is the number of those before it.
    pub fn add(&mut self, traced: Traced) {
        self.processes.push(Some(traced));
    }

    /// Gives an index to a process.
    pub fn set(&mut self, index: u16, traced: Traced) {
        let index = usize::from(index);
        if index >= self.processes.len() {
            self.processes.resize_with(index + 1, || None);
        }
        self.processes[index] = Some(traced);
    }

    /// The process that has an index.
    pub fn process(&self, index: u16) -> Option<&Traced> {
        self.processes.get(usize::from(index))?.as_ref()
    }

    fn process_mut(&mut self, index: u16) -> Option<&mut Traced> {
        self.processes.get_mut(usize::from(index))?.as_mut()
    }

    /// Whether code that a process has mapped lies where other code was; what was known of that is
    /// forgotten then, and stacks of the time before are counted as stale.
    pub fn is_replaced(&mut self, index: u16, addresses: Range<u64>) -> bool {
        self.process_mut(index)
            .is_some_and(|traced| traced.code.is_replaced(addresses))
    }

    /// Forgets the process that has an index: another one can have it.
    pub fn remove(&mut self, index: u16) {
        if let Some(process) = self.processes.get_mut(usize::from(index)) {
            *process = None;
        }
        self.frames.retain(|(of, _), _| *of != index);
        self.stacks.retain(|(of, _), _| *of != index);
        self.known_stacks.retain(|(of, _), _| *of != index);
        self.codes.retain(|(of, _), _| *of != index);
        self.lines.retain(|(of, _, _), _| *of != index);
    }

    /// Decodes one record; appends what it means.
    pub fn decode(&mut self, bytes: &[u8], known: &impl KnownCodes, out: &mut Vec<Record>) {
        let Some(record) = wire::Record::parse(bytes) else {
            self.stats.undecodable += 1;
            return;
        };
        match record {
            wire::Record::Tensor(tensor) => self.tensor(&tensor, out),
            wire::Record::OutOfMemory(oom) => {
                let event = Event::OutOfMemory(OutOfMemory {
                    device: DeviceId(oom.head.device),
                    requested: oom.requested,
                    totals: Totals {
                        allocated: oom.allocated,
                        reserved: oom.reserved,
                    },
                    stack: self.stack(&oom.head, out),
                });
                self.push(&oom.head, event, out);
            }
            wire::Record::Backward(mark) => {
                if mark.head.flags & wire::vs_flag_VS_FLAG_NESTED as u16 == 0 {
                    let event = Event::StepMark(StepMark {
                        kind: StepMarkKind::Backward,
                        stack: self.stack(&mark.head, out),
                    });
                    self.push(&mark.head, event, out);
                }
            }
            wire::Record::User(mark) => {
                let event = Event::StepMark(StepMark {
                    kind: StepMarkKind::User,
                    stack: StackId::EMPTY,
                });
                self.push(&mark.head, event, out);
            }
            wire::Record::Driver(call) => self.driver(&call, out),
            wire::Record::Code(code) => self.code(&code, known),
            wire::Record::Stack(stack) => self.body(&stack, known, out),
            wire::Record::Mixed(stack) => {
                let walk = Walk {
                    addresses: stack.native().collect(),
                    complete: stack.state == wire::vs_walk_state_VS_WALK_END,
                };
                self.mixed(&stack, &walk, known, out);
            }
            wire::Record::Copy(copy) => self.copy(&copy, known, out),
        }
    }

    fn tensor(&mut self, tensor: &wire::vs_tensor, out: &mut Vec<Record>) {
        let device = DeviceId(tensor.head.device);
        let address = Address(tensor.address);
        let size = tensor.size.unsigned_abs();
        let totals = Some(Totals {
            allocated: tensor.allocated,
            reserved: tensor.reserved,
        });
        let event = if tensor.size > 0 {
            let thread = Tid(tensor.head.tid);
            if let Some(traced) = self.process_mut(tensor.head.process) {
                traced.driver.tensor(thread, device, size);
            }
            Event::Alloc(Alloc {
                layer: Layer::Tensor,
                device,
                address,
                size,
                stack: self.stack(&tensor.head, out),
                totals,
            })
        } else {
            Event::Free(Free {
                layer: Layer::Tensor,
                device: Some(device),
                address,
                size: Some(size),
                totals,
            })
        };
        self.push(&tensor.head, event, out);
    }

    fn driver(&mut self, call: &wire::vs_driver, out: &mut Vec<Record>) {
        let stack = self.stack(&call.head, out);
        let mut events = std::mem::take(&mut self.driver_events);
        let Some(traced) = self.process_mut(call.head.process) else {
            self.stats.undecodable += 1;
            return;
        };
        traced.driver.event(call, stack, &mut events);
        for event in events.drain(..) {
            self.push(&call.head, event, out);
        }
        self.driver_events = events;
    }

    /// Tells what is not worth an event each time that it changes. To be called now and then, and
    /// at the end.
    pub fn settle(&mut self, time: Time, out: &mut Vec<Record>) {
        for traced in self.processes.iter_mut().flatten() {
            let process = traced.pid;
            out.extend(traced.driver.pools_kept().map(|event| Record {
                time,
                process,
                thread: Tid(0),
                event,
            }));
        }
    }

    fn push(&mut self, head: &wire::vs_header, event: Event, out: &mut Vec<Record>) {
        match self.process(head.process) {
            Some(traced) => out.push(Record {
                time: Time(head.time),
                process: traced.pid,
                thread: Tid(head.tid),
                event,
            }),
            None => self.stats.undecodable += 1,
        }
    }

    /// The stack that a record names. Its body came before it, or was lost and counted.
    fn stack(&mut self, head: &wire::vs_header, out: &mut Vec<Record>) -> StackId {
        let backward = head.flags & wire::vs_flag_VS_FLAG_BACKWARD as u16 != 0;
        let Some(known) = self.known_stacks.get(&(head.process, head.stack)) else {
            return StackId::EMPTY;
        };
        if !backward {
            return known.plain;
        }
        if let Some(id) = known.backward {
            return id;
        }
        let caller = known.frames.clone();
        let marker = self.backward_marker(head, out);
        let frames: Arc<[FrameId]> = std::iter::once(marker)
            .chain(caller.iter().copied())
            .collect();
        let id = self.intern_stack(head, frames, out);
        if let Some(known) = self.known_stacks.get_mut(&(head.process, head.stack)) {
            known.backward = Some(id);
        }
        id
    }

    fn backward_marker(&mut self, head: &wire::vs_header, out: &mut Vec<Record>) -> FrameId {
        if let Some(id) = self.backward_marker {
            return id;
        }
        let frame = Frame {
            kind: FrameKind::Backward,
            file: "".into(),
            function: "[backward]".into(),
            line: 0,
        };
        let id = self.intern_frame(head, frame, out);
        self.backward_marker = Some(id);
        id
    }

    /// Stands for the outer frames of machine code that a walk did not reach.
    fn cut_marker(&mut self, head: &wire::vs_header, out: &mut Vec<Record>) -> FrameId {
        let frame = Frame {
            kind: FrameKind::Native,
            file: "".into(),
            function: "[not unwound further]".into(),
            line: 0,
        };
        self.intern_frame(head, frame, out)
    }

    fn code(&mut self, code: &wire::Code<'_>, known: &impl KnownCodes) {
        let object = self
            .process(code.head.process)
            .and_then(|traced| code_object(traced, code, known));
        if object.is_none() {
            self.stats.nameless_codes += 1;
        }
        self.codes
            .insert((code.head.process, code.id), Code { object });
    }

    fn frame(
        &mut self,
        head: &wire::vs_header,
        frame: wire::vs_frame,
        out: &mut Vec<Record>,
    ) -> FrameId {
        let key = (
            head.process,
            frame.code,
            frame.lasti & !wire::VS_FRAME_ENTRY,
        );
        if let Some(id) = self.lines.get(&key) {
            return *id;
        }
        let decoded = self
            .codes
            .get(&(head.process, frame.code))
            .and_then(|code| {
                let object = code.object.as_ref()?;
                let python = self.process(head.process)?.python.as_ref()?;
                // Without the mark in its highest bit, which was the sign's.
                let lasti = (frame.lasti << 1).cast_signed() >> 1;
                let offset = byte_offset(python.offsets.instruction_kind, lasti);
                Some(Frame {
                    kind: FrameKind::Python,
                    file: object.file.as_str().into(),
                    function: object.qualname.as_str().into(),
                    line: object.line(offset).unwrap_or(0),
                })
            });
        let id = match decoded {
            Some(frame) => self.intern_frame(head, frame, out),
            None => self.unknown_frame(head, out),
        };
        self.lines.insert(key, id);
        id
    }

    fn unknown_frame(&mut self, head: &wire::vs_header, out: &mut Vec<Record>) -> FrameId {
        if let Some(id) = self.unknown_code {
            return id;
        }
        let frame = Frame {
            kind: FrameKind::Python,
            file: "[unknown]".into(),
            function: "[unreadable code object]".into(),
            line: 0,
        };
        let id = self.intern_frame(head, frame, out);
        self.unknown_code = Some(id);
        id
    }

    fn intern_frame(
        &mut self,
        head: &wire::vs_header,
        frame: Frame,
        out: &mut Vec<Record>,
    ) -> FrameId {
        let key = (head.process, Arc::new(frame));
        if let Some(id) = self.frames.get(&key) {
            return *id;
        }
        let id = FrameId(self.next_frame);
        self.next_frame += 1;
        let frame = Arc::clone(&key.1);
        self.frames.insert(key, id);
        self.push(head, Event::Frame { id, frame }, out);
        id
    }

    fn intern_stack(
        &mut self,
        head: &wire::vs_header,
        frames: Arc<[FrameId]>,
        out: &mut Vec<Record>,
    ) -> StackId {
        if frames.is_empty() {
            return StackId::EMPTY;
        }
        let key = (head.process, frames);
        if let Some(id) = self.stacks.get(&key) {
            return *id;
        }
        // StackId::EMPTY is 0.
        self.last_stack += 1;
        let id = StackId(self.last_stack);
        let frames = Arc::clone(&key.1);
        self.stacks.insert(key, id);
        self.push(head, Event::Stack { id, frames }, out);
        id
    }
}

/// A code object from its record; from the process where the record could not hold all of it.
fn code_object(
    traced: &Traced,
    code: &wire::Code<'_>,
    known: &impl KnownCodes,
) -> Option<CodeObject> {
    let python = traced.python.as_ref()?;
    let whole = !code.unreadable
        && code.file.complete()
        && code.name.complete()
        && code.lines.len() == code.lines_bytes;
    if whole {
        let first_line = code.first_line.cast_signed();
        return Some(CodeObject {
            file: text(&code.file)?,
            qualname: text(&code.name)?,
            first_line,
            line_table: LineTable::new(python.offsets.line_format, first_line, code.lines),
        });
    }
    let object = read_code(
        &traced.process,
        python,
        vramscope_python::Address(code.address),
    )
    .ok()?;
    // An entry goes before its object does: if it is still there now, what was read was it.
    (known.id(code.address, code.head.process) == Some(code.id)).then_some(object)
}

fn text(text: &wire::Text<'_>) -> Option<String> {
    let kind = match text.width {
        1 => StrKind::One,
        2 => StrKind::Two,
        4 => StrKind::Four,
        _ => return None,
    };
    Some(decode_str(kind, text.data))
}

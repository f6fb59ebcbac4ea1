//! Frames and stacks of a selection, interned, their text made harmless once for all formats.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vramscope_collector::{
    Collector, NamedStack, escape,
    flamegraph::{Origin, UNKNOWN, label, origin},
    view::{FrameView, ProcessInfo},
};
use vramscope_events::{FrameKind, Pid, StackId};

/// Longest function name or path that is written, in columns; longer ones lose their end (names)
/// or their beginning (paths).
const COLUMNS: usize = 400;

/// A frame as formats write it: printable text without control characters, of bounded length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// The source file or module; may be empty.
    pub file: String,
    /// The line, from 1; 0 where unknown.
    pub line: u32,
    /// Whose code it is.
    pub origin: Origin,
    /// What kind of code it is.
    pub kind: FrameKind,
    /// Function and place in one, as flamegraphs show it. Never empty, holds no `;`, does not end
    /// in a bare number.
    pub label: String,
}

/// Index of a [`Frame`] in [`Table::frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameIndex(pub u32);

/// Index of a [`Stack`] in [`Table::stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackIndex(pub u32);

/// A stack: at least one frame, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The frames.
    pub frames: Box<[FrameIndex]>,
    /// The innermost frame of the user's code.
    pub user: Option<FrameIndex>,
    /// The tracer's number, which events carry.
    pub id: StackId,
    /// In which process.
    pub process: Pid,
}

/// All frames and stacks of a selection.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Distinct frames.
    pub frames: Vec<Frame>,
    /// Distinct stacks, by process and the tracer's number.
    pub stacks: Vec<Stack>,
    frame_index: FxHashMap<Frame, FrameIndex>,
    /// By the address of the view, which is kept alive beside it so that no other takes it.
    seen_frames: FxHashMap<(Pid, usize), (FrameIndex, Arc<FrameView>)>,
    stack_index: FxHashMap<(Pid, StackId), StackIndex>,
}

impl Table {
    /// A frame by its index.
    pub fn frame(&self, index: FrameIndex) -> &Frame {
        &self.frames[index.0 as usize]
    }

    /// A stack by its index.
    pub fn stack(&self, index: StackIndex) -> &Stack {
        &self.stacks[index.0 as usize]
    }

    /// The frames of a stack, innermost first.
    pub fn frames_of(&self, index: StackIndex) -> impl DoubleEndedIterator<Item = &Frame> {
        let stack = self.stack(index);
        stack.frames.iter().map(|frame| self.frame(*frame))
    }

    /// The frame that names what a stack allocates: the innermost of the user's code, else the
    /// innermost.
    pub fn own_frame(&self, index: StackIndex) -> &Frame {
        let stack = self.stack(index);
        self.frame(stack.user.unwrap_or(stack.frames[0]))
    }

    /// A stack as folded text: outermost frame first, parted by `;`.
    pub fn folded(&self, index: StackIndex) -> String {
        let mut out = String::new();
        for frame in self.frames_of(index).rev() {
            if !out.is_empty() {
                out.push(';');
            }
            out.push_str(&frame.label);
        }
        out
    }

    /// The index of a stack, named by the collector where it is new.
    pub(crate) fn intern(
        &mut self,
        collector: &mut Collector,
        info: &ProcessInfo,
        id: StackId,
    ) -> StackIndex {
        let key = (info.pid, id);
        if let Some(known) = self.stack_index.get(&key) {
            return *known;
        }
        let (named, user) = collector.named_stack(info.pid, id);
        let frames = self.intern_frames(&named, info);
        let stack = Stack {
            user: user.and_then(|user| frames.get(user).copied()),
            frames,
            id,
            process: info.pid,
        };
        let index = StackIndex(self.stacks.len() as u32);
        self.stacks.push(stack);
        self.stack_index.insert(key, index);
        index
    }

    fn intern_frames(&mut self, named: &NamedStack, info: &ProcessInfo) -> Box<[FrameIndex]> {
        if named.is_empty() {
            return [self.intern_frame(unknown())].into();
        }
        let mut out = Vec::with_capacity(named.len());
        for view in named.iter() {
            let key = (info.pid, Arc::as_ptr(view).addr());
            let index = match self.seen_frames.get(&key) {
                Some((index, _)) => *index,
                None => {
                    let index = self.intern_frame(text_of(view, info));
                    self.seen_frames.insert(key, (index, Arc::clone(view)));
                    index
                }
            };
            out.push(index);
        }
        out.into()
    }

    fn intern_frame(&mut self, frame: Frame) -> FrameIndex {
        if let Some(known) = self.frame_index.get(&frame) {
            return *known;
        }
        let index = FrameIndex(self.frames.len() as u32);
        self.frames.push(frame.clone());
        self.frame_index.insert(frame, index);
        index
    }
}

fn unknown() -> Frame {
    Frame {
        function: UNKNOWN.into(),
        file: String::new(),
        line: 0,
        origin: Origin::Native,
        kind: FrameKind::Native,
        label: UNKNOWN.into(),
    }
}

fn text_of(view: &FrameView, info: &ProcessInfo) -> Frame {
    let label = label(view, info);
    let function = match view.kind {
        FrameKind::Backward => label.clone(),
        _ => escape::line(&view.function, COLUMNS),
    };
    Frame {
        function: if function.trim().is_empty() {
            "?".into()
        } else {
            function
        },
        file: escape::line_end(&view.file, COLUMNS),
        line: view.line,
        origin: origin(view),
        kind: view.kind,
        label,
    }
}

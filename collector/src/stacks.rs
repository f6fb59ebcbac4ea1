//! Frames and stacks as defined by the stream, and their names when they are shown.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use vramscope_events::{Event, Frame, FrameId, FrameKind, Pid, Record, StackId, Tid, Time};

use crate::{
    source::SourceCache,
    usercode::UserCode,
    view::{FrameView, ProcessInfo, is_optimizer_file},
};

/// A stack with names, innermost frame first, as a view shows it.
pub type NamedStack = Arc<[Arc<FrameView>]>;

/// What the shape of a stack says about its allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StackTraits {
    /// Made on an autograd thread for a `backward()` call, as far as one can tell.
    pub backward: bool,
    /// Made by an optimizer's own code.
    pub optimizer: bool,
}

/// All frames and stacks of a session. A definition may come after its first use.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    frames: FxHashMap<FrameId, Arc<Frame>>,
    stacks: FxHashMap<StackId, Arc<[FrameId]>>,
    /// Names already looked up, by process: two processes may see different files.
    named: FxHashMap<(Pid, StackId), (NamedStack, Option<usize>)>,
    named_frames: FxHashMap<(Pid, FrameId), Arc<FrameView>>,
    /// Source lines that came with the stream.
    texts: FxHashMap<(Pid, FrameId), Arc<str>>,
    /// Counts definitions, so that holders of unresolved stacks know when to try again.
    version: u64,
}

impl Stacks {
    pub fn define_frame(&mut self, id: FrameId, frame: Arc<Frame>) {
        self.frames.insert(id, frame);
        self.version += 1;
    }

    pub fn define_stack(&mut self, id: StackId, frames: Arc<[FrameId]>) {
        self.stacks.insert(id, frames);
        self.version += 1;
    }

    /// The text of a frame's line, which must come before the frame is shown.
    pub fn define_source(&mut self, process: Pid, frame: FrameId, text: Arc<str>) {
        self.texts.insert((process, frame), text);
    }

    /// Everything defined, as the events that define it, by number.
    pub fn definitions(&self, process: Pid) -> Vec<Record> {
        let record = |process, event| Record {
            time: Time(0),
            process,
            thread: Tid(0),
            event,
        };
        let mut frames: Vec<_> = self.frames.iter().collect();
        frames.sort_by_key(|(id, _)| **id);
        let frames = frames.into_iter().map(|(id, frame)| Event::Frame {
            id: *id,
            frame: Arc::clone(frame),
        });
        let mut texts: Vec<_> = self.texts.iter().collect();
        texts.sort_by_key(|(key, _)| **key);
        let texts = texts.into_iter().map(|((process, frame), text)| {
            let (frame, text) = (*frame, Arc::clone(text));
            record(*process, Event::Source { frame, text })
        });
        let mut stacks: Vec<_> = self.stacks.iter().collect();
        stacks.sort_by_key(|(id, _)| **id);
        let stacks = stacks.into_iter().map(|(id, frames)| Event::Stack {
            id: *id,
            frames: Arc::clone(frames),
        });
        frames
            .map(|event| record(process, event))
            .chain(texts)
            .chain(stacks.map(|event| record(process, event)))
            .collect()
    }

    /// Changes whenever a definition arrives.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What the stack's shape says; `None` while it or one of its frames is undefined.
    pub fn traits(&self, id: StackId) -> Option<StackTraits> {
        if id == StackId::EMPTY {
            // A thread without Python frames: most are autograd's.
            return Some(StackTraits {
                backward: true,
                optimizer: false,
            });
        }
        let mut traits = StackTraits::default();
        for frame in self.stacks.get(&id)?.iter() {
            let frame = self.frames.get(frame)?;
            traits.backward |= frame.kind == FrameKind::Backward;
            traits.optimizer |= frame.kind == FrameKind::Python && is_optimizer_file(&frame.file);
        }
        Some(traits)
    }

    /// The stack with names and the index of its innermost user frame. Frames that are not yet
    /// defined are shown as `?` and looked up again next time.
    pub fn named(
        &mut self,
        id: StackId,
        process: &ProcessInfo,
        user_code: &UserCode,
        sources: &mut SourceCache,
    ) -> (NamedStack, Option<usize>) {
        if let Some(known) = self.named.get(&(process.pid, id)) {
            return known.clone();
        }
        let Some(frames) = self.stacks.get(&id) else {
            let frames: NamedStack = match id {
                StackId::EMPTY => Arc::default(),
                _ => Arc::from([Arc::new(unknown_frame())]),
            };
            return (frames, None);
        };
        let mut complete = true;
        let mut views = Vec::with_capacity(frames.len());
        for frame_id in frames.iter() {
            let key = (process.pid, *frame_id);
            if let Some(view) = self.named_frames.get(&key) {
                views.push(Arc::clone(view));
            } else if let Some(frame) = self.frames.get(frame_id) {
                let view = Arc::new(name(frame, user_code, || {
                    let known = self.texts.get(&key).cloned();
                    known.or_else(|| sources.line(process, &frame.file, frame.line))
                }));
                self.named_frames.insert(key, Arc::clone(&view));
                views.push(view);
            } else {
                complete = false;
                views.push(Arc::new(unknown_frame()));
            }
        }
        let may_be_user = |frame: &Arc<FrameView>| {
            frame.kind == FrameKind::Python && user_code.may_be_user(&frame.file)
        };
        let user = views
            .iter()
            .position(|frame| frame.user)
            .or_else(|| views.iter().position(may_be_user));
        let named = (NamedStack::from(views), user);
        if complete {
            self.named.insert((process.pid, id), named.clone());
        }
        named
    }
}

fn name(
    frame: &Frame,
    user_code: &UserCode,
    source: impl FnOnce() -> Option<Arc<str>>,
) -> FrameView {
    let python = frame.kind == FrameKind::Python;
    FrameView {
        kind: frame.kind,
        file: Arc::clone(&frame.file),
        function: Arc::clone(&frame.function),
        line: frame.line,
        user: python && user_code.is_user(&frame.file),
        source: python.then(source).flatten(),
    }
}

fn unknown_frame() -> FrameView {
    FrameView {
        kind: FrameKind::Native,
        file: "?".into(),
        function: "?".into(),
        line: 0,
        user: false,
        source: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: FrameKind, file: &str, line: u32) -> Arc<Frame> {
        Arc::new(Frame {
            kind,
            file: file.into(),
            function: "f".into(),
            line,
        })
    }

    #[test]
    fn a_late_definition_is_found_when_shown_again() {
        let mut stacks = Stacks::default();
        let (info, user, mut sources) = (
            ProcessInfo::default(),
            UserCode::default(),
            SourceCache::default(),
        );
        let id = StackId(7);
        let mut show = |stacks: &mut Stacks| stacks.named(id, &info, &user, &mut sources);
        assert_eq!(show(&mut stacks).0[0].function.as_ref(), "?");
        stacks.define_stack(id, [FrameId(1), FrameId(2)].into());
        assert_eq!(stacks.traits(id), None);
        stacks.define_frame(FrameId(1), frame(FrameKind::Backward, "", 0));
        assert_eq!(show(&mut stacks).1, None);
        stacks.define_frame(FrameId(2), frame(FrameKind::Python, "/home/me/train.py", 3));
        let (named, user_frame) = show(&mut stacks);
        assert_eq!((named.len(), user_frame), (2, Some(1)));
        assert!(stacks.traits(id).unwrap().backward);
    }

    #[test]
    fn optimizers_are_known_by_their_folder() {
        assert!(is_optimizer_file("/v/site-packages/torch/optim/adam.py"));
        assert!(is_optimizer_file("/v/apex/optimizers/fused.py"));
        assert!(!is_optimizer_file("/home/me/optim.py"));
        assert!(!is_optimizer_file("/home/me/optimizer_study/train.py"));
    }
}

//! The bodies of stacks: Python's frames and machine code's, put together and defined.

use std::sync::Arc;

use vramscope_events::{FrameId, Record};
use vramscope_wire as wire;

use super::{Decoder, KnownCodes, KnownStack};
use crate::unwind::{
    code::Now,
    merge::{PythonPart, merge},
    walk::{self, Walk},
};

impl Decoder {
    pub(super) fn body(
        &mut self,
        stack: &wire::Stack<'_>,
        known: &impl KnownCodes,
        out: &mut Vec<Record>,
    ) {
        let truncated = stack.head.flags & wire::vs_flag_VS_FLAG_TRUNCATED as u16 != 0;
        let (mut frames, mut calls) = (Vec::new(), Vec::new());
        let mut open = 0;
        for frame in stack.frames() {
            if frame.lasti != wire::VS_FRAME_HIDDEN {
                frames.push(self.frame(&stack.head, frame, out));
                open += 1;
            }
            if frame.lasti & wire::VS_FRAME_ENTRY != 0 {
                calls.push(open);
                open = 0;
            }
        }
        let complete = !truncated && open == 0;
        let walk = Walk {
            addresses: stack.native().collect(),
            complete: stack.state == wire::vs_walk_state_VS_WALK_END,
        };
        let python = PythonPart {
            frames: &frames,
            calls: &calls,
            complete,
        };
        let mut merged = match walk.addresses.is_empty() {
            true => frames,
            false => {
                let now = || known.epoch(stack.head.process);
                self.merged(&stack.head, &walk, python, &now, out)
            }
        };
        self.push_caller(&stack.head, stack.caller, &mut merged, out);
        self.define(&stack.head, merged, calls, complete, out);
    }

    /// A stack from the kernel, whose Python part came before.
    pub(super) fn mixed(
        &mut self,
        stack: &wire::Mixed<'_>,
        walk: &Walk,
        known: &impl KnownCodes,
        out: &mut Vec<Record>,
    ) {
        let python = self.known_stacks.get(&(stack.head.process, stack.python));
        let (frames, calls, complete) = match python {
            Some(known) => (known.frames.clone(), known.calls.clone(), known.complete),
            // Without Python frames nothing is missing; a body that was lost was counted.
            None => (Arc::default(), Arc::default(), stack.python == 0),
        };
        let python = PythonPart {
            frames: &frames,
            calls: &calls,
            complete,
        };
        let now = || known.epoch(stack.head.process);
        let readable = self
            .process_mut(stack.head.process)
            .is_some_and(|traced| traced.code.enter(stack.epoch, &now));
        let mut merged = if readable {
            self.merged(&stack.head, walk, python, &now, out)
        } else {
            self.stats.stale_stacks += 1;
            frames.to_vec()
        };
        self.push_caller(&stack.head, stack.caller, &mut merged, out);
        self.define(&stack.head, merged, Vec::new(), false, out);
    }

    /// A stack that the kernel could not unwind to its end: we do, and tell it what it lacked.
    pub(super) fn copy(
        &mut self,
        copy: &wire::StackCopy<'_>,
        known: &impl KnownCodes,
        out: &mut Vec<Record>,
    ) {
        let head = &copy.before.head;
        let now = || known.epoch(head.process);
        let mut walk = Walk::default();
        let traced = self.processes.get_mut(usize::from(head.process));
        if let Some(Some(traced)) = traced
            && traced.code.enter(copy.before.epoch, &now)
        {
            walk = walk::resume(copy, |address| {
                let rule = traced.code.rule(address, &now)?;
                self.rules.insert(address, copy.before.epoch, rule);
                Some(rule)
            });
        }
        self.mixed(&copy.before, &walk, known, out);
    }

    fn merged(
        &mut self,
        head: &wire::vs_header,
        walk: &Walk,
        python: PythonPart<'_>,
        now: Now<'_>,
        out: &mut Vec<Record>,
    ) -> Vec<FrameId> {
        let cut = (!walk.complete).then(|| self.cut_marker(head, out));
        let traced = self.processes.get_mut(usize::from(head.process));
        let (Some(Some(traced)), Some(names)) = (traced, &self.names) else {
            return python.frames.to_vec();
        };
        let mut next = || {
            self.next_frame += 1;
            FrameId(self.next_frame - 1)
        };
        let native: Vec<_> = walk
            .addresses
            .iter()
            .map(|address| traced.code.frame(*address, now, &mut next, names))
            .collect();
        self.stats.stale_stacks += u64::from(traced.code.take_missed());
        merge(&native, cut, python)
    }

    /// Adds the stack that called `backward()`.
    fn push_caller(
        &mut self,
        head: &wire::vs_header,
        caller: u32,
        frames: &mut Vec<FrameId>,
        out: &mut Vec<Record>,
    ) {
        if caller == 0 {
            return;
        }
        if let Some(caller) = self.known_stacks.get(&(head.process, caller)) {
            let caller = Arc::clone(&caller.frames);
            frames.push(self.backward_marker(head, out));
            frames.extend(caller.iter());
        }
    }

    fn define(
        &mut self,
        head: &wire::vs_header,
        frames: Vec<FrameId>,
        calls: Vec<u32>,
        complete: bool,
        out: &mut Vec<Record>,
    ) {
        let frames: Arc<[FrameId]> = frames.into();
        let plain = self.intern_stack(head, frames.clone(), out);
        self.known_stacks.insert(
            (head.process, head.stack),
            KnownStack {
                plain,
                frames,
                calls: calls.into(),
                complete,
                backward: None,
            },
        );
    }
}

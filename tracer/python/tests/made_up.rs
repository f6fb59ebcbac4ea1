//! The walk's rules on frames made up in this process's own memory: for what
//! the interpreters at hand do not show, 3.14 first of all.

use std::path::PathBuf;

use vramscope_python::{
    Address, CodeDealloc, Frame, Offsets, OffsetsSource, Process, Python, Version, walk_thread,
};

/// Memory for one structure; its address does not change.
struct Object(Box<[u8]>);

impl Object {
    fn new() -> Self {
        Self(vec![0; 512].into())
    }

    fn address(&self) -> Address {
        Address(self.0.as_ptr().addr() as u64)
    }

    fn set(&mut self, offset: u32, bytes: &[u8]) {
        let offset = offset as usize;
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn point(&mut self, offset: u32, to: u64) {
        self.set(offset, &to.to_le_bytes());
    }
}

fn python(version: Version, offsets: Offsets) -> Python {
    let nowhere = CodeDealloc {
        address: Address::NULL,
        object: PathBuf::new(),
        file_offset: 0,
    };
    Python {
        version,
        path: PathBuf::new(),
        object: PathBuf::new(),
        load_bias: 0,
        runtime: Address::NULL,
        offsets,
        offsets_source: OffsetsSource::Table,
        tested: false,
        tss_key: None,
        code_dealloc: nowhere,
    }
}

/// A frame to be made: who owns it, how far it is, and what its code pointer
/// carries in its low bits.
#[derive(Clone, Copy)]
struct Plan {
    owner: u8,
    units: i64,
    tag: u64,
}

const fn plan(owner: u8, units: i64, tag: u64) -> Plan {
    Plan { owner, units, tag }
}

/// Frames of one code object whose first four units are hidden.
fn walked(minor: u8, plans: &[Plan]) -> (Address, Vec<Frame>) {
    let version = Version::new(3, minor, 0);
    let offsets = Offsets::for_version(version).unwrap();
    let mut code = Object::new();
    code.set(offsets.code_first_traceable.unwrap(), &4u32.to_le_bytes());
    let bytecode = code.address().field(offsets.code_instructions.unwrap());
    let mut frames: Vec<Object> = Vec::new();
    for plan in plans.iter().rev() {
        let mut frame = Object::new();
        frame.point(offsets.frame_code, code.address().0 | plan.tag);
        let previous = frames.last().map_or(0, |caller| caller.address().0);
        frame.point(offsets.frame_previous, previous);
        let instruction = bytecode.0.wrapping_add_signed(plan.units * 2);
        frame.point(offsets.frame_instruction, instruction);
        frame.set(offsets.frame_owner.unwrap(), &[plan.owner]);
        frames.push(frame);
    }
    let newest = frames.last().map_or(0, |frame| frame.address().0);
    let mut thread = Object::new();
    let mut cframe = Object::new();
    match offsets.cframe_frame {
        Some(offset) => {
            cframe.point(offset, newest);
            thread.point(offsets.thread_frame, cframe.address().0);
        }
        None => thread.point(offsets.thread_frame, newest),
    }
    let process = Process::open(std::process::id()).unwrap();
    let stack = walk_thread(&process, &python(version, offsets), thread.address()).unwrap();
    assert!(stack.is_complete);
    (code.address(), stack.frames)
}

#[test]
fn frames_of_the_interpreter_are_passed_over() {
    for (minor, owners) in [(12, 3..=3), (13, 3..=3), (14, 3..=4)] {
        for owner in owners {
            let (code, frames) = walked(minor, &[plan(0, 9, 0), plan(owner, 9, 0), plan(2, 7, 0)]);
            let frame = |offset, owner| Frame {
                code,
                offset,
                owner,
            };
            assert_eq!(
                frames,
                [frame(18, 0), frame(14, 2)],
                "3.{minor}, owner {owner}"
            );
        }
    }
}

#[test]
fn frames_being_set_up_are_hidden_unless_a_generator_owns_them() {
    for minor in 11..=14 {
        let plans = [
            plan(0, 3, 0),
            plan(0, 4, 0),
            plan(1, 2, 0),
            plan(2, -1, 0),
            plan(1, -1, 0),
        ];
        let (code, frames) = walked(minor, &plans);
        let frame = |offset, owner| Frame {
            code,
            offset,
            owner,
        };
        assert_eq!(
            frames,
            [frame(8, 0), frame(4, 1), frame(-2, 1)],
            "3.{minor}"
        );
    }
}

#[test]
fn tags_of_code_pointers_are_cleared_in_3_14() {
    let (code, frames) = walked(14, &[plan(0, 5, 1), plan(0, 6, 3), plan(0, 7, 0)]);
    let frame = |offset| Frame {
        code,
        offset,
        owner: 0,
    };
    assert_eq!(frames, [frame(10), frame(12), frame(14)]);
}

#[test]
fn a_thread_without_frames_has_an_empty_stack() {
    for minor in 11..=14 {
        assert_eq!(walked(minor, &[]).1, []);
    }
}

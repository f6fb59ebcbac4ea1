//! What lies on the borrowed stack: the arguments, and a way back that needs nobody.
//!
//! The function that is called returns to a few instructions of libc's own that store its result
//! beside the frame, and they return to libc's `__restore_rt`: the end of every signal handler. It
//! finds a signal frame in which we have put the state that the thread was stopped with. So the
//! kernel puts the thread back to where it was, registers, vector state and signal mask, even when
//! we have been killed in the meantime; and as long as we live we catch the thread at the door of
//! that very system call, and put it back ourselves, to the last bit of its wait.

use nix::libc::user_regs_struct;

use crate::{
    error::{Error, Result},
    ffi,
    landing::Landing,
    waits::{self, Restart},
};

/// The most bytes that arguments may take: a borrowed stack is not ours.
pub(crate) const MOST_ARGUMENT_BYTES: usize = 8 * 1024;
/// Memory below the stack pointer that compiled code uses without moving it (System V ABI).
const RED_ZONE: u64 = 128;

/// arch/x86/include/uapi/asm/sigcontext.h, ucontext.h: marks of a frame with vector state.
const FP_XSTATE_MAGIC1: u32 = 0x4650_5853;
const FP_XSTATE_MAGIC2: u32 = 0x4650_5845;
const UC_FLAGS: u64 = 0b111;
/// Where the kernel keeps its notes in the vector state, and the bitmap of what it holds.
const SOFTWARE_BYTES: usize = 464;
const STATE_BITMAP: usize = 512;
const LEGACY_AND_HEADER: usize = 576;
/// AMX: not in a frame unless the thread has used it, as the kernel refuses what the process has
/// not asked for.
const TILES: u64 = 0b11 << 17;
/// `SS_ONSTACK | SS_DISABLE`: no valid mode, so that the kernel leaves the thread's alternate stack
/// as it is (it ignores the refusal).
const KEEP_ALTERNATE_STACK: u64 = 3;
/// kernel: struct ucontext and struct siginfo.
const CONTEXT_BYTES: usize = 40 + 256 + 8;
const SIGNAL_INFO_BYTES: usize = 128;

/// An argument of a function that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'a> {
    /// A number or an address of the other process.
    Word(u64),
    /// Bytes, which the function gets the address of; they are gone when it has returned.
    Bytes(&'a [u8]),
}

/// A thread's state at its stop.
pub(crate) struct State {
    pub registers: user_regs_struct,
    pub vector: Vec<u8>,
    pub mask: u64,
    pub restart: Restart,
}

/// What to write on the stack, and what to set, for one call.
#[derive(Debug)]
pub(crate) struct Call {
    pub bytes: Vec<u8>,
    /// Where they go.
    pub base: u64,
    /// What the registers are when the function begins.
    pub registers: user_regs_struct,
    /// The stack pointer when the thread enters the system call that puts it back.
    pub stack_at_return: u64,
    /// Where the result is stored.
    pub result: u64,
}

impl State {
    /// The registers that the thread gets back without us.
    fn own_return(&self) -> user_regs_struct {
        match self.restart {
            Restart::Ended => self.registers,
            Restart::Again(number) | Restart::Repeat(number) | Restart::Rest(number) => {
                waits::before_the_call(&self.registers, number)
            }
        }
    }

    /// Lays out a call below what the thread uses of its stack.
    pub(crate) fn call(
        &self,
        landing: &Landing,
        function: u64,
        arguments: &[Argument<'_>],
    ) -> Result<Call> {
        if arguments.len() > 6 {
            return Err(Error::Arguments {
                count: arguments.len(),
            });
        }
        let mut registers = self.registers;
        let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut top = registers.rsp.wrapping_sub(RED_ZONE);
        let mut words = [0; 6];
        let mut total = 0;
        for (argument, word) in arguments.iter().zip(&mut words) {
            *word = match argument {
                Argument::Word(word) => *word,
                Argument::Bytes(bytes) => {
                    total += bytes.len();
                    top = top.wrapping_sub(bytes.len() as u64) & !15;
                    pieces.push((top, bytes.to_vec()));
                    top
                }
            };
        }
        if total > MOST_ARGUMENT_BYTES {
            return Err(Error::TooLong {
                bytes: total,
                most: MOST_ARGUMENT_BYTES,
            });
        }
        let result = top - 16;
        pieces.push((result, vec![0; 16]));
        let vector = vector_frame(&self.vector);
        let vector_at = (result - vector.len() as u64) & !63;
        pieces.push((vector_at, vector));

        // From the stack pointer up: the landing, what it pops, and the signal frame, which begins
        // with the address that the landing returns to.
        let context = self.context(vector_at);
        let mut way_back = Vec::new();
        way_back.extend(landing.store_result.to_le_bytes());
        way_back.resize(way_back.len() + 8 * landing.pops, 0);
        way_back.extend(landing.restore.to_le_bytes());
        let context_from = way_back.len() as u64;
        way_back.extend(context);
        way_back.resize(way_back.len() + SIGNAL_INFO_BYTES, 0);
        // As after a `call` from code with an aligned stack.
        let base = ((vector_at - way_back.len() as u64 - 16) & !15) + 8;
        pieces.push((base, way_back));

        for register in [
            &mut registers.rbx,
            &mut registers.rbp,
            &mut registers.r12,
            &mut registers.r13,
            &mut registers.r14,
            &mut registers.r15,
        ] {
            *register = result;
        }
        [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.rcx,
            registers.r8,
            registers.r9,
        ] = words;
        registers.rsp = base;
        registers.rip = function;
        // No vector registers hold arguments, should the function be variadic.
        registers.rax = 0;
        // Nothing is to be restarted.
        registers.orig_rax = u64::MAX;
        registers.eflags &= !DIRECTION_FLAG;

        let end = pieces
            .iter()
            .map(|(at, bytes)| at + bytes.len() as u64)
            .max()
            .unwrap_or(base);
        let mut bytes = vec![0; (end - base) as usize];
        for (at, piece) in &pieces {
            let from = (at - base) as usize;
            bytes[from..from + piece.len()].copy_from_slice(piece);
        }
        Ok(Call {
            bytes,
            base,
            registers,
            stack_at_return: base + context_from,
            result,
        })
    }

    /// The kernel's `struct ucontext` that holds this state.
    fn context(&self, vector_at: u64) -> Vec<u8> {
        let r = self.own_return();
        let segments = (r.cs & 0xffff) | (r.ss & 0xffff) << 48;
        let words = [
            UC_FLAGS,
            0,
            0,
            KEEP_ALTERNATE_STACK,
            0,
            r.r8,
            r.r9,
            r.r10,
            r.r11,
            r.r12,
            r.r13,
            r.r14,
            r.r15,
            r.rdi,
            r.rsi,
            r.rbp,
            r.rbx,
            r.rdx,
            r.rax,
            r.rcx,
            r.rsp,
            r.rip,
            r.eflags,
            segments,
            0, // error code
            0, // trap number
            0, // mask, old style
            0, // fault address
            vector_at,
        ];
        let mut context: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        context.resize(CONTEXT_BYTES - 8, 0);
        context.extend(self.mask.to_le_bytes());
        context
    }
}

const DIRECTION_FLAG: u64 = 1 << 10;

/// The vector state as a signal frame has it: the kernel's marks in and behind it.
fn vector_frame(state: &[u8]) -> Vec<u8> {
    let word = |at: usize| {
        state.get(at..at + 8).map_or(0, |bytes| {
            u64::from_le_bytes(bytes.try_into().unwrap_or_default())
        })
    };
    let enabled = word(SOFTWARE_BYTES);
    let used = word(STATE_BITMAP);
    let features = if used & TILES == 0 {
        enabled & !TILES
    } else {
        enabled
    };
    let size = (2..63)
        .filter(|index| features & (1 << index) != 0)
        .filter_map(ffi::xstate_component)
        .map(|(offset, size)| offset + size)
        .fold(LEGACY_AND_HEADER, usize::max)
        .min(state.len());
    let mut frame = state[..size].to_vec();
    if size >= LEGACY_AND_HEADER {
        let mut marks = Vec::new();
        marks.extend(FP_XSTATE_MAGIC1.to_le_bytes());
        marks.extend((size as u32 + 4).to_le_bytes());
        marks.extend(features.to_le_bytes());
        marks.extend((size as u32).to_le_bytes());
        marks.resize(STATE_BITMAP - SOFTWARE_BYTES, 0);
        frame[SOFTWARE_BYTES..STATE_BITMAP].copy_from_slice(&marks);
    }
    frame.extend(FP_XSTATE_MAGIC2.to_le_bytes());
    frame
}

//! Where in a function to put a uprobe.
//!
//! A uprobe replaces one instruction by a breakpoint. A few kinds of instructions the kernel then
//! emulates; any other one it runs out of line under single-step, at some ten microseconds a hit.
//! So the planner walks from the entry to the first emulated instruction, as long as the registers
//! that the probe reads are untouched.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter as _, GasFormatter, Instruction,
    InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// The registers of the first six integer arguments (System V ABI, x86-64).
pub const ARGUMENTS: [Register; 6] = [
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::RCX,
    Register::R8,
    Register::R9,
];

/// How far from the entry an instruction is looked for: beyond a prologue lies the unknown.
const PROLOGUE_BYTES: u64 = 64;

/// A place for a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the function's entry.
    pub offset: u64,
    /// Bytes that the function has pushed before it.
    pub stack_delta: u16,
    /// Whether the kernel emulates the instruction.
    pub emulated: bool,
    /// The instruction, for people.
    pub instruction: String,
}

impl Place {
    /// The place in words, with its cost.
    pub fn note(&self) -> String {
        let place = match self.offset {
            0 => "entry".to_owned(),
            offset => format!("+{offset}"),
        };
        if self.emulated {
            format!("`{}` at {place}, emulated by the kernel", self.instruction)
        } else {
            format!(
                "`{}` at {place}, single-stepped by the kernel: about 10 us a call",
                self.instruction
            )
        }
    }
}

/// Finds the place for a probe that reads `kept` registers in the function whose first bytes are
/// `code`.
pub fn place(code: &[u8], kept: &[Register]) -> Place {
    let mut factory = InstructionInfoFactory::new();
    let mut stack_delta: u16 = 0;
    let mut entry = None;
    for instruction in Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
        if instruction.is_invalid() || instruction.ip() > PROLOGUE_BYTES {
            break;
        }
        let here = Place {
            offset: instruction.ip(),
            stack_delta,
            emulated: emulated(&instruction),
            instruction: text(&instruction),
        };
        if here.emulated {
            return here;
        }
        entry.get_or_insert(here);
        if instruction.flow_control() != FlowControl::Next
            || writes(&mut factory, &instruction, kept)
        {
            break;
        }
        // No emulated instruction came so far, so no push; `sub rsp` moves the stack as well.
        match stack_moved(&instruction) {
            Some(bytes) => stack_delta = stack_delta.saturating_add(bytes),
            None => break,
        }
    }
    entry.unwrap_or(Place {
        offset: 0,
        stack_delta: 0,
        emulated: false,
        instruction: "unknown".into(),
    })
}

/// Offsets of all return instructions of a function. `None` when its bytes cannot be trusted to be
/// code alone: an invalid instruction, or a jump to where no instruction begins. A probe in the
/// middle of an instruction would change the program.
pub fn returns(code: &[u8]) -> Option<Vec<u64>> {
    let mut starts = Vec::new();
    let mut targets = Vec::new();
    let mut returns = Vec::new();
    for instruction in Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
        if instruction.is_invalid() {
            return None;
        }
        starts.push(instruction.ip());
        match instruction.flow_control() {
            FlowControl::Return => returns.push(instruction.ip()),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
                if matches!(
                    instruction.op0_kind(),
                    OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
                ) =>
            {
                targets.push(instruction.near_branch_target());
            }
            _ => {}
        }
    }
    let inside = |target: &u64| *target < code.len() as u64;
    targets
        .iter()
        .filter(|target| inside(target))
        .all(|target| starts.binary_search(target).is_ok())
        .then_some(returns)
}

/// Whether the kernel emulates the instruction under a uprobe: `branch_xol_ops` and
/// `push_xol_ops` of arch/x86/kernel/uprobes.c.
fn emulated(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Push => {
            instruction.op0_kind() == OpKind::Register
                && instruction.op0_register().is_gpr64()
                && instruction.len() <= 2
        }
        Mnemonic::Nop => instruction.len() == 1,
        Mnemonic::Jmp | Mnemonic::Call => {
            instruction.op0_kind() == OpKind::NearBranch64 && !instruction.has_repne_prefix()
        }
        _ => {
            instruction.flow_control() == FlowControl::ConditionalBranch
                && instruction.is_jcc_short_or_near()
        }
    }
}

fn writes(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
    kept: &[Register],
) -> bool {
    factory
        .info(instruction)
        .used_registers()
        .iter()
        .any(|used| {
            let written = matches!(
                used.access(),
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            );
            written && kept.contains(&used.register().full_register())
        })
}

/// Bytes by which the instruction lowers the stack pointer; `None` if that cannot be told.
fn stack_moved(instruction: &Instruction) -> Option<u16> {
    match instruction.stack_pointer_increment() {
        moved @ i32::MIN..=0 if moved != 0 => return u16::try_from(-moved).ok(),
        0 => {}
        _ => return None,
    }
    let to_stack = instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == Register::RSP;
    match instruction.mnemonic() {
        Mnemonic::Cmp | Mnemonic::Test => Some(0),
        Mnemonic::Sub if to_stack => u16::try_from(instruction.immediate(1)).ok(),
        _ if to_stack => None,
        _ => Some(0),
    }
}

fn text(instruction: &Instruction) -> String {
    let mut out = String::new();
    GasFormatter::new().format(instruction, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_at_the_entry_is_taken() {
        // push %r14; push %rbp
        let place = place(&[0x41, 0x56, 0x55], &ARGUMENTS);
        assert_eq!((place.offset, place.emulated), (0, true));
    }

    #[test]
    fn a_push_behind_a_load_is_taken() {
        // mov 0x1234(%rip),%rax; push %rbp
        let place = place(&[0x48, 0x8b, 0x05, 0x34, 0x12, 0, 0, 0x55], &ARGUMENTS);
        assert_eq!((place.offset, place.emulated), (7, true));
        assert_eq!(place.note(), "`push %rbp` at +7, emulated by the kernel");
    }

    #[test]
    fn an_argument_that_is_overwritten_ends_the_search() {
        // xor %edi,%edi; push %rbp
        let code = [0x31, 0xff, 0x55];
        assert!(!place(&code, &ARGUMENTS).emulated);
        assert_eq!(place(&code, &ARGUMENTS).offset, 0);
        // The same where that argument is not read.
        assert_eq!(place(&code, &[Register::RSI]).offset, 2);
    }

    #[test]
    fn the_stack_is_followed() {
        // sub $0x18,%rsp; push %rbx
        let place_after_sub = place(&[0x48, 0x83, 0xec, 0x18, 0x53], &ARGUMENTS);
        assert_eq!(
            (place_after_sub.offset, place_after_sub.stack_delta),
            (4, 0x18)
        );
        // and $-16,%rsp: by how much is unknown
        let aligned = place(&[0x48, 0x83, 0xe4, 0xf0, 0x53], &ARGUMENTS);
        assert_eq!((aligned.offset, aligned.emulated), (0, false));
    }

    #[test]
    fn endbr_is_passed_and_long_nops_are_not_taken() {
        // endbr64; nopl 0x0(%rax,%rax,1); push %rbp
        let code = [0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x55];
        assert_eq!(place(&code, &ARGUMENTS).offset, 9);
    }

    #[test]
    fn nothing_to_decode_is_the_entry() {
        for code in [&[][..], &[0x06], &[0xff]] {
            assert_eq!(place(code, &ARGUMENTS).offset, 0);
            assert!(!place(code, &ARGUMENTS).emulated);
        }
    }

    #[test]
    fn all_returns_are_found() {
        // test %edi,%edi; je +1; ret; push %rbx; pop %rbx; ret
        let code = [0x85, 0xff, 0x74, 0x01, 0xc3, 0x53, 0x5b, 0xc3];
        assert_eq!(returns(&code), Some(vec![4, 7]));
    }

    #[test]
    fn a_jump_into_an_instruction_is_not_trusted() {
        // jmp into the middle of the mov that follows
        let code = [0xeb, 0x02, 0xb8, 1, 2, 3, 4, 0xc3];
        assert_eq!(returns(&code), None);
        assert_eq!(returns(&[0x06, 0xc3]), None);
    }
}

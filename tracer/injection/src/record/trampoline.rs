//! What hooked pointers point to.
//!
//! A trampoline saves the argument registers, calls the recorder, restores them and jumps to the
//! original, which then returns to the caller by itself: no frame of ours is on the stack when an
//! exception passes.

use core::{
    arch::global_asm,
    sync::atomic::{AtomicUsize, Ordering},
};

use super::{codes, execute, tensor};
use crate::{native::Place, neighbour};

/// What a trampoline has pushed, and what lay there before.
#[repr(C)]
pub struct Saved {
    bp: u64,
    arguments: [u64; 6],
    return_address: u64,
}

impl Saved {
    /// The caller of the hooked function.
    #[inline]
    pub fn caller(&self) -> Place {
        Place {
            pc: self.return_address,
            sp: (&raw const *self).addr() as u64 + size_of::<Saved>() as u64,
            bp: self.bp,
        }
    }
}

/// What is hooked through a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// `c10::reportMemoryUsageToProfiler`.
    Memory,
    /// `c10::reportOutOfMemoryToProfiler`.
    OutOfMemory,
    /// `torch::autograd::Engine::execute`.
    Execute,
    /// CPython's `code_dealloc`.
    CodeFreed,
    /// A function that the user named.
    Step,
    /// `cuptiSubscribe`, called by others.
    CuptiSubscribe,
    /// `cuptiSubscribe_v2`, called by others.
    CuptiSubscribeV2,
    /// `cuptiUnsubscribe`, called by others.
    CuptiUnsubscribe,
    /// `cuptiActivityEnable`, called by others.
    CuptiActivityEnable,
    /// `cuptiFinalize`, called by others.
    CuptiFinalize,
}

macro_rules! trampoline {
    ($name:literal, $original:ident, $recorder:path) => {
        global_asm!(
            concat!(".pushsection .text.", $name, ",\"ax\",@progbits"),
            concat!(".hidden ", $name),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            ".cfi_startproc",
            "push rdi",
            ".cfi_adjust_cfa_offset 8",
            "push rsi",
            ".cfi_adjust_cfa_offset 8",
            "push rdx",
            ".cfi_adjust_cfa_offset 8",
            "push rcx",
            ".cfi_adjust_cfa_offset 8",
            "push r8",
            ".cfi_adjust_cfa_offset 8",
            "push r9",
            ".cfi_adjust_cfa_offset 8",
            // With the return address a multiple of 16. The recorder is told where all this lies,
            // as its sixth argument: the hooked functions have five at most.
            "push rbp",
            ".cfi_adjust_cfa_offset 8",
            "mov r9, rsp",
            "call {recorder}",
            "add rsp, 8",
            ".cfi_adjust_cfa_offset -8",
            "pop r9",
            ".cfi_adjust_cfa_offset -8",
            "pop r8",
            ".cfi_adjust_cfa_offset -8",
            "pop rcx",
            ".cfi_adjust_cfa_offset -8",
            "pop rdx",
            ".cfi_adjust_cfa_offset -8",
            "pop rsi",
            ".cfi_adjust_cfa_offset -8",
            "pop rdi",
            ".cfi_adjust_cfa_offset -8",
            "jmp qword ptr [rip + {original}]",
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            recorder = sym $recorder,
            original = sym $original,
        );
    };
}

static MEMORY: AtomicUsize = AtomicUsize::new(0);
static OUT_OF_MEMORY: AtomicUsize = AtomicUsize::new(0);
static EXECUTE: AtomicUsize = AtomicUsize::new(0);
static CODE_FREED: AtomicUsize = AtomicUsize::new(0);
static STEP: AtomicUsize = AtomicUsize::new(0);
static CUPTI_SUBSCRIBE: AtomicUsize = AtomicUsize::new(0);
static CUPTI_SUBSCRIBE_V2: AtomicUsize = AtomicUsize::new(0);
static CUPTI_UNSUBSCRIBE: AtomicUsize = AtomicUsize::new(0);
static CUPTI_ACTIVITY_ENABLE: AtomicUsize = AtomicUsize::new(0);
static CUPTI_FINALIZE: AtomicUsize = AtomicUsize::new(0);

trampoline!("vramscope_on_memory", MEMORY, tensor::on_memory);
trampoline!("vramscope_on_oom", OUT_OF_MEMORY, tensor::on_oom);
trampoline!("vramscope_on_code_freed", CODE_FREED, codes::on_freed);

// A function of which nothing is known may take floating-point arguments, and the number of them
// in `al`.
global_asm!(
    ".pushsection .text.vramscope_on_step,\"ax\",@progbits",
    ".hidden vramscope_on_step",
    ".globl vramscope_on_step",
    ".type vramscope_on_step,@function",
    "vramscope_on_step:",
    ".cfi_startproc",
    "sub rsp, 200",
    ".cfi_adjust_cfa_offset 200",
    "mov [rsp], rdi",
    "mov [rsp + 8], rsi",
    "mov [rsp + 16], rdx",
    "mov [rsp + 24], rcx",
    "mov [rsp + 32], r8",
    "mov [rsp + 40], r9",
    "mov [rsp + 48], rax",
    "mov [rsp + 56], r10",
    "movups [rsp + 64], xmm0",
    "movups [rsp + 80], xmm1",
    "movups [rsp + 96], xmm2",
    "movups [rsp + 112], xmm3",
    "movups [rsp + 128], xmm4",
    "movups [rsp + 144], xmm5",
    "movups [rsp + 160], xmm6",
    "movups [rsp + 176], xmm7",
    "call {recorder}",
    "movups xmm7, [rsp + 176]",
    "movups xmm6, [rsp + 160]",
    "movups xmm5, [rsp + 144]",
    "movups xmm4, [rsp + 128]",
    "movups xmm3, [rsp + 112]",
    "movups xmm2, [rsp + 96]",
    "movups xmm1, [rsp + 80]",
    "movups xmm0, [rsp + 64]",
    "mov r10, [rsp + 56]",
    "mov rax, [rsp + 48]",
    "mov r9, [rsp + 40]",
    "mov r8, [rsp + 32]",
    "mov rcx, [rsp + 24]",
    "mov rdx, [rsp + 16]",
    "mov rsi, [rsp + 8]",
    "mov rdi, [rsp]",
    "add rsp, 200",
    ".cfi_adjust_cfa_offset -200",
    "jmp qword ptr [rip + {original}]",
    ".cfi_endproc",
    ".size vramscope_on_step, . - vramscope_on_step",
    ".popsection",
    recorder = sym execute::on_step,
    original = sym STEP,
);

unsafe extern "C" {
    fn vramscope_on_memory();
    fn vramscope_on_oom();
    fn vramscope_on_code_freed();
    fn vramscope_on_step();
}

fn cell(hook: Hook) -> &'static AtomicUsize {
    match hook {
        Hook::Memory => &MEMORY,
        Hook::OutOfMemory => &OUT_OF_MEMORY,
        Hook::Execute => &EXECUTE,
        Hook::CodeFreed => &CODE_FREED,
        Hook::Step => &STEP,
        Hook::CuptiSubscribe => &CUPTI_SUBSCRIBE,
        Hook::CuptiSubscribeV2 => &CUPTI_SUBSCRIBE_V2,
        Hook::CuptiUnsubscribe => &CUPTI_UNSUBSCRIBE,
        Hook::CuptiActivityEnable => &CUPTI_ACTIVITY_ENABLE,
        Hook::CuptiFinalize => &CUPTI_FINALIZE,
    }
}

/// The address that a hooked pointer gets.
pub fn trampoline(hook: Hook) -> usize {
    match hook {
        Hook::Memory => vramscope_on_memory as *const () as usize,
        Hook::OutOfMemory => vramscope_on_oom as *const () as usize,
        Hook::Execute => execute::execute as *const () as usize,
        Hook::CodeFreed => vramscope_on_code_freed as *const () as usize,
        Hook::Step => vramscope_on_step as *const () as usize,
        Hook::CuptiSubscribe => neighbour::subscribe as *const () as usize,
        Hook::CuptiSubscribeV2 => neighbour::subscribe_v2 as *const () as usize,
        Hook::CuptiUnsubscribe => neighbour::unsubscribe as *const () as usize,
        Hook::CuptiActivityEnable => neighbour::activity_enable as *const () as usize,
        Hook::CuptiFinalize => neighbour::finalize as *const () as usize,
    }
}

/// The function that a hook goes on to.
#[inline]
pub fn original(hook: Hook) -> usize {
    cell(hook).load(Ordering::Relaxed)
}

/// Tells where a hook goes on. Before any pointer gets its trampoline; it stays for good, since a
/// thread may be on its way through one long after the pointer was put back.
pub fn set_original(hook: Hook, address: usize) {
    cell(hook).store(address, Ordering::SeqCst);
}

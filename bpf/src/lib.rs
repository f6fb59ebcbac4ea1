//! The BPF programs as objects for a loader, and the names in them.
//!
//! The sources lie in `c/`. Compiled twice: [`SLEEPABLE`] programs wait for a page of the traced
//! process that is not mapped in right now (kernel 6.0 or later); [`PLAIN`] ones give the stack up.

#![deny(unsafe_code)]

use aya::include_bytes_aligned;

/// For kernels that know sleepable uprobes.
pub const SLEEPABLE: &[u8] =
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/vramscope.sleepable.bpf.o"));

/// For older kernels.
pub const PLAIN: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/vramscope.bpf.o"));

/// Names of programs.
pub mod program {
    /// On `c10::reportMemoryUsageToProfiler`.
    pub const TENSOR_MEMORY: &str = "tensor_memory";
    /// On `c10::reportOutOfMemoryToProfiler`.
    pub const TENSOR_OOM: &str = "tensor_oom";
    /// On the entry of `torch::autograd::Engine::execute`.
    pub const BACKWARD_ENTER: &str = "backward_enter";
    /// On its return instructions.
    pub const BACKWARD_LEAVE: &str = "backward_leave";
    /// On the entry of a function of libcuda.
    pub const DRIVER_ENTER: &str = "driver_enter";
    /// On its return.
    pub const DRIVER_LEAVE: &str = "driver_leave";
    /// On a function that the user named as the beginning of a step.
    pub const STEP_SYMBOL: &str = "step_symbol";
    /// On `nvtxRangePushA`.
    pub const STEP_NVTX: &str = "step_nvtx";
    /// On the dynamic loader's `_dl_debug_state`.
    pub const LOADER_STATE: &str = "loader_state";
    /// On CPython's `code_dealloc`.
    pub const CODE_FREED: &str = "code_freed";
}

/// Names of maps.
pub mod map {
    /// The ring of records.
    pub const RING: &str = "ring";
    /// `enum vs_counter`, per CPU.
    pub const COUNTERS: &str = "counters";
    /// `struct vs_python` by process index.
    pub const PYTHONS: &str = "pythons";
    /// The NVTX range that marks a step.
    pub const STEP_RANGE: &str = "step_range";
    /// `struct vs_native` by process index.
    pub const NATIVES: &str = "natives";
    /// How often code was mapped over other code, by process index.
    pub const REPLACED: &str = "replaced";
    /// Unwind rules, `struct vs_rules` by set.
    pub const RULES: &str = "rules";
    /// Code objects that were announced.
    pub const CODES: &str = "codes";
    /// The outermost `backward()` that a thread is in.
    pub const EXECUTIONS: &str = "executions";
    /// The threads that called `backward()` last, by process index.
    pub const EXECUTING: &str = "executing";
    /// The driver call that a thread is in.
    pub const DRIVER_CALLS: &str = "driver_calls";
}

/// What a probe's attach cookie tells its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    /// Index of the process, below [`MAX_PROCESSES`].
    pub process: u16,
    /// `enum vs_driver_function`, for the driver's probes.
    pub function: u16,
    /// Bytes that the function has pushed before the probe.
    pub stack_delta: u16,
}

/// How many processes one session can hold.
pub const MAX_PROCESSES: u16 = 256;

impl Cookie {
    /// The 64 bits that the kernel hands to the program.
    pub fn bits(self) -> u64 {
        u64::from(self.process) | u64::from(self.function) << 16 | u64::from(self.stack_delta) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_fields_do_not_overlap() {
        let cookie = Cookie {
            process: 0xff,
            function: 0x1234,
            stack_delta: 0x5678,
        };
        assert_eq!(cookie.bits(), 0x5678_1234_00ff);
    }

    /// Each program has the tail call that keeps it on its thread's stack: see `own_stack` in
    /// `maps.h`.
    #[test]
    fn programs_stay_on_their_own_stack() {
        use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

        /// `call bpf_tail_call`.
        const TAIL_CALL: [u8; 8] = [0x85, 0, 0, 0, 12, 0, 0, 0];
        for bytes in [SLEEPABLE, PLAIN] {
            let file = object::File::parse(bytes).unwrap();
            let mut programs = 0;
            for section in file.sections() {
                let name = section.name().unwrap();
                if !name.starts_with("uprobe") && !name.starts_with("uretprobe") {
                    continue;
                }
                let code = section.data().unwrap();
                let its = file.symbols().filter(|symbol| {
                    symbol.section_index() == Some(section.index())
                        && symbol.kind() == SymbolKind::Text
                });
                for symbol in its {
                    let at = symbol.address() as usize;
                    let code = &code[at..at + symbol.size() as usize];
                    let has_it = code.as_chunks::<8>().0.contains(&TAIL_CALL);
                    assert!(has_it, "{} is not a PROBE", symbol.name().unwrap());
                    programs += 1;
                }
            }
            assert!(programs >= 10, "{programs}");
        }
    }
}

//! What became of the hooks, as vramscope is told.

use vramscope_wire::{
    VS_DETAIL_BYTES, vs_hook_VS_HOOK_CODE_FREED, vs_hook_VS_HOOK_EXECUTE, vs_hook_VS_HOOK_MEMORY,
    vs_hook_VS_HOOK_NATIVE, vs_hook_VS_HOOK_OOM, vs_hook_VS_HOOK_STEP, vs_hook_VS_HOOKS,
    vs_hook_report, vs_hook_state_VS_HOOK_ABSENT, vs_hook_state_VS_HOOK_FAILED,
    vs_hook_state_VS_HOOK_PLACED, vs_hook_state_VS_HOOK_UNWANTED, vs_hooked,
};

use crate::{got::Pointers, record::Hook};

/// Hooks that are told of, and where in the report.
const TOLD: [(Hook, u32); 5] = [
    (Hook::Memory, vs_hook_VS_HOOK_MEMORY),
    (Hook::OutOfMemory, vs_hook_VS_HOOK_OOM),
    (Hook::Execute, vs_hook_VS_HOOK_EXECUTE),
    (Hook::CodeFreed, vs_hook_VS_HOOK_CODE_FREED),
    (Hook::Step, vs_hook_VS_HOOK_STEP),
];

/// An entry of a report.
pub fn entry(state: u32, places: usize, detail: &str) -> vs_hook_report {
    let mut report = vs_hook_report {
        state,
        places: places as u32,
        detail: [0; VS_DETAIL_BYTES as usize],
    };
    // The last byte stays zero.
    let room = report.detail.len() - 1;
    for (to, from) in report.detail[..room].iter_mut().zip(detail.bytes()) {
        *to = from as core::ffi::c_char;
    }
    report
}

/// The state of all hooks. `step`: whether a function was named to mark steps.
pub fn hooked(
    message: u32,
    pointers: &Pointers,
    cupti: vs_hook_report,
    native: vs_hook_report,
    step: bool,
) -> vs_hooked {
    let mut hooks = [cupti; vs_hook_VS_HOOKS as usize];
    hooks[vs_hook_VS_HOOK_NATIVE as usize] = native;
    for (hook, index) in TOLD {
        let places = pointers.count(hook);
        hooks[index as usize] = match (places, pointers.failure(hook)) {
            (0, Some(why)) => entry(vs_hook_state_VS_HOOK_FAILED, 0, why),
            (0, None) if hook == Hook::Step && !step => {
                entry(vs_hook_state_VS_HOOK_UNWANTED, 0, "")
            }
            (0, None) => entry(vs_hook_state_VS_HOOK_ABSENT, 0, ""),
            (_, why) => entry(vs_hook_state_VS_HOOK_PLACED, places, why.unwrap_or("")),
        };
    }
    vs_hooked {
        message,
        pad: 0,
        hooks,
    }
}

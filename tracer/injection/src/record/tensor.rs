//! Blocks of PyTorch's caching allocator.

use vramscope_wire::{vs_kind_VS_OOM, vs_kind_VS_TENSOR, vs_oom, vs_tensor};

use super::{head, push, stack, trampoline::Saved};
use crate::live;

/// `c10::DeviceType::CUDA`.
const CUDA: u64 = 1;

/// `c10::reportMemoryUsageToProfiler(void *ptr, int64_t size, size_t allocated, size_t reserved,
/// c10::Device device)` is about to run. Of `device` the low byte is the type and the next one the
/// number; what is above them is not initialised.
pub extern "C" fn on_memory(
    address: u64,
    size: i64,
    allocated: u64,
    reserved: u64,
    device: u64,
    saved: &Saved,
) {
    if device & 0xff != CUDA {
        return;
    }
    let Some(inside) = live::enter() else {
        return;
    };
    let live = inside.live();
    let mut record = vs_tensor {
        head: head(live, vs_kind_VS_TENSOR),
        address,
        size,
        allocated,
        reserved,
    };
    record.head.device = (device >> 8) as u16 & 0xff;
    if size > 0 {
        stack::fill(live, &mut record.head, Some(saved.caller()));
    }
    push(live, &record);
}

/// `c10::reportOutOfMemoryToProfiler(int64_t size, size_t allocated, size_t reserved,
/// c10::Device device)` is about to run.
pub extern "C" fn on_oom(
    requested: u64,
    allocated: u64,
    reserved: u64,
    device: u64,
    _: u64,
    saved: &Saved,
) {
    let Some(inside) = live::enter() else {
        return;
    };
    let live = inside.live();
    let mut record = vs_oom {
        head: head(live, vs_kind_VS_OOM),
        requested,
        allocated,
        reserved,
    };
    record.head.device = (device >> 8) as u16 & 0xff;
    stack::fill(live, &mut record.head, Some(saved.caller()));
    push(live, &record);
}

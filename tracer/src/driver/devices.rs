//! Which device a call of the driver is about.
//!
//! Most calls do not say: they are about the device of the thread's current context. The kernel's
//! probes follow which context that is; which device a context is on is told when it is made. Of one
//! made before the attach it shows when PyTorch reports a block right after it took memory for it on
//! the same thread.

use rustc_hash::FxHashMap;
use vramscope_events::{Bytes, DeviceId, Tid};
use vramscope_wire as wire;

/// Segments of PyTorch's allocator are whole multiples of this.
const SEGMENT_UNIT: Bytes = 2 << 20;

/// Contexts and threads of one process.
#[derive(Debug, Default)]
pub(super) struct Devices {
    /// By context.
    contexts: FxHashMap<u64, DeviceId>,
    /// The device that a thread's tensors were on last.
    threads: FxHashMap<Tid, DeviceId>,
    /// The one that was entered last, which is nearly always right.
    latest: Option<(Tid, DeviceId)>,
    /// A thread took so much in a context of an unknown device.
    unknown: Option<(Tid, u64, Bytes)>,
}

impl Devices {
    /// Takes note of a context.
    pub fn see(&mut self, call: &wire::vs_driver) {
        if let wire::vs_driver_function_VS_CONTEXT_RETAIN
        | wire::vs_driver_function_VS_CONTEXT_CREATE
        | wire::vs_driver_function_VS_CONTEXT_CREATE_3
        | wire::vs_driver_function_VS_CONTEXT_CREATE_4 = call.function
            && let Ok(device) = u16::try_from(call.device)
        {
            self.contexts.insert(call.address, DeviceId(device));
        }
    }

    /// Where the memory of a call lies.
    pub fn of(&mut self, call: &wire::vs_driver) -> DeviceId {
        if let Ok(device) = u16::try_from(call.device) {
            return DeviceId(device);
        }
        if let Some(device) = self.contexts.get(&call.context) {
            return *device;
        }
        let thread = Tid(call.head.tid);
        if call.context != 0 && call.size > 0 && call.size.is_multiple_of(SEGMENT_UNIT) {
            self.unknown = Some((thread, call.context, call.size));
        }
        // A thread without a known context mostly goes on where it was; a process, on its first device.
        self.threads.get(&thread).copied().unwrap_or_default()
    }

    /// A block of PyTorch's was handed out to a thread.
    #[inline]
    pub fn tensor(&mut self, thread: Tid, device: DeviceId, size: Bytes) {
        if self.latest != Some((thread, device)) {
            self.latest = Some((thread, device));
            self.threads.insert(thread, device);
        }
        if let Some((taker, context, taken)) = self.unknown
            && taker == thread
        {
            self.unknown = None;
            if size <= taken {
                self.contexts.insert(context, device);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::tests::call;

    const RETAIN: u32 = wire::vs_driver_function_VS_CONTEXT_RETAIN;
    const ALLOC: u32 = wire::vs_driver_function_VS_MEM_ALLOC;

    fn alloc(tid: u32, context: u64, size: u64) -> wire::vs_driver {
        let mut call = call(ALLOC, 0x1000, size, 0);
        call.head.tid = tid;
        call.context = context;
        call.device = -1;
        call
    }

    #[test]
    fn a_context_says_it_however_the_thread_came_to_it() {
        let mut devices = Devices::default();
        let mut made = call(RETAIN, 77, 0, 0);
        made.device = 3;
        devices.see(&made);
        devices.tensor(Tid(1), DeviceId(2), 512);
        assert_eq!(devices.of(&alloc(1, 77, 512)), DeviceId(3));
        assert_eq!(devices.of(&alloc(1, 0, 512)), DeviceId(2));
        assert_eq!(devices.of(&alloc(2, 0, 512)), DeviceId(0));
        made.function = ALLOC;
        made.device = 1;
        assert_eq!(devices.of(&made), DeviceId(1));
    }

    #[test]
    fn a_context_from_before_the_attach_is_learnt_from_a_segment() {
        let mut devices = Devices::default();
        assert_eq!(devices.of(&alloc(1, 77, 2 << 20)), DeviceId(0));
        devices.tensor(Tid(2), DeviceId(1), 512);
        devices.tensor(Tid(1), DeviceId(1), 512);
        assert_eq!(devices.of(&alloc(9, 77, 2 << 20)), DeviceId(1));
        // No segment is smaller than the block that it was taken for.
        assert_eq!(devices.of(&alloc(3, 78, 2 << 20)), DeviceId(0));
        devices.tensor(Tid(3), DeviceId(1), 4 << 20);
        assert_eq!(devices.of(&alloc(9, 78, 2 << 20)), DeviceId(0));
    }
}

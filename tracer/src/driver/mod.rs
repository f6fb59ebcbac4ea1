//! The driver layer: calls of libcuda, turned into allocations and frees of device memory.
//!
//! Virtual memory needs a book of its own. `cuMemCreate` takes physical memory, and it is given
//! back when the handle has been released *and* nothing maps it any more, in whichever order
//! (CUDA driver API, "Virtual Memory Management").

mod devices;
mod pools;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use vramscope_events::{Address, Alloc, Bytes, DeviceId, Event, Free, Layer, StackId, Tid};
use vramscope_wire as wire;

use devices::Devices;
use pools::Pools;

/// Physical memory behind a handle has no address: its handle stands for one, in a range that no
/// device address lies in.
const HANDLE_BIT: u64 = 1 << 63;

/// The driver's state for one process.
#[derive(Debug, Default)]
pub struct DriverBook {
    handles: FxHashMap<u64, Handle>,
    /// Mapped range -> (its size, its handle).
    mappings: BTreeMap<u64, (Bytes, u64)>,
    pools: Pools,
    devices: Devices,
}

#[derive(Debug)]
struct Handle {
    mappings: u32,
    /// How often it has to be released: once for its creation, once for each time it was retained.
    references: u32,
    layer: Layer,
}

impl DriverBook {
    /// What a call means; nothing for calls that change no memory.
    pub fn event(&mut self, call: &wire::vs_driver, stack: StackId, out: &mut Vec<Event>) {
        let layer = match call.function {
            wire::vs_driver_function_VS_HOST_ALLOC | wire::vs_driver_function_VS_HOST_FREE => {
                Layer::Host
            }
            // Physical memory that is on no device is the host's.
            wire::vs_driver_function_VS_VMM_CREATE if call.device < 0 => Layer::Host,
            _ => Layer::Driver,
        };
        self.devices.see(call);
        let device = match self.pools.device_of(call) {
            Some(device) => device,
            None => self.devices.of(call),
        };
        self.pools.see(call, device);
        let alloc = |address| {
            Event::Alloc(Alloc {
                layer,
                device,
                address: Address(address),
                size: call.size,
                stack,
                totals: None,
            })
        };
        let free = |layer, address| {
            Event::Free(Free {
                layer,
                device: None,
                address: Address(address),
                size: None,
                totals: None,
            })
        };
        match call.function {
            wire::vs_driver_function_VS_MEM_FREE
            | wire::vs_driver_function_VS_FREE_ASYNC
            | wire::vs_driver_function_VS_HOST_FREE
                if call.address == 0 => {}
            wire::vs_driver_function_VS_MEM_FREE
            | wire::vs_driver_function_VS_FREE_ASYNC
            | wire::vs_driver_function_VS_HOST_FREE => out.push(free(layer, call.address)),
            wire::vs_driver_function_VS_VMM_CREATE => {
                self.handles.insert(
                    call.address,
                    Handle {
                        mappings: 0,
                        references: 1,
                        layer,
                    },
                );
                out.push(alloc(call.address | HANDLE_BIT));
            }
            wire::vs_driver_function_VS_VMM_MAP => {
                if let Some(handle) = self.handles.get_mut(&call.extra) {
                    handle.mappings += 1;
                    self.mappings.insert(call.address, (call.size, call.extra));
                    out.push(Event::Mapped {
                        allocation: Address(call.extra | HANDLE_BIT),
                        address: Address(call.address),
                        size: call.size,
                    });
                }
            }
            wire::vs_driver_function_VS_VMM_RELEASE => {
                if let Some(handle) = self.handles.get_mut(&call.address) {
                    handle.references = handle.references.saturating_sub(1);
                    self.give_back(call.address, &free, out);
                }
            }
            wire::vs_driver_function_VS_VMM_UNMAP => {
                let end = call.address.saturating_add(call.size);
                let gone: Vec<_> = self
                    .mappings
                    .range(call.address..end)
                    .map(|(start, (_, handle))| (*start, *handle))
                    .collect();
                if !gone.is_empty() {
                    out.push(Event::Unmapped {
                        address: Address(call.address),
                        size: call.size,
                    });
                }
                for (start, handle) in gone {
                    self.mappings.remove(&start);
                    if let Some(handle) = self.handles.get_mut(&handle) {
                        handle.mappings = handle.mappings.saturating_sub(1);
                    }
                    self.give_back(handle, &free, out);
                }
            }
            wire::vs_driver_function_VS_VMM_RETAIN => {
                if let Some(handle) = self.handles.get_mut(&call.address) {
                    handle.references += 1;
                }
            }
            wire::vs_driver_function_VS_MEM_ALLOC
            | wire::vs_driver_function_VS_ALLOC_ASYNC
            | wire::vs_driver_function_VS_ALLOC_POOL
            | wire::vs_driver_function_VS_ALLOC_MANAGED
            | wire::vs_driver_function_VS_ALLOC_PITCH
            | wire::vs_driver_function_VS_HOST_ALLOC => out.push(alloc(call.address)),
            wire::vs_driver_function_VS_CAPTURE_BEGIN => {
                out.push(Event::GraphCapture { began: true });
            }
            wire::vs_driver_function_VS_CAPTURE_END => {
                out.push(Event::GraphCapture { began: false });
            }
            // Addresses, pools, graph nodes, other processes' memory: nothing is taken by them.
            _ => {}
        }
    }

    /// A block of PyTorch's was handed out: that thread is at work on that device.
    #[inline]
    pub fn tensor(&mut self, thread: Tid, device: DeviceId, size: Bytes) {
        self.devices.tensor(thread, device, size);
    }

    /// What the pools keep on each device, where that has changed since this was asked last.
    pub fn pools_kept(&mut self) -> impl Iterator<Item = Event> {
        let news = self.pools.news().into_iter();
        news.map(|(device, bytes)| Event::PoolsKept { device, bytes })
    }

    fn give_back(
        &mut self,
        handle: u64,
        free: &impl Fn(Layer, u64) -> Event,
        out: &mut Vec<Event>,
    ) {
        let known = self.handles.get(&handle);
        let gone = known.filter(|state| state.references == 0 && state.mappings == 0);
        if let Some(layer) = gone.map(|state| state.layer) {
            self.handles.remove(&handle);
            out.push(free(layer, handle | HANDLE_BIT));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) fn call(function: u32, address: u64, size: u64, extra: u64) -> wire::vs_driver {
        wire::vs_driver {
            head: wire::vs_header {
                kind: wire::vs_kind_VS_DRIVER as u16,
                device: 0,
                process: 0,
                flags: 0,
                time: 0,
                tid: 0,
                stack: 0,
            },
            address,
            size,
            extra,
            function,
            result: 0,
            device: 1,
            pad: 0,
            context: 0,
        }
    }

    fn run(book: &mut DriverBook, calls: &[wire::vs_driver]) -> Vec<&'static str> {
        let mut out = Vec::new();
        for call in calls {
            book.event(call, StackId(1), &mut out);
        }
        out.iter()
            .map(|event| match event {
                Event::Alloc(_) => "alloc",
                Event::Free(_) => "free",
                Event::Mapped { .. } => "map",
                Event::Unmapped { .. } => "unmap",
                _ => "other",
            })
            .collect()
    }

    const CREATE: u32 = wire::vs_driver_function_VS_VMM_CREATE;
    const RELEASE: u32 = wire::vs_driver_function_VS_VMM_RELEASE;
    const MAP: u32 = wire::vs_driver_function_VS_VMM_MAP;
    const UNMAP: u32 = wire::vs_driver_function_VS_VMM_UNMAP;

    #[test]
    fn physical_memory_goes_with_the_last_of_handle_and_mapping() {
        let mut book = DriverBook::default();
        let create_and_map = [call(CREATE, 7, 2 << 20, 0), call(MAP, 0x1000, 2 << 20, 7)];
        assert_eq!(run(&mut book, &create_and_map), ["alloc", "map"]);
        assert!(run(&mut book, &[call(RELEASE, 7, 0, 0)]).is_empty());
        let unmap = [call(UNMAP, 0x1000, 2 << 20, 0)];
        assert_eq!(run(&mut book, &unmap), ["unmap", "free"]);

        assert_eq!(run(&mut book, &create_and_map), ["alloc", "map"]);
        assert_eq!(run(&mut book, &unmap), ["unmap"]);
        assert_eq!(run(&mut book, &[call(RELEASE, 7, 0, 0)]), ["free"]);
    }

    #[test]
    fn a_retained_handle_has_to_be_released_once_more() {
        let mut book = DriverBook::default();
        let retain = wire::vs_driver_function_VS_VMM_RETAIN;
        let calls = [
            call(CREATE, 7, 2 << 20, 0),
            call(MAP, 0x1000, 2 << 20, 7),
            call(retain, 7, 0x1000, 0),
            call(RELEASE, 7, 0, 0),
            call(UNMAP, 0x1000, 2 << 20, 0),
        ];
        assert_eq!(run(&mut book, &calls), ["alloc", "map", "unmap"]);
        assert_eq!(run(&mut book, &[call(RELEASE, 7, 0, 0)]), ["free"]);
        // Nothing is known of a handle that was imported.
        assert!(run(&mut book, &[call(retain, 8, 0, 0), call(RELEASE, 8, 0, 0)]).is_empty());
    }

    #[test]
    fn physical_memory_of_the_host_is_not_the_devices() {
        let mut book = DriverBook::default();
        let mut out = Vec::new();
        let mut create = call(CREATE, 7, 4096, 0);
        create.device = -1;
        book.event(&create, StackId(1), &mut out);
        book.event(&call(RELEASE, 7, 0, 0), StackId(1), &mut out);
        assert!(matches!(&out[..], [
            Event::Alloc(alloc),
            Event::Free(free),
        ] if alloc.layer == Layer::Host && free.layer == Layer::Host));
    }

    #[test]
    fn what_takes_no_memory_is_no_event() {
        let mut book = DriverBook::default();
        for function in [
            wire::vs_driver_function_VS_ADDRESS_RESERVE,
            wire::vs_driver_function_VS_ADDRESS_FREE,
            wire::vs_driver_function_VS_POOL_CREATE,
            wire::vs_driver_function_VS_POOL_DESTROY,
            wire::vs_driver_function_VS_POOL_TRIM,
            wire::vs_driver_function_VS_IPC_OPEN,
            wire::vs_driver_function_VS_IPC_CLOSE,
            wire::vs_driver_function_VS_GRAPH_ALLOC_NODE,
            wire::vs_driver_function_VS_GRAPH_FREE_NODE,
            wire::vs_driver_function_VS_MULTICAST_CREATE,
            wire::vs_driver_function_VS_MULTICAST_BIND,
            wire::vs_driver_function_VS_MULTICAST_UNBIND,
            0,
            u32::MAX,
        ] {
            assert!(run(&mut book, &[call(function, 0x1000, 4096, 0)]).is_empty());
        }
    }

    #[test]
    fn one_unmap_may_cover_many_mappings() {
        let mut book = DriverBook::default();
        let mut calls = Vec::new();
        for handle in 0..3 {
            calls.push(call(CREATE, handle, 4096, 0));
            calls.push(call(MAP, 0x1000 + handle * 4096, 4096, handle));
            calls.push(call(RELEASE, handle, 0, 0));
        }
        assert_eq!(run(&mut book, &calls), ["alloc", "map"].repeat(3));
        assert_eq!(
            run(&mut book, &[call(UNMAP, 0x1000, 2 * 4096, 0)]),
            ["unmap", "free", "free"]
        );
        let last = [call(UNMAP, 0x3000, 4096, 0)];
        assert_eq!(run(&mut book, &last), ["unmap", "free"]);
    }

    #[test]
    fn what_was_mapped_before_the_attach_is_ignored() {
        let mut book = DriverBook::default();
        let strangers = [
            call(MAP, 0x1000, 4096, 9),
            call(UNMAP, 0x1000, 4096, 0),
            call(RELEASE, 9, 0, 0),
            call(wire::vs_driver_function_VS_MEM_FREE, 0, 0, 0),
        ];
        assert!(run(&mut book, &strangers).is_empty());
    }
}

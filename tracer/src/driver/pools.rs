//! The driver's memory pools: what is allocated from them, and what they are known to keep.
//!
//! No call says how much a pool holds. But a pool holds at least what was allocated from it, and
//! after a free it still does, until it is trimmed or a synchronisation finds it above its release
//! threshold (CUDA driver API, "Stream Ordered Memory Allocator"). So the highest use since then,
//! cut at the threshold, is a lower bound; what a pool takes beyond, it takes in units of its own.

use rustc_hash::FxHashMap;
use vramscope_events::{Bytes, DeviceId};
use vramscope_wire as wire;

/// The pools of one process.
#[derive(Debug, Default)]
pub(super) struct Pools {
    pools: FxHashMap<Key, Pool>,
    /// Blocks from pools: which, and how large.
    blocks: FxHashMap<u64, (Key, Bytes)>,
    /// What the program allows pools to keep, by handle.
    thresholds: FxHashMap<u64, Bytes>,
    told: FxHashMap<DeviceId, Bytes>,
    /// The devices of pools that the program made.
    devices: FxHashMap<u64, DeviceId>,
}

/// Which pool a block came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// One that the call named.
    Handle(u64),
    /// The one that a device uses when none is named.
    Device(DeviceId),
}

#[derive(Debug)]
struct Pool {
    device: DeviceId,
    used: Bytes,
    /// The highest `used` since the pool last gave memory back.
    held: Bytes,
}

impl Pools {
    /// The device of the pool that a call names, where it is known.
    pub fn device_of(&self, call: &wire::vs_driver) -> Option<DeviceId> {
        let from_pool = call.function == wire::vs_driver_function_VS_ALLOC_POOL;
        from_pool.then(|| self.devices.get(&call.extra).copied())?
    }

    /// Takes note of a call. `device`: where its memory lies.
    pub fn see(&mut self, call: &wire::vs_driver, device: DeviceId) {
        match call.function {
            wire::vs_driver_function_VS_ALLOC_ASYNC => {
                self.alloc(Key::Device(device), device, call.address, call.size);
            }
            wire::vs_driver_function_VS_ALLOC_POOL => {
                // A handle that was not told is none.
                let key = match call.extra {
                    0 => Key::Device(device),
                    handle => Key::Handle(handle),
                };
                self.alloc(key, device, call.address, call.size);
            }
            wire::vs_driver_function_VS_FREE_ASYNC | wire::vs_driver_function_VS_MEM_FREE => {
                if let Some((key, size)) = self.blocks.remove(&call.address)
                    && let Some(pool) = self.pools.get_mut(&key)
                {
                    pool.used -= size;
                }
            }
            wire::vs_driver_function_VS_POOL_CREATE => {
                if let Ok(device) = u16::try_from(call.device) {
                    self.devices.insert(call.address, DeviceId(device));
                }
            }
            wire::vs_driver_function_VS_POOL_THRESHOLD => {
                self.thresholds.insert(call.address, call.size);
            }
            wire::vs_driver_function_VS_POOL_TRIM => {
                let keep = call.size;
                let trim = |pool: &mut Pool| pool.held = pool.held.min(keep).max(pool.used);
                match self.pools.get_mut(&Key::Handle(call.address)) {
                    Some(pool) => trim(pool),
                    // A handle that no allocation named is a device's own pool; which one is not
                    // told, and too little kept is no lie.
                    None => self.devices_own().for_each(trim),
                }
            }
            wire::vs_driver_function_VS_POOL_DESTROY => {
                self.thresholds.remove(&call.address);
                self.devices.remove(&call.address);
                // Blocks that are left keep it alive; it gives back the rest.
                if let Some(pool) = self.pools.get_mut(&Key::Handle(call.address)) {
                    pool.held = pool.used;
                }
            }
            _ => {}
        }
    }

    fn alloc(&mut self, key: Key, device: DeviceId, address: u64, size: Bytes) {
        if let Some((key, size)) = self.blocks.insert(address, (key, size))
            && let Some(pool) = self.pools.get_mut(&key)
        {
            // Its free was missed.
            pool.used -= size;
        }
        let pool = self.pools.entry(key).or_insert(Pool {
            device,
            used: 0,
            held: 0,
        });
        pool.used = pool.used.saturating_add(size);
        pool.held = pool.held.max(pool.used);
    }

    fn devices_own(&mut self) -> impl Iterator<Item = &mut Pool> {
        let own = |(key, _): &(&Key, _)| matches!(key, Key::Device(_));
        self.pools.iter_mut().filter(own).map(|(_, pool)| pool)
    }

    /// The threshold of a pool; of a device's own, the one that was set for a pool which no
    /// allocation named.
    fn threshold(&self, key: Key) -> Bytes {
        match key {
            Key::Handle(handle) => self.thresholds.get(&handle).copied().unwrap_or(0),
            Key::Device(_) => {
                let unnamed = self
                    .thresholds
                    .iter()
                    .filter(|(handle, _)| !self.pools.contains_key(&Key::Handle(**handle)));
                unnamed.map(|(_, bytes)| *bytes).max().unwrap_or(0)
            }
        }
    }

    /// What is kept on each device, where that has changed since this was asked last.
    pub fn news(&mut self) -> Vec<(DeviceId, Bytes)> {
        let mut kept: FxHashMap<DeviceId, Bytes> = FxHashMap::default();
        for (key, pool) in &self.pools {
            let held = pool.held.min(self.threshold(*key).max(pool.used));
            *kept.entry(pool.device).or_default() += held - pool.used;
        }
        let mut news: Vec<_> = kept
            .into_iter()
            .filter(|(device, bytes)| self.told.get(device).copied().unwrap_or(0) != *bytes)
            .collect();
        news.sort_unstable();
        self.told.extend(news.iter().copied());
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: DeviceId = DeviceId(1);

    fn see(pools: &mut Pools, function: u32, address: u64, size: u64, extra: u64) {
        let head = wire::vs_header {
            kind: wire::vs_kind_VS_DRIVER as u16,
            device: 0,
            process: 0,
            flags: 0,
            time: 0,
            tid: 0,
            stack: 0,
        };
        let call = wire::vs_driver {
            head,
            address,
            size,
            extra,
            function,
            result: 0,
            device: 1,
            pad: 0,
            context: 0,
        };
        pools.see(&call, DEVICE);
    }

    const ALLOC: u32 = wire::vs_driver_function_VS_ALLOC_ASYNC;
    const FROM: u32 = wire::vs_driver_function_VS_ALLOC_POOL;
    const FREE: u32 = wire::vs_driver_function_VS_FREE_ASYNC;
    const LIMIT: u32 = wire::vs_driver_function_VS_POOL_THRESHOLD;
    const TRIM: u32 = wire::vs_driver_function_VS_POOL_TRIM;

    #[test]
    fn a_pool_keeps_what_was_freed_up_to_its_threshold() {
        let mut pools = Pools::default();
        see(&mut pools, ALLOC, 0x1000, 100, 0);
        see(&mut pools, ALLOC, 0x2000, 50, 0);
        assert_eq!(pools.news(), []);
        see(&mut pools, FREE, 0x1000, 0, 0);
        // Nothing is promised without a threshold.
        assert_eq!(pools.news(), []);
        see(&mut pools, LIMIT, 7, u64::MAX, 0);
        assert_eq!(pools.news(), [(DEVICE, 100)]);
        assert_eq!(pools.news(), []);
        see(&mut pools, LIMIT, 7, 120, 0);
        assert_eq!(pools.news(), [(DEVICE, 70)]);
        see(&mut pools, TRIM, 7, 60, 0);
        assert_eq!(pools.news(), [(DEVICE, 10)]);
        see(&mut pools, FREE, 0x2000, 0, 0);
        see(&mut pools, TRIM, 7, 0, 0);
        assert_eq!(pools.news(), [(DEVICE, 0)]);
    }

    #[test]
    fn a_named_pool_has_its_own_threshold() {
        let mut pools = Pools::default();
        see(&mut pools, LIMIT, 7, u64::MAX, 0);
        see(&mut pools, FROM, 0x1000, 100, 8);
        see(&mut pools, FROM, 0x2000, 10, 7);
        see(&mut pools, FREE, 0x1000, 0, 0);
        see(&mut pools, FREE, 0x2000, 0, 0);
        assert_eq!(pools.news(), [(DEVICE, 10)]);
        let destroy = wire::vs_driver_function_VS_POOL_DESTROY;
        see(&mut pools, destroy, 7, 0, 0);
        assert_eq!(pools.news(), [(DEVICE, 0)]);
    }

    #[test]
    fn what_was_missed_does_no_harm() {
        let mut pools = Pools::default();
        see(&mut pools, FREE, 0x1000, 0, 0);
        see(&mut pools, ALLOC, 0x1000, 100, 0);
        see(&mut pools, ALLOC, 0x1000, u64::MAX, 0);
        see(&mut pools, FREE, 0x1000, 0, 0);
        see(&mut pools, TRIM, 9, 0, 0);
        assert_eq!(pools.news(), []);
    }
}

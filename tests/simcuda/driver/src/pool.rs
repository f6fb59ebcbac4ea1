//! Stream-ordered memory: pools that take chunks from the device and keep them.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use simcuda_common::code::{INVALID_VALUE, OUT_OF_MEMORY, Outcome};
use simcuda_common::ffi::{In, Out};
use simcuda_common::log;

use crate::arena::{self, Backing};
use crate::context;
use crate::driver::{Counters, Driver, driver};
use crate::ledger::Kind;
use crate::ranges::Ranges;
use crate::types::{
    Device, DevicePtr, Handle, LOCATION_DEVICE, MemAccessDesc, MemLocation, MemPoolProps,
};

/// A pool takes memory from the device in units of this.
const CHUNK: usize = 32 << 20;
/// What a request is rounded up to.
const UNIT: usize = 512;
/// Addresses reserved for a pool, as a multiple of the device's capacity, so that
/// free addresses in pieces do not look like exhausted memory.
const SPAN_FACTOR: usize = 4;

/// A memory pool.
#[derive(Debug)]
pub struct Pool {
    pub handle: Handle,
    device: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Reserved with the first allocation.
    span: Option<Span>,
    used: usize,
    used_high: usize,
    reserved: usize,
    reserved_high: usize,
    release_threshold: u64,
    /// The three `REUSE_*` attributes; kept, without effect.
    reuse: [c_int; 3],
}

/// The addresses of a pool.
#[derive(Debug)]
struct Span {
    base: usize,
    size: usize,
    free: Ranges,
    chunks: Vec<Chunk>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Chunk {
    /// Charged to the device and mapped.
    resident: bool,
    /// Allocations that lie in it, at least partly.
    allocations: u32,
}

impl Span {
    fn reserve(driver: &Driver, device: usize) -> Result<Self, c_int> {
        let capacity = driver.devices[device].settings.memory as usize;
        let size = capacity.next_multiple_of(CHUNK) * SPAN_FACTOR;
        let mut arena = driver.arena.lock().expect("no panics");
        let base = arena.take(size, CHUNK).ok_or(OUT_OF_MEMORY)?;
        Ok(Self {
            base,
            size,
            free: Ranges::new(base, size),
            chunks: vec![Chunk::default(); size / CHUNK],
        })
    }

    /// Indices of the chunks that `address..address + size` touches.
    fn touched(&self, address: usize, size: usize) -> std::ops::RangeInclusive<usize> {
        (address - self.base) / CHUNK..=(address + size - 1 - self.base) / CHUNK
    }

    fn chunk_address(&self, index: usize) -> usize {
        self.base + index * CHUNK
    }
}

impl Pool {
    fn create(driver: &Driver, device: usize) -> Handle {
        let (handle, _) = driver.pools.insert_with(|handle| Self {
            handle,
            device,
            state: Mutex::new(State {
                reuse: [1; 3],
                ..State::default()
            }),
        });
        handle
    }

    fn allocate(self: &Arc<Self>, driver: &Driver, size: usize) -> Result<DevicePtr, c_int> {
        let size = size
            .checked_next_multiple_of(UNIT)
            .filter(|size| *size != 0)
            .ok_or(INVALID_VALUE)?;
        let mut state = self.state.lock().expect("no panics");
        if state.span.is_none() {
            state.span = Some(Span::reserve(driver, self.device)?);
        }
        let address = self.place(driver, &mut state, size).inspect_err(|_| {
            log!("out of memory in pool {:#x}: {size} B asked", self.handle);
        })?;
        driver.callers.note(address, size);
        state.used += size;
        state.used_high = state.used_high.max(state.used);
        driver.ledger.write().expect("no panics").insert(
            address,
            size,
            Kind::Pooled(self.clone()),
            self.device,
        );
        Counters::add(&driver.counters.allocations);
        log!(level 2, "allocated {size} B from pool {:#x} at {address:#x}", self.handle);
        Ok(address)
    }

    /// Device, bytes allocated from it, bytes that it holds.
    pub fn figures(&self) -> (usize, usize, usize) {
        let state = self.state.lock().expect("no panics");
        (self.device, state.used, state.reserved)
    }

    /// Finds addresses and makes their chunks resident.
    fn place(&self, driver: &Driver, state: &mut State, size: usize) -> Result<usize, c_int> {
        let device = &driver.devices[self.device];
        let span = state.span.as_mut().ok_or(OUT_OF_MEMORY)?;
        let address = span.free.take(size, UNIT).ok_or(OUT_OF_MEMORY)?;
        let touched = span.touched(address, size);
        let missing: Vec<usize> = touched
            .clone()
            .filter(|index| !span.chunks[*index].resident)
            .collect();
        // Count the allocation first, so that making room does not release its chunks.
        for index in touched.clone() {
            span.chunks[index].allocations += 1;
        }
        let needed = missing.len() * CHUNK;
        let taken = device.take(needed).or_else(|_| {
            self.release_free_chunks(driver, state, 0);
            device.take(needed)
        });
        let span = state.span.as_mut().ok_or(OUT_OF_MEMORY)?;
        if let Err(code) = taken {
            for index in touched {
                span.chunks[index].allocations -= 1;
            }
            span.free.give_back(address, size);
            return Err(code);
        }
        for index in missing {
            arena::back(span.chunk_address(index), CHUNK, Backing::Lazy);
            span.chunks[index].resident = true;
        }
        state.reserved += needed;
        state.reserved_high = state.reserved_high.max(state.reserved);
        Ok(address)
    }

    /// Returns free chunks to the device until at most `keep` bytes stay reserved.
    fn release_free_chunks(&self, driver: &Driver, state: &mut State, keep: usize) {
        let Some(span) = state.span.as_mut() else {
            return;
        };
        for index in (0..span.chunks.len()).rev() {
            if state.reserved <= keep {
                break;
            }
            if span.chunks[index].resident && span.chunks[index].allocations == 0 {
                arena::back(span.chunk_address(index), CHUNK, Backing::Nothing);
                span.chunks[index].resident = false;
                state.reserved -= CHUNK;
                driver.devices[self.device].give_back(CHUNK);
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let Ok(driver) = driver() else { return };
        let state = self.state.get_mut().expect("no panics");
        driver.devices[self.device].give_back(state.reserved);
        if let Some(span) = &state.span {
            driver
                .arena
                .lock()
                .expect("no panics")
                .give_back(span.base, span.size);
        }
    }
}

/// Frees an allocation that came from a pool.
pub fn free(driver: &Driver, address: DevicePtr) -> Outcome {
    let pool = match driver
        .ledger
        .read()
        .expect("no panics")
        .starting_at(address)
        .map(|found| &found.kind)
    {
        Some(Kind::Pooled(pool)) => pool.clone(),
        _ => return Err(INVALID_VALUE),
    };
    let mut state = pool.state.lock().expect("no panics");
    let mut ledger = driver.ledger.write().expect("no panics");
    // Another thread may have freed it before this one had the locks.
    match ledger.starting_at(address).map(|found| &found.kind) {
        Some(Kind::Pooled(found)) if Arc::ptr_eq(found, &pool) => {}
        _ => return Err(INVALID_VALUE),
    }
    let allocation = ledger.remove(address).ok_or(INVALID_VALUE)?;
    drop(ledger);
    state.used -= allocation.size;
    let span = state.span.as_mut().ok_or(INVALID_VALUE)?;
    for index in span.touched(address, allocation.size) {
        span.chunks[index].allocations -= 1;
    }
    span.free.give_back(address, allocation.size);
    Counters::add(&driver.counters.frees);
    log!(level 2, "freed {} B in pool {:#x} at {address:#x}", allocation.size, pool.handle);
    Ok(())
}

/// At a synchronisation, pools give up what they hold beyond their threshold.
pub fn release_above_threshold(driver: &Driver, device: usize) {
    for pool in driver.pools.all() {
        if pool.device == device {
            let mut state = pool.state.lock().expect("no panics");
            let threshold = usize::try_from(state.release_threshold).unwrap_or(usize::MAX);
            pool.release_free_chunks(driver, &mut state, threshold);
        }
    }
}

fn default_pool(driver: &Driver, device: Device) -> Result<Handle, c_int> {
    let mut state = driver.device(device)?.state.lock().expect("no panics");
    Ok(*state
        .default_pool
        .get_or_insert_with(|| Pool::create(driver, device as usize)))
}

fn current_pool(driver: &Driver, device: Device) -> Result<Handle, c_int> {
    let default = default_pool(driver, device)?;
    let state = driver.device(device)?.state.lock().expect("no panics");
    Ok(state.current_pool.unwrap_or(default))
}

fn device_of(location: MemLocation) -> Result<Device, c_int> {
    if location.kind == LOCATION_DEVICE {
        Ok(location.id)
    } else {
        Err(INVALID_VALUE)
    }
}

// CUmemPool_attribute
const REUSE_FIRST: c_int = 1;
const REUSE_LAST: c_int = 3;
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED_CURRENT: c_int = 5;
const RESERVED_HIGH: c_int = 6;
const USED_CURRENT: c_int = 7;
const USED_HIGH: c_int = 8;

crate::driver_api! {
    fn cuDeviceGetDefaultMemPool(pool: Out<Handle>, device: Device) {
        pool.set(default_pool(driver()?, device)?)
    }

    fn cuDeviceGetMemPool(pool: Out<Handle>, device: Device) {
        pool.set(current_pool(driver()?, device)?)
    }

    fn cuDeviceSetMemPool(device: Device, pool: Handle) {
        let driver = driver()?;
        driver.pools.get(pool)?;
        driver.device(device)?.state.lock().expect("no panics").current_pool = Some(pool);
        Ok(())
    }

    fn cuMemGetDefaultMemPool, cuMemGetMemPool(
        pool: Out<Handle>, location: In<MemLocation>, _kind: c_int,
    ) {
        pool.set(default_pool(driver()?, device_of(location.get()?)?)?)
    }

    fn cuMemPoolCreate(pool: Out<Handle>, properties: In<MemPoolProps>) {
        let driver = driver()?;
        let device = device_of(properties.get()?.location)?;
        driver.device(device)?;
        pool.set(Pool::create(driver, device as usize))
    }

    fn cuMemPoolDestroy(pool: Handle) {
        let driver = driver()?;
        let device = driver.pools.get(pool)?.device as Device;
        let mut state = driver.device(device)?.state.lock().expect("no panics");
        if state.default_pool == Some(pool) {
            return Err(INVALID_VALUE);
        }
        if state.current_pool == Some(pool) {
            state.current_pool = None;
        }
        drop(state);
        driver.pools.remove(pool).map(|_| ())
    }

    fn cuMemPoolSetAccess(pool: Handle, _descriptions: In<MemAccessDesc>, _count: usize) {
        driver()?.pools.get(pool).map(|_| ())
    }

    fn cuMemPoolGetAccess(flags: Out<c_int>, pool: Handle, _location: In<MemLocation>) {
        driver()?.pools.get(pool)?;
        flags.set(3)
    }

    fn cuMemPoolGetAttribute(pool: Handle, attribute: c_int, value: Out<c_void>) {
        let pool = driver()?.pools.get(pool)?;
        let state = pool.state.lock().expect("no panics");
        match attribute {
            REUSE_FIRST..=REUSE_LAST => value.cast().set(state.reuse[(attribute - REUSE_FIRST) as usize]),
            RELEASE_THRESHOLD => value.cast().set(state.release_threshold),
            RESERVED_CURRENT => value.cast().set(state.reserved),
            RESERVED_HIGH => value.cast().set(state.reserved_high),
            USED_CURRENT => value.cast().set(state.used),
            USED_HIGH => value.cast().set(state.used_high),
            _ => Err(INVALID_VALUE),
        }
    }

    fn cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: Out<c_void>) {
        let pool = driver()?.pools.get(pool)?;
        let mut state = pool.state.lock().expect("no panics");
        match attribute {
            REUSE_FIRST..=REUSE_LAST => state.reuse[(attribute - REUSE_FIRST) as usize] = value.cast().get()?,
            RELEASE_THRESHOLD => state.release_threshold = value.cast().get()?,
            // Setting a high-water mark means starting it again.
            RESERVED_HIGH => state.reserved_high = state.reserved,
            USED_HIGH => state.used_high = state.used,
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    fn cuMemPoolTrimTo(pool: Handle, keep: usize) {
        let driver = driver()?;
        let pool = driver.pools.get(pool)?;
        let mut state = pool.state.lock().expect("no panics");
        pool.release_free_chunks(driver, &mut state, keep);
        Ok(())
    }

    fn cuMemAllocAsync, cuMemAllocAsync_ptsz(address: Out<DevicePtr>, size: usize, stream: Handle) {
        let driver = driver()?;
        let device = driver.streams.device_of(stream)?;
        let pool = driver.pools.get(current_pool(driver, device as Device)?)?;
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        address.set(pool.allocate(driver, size)?)
    }

    fn cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz(
        address: Out<DevicePtr>, size: usize, pool: Handle, _stream: Handle,
    ) {
        let driver = driver()?;
        let pool = driver.pools.get(pool)?;
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        address.set(pool.allocate(driver, size)?)
    }

    fn cuMemFreeAsync, cuMemFreeAsync_ptsz(address: DevicePtr, _stream: Handle) {
        let driver = driver()?;
        if address == 0 {
            return Ok(());
        }
        free(driver, address)
    }

    fn cuDeviceGraphMemTrim(device: Device) {
        driver()?.device(device).map(|_| ())
    }

    // Allocations made while capturing come from the pool, not from the graph's memory.
    fn cuDeviceGetGraphMemAttribute(device: Device, _attribute: c_int, value: Out<u64>) {
        driver()?.device(device)?;
        value.set(0)
    }

    fn cuDeviceSetGraphMemAttribute(device: Device, _attribute: c_int, _value: In<u64>) {
        let driver = driver()?;
        driver.device(device)?;
        context::current().map(|_| ())
    }
}

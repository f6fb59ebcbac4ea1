//! Virtual memory management: addresses, physical memory, and what is mapped where.
//!
//! Physical memory is ranges of one anonymous file, so that a handle can be mapped at
//! several places and keeps its content while it is mapped nowhere. What other processes may have
//! gets a file of its own (see [`crate::shareable`]).

use std::ffi::{c_int, c_ulonglong, c_void};
use std::sync::{Arc, Mutex, OnceLock};

use simcuda_common::code::{INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY, Outcome};
use simcuda_common::ffi::{In, Out};
use simcuda_common::log;

use crate::arena::{self, Backing, DEVICE_PAGE};
use crate::driver::{Counters, Driver, driver};
use crate::ledger::{Kind, Ledger};
use crate::ranges::Ranges;
use crate::shared::SharedFile;
use crate::types::{
    DevicePtr, Handle, LOCATION_DEVICE, MemAccessDesc, MemAllocationProp, MemLocation,
};

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`, the only type of shareable handles here.
pub const POSIX_DESCRIPTOR: c_int = 1;
/// Size of the (sparse) file; far more than is ever in use at a time.
const FILE_BYTES: usize = 1 << 46;

/// The file behind all physical allocations, made with the first of them.
#[derive(Debug, Default)]
pub struct PhysicalMemory {
    file: Option<(c_int, Ranges)>,
}

impl PhysicalMemory {
    fn take(&mut self, size: usize) -> Result<(c_int, usize), c_int> {
        if self.file.is_none() {
            // SAFETY: the name is a C string; the new file belongs to this struct.
            let file =
                unsafe { libc::memfd_create(c"simcuda-device-memory".as_ptr(), libc::MFD_CLOEXEC) };
            // SAFETY: `file` is the new file, or -1, which makes the call fail.
            if unsafe { libc::ftruncate(file, FILE_BYTES as libc::off_t) } != 0 {
                return Err(OUT_OF_MEMORY);
            }
            self.file = Some((file, Ranges::new(0, FILE_BYTES)));
        }
        let (file, free) = self.file.as_mut().ok_or(OUT_OF_MEMORY)?;
        let offset = free.take(size, DEVICE_PAGE).ok_or(OUT_OF_MEMORY)?;
        Ok((*file, offset))
    }

    /// Drops the content and makes the range free.
    fn give_back(&mut self, offset: usize, size: usize) {
        let Some((file, free)) = self.file.as_mut() else {
            return;
        };
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the range is this physical allocation's part of the file.
        unsafe { libc::fallocate(*file, mode, offset as libc::off_t, size as libc::off_t) };
        free.give_back(offset, size);
    }
}

/// A physical allocation. Lives as long as a handle or a mapping needs it.
#[derive(Debug)]
pub struct Physical {
    handle: Handle,
    device: usize,
    size: usize,
    /// `CUmemAllocationHandleType` that it was made for.
    handle_types: c_int,
    /// Its part of the file of all; another process's memory has none.
    part: Option<(c_int, usize)>,
    /// Its own file, once other processes may have it. The part is not used any more then.
    shared: OnceLock<SharedFile>,
    /// Times that the handle must be released.
    retained: Mutex<u32>,
}

impl Physical {
    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn device(&self) -> usize {
        self.device
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn handle_types(&self) -> c_int {
        self.handle_types
    }

    /// Of its own file, if it has one.
    pub fn inode(&self) -> Option<u64> {
        self.shared.get()?.inode().ok()
    }

    /// Whether it is charged to this process.
    pub fn is_own(&self) -> bool {
        self.part.is_some()
    }

    /// The file by which other processes can have it, and its content with it. The caller holds the
    /// ledger's lock for writing.
    pub fn share(self: &Arc<Self>, driver: &Driver, ledger: &Ledger) -> Result<&SharedFile, c_int> {
        if let Some(file) = self.shared.get() {
            return Ok(file);
        }
        let (source, offset) = self.part.ok_or(INVALID_VALUE)?;
        let file = SharedFile::new(self.size, driver.devices[self.device].settings.index)?;
        file.fill_from_file(source, offset)?;
        for tile in ledger.all() {
            if let Kind::Mapped {
                physical,
                offset,
                protection,
            } = &tile.kind
                && Arc::ptr_eq(physical, self)
            {
                file.map(tile.address, tile.size, *offset, *protection)?;
            }
        }
        Ok(self.shared.get_or_init(|| file))
    }
}

/// Makes memory of another process known under a handle of this one.
pub fn adopt(driver: &Driver, file: SharedFile, device: usize) -> Handle {
    let (handle, _) = driver.physical.insert_with(|handle| Physical {
        handle,
        device,
        size: file.size(),
        handle_types: POSIX_DESCRIPTOR,
        part: None,
        shared: file.into(),
        retained: Mutex::new(1),
    });
    handle
}

impl Drop for Physical {
    fn drop(&mut self) {
        let Ok(driver) = driver() else { return };
        let Some((_, offset)) = self.part else {
            return;
        };
        driver
            .physical_memory
            .lock()
            .expect("no panics")
            .give_back(offset, self.size);
        driver.devices[self.device].give_back(self.size);
        Counters::add(&driver.counters.frees);
        log!(
            "gave back {} B of physical memory of device {}",
            self.size,
            self.device
        );
    }
}

fn create(driver: &Driver, size: usize, properties: MemAllocationProp) -> Result<Handle, c_int> {
    if properties.location.kind != LOCATION_DEVICE || size == 0 || !size.is_multiple_of(DEVICE_PAGE)
    {
        return Err(INVALID_VALUE);
    }
    if properties.requested_handle_types & !POSIX_DESCRIPTOR != 0 {
        return Err(NOT_SUPPORTED);
    }
    let device = driver.device(properties.location.id)?;
    if let Err(code) = device.take(size) {
        log!(
            "out of memory on device {}: {size} B asked, {} B free",
            properties.location.id,
            device.free()
        );
        return Err(code);
    }
    let part = driver
        .physical_memory
        .lock()
        .expect("no panics")
        .take(size)
        .inspect_err(|_| device.give_back(size))?;
    let (handle, _) = driver.physical.insert_with(|handle| Physical {
        handle,
        device: properties.location.id as usize,
        size,
        handle_types: properties.requested_handle_types,
        part: Some(part),
        shared: OnceLock::new(),
        retained: Mutex::new(1),
    });
    driver.callers.note(handle, size);
    Counters::add(&driver.counters.allocations);
    log!(
        "took {size} B of physical memory of device {} as {handle:#x}",
        properties.location.id
    );
    Ok(handle)
}

/// Maps a part of the file of all where nothing is mapped.
fn map_part(address: usize, size: usize, file: c_int, offset: usize) -> Outcome {
    // SAFETY: the caller saw that the range is reserved in the arena and nothing is mapped there, and
    // the part of the file is the handle's.
    let mapped = unsafe {
        libc::mmap(
            address as *mut c_void,
            size,
            libc::PROT_NONE,
            libc::MAP_SHARED | libc::MAP_FIXED,
            file,
            offset as libc::off_t,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(OUT_OF_MEMORY);
    }
    Ok(())
}

fn map(driver: &Driver, address: usize, size: usize, offset: usize, handle: Handle) -> Outcome {
    let physical = driver.physical.get(handle).map_err(|_| INVALID_VALUE)?;
    let fits = offset
        .checked_add(size)
        .is_some_and(|end| end <= physical.size);
    let aligned = [address, size, offset]
        .iter()
        .all(|value| value.is_multiple_of(DEVICE_PAGE));
    let mut ledger = driver.ledger.write().expect("no panics");
    if size == 0
        || !fits
        || !aligned
        || !ledger.is_reserved(address, size)
        || ledger.overlaps(address, size)
    {
        return Err(INVALID_VALUE);
    }
    match (physical.shared.get(), physical.part) {
        (Some(file), _) => file.map(address, size, offset, libc::PROT_NONE)?,
        (None, Some((file, start))) => map_part(address, size, file, start + offset)?,
        (None, None) => return Err(INVALID_VALUE),
    }
    let device = physical.device;
    ledger.insert(
        address,
        size,
        Kind::Mapped {
            physical,
            offset,
            protection: libc::PROT_NONE,
        },
        device,
    );
    log!("mapped {handle:#x} at {address:#x}, {size} B");
    Ok(())
}

fn unmap(driver: &Driver, address: usize, size: usize) -> Outcome {
    let mut ledger = driver.ledger.write().expect("no panics");
    let tiles = ledger.tiles(address, size).ok_or(INVALID_VALUE)?;
    if !tiles
        .iter()
        .all(|tile| matches!(tile.kind, Kind::Mapped { .. }))
    {
        return Err(INVALID_VALUE);
    }
    let starts: Vec<usize> = tiles.iter().map(|tile| tile.address).collect();
    let removed: Vec<_> = starts
        .into_iter()
        .filter_map(|start| ledger.remove(start))
        .collect();
    arena::back(address, size, Backing::Nothing);
    // Physical memory that nothing else needs is given back here, after it is unmapped.
    drop(removed);
    log!("unmapped {size} B at {address:#x}");
    Ok(())
}

fn set_access(
    driver: &Driver,
    address: usize,
    size: usize,
    descriptions: In<MemAccessDesc>,
    count: usize,
) -> Outcome {
    const READ: c_int = 1;
    const READ_WRITE: c_int = 3;
    let mut flags = 0;
    for index in 0..count {
        flags |= descriptions.get_at(index)?.flags;
    }
    let protection = match flags {
        0 => libc::PROT_NONE,
        READ => libc::PROT_READ,
        READ_WRITE => libc::PROT_READ | libc::PROT_WRITE,
        _ => return Err(INVALID_VALUE),
    };
    let mut ledger = driver.ledger.write().expect("no panics");
    let starts: Vec<usize> = ledger
        .tiles(address, size)
        .ok_or(INVALID_VALUE)?
        .iter()
        .map(|tile| matches!(tile.kind, Kind::Mapped { .. }).then_some(tile.address))
        .collect::<Option<_>>()
        .ok_or(INVALID_VALUE)?;
    // SAFETY: the range is mappings made by `map`.
    if unsafe { libc::mprotect(address as *mut c_void, size, protection) } != 0 {
        return Err(OUT_OF_MEMORY);
    }
    for start in starts {
        if let Some(tile) = ledger.starting_at_mut(start)
            && let Kind::Mapped {
                protection: of_tile,
                ..
            } = &mut tile.kind
        {
            *of_tile = protection;
        }
    }
    Ok(())
}

fn release(driver: &Driver, handle: Handle) -> Outcome {
    if driver.multicasts.remove(handle).is_ok() {
        return Ok(());
    }
    let physical = driver.physical.get(handle).map_err(|_| INVALID_VALUE)?;
    let mut retained = physical.retained.lock().expect("no panics");
    *retained = retained.checked_sub(1).ok_or(INVALID_VALUE)?;
    if *retained == 0 {
        driver.physical.remove(handle)?;
    }
    Ok(())
}

fn retain(driver: &Driver, address: usize) -> Result<Handle, c_int> {
    let ledger = driver.ledger.read().expect("no panics");
    let Some(Kind::Mapped { physical, .. }) = ledger.at(address).map(|found| &found.kind) else {
        return Err(INVALID_VALUE);
    };
    Ok(retain_handle(driver, physical))
}

/// The handle of physical memory, which must be released once more.
pub fn retain_handle(driver: &Driver, physical: &Arc<Physical>) -> Handle {
    let mut retained = physical.retained.lock().expect("no panics");
    *retained += 1;
    driver
        .physical
        .restore(physical.handle, Arc::clone(physical));
    physical.handle
}

crate::driver_api! {
    fn cuMemGetAllocationGranularity(
        granularity: Out<usize>, _properties: In<MemAllocationProp>, _option: c_int,
    ) {
        driver()?;
        granularity.set(DEVICE_PAGE)
    }

    fn cuMemAddressReserve(
        address: Out<DevicePtr>, size: usize, alignment: usize, hint: DevicePtr,
        _flags: c_ulonglong,
    ) {
        let driver = driver()?;
        if size == 0 || !size.is_multiple_of(DEVICE_PAGE) || address.is_null() {
            return Err(INVALID_VALUE);
        }
        let mut ledger = driver.ledger.write().expect("no panics");
        let mut arena = driver.arena.lock().expect("no panics");
        let taken = if hint != 0 && hint.is_multiple_of(DEVICE_PAGE) && arena.take_at(hint, size) {
            hint
        } else {
            let alignment = alignment.max(DEVICE_PAGE).checked_next_power_of_two().ok_or(INVALID_VALUE)?;
            arena.take(size, alignment).ok_or(OUT_OF_MEMORY)?
        };
        ledger.reserve(taken, size);
        log!("reserved {size} B of addresses at {taken:#x}");
        address.set(taken)
    }

    fn cuMemAddressFree(address: DevicePtr, size: usize) {
        let driver = driver()?;
        let mut ledger = driver.ledger.write().expect("no panics");
        if ledger.overlaps(address, size) || !ledger.unreserve(address, size) {
            return Err(INVALID_VALUE);
        }
        driver.arena.lock().expect("no panics").give_back(address, size);
        log!("freed {size} B of addresses at {address:#x}");
        Ok(())
    }

    fn cuMemCreate(
        handle: Out<Handle>, size: usize, properties: In<MemAllocationProp>, _flags: c_ulonglong,
    ) {
        if handle.is_null() {
            return Err(INVALID_VALUE);
        }
        handle.set(create(driver()?, size, properties.get()?)?)
    }

    fn cuMemRelease(handle: Handle) {
        release(driver()?, handle)
    }

    fn cuMemMap(
        address: DevicePtr, size: usize, offset: usize, handle: Handle, _flags: c_ulonglong,
    ) {
        map(driver()?, address, size, offset, handle)
    }

    fn cuMemUnmap(address: DevicePtr, size: usize) {
        unmap(driver()?, address, size)
    }

    fn cuMemSetAccess(
        address: DevicePtr, size: usize, descriptions: In<MemAccessDesc>, count: usize,
    ) {
        set_access(driver()?, address, size, descriptions, count)
    }

    fn cuMemGetAccess(flags: Out<c_ulonglong>, _location: In<MemLocation>, address: DevicePtr) {
        let covered = driver()?.ledger.read().expect("no panics").covers(address, 1);
        flags.set(if covered { 3 } else { 0 })
    }

    fn cuMemRetainAllocationHandle(handle: Out<Handle>, address: *mut c_void) {
        handle.set(retain(driver()?, address as usize)?)
    }

    fn cuMemGetAllocationPropertiesFromHandle(properties: Out<MemAllocationProp>, handle: Handle) {
        let physical = driver()?.physical.get(handle).map_err(|_| INVALID_VALUE)?;
        properties.set(MemAllocationProp {
            kind: 1,
            requested_handle_types: physical.handle_types,
            location: MemLocation { kind: LOCATION_DEVICE, id: physical.device as c_int },
            win32_meta_data: std::ptr::null_mut(),
            flags: 0,
        })
    }
}

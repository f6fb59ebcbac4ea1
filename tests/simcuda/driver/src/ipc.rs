//! Interprocess communication: handles of memory and of events, and what other processes do with them.
//!
//! A handle of memory names a descriptor of the exporting process, which the kernel lets other
//! processes of the user open. Nothing is left behind when that process dies. An import is charged
//! to nobody: the memory is the exporter's.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use simcuda_common::code::{
    INVALID_CONTEXT, INVALID_DEVICE, INVALID_HANDLE, INVALID_VALUE, OUT_OF_MEMORY, Outcome,
};
use simcuda_common::ffi::Out;
use simcuda_common::log;
use simcuda_common::types::IpcHandle;
use simcuda_common::usage::start_time;

use crate::arena::DEVICE_PAGE;
use crate::context;
use crate::driver::{Driver, driver};
use crate::event::Event;
use crate::ledger::Kind;
use crate::shared::SharedFile;
use crate::types::{DevicePtr, Handle};

const MEMORY: [u8; 8] = *b"simcuda1";
const EVENT: [u8; 8] = *b"simcuda2";
/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, which changes nothing here.
const LAZY_PEER_ACCESS: c_uint = 1;

/// What the bytes of a handle say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    /// Of memory or of an event.
    what: [u8; 8],
    pid: u64,
    /// Start time of the process: tells a reused pid.
    started: u64,
    /// A descriptor of that process, or an event.
    number: u64,
    inode: u64,
}

impl Named {
    fn new(what: [u8; 8], number: u64, inode: u64) -> Self {
        let pid = std::process::id();
        Self {
            what,
            pid: u64::from(pid),
            started: start_time(pid).unwrap_or(0),
            number,
            inode,
        }
    }

    fn to_handle(self) -> IpcHandle {
        let mut bytes = [0; 64];
        let numbers = [self.pid, self.started, self.number, self.inode].map(u64::to_ne_bytes);
        bytes[..8].copy_from_slice(&self.what);
        bytes[8..40].copy_from_slice(numbers.as_flattened());
        IpcHandle { bytes }
    }

    /// What a handle of another process says, if that process is still there.
    fn of_another(handle: IpcHandle, what: [u8; 8]) -> Result<Self, c_int> {
        let (words, _) = handle.bytes.as_chunks::<8>();
        let number = |index: usize| u64::from_ne_bytes(words[index]);
        let named = Self {
            what,
            pid: number(1),
            started: number(2),
            number: number(3),
            inode: number(4),
        };
        if named.to_handle().bytes != handle.bytes {
            return Err(INVALID_HANDLE);
        }
        let pid = u32::try_from(named.pid).map_err(|_| INVALID_HANDLE)?;
        if start_time(pid) != Some(named.started) {
            return Err(INVALID_VALUE);
        }
        // As with the real driver: who made it has the thing itself.
        if pid == std::process::id() {
            return Err(INVALID_CONTEXT);
        }
        Ok(named)
    }
}

/// The handle of the allocation that holds `address`.
fn export(driver: &Driver, address: usize) -> Result<IpcHandle, c_int> {
    let mut ledger = driver.ledger.write().expect("no panics");
    let found = ledger.at(address).ok_or(INVALID_VALUE)?;
    let file = match &found.kind {
        Kind::Exported(file) => Arc::clone(file),
        Kind::Device => {
            let (address, size) = (found.address, found.size);
            let index = driver.devices[found.device].settings.index;
            let file = Arc::new(SharedFile::new(size, index)?);
            // The ledger's lock keeps copies away, and nothing else writes to device memory.
            file.fill_from_memory(address)?;
            file.map(address, size, 0, libc::PROT_READ | libc::PROT_WRITE)?;
            let allocation = ledger.starting_at_mut(address).ok_or(INVALID_VALUE)?;
            allocation.kind = Kind::Exported(Arc::clone(&file));
            log!("{size} B at {address:#x} can be mapped by other processes");
            file
        }
        _ => return Err(INVALID_VALUE),
    };
    Ok(Named::new(MEMORY, file.descriptor() as u64, file.inode()?).to_handle())
}

fn import(driver: &Driver, handle: IpcHandle) -> Result<DevicePtr, c_int> {
    let named = Named::of_another(handle, MEMORY)?;
    let mut ledger = driver.ledger.write().expect("no panics");
    if let Some(address) = ledger.imported_as(&handle) {
        if let Some(Kind::Imported { opened, .. }) =
            ledger.starting_at_mut(address).map(|found| &mut found.kind)
        {
            *opened += 1;
        }
        return Ok(address);
    }
    // The descriptor may be another file's since the memory was freed.
    let file = SharedFile::of_process(named.pid as u32, named.number as c_int)?;
    if file.inode()? != named.inode {
        return Err(INVALID_VALUE);
    }
    let device = (driver.devices.iter())
        .position(|device| device.settings.index == file.device())
        .ok_or(INVALID_DEVICE)?;
    let size = file.size();
    let mut arena = driver.arena.lock().expect("no panics");
    let address = arena.take(size, DEVICE_PAGE).ok_or(OUT_OF_MEMORY)?;
    file.map(address, size, 0, libc::PROT_READ | libc::PROT_WRITE)
        .inspect_err(|_| arena.give_back(address, size))?;
    ledger.insert(address, size, Kind::Imported { handle, opened: 1 }, device);
    log!(
        "mapped {size} B of process {} at {address:#x}, charged there",
        named.pid
    );
    Ok(address)
}

fn close(driver: &Driver, address: DevicePtr) -> Outcome {
    let mut ledger = driver.ledger.write().expect("no panics");
    let found = ledger.starting_at_mut(address).ok_or(INVALID_VALUE)?;
    let Kind::Imported { opened, .. } = &mut found.kind else {
        return Err(INVALID_VALUE);
    };
    *opened -= 1;
    if *opened == 0 {
        let size = found.size;
        ledger.remove(address);
        driver
            .arena
            .lock()
            .expect("no panics")
            .give_back(address, size);
        log!("unmapped {size} B of another process at {address:#x}");
    }
    Ok(())
}

crate::driver_api! {
    fn cuIpcGetMemHandle(handle: Out<IpcHandle>, address: DevicePtr) {
        let driver = driver()?;
        context::current()?;
        if handle.is_null() {
            return Err(INVALID_VALUE);
        }
        handle.set(export(driver, address)?)
    }

    fn cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2(
        address: Out<DevicePtr>, handle: IpcHandle, flags: c_uint,
    ) {
        let driver = driver()?;
        context::current()?;
        if address.is_null() || flags & !LAZY_PEER_ACCESS != 0 {
            return Err(INVALID_VALUE);
        }
        address.set(import(driver, handle)?)
    }

    fn cuIpcCloseMemHandle(address: DevicePtr) {
        let driver = driver()?;
        context::current()?;
        close(driver, address)
    }

    fn cuIpcGetEventHandle(handle: Out<IpcHandle>, event: Handle) {
        if !driver()?.events.get(event)?.is_interprocess() {
            return Err(INVALID_HANDLE);
        }
        handle.set(Named::new(EVENT, event as u64, 0).to_handle())
    }

    // Events are always complete, so the two have nothing to say to each other.
    fn cuIpcOpenEventHandle(event: Out<Handle>, handle: IpcHandle) {
        let driver = driver()?;
        context::current()?;
        if event.is_null() {
            return Err(INVALID_VALUE);
        }
        Named::of_another(handle, EVENT)?;
        event.set(driver.events.insert(Event::of_another_process()))
    }
}

//! The ledger: every piece of memory that the API knows, by address.

use std::collections::BTreeMap;
use std::sync::Arc;

use simcuda_common::types::IpcHandle;

use crate::pool::Pool;
use crate::shared::SharedFile;
use crate::vmm::Physical;

/// What a piece of memory is, and what its free has to give back.
#[derive(Clone, Debug)]
pub enum Kind {
    /// `cuMemAlloc`
    Device,
    /// `cuMemAlloc`, and then `cuIpcGetMemHandle`
    Exported(Arc<SharedFile>),
    /// `cuIpcOpenMemHandle`: charged to the exporter
    Imported {
        handle: IpcHandle,
        /// Times that it must be closed.
        opened: u32,
    },
    /// `cuMemAllocManaged`
    Managed,
    /// `cuMemAllocAsync`, `cuMemAllocFromPoolAsync`
    Pooled(Arc<Pool>),
    /// `cuMemMap`
    Mapped {
        physical: Arc<Physical>,
        /// Where in the physical memory it begins, in bytes.
        offset: usize,
        /// `PROT_*` of the mapping.
        protection: i32,
    },
    /// `cuMemHostAlloc`
    Host { flags: u32 },
    /// `cuMemHostRegister`
    Registered { flags: u32 },
}

impl Kind {
    pub fn is_host(&self) -> bool {
        matches!(self, Self::Host { .. } | Self::Registered { .. })
    }

    /// Whether the host can touch it without a fault.
    fn is_accessible(&self) -> bool {
        !matches!(
            self,
            Self::Mapped {
                protection: libc::PROT_NONE,
                ..
            }
        )
    }
}

/// A piece of memory.
#[derive(Clone, Debug)]
pub struct Allocation {
    pub address: usize,
    /// Bytes; for device memory what the device is charged.
    pub size: usize,
    pub kind: Kind,
    /// Ordinal of the device that holds it or, for host memory, that asked for it.
    pub device: usize,
    /// Different for every allocation of the process.
    pub id: u64,
}

impl Allocation {
    fn end(&self) -> usize {
        self.address + self.size
    }
}

/// All live allocations. They do not overlap.
#[derive(Debug, Default)]
pub struct Ledger {
    by_address: BTreeMap<usize, Allocation>,
    /// Address ranges of `cuMemAddressReserve`: start -> size.
    reservations: BTreeMap<usize, usize>,
    last_id: u64,
}

impl Ledger {
    pub fn reserve(&mut self, address: usize, size: usize) {
        self.reservations.insert(address, size);
    }

    /// Forgets a reservation; false if there is none of just that address and size.
    pub fn unreserve(&mut self, address: usize, size: usize) -> bool {
        let found = self.reservations.get(&address) == Some(&size);
        if found {
            self.reservations.remove(&address);
        }
        found
    }

    /// Whether the range lies in one reservation.
    pub fn is_reserved(&self, address: usize, size: usize) -> bool {
        let Some(end) = address.checked_add(size) else {
            return false;
        };
        let before = self.reservations.range(..=address).next_back();
        before.is_some_and(|(start, reserved)| end <= start + reserved)
    }

    pub fn insert(&mut self, address: usize, size: usize, kind: Kind, device: usize) {
        self.last_id += 1;
        let allocation = Allocation {
            address,
            size,
            kind,
            device,
            id: self.last_id,
        };
        self.by_address.insert(address, allocation);
    }

    /// The allocation that holds `address`.
    pub fn at(&self, address: usize) -> Option<&Allocation> {
        let (_, allocation) = self.by_address.range(..=address).next_back()?;
        (address < allocation.end()).then_some(allocation)
    }

    /// Where the memory of a handle of another process is mapped.
    pub fn imported_as(&self, wanted: &IpcHandle) -> Option<usize> {
        let is_it = |kind: &Kind| matches!(kind, Kind::Imported { handle, .. } if handle == wanted);
        let found = self.all().find(|allocation| is_it(&allocation.kind))?;
        Some(found.address)
    }

    /// The allocation that begins at `address`.
    pub fn starting_at(&self, address: usize) -> Option<&Allocation> {
        self.by_address.get(&address)
    }

    pub fn starting_at_mut(&mut self, address: usize) -> Option<&mut Allocation> {
        self.by_address.get_mut(&address)
    }

    pub fn remove(&mut self, address: usize) -> Option<Allocation> {
        self.by_address.remove(&address)
    }

    /// Whether any allocation touches the range.
    pub fn overlaps(&self, address: usize, size: usize) -> bool {
        let last = self
            .by_address
            .range(..address.saturating_add(size))
            .next_back();
        last.is_some_and(|(_, allocation)| allocation.end() > address)
    }

    /// The allocations that make up exactly `address..address + size`, in order; `None`
    /// if there is a gap or one sticks out.
    pub fn tiles(&self, address: usize, size: usize) -> Option<Vec<&Allocation>> {
        let mut tiles = Vec::new();
        let mut next = address;
        let end = address.checked_add(size)?;
        while next < end {
            let tile = self.by_address.get(&next)?;
            next = tile.end();
            tiles.push(tile);
        }
        (next == end).then_some(tiles)
    }

    /// Whether all of the range is live memory that can be touched.
    pub fn covers(&self, address: usize, size: usize) -> bool {
        let Some(end) = address.checked_add(size) else {
            return false;
        };
        let mut next = address;
        loop {
            match self.at(next) {
                Some(allocation) if allocation.kind.is_accessible() => next = allocation.end(),
                _ => return false,
            }
            if next >= end {
                return true;
            }
        }
    }

    /// All of it, by address.
    pub fn all(&self) -> impl Iterator<Item = &Allocation> {
        self.by_address.values()
    }

    pub fn len(&self) -> usize {
        self.by_address.len()
    }
}

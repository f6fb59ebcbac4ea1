//! One traced process: its devices and its steps.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use vramscope_events::{
    Address, Alloc, Bytes, DeviceId, Free, Holders, Layer, OutOfMemory, StackId, StepMark,
    StepMarkKind, Tid, Time,
};

use crate::{
    book::{Book, NewSites},
    config::StepOptions,
    device::{CacheGrew, Device, DeviceMemory},
    shares::pending::{Pending, Taken},
    stacks::Stacks,
    steps::{MarkSeen, Renumber, Steps},
    view::{MarkKind, ProcessInfo},
};

/// One traced process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Process {
    pub info: Arc<ProcessInfo>,
    pub exited: Option<Time>,
    pub steps: Steps,
    pub devices: Vec<Device>,
    /// Page-locked host memory: no device, no verdict.
    pub host: Book,
    pending: Pending,
    /// Driver memory that nothing was known of was freed since the framework's last report.
    unknown_freed: bool,
    /// Graphs that are being captured.
    captures: u32,
    pub mappings: Mappings,
    /// Events since the last verdict that was kept.
    pub unjudged: u64,
}

impl Process {
    pub fn new(info: ProcessInfo, options: StepOptions) -> Process {
        Process {
            info: Arc::new(info),
            exited: None,
            steps: Steps::new(options),
            devices: Vec::new(),
            host: Book::default(),
            pending: Pending::default(),
            unknown_freed: false,
            captures: 0,
            mappings: Mappings::default(),
            unjudged: 0,
        }
    }

    /// Whether it has ended without any event of a device: nobody wants to hear of it. There may be
    /// thousands: the workers of each epoch.
    pub fn left_nothing(&self) -> bool {
        self.exited.is_some() && self.devices.is_empty()
    }

    pub fn device(&mut self, id: DeviceId) -> &mut Device {
        let index = match self.devices.iter().position(|device| device.id == id) {
            Some(index) => index,
            None => {
                let at = self.devices.partition_point(|device| device.id < id);
                self.devices.insert(at, Device::new(id));
                at
            }
        };
        &mut self.devices[index]
    }

    /// Whether a step ended.
    #[inline]
    pub fn alloc(
        &mut self,
        alloc: &Alloc,
        (thread, time): (Tid, Time),
        new: &mut NewSites<'_>,
    ) -> bool {
        if alloc.layer == Layer::Host {
            let at = (self.steps.now(), time);
            self.host
                .alloc(alloc.address, alloc.size, alloc.stack, at, new);
            return false;
        }
        let beats = alloc.layer == Layer::Tensor || !self.device(alloc.device).tensor_layer;
        let ended = self.observe(beats.then_some(alloc.stack), time);
        let at = (self.steps.now(), time);
        if alloc.layer == Layer::Driver {
            self.pending.add(Taken {
                thread,
                device: alloc.device,
                address: alloc.address,
                size: alloc.size,
                graph: self.captures > 0,
            });
        }
        let mut grew = self.device(alloc.device).alloc(alloc, at, new);
        if alloc.layer == Layer::Tensor && std::mem::take(&mut self.unknown_freed) {
            // By how much the cache shrank before it grew is not known.
            grew = Some(CacheGrew { by: None });
        }
        if let Some(grew) = grew {
            self.claim_segments(alloc, grew, thread, new);
        }
        ended
    }

    /// The driver's allocations that a block was cut from are the framework's segments.
    #[cold]
    fn claim_segments(
        &mut self,
        alloc: &Alloc,
        grew: CacheGrew,
        thread: Tid,
        new: &mut NewSites<'_>,
    ) {
        for taken in self.pending.claim(thread, alloc.size, grew.by) {
            if taken.device != alloc.device {
                // The driver's call did not say on which device, the framework does.
                let step = self.steps.now();
                let book = &mut self.device(taken.device).driver;
                if let Some((block, stack)) = book.take(taken.address, step) {
                    let at = (block.step, block.time);
                    let driver = &mut self.device(alloc.device).driver;
                    driver.alloc(taken.address, taken.size, stack, at, new);
                }
            }
            let device = self.device(alloc.device);
            device.driver.mark_segment(taken.address, taken.graph);
        }
    }

    /// Whether a step ended.
    #[inline]
    pub fn free(&mut self, free: &Free, time: Time) -> bool {
        if free.layer == Layer::Host {
            self.host.free(free.address, self.steps.now(), time);
            return false;
        }
        let ended = self.observe(None, time);
        let at = (self.steps.now(), time);
        if free.layer == Layer::Driver {
            self.pending.remove(free.address);
        }
        if let Some(device) = free.device {
            self.device(device).free(free, at);
            return ended;
        }
        // The driver does not say which device: addresses are unique over all of them.
        for device in &mut self.devices {
            let book = match free.layer {
                Layer::Tensor => &device.tensor,
                Layer::Driver | Layer::Host => &device.driver,
            };
            if book.ledger.contains(free.address) {
                device.free(free, at);
                return ended;
            }
        }
        // From before the attach: perhaps a segment.
        self.unknown_freed |= free.layer == Layer::Driver;
        ended
    }

    #[inline]
    fn observe(&mut self, allocated: Option<StackId>, time: Time) -> bool {
        let Some(change) = self.steps.observe(allocated, time) else {
            return false;
        };
        if change.began {
            self.end_step(time);
        }
        if let Some(renumber) = change.renumber {
            self.renumber(&renumber);
        }
        !self.steps.is_provisional()
    }

    /// Counts a mark; gives back the new numbering, where one came of it, and whether a step
    /// ended.
    pub fn mark(&mut self, mark: &StepMark, time: Time) -> Marked {
        let mut marked = Marked::default();
        if let Some(renumber) = self.steps.prefer(mark.kind) {
            self.renumber(&renumber);
            marked.renumbered = true;
        }
        let seen = self.mark_seen(mark);
        marked.step_ended = self.steps.mark(mark.kind, seen, time);
        if marked.step_ended {
            self.end_step(time);
        }
        if mark.kind == StepMarkKind::Backward
            && let Some(renumber) = self.steps.fold()
        {
            self.renumber(&renumber);
            marked.renumbered = true;
        }
        marked
    }

    fn mark_seen(&mut self, mark: &StepMark) -> MarkSeen {
        let mut seen = MarkSeen {
            stack: mark.stack,
            optimizer_ran: false,
            backward_bytes: 0,
        };
        for device in &mut self.devices {
            for book in [&mut device.tensor, &mut device.driver] {
                seen.optimizer_ran |= std::mem::take(&mut book.optimizer_ran);
                seen.backward_bytes += book.backward_bytes();
            }
        }
        seen
    }

    fn end_step(&mut self, time: Time) {
        let next = self.steps.now();
        for device in &mut self.devices {
            device.end_step(next, time);
        }
    }

    fn renumber(&mut self, renumber: &Renumber) {
        self.host.renumber(&|step| renumber.apply(step));
        for device in &mut self.devices {
            device.renumber(renumber);
        }
    }

    /// A stack was defined after its first use.
    pub fn stack_defined(&mut self, stack: StackId, stacks: &Stacks) {
        self.host.stack_defined(stack, stacks);
        for device in &mut self.devices {
            device.stack_defined(stack, stacks);
        }
    }

    /// A frame was defined: perhaps the one that a stack still lacked.
    pub fn frame_defined(&mut self, stacks: &Stacks) {
        self.host.frame_defined(stacks);
        for device in &mut self.devices {
            device.frame_defined(stacks);
        }
    }

    pub fn out_of_memory(&mut self, failed: &OutOfMemory, time: Time) {
        let device = self.device(failed.device);
        device.mark(MarkKind::OutOfMemory, time);
        device.out_of_memory = Some(*failed);
    }

    pub fn holders(&mut self, holders: &Arc<Holders>, time: Time) {
        let device = self.device(holders.device);
        let sites = device.main_book().sites_of(&holders.stacks);
        device.answers.add(time, sites, Arc::clone(holders));
    }

    pub fn cache_emptied(&mut self, id: DeviceId, time: Time) {
        self.device(id).mark(MarkKind::CacheEmptied, time);
    }

    pub fn lost(&mut self, time: Time) {
        for device in &mut self.devices {
            device.mark(MarkKind::Lost, time);
        }
        self.look_for_unseen_frees();
    }

    /// From here on, blocks in whose place others are handed out count as freed.
    pub fn look_for_unseen_frees(&mut self) {
        let step = self.steps.now();
        for device in &mut self.devices {
            device.lost(step);
        }
    }

    pub fn device_memory(&mut self, id: DeviceId, memory: DeviceMemory) {
        self.device(id).told_memory(memory);
    }

    /// Work begins to be captured into a graph, or no longer is.
    pub fn graph_capture(&mut self, began: bool) {
        self.captures = match began {
            true => self.captures.saturating_add(1),
            // One that began before the attach ends too.
            false => self.captures.saturating_sub(1),
        };
    }
}

/// Where physical memory can be reached.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Mappings {
    /// First byte -> size and the address that its allocation told.
    places: BTreeMap<u64, (Bytes, u64)>,
}

/// Physical memory has no address: what is told as one lies where no device address does.
const PHYSICAL: u64 = 1 << 63;

impl Mappings {
    pub fn map(&mut self, allocation: Address, address: Address, size: Bytes) {
        self.places.insert(address.0, (size, allocation.0));
    }

    /// Everything that begins in the range.
    pub fn unmap(&mut self, address: Address, size: Bytes) {
        let end = address.0.saturating_add(size);
        let gone: Vec<u64> = self
            .places
            .range(address.0..end)
            .map(|(at, _)| *at)
            .collect();
        for at in gone {
            self.places.remove(&at);
        }
    }

    /// Whether an allocation's address only stands for one.
    pub fn is_physical(&self, address: Address) -> bool {
        address.0 & PHYSICAL != 0
    }

    /// Place, size and allocation of all.
    pub fn iter(&self) -> impl Iterator<Item = (Address, Bytes, Address)> {
        self.places
            .iter()
            .map(|(at, (size, allocation))| (Address(*at), *size, Address(*allocation)))
    }
}

/// What a mark did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marked {
    pub step_ended: bool,
    pub renumbered: bool,
}

//! What the books hold, block by block and site by site, for whoever writes it out.

use std::sync::Arc;

use vramscope_events::{Bytes, DeviceId, Layer, Pid, StackId, Time};

use crate::{
    book::Book,
    collector::{Collector, Survivor},
    ledger::Block,
    stacks::NamedStack,
    view::SiteId,
};

/// The books of host memory stand under this device: it belongs to none.
pub const HOST_DEVICE: DeviceId = DeviceId(0);

/// One book: a layer of a device of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BookKey {
    /// Whose.
    pub process: Pid,
    /// On which device; [`HOST_DEVICE`] for host memory.
    pub device: DeviceId,
    /// Which layer. The layers overlap: never add them together.
    pub layer: Layer,
}

/// What one stack allocated in one book since the attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteTotals {
    /// The site.
    pub site: SiteId,
    /// Its stack.
    pub stack: StackId,
    /// Bytes not freed.
    pub live_bytes: Bytes,
    /// Blocks not freed.
    pub live_blocks: u64,
    /// Bytes ever allocated.
    pub total_bytes: Bytes,
    /// Blocks ever allocated.
    pub total_blocks: u64,
}

impl Collector {
    /// All books that anything was entered in, by process in order of appearance, device, layer.
    pub fn books(&self) -> Vec<BookKey> {
        let mut keys = Vec::new();
        for process in &self.processes {
            for device in &process.devices {
                for (layer, book) in [
                    (Layer::Tensor, &device.tensor),
                    (Layer::Driver, &device.driver),
                ] {
                    if !book.sites().is_empty() {
                        keys.push(BookKey {
                            process: process.info.pid,
                            device: device.id,
                            layer,
                        });
                    }
                }
            }
            if !process.host.sites().is_empty() {
                keys.push(BookKey {
                    process: process.info.pid,
                    device: HOST_DEVICE,
                    layer: Layer::Host,
                });
            }
        }
        keys
    }

    /// The layer that tells what leaks on a device: the framework's where it reports, else the
    /// driver's.
    pub fn main_layer(&self, process: Pid, device: DeviceId) -> Layer {
        let known = self.by_pid.get(&process).map(|i| &self.processes[*i]);
        let device = known.and_then(|known| known.devices.iter().find(|one| one.id == device));
        match device {
            Some(device) if device.tensor_layer => Layer::Tensor,
            _ => Layer::Driver,
        }
    }

    /// The blocks of a book that are not freed, in no order.
    pub fn live_blocks(&self, key: BookKey) -> impl Iterator<Item = Survivor> {
        self.book(key).into_iter().flat_map(|book| {
            book.ledger
                .iter()
                .map(|(at, block)| survivor(book, at, block))
        })
    }

    /// The blocks of a device that were allocated since the attach and not freed, in no order: of
    /// the framework, or of the driver where the framework tells nothing.
    pub fn survivors(&self, process: Pid, device: DeviceId) -> impl Iterator<Item = Survivor> {
        self.live_blocks(BookKey {
            process,
            device,
            layer: self.main_layer(process, device),
        })
    }

    /// The sites of a book, by their first allocation.
    pub fn site_totals(&self, key: BookKey) -> impl Iterator<Item = SiteTotals> {
        let sites = self.book(key).map(Book::sites).unwrap_or_default();
        sites.iter().map(|site| SiteTotals {
            site: site.id,
            stack: site.stack,
            live_bytes: site.live_bytes,
            live_blocks: site.live_blocks,
            total_bytes: site.total_bytes,
            total_blocks: site.total_blocks,
        })
    }

    /// The running step of a process.
    pub fn step(&self, process: Pid) -> u64 {
        let known = self.by_pid.get(&process).map(|i| &self.processes[*i]);
        known.map_or(0, |known| known.steps.view(Time(0)).count)
    }

    /// A stack with names, innermost frame first, and the index of its innermost user frame. What
    /// is not defined is shown as `?`.
    pub fn named_stack(&mut self, process: Pid, stack: StackId) -> (NamedStack, Option<usize>) {
        let info = match self.by_pid.get(&process) {
            Some(index) => Arc::clone(&self.processes[*index].info),
            None => Arc::default(),
        };
        self.stacks
            .named(stack, &info, &self.config.user_code, &mut self.sources)
    }

    fn book(&self, key: BookKey) -> Option<&Book> {
        let process = &self.processes[*self.by_pid.get(&key.process)?];
        if key.layer == Layer::Host {
            return Some(&process.host);
        }
        let device = (process.devices.iter()).find(|device| device.id == key.device)?;
        Some(match key.layer {
            Layer::Tensor => &device.tensor,
            Layer::Driver | Layer::Host => &device.driver,
        })
    }
}

fn survivor(book: &Book, address: vramscope_events::Address, block: &Block) -> Survivor {
    let site = book.site_of(block);
    Survivor {
        address,
        size: block.size(),
        site: site.id,
        stack: site.stack,
        born_step: block.step.into(),
        born: block.time,
    }
}

//! Memory nodes of graphs. They have addresses, from the node on as on a GPU; that a launch takes
//! memory of the device for them is not simulated.

use simcuda_common::code::{INVALID_VALUE, OUT_OF_MEMORY};
use simcuda_common::ffi::Out;
use simcuda_common::log;
use simcuda_common::types::MemAllocNodeParams;

use crate::arena::DEVICE_PAGE;
use crate::driver::driver;
use crate::graph::NodeKind;
use crate::types::{DevicePtr, Handle};

/// The addresses of a node that allocates.
#[derive(Debug)]
pub struct GraphMemory {
    address: usize,
    size: usize,
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        if let Ok(driver) = driver() {
            let mut arena = driver.arena.lock().expect("no panics");
            arena.give_back(self.address, self.size);
        }
    }
}

crate::driver_api! {
    fn cuGraphAddMemAllocNode(
        node: Out<Handle>, graph: Handle, _dependencies: *const Handle, _count: usize,
        params: Out<MemAllocNodeParams>,
    ) {
        let driver = driver()?;
        let graph = driver.graphs.get(graph)?;
        let mut asked = params.get()?;
        driver.device(asked.pool.location.id)?;
        let size = asked.size.checked_next_multiple_of(DEVICE_PAGE).filter(|size| *size != 0);
        let size = size.ok_or(INVALID_VALUE)?;
        let taken = driver.arena.lock().expect("no panics").take(size, DEVICE_PAGE);
        asked.address = taken.ok_or(OUT_OF_MEMORY)?;
        graph.keep(GraphMemory { address: asked.address, size });
        log!("a graph will take {} B at {:#x}", asked.size, asked.address);
        params.set(asked)?;
        node.set(graph.add(NodeKind::MemAlloc))
    }

    fn cuGraphAddMemFreeNode(
        node: Out<Handle>, graph: Handle, _dependencies: *const Handle, _count: usize,
        address: DevicePtr,
    ) {
        let driver = driver()?;
        if !driver.is_device_address(address) {
            return Err(INVALID_VALUE);
        }
        node.set(driver.graphs.get(graph)?.add(NodeKind::MemFree))
    }
}

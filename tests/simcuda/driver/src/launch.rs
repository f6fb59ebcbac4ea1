//! Kernel launches. A kernel does nothing: memory that it would write keeps its content.

use std::ffi::{c_int, c_uint, c_void};

use simcuda_common::code::{INVALID_VALUE, Outcome};
use simcuda_common::ffi::{In, Out};

use crate::context;
use crate::driver::{Counters, driver};
use crate::graph::NodeKind;
use crate::stream;
use crate::types::{Handle, LaunchConfig};

/// Threads that fit on a multiprocessor.
const MULTIPROCESSOR_THREADS: c_int = 2048;
const MULTIPROCESSOR_BLOCKS: c_int = 32;

fn launch(stream: Handle) -> Outcome {
    let driver = driver()?;
    context::current()?;
    Counters::add(&driver.counters.launches);
    driver.known.work_was_done();
    stream::record(driver, stream, || NodeKind::Kernel);
    Ok(())
}

fn occupancy(blocks: Out<c_int>, block_size: c_int) -> Outcome {
    if block_size <= 0 {
        return Err(INVALID_VALUE);
    }
    blocks.set((MULTIPROCESSOR_THREADS / block_size).clamp(1, MULTIPROCESSOR_BLOCKS))
}

crate::driver_api! {
    fn cuLaunchKernel, cuLaunchKernel_ptsz(
        _function: Handle, _grid_x: c_uint, _grid_y: c_uint, _grid_z: c_uint, _block_x: c_uint,
        _block_y: c_uint, _block_z: c_uint, _shared: c_uint, stream: Handle,
        _params: *mut *mut c_void, _extra: *mut *mut c_void,
    ) {
        launch(stream)
    }

    fn cuLaunchKernelEx, cuLaunchKernelEx_ptsz(
        config: In<LaunchConfig>, _function: Handle, _params: *mut *mut c_void,
        _extra: *mut *mut c_void,
    ) {
        launch(config.get()?.stream)
    }

    fn cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz(
        _function: Handle, _grid_x: c_uint, _grid_y: c_uint, _grid_z: c_uint, _block_x: c_uint,
        _block_y: c_uint, _block_z: c_uint, _shared: c_uint, stream: Handle,
        _params: *mut *mut c_void,
    ) {
        launch(stream)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>, _function: Handle, block_size: c_int, _shared: usize,
    ) {
        occupancy(blocks, block_size)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>, _function: Handle, block_size: c_int, _shared: usize, _flags: c_uint,
    ) {
        occupancy(blocks, block_size)
    }

    fn cuOccupancyMaxActiveClusters(
        clusters: Out<c_int>, _function: Handle, _config: *const LaunchConfig,
    ) {
        clusters.set(1)
    }

    fn cuOccupancyMaxPotentialClusterSize(
        size: Out<c_int>, _function: Handle, _config: *const LaunchConfig,
    ) {
        size.set(8)
    }

    fn cuTensorMapEncodeTiled(
        map: Out<[u64; 16]>, _kind: c_int, _rank: c_uint, _address: *mut c_void, _dims: *const u64,
        _strides: *const u64, _box: *const c_uint, _element_strides: *const c_uint,
        _interleave: c_int, _swizzle: c_int, _promotion: c_int, _fill: c_int,
    ) {
        map.clear()
    }
}

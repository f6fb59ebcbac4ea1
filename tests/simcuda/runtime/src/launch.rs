//! Kernel launches. To the driver, a kernel is the address of its host function.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};

use simcuda_common::code::{INVALID_VALUE, Outcome, SUCCESS};
use simcuda_common::ffi::{In, Out};
use simcuda_common::types::{Handle, LaunchConfig};

use crate::state::{bound, current_device};

/// `dim3`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Dim3 {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

/// `struct cudaFuncAttributes`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FuncAttributes {
    shared_bytes: usize,
    const_bytes: usize,
    local_bytes: usize,
    max_threads_per_block: c_int,
    num_regs: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode_ca: c_int,
    max_dynamic_shared_bytes: c_int,
    others: [c_int; 24],
}

const _: () = {
    assert!(size_of::<Dim3>() == 12);
    assert!(size_of::<FuncAttributes>() == 144);
    assert!(std::mem::offset_of!(FuncAttributes, max_dynamic_shared_bytes) == 44);
};

#[derive(Clone, Copy, Default)]
struct CallConfiguration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Handle,
}

/// `kernel<<<...>>>` pushes its configuration and the compiler's stub of the kernel pops
/// it; a launch within the evaluation of another's arguments makes a second one.
const PENDING: usize = 16;

struct Pending {
    configurations: [Cell<CallConfiguration>; PENDING],
    depth: Cell<usize>,
}

const NO_DIM: Dim3 = Dim3 { x: 0, y: 0, z: 0 };
const NO_CONFIGURATION: CallConfiguration = CallConfiguration {
    grid: NO_DIM,
    block: NO_DIM,
    shared: 0,
    stream: 0,
};

thread_local! {
    static CALLS: Pending = const {
        Pending { configurations: [const { Cell::new(NO_CONFIGURATION) }; PENDING], depth: Cell::new(0) }
    };
}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Handle,
) -> c_uint {
    CALLS.with(|calls| {
        let depth = calls.depth.get();
        let Some(place) = calls.configurations.get(depth) else {
            return 1;
        };
        place.set(CallConfiguration {
            grid,
            block,
            shared,
            stream,
        });
        calls.depth.set(depth + 1);
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaPopCallConfiguration(
    grid: Out<Dim3>,
    block: Out<Dim3>,
    shared: Out<usize>,
    stream: Out<Handle>,
) -> c_int {
    let popped = CALLS.with(|calls| {
        let depth = calls.depth.get().checked_sub(1)?;
        calls.depth.set(depth);
        Some(calls.configurations[depth].get())
    });
    let store = |call: CallConfiguration| -> Outcome {
        grid.set(call.grid)?;
        block.set(call.block)?;
        shared.set(call.shared)?;
        stream.set(call.stream)
    };
    match popped.ok_or(INVALID_VALUE).and_then(store) {
        Ok(()) => SUCCESS,
        Err(code) => code,
    }
}

fn launch(
    function: Handle,
    grid: Dim3,
    block: Dim3,
    args: *mut *mut c_void,
    shared: usize,
    stream: Handle,
) -> Outcome {
    if function == 0 {
        return Err(INVALID_VALUE);
    }
    bound()?.cuLaunchKernel(
        function,
        grid.x,
        grid.y,
        grid.z,
        block.x,
        block.y,
        block.z,
        shared as c_uint,
        stream,
        args,
        std::ptr::null_mut(),
    )
}

crate::runtime_api! {
    fn cudaLaunchKernel, cudaLaunchKernel_ptsz(
        function: Handle, grid: Dim3, block: Dim3, args: *mut *mut c_void, shared: usize,
        stream: Handle,
    ) {
        launch(function, grid, block, args, shared, stream)
    }

    fn __cudaLaunchKernel, __cudaLaunchKernel_ptsz(
        kernel: Handle, grid: Dim3, block: Dim3, args: *mut *mut c_void, shared: usize,
        stream: Handle,
    ) {
        launch(kernel, grid, block, args, shared, stream)
    }

    fn cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz(
        function: Handle, grid: Dim3, block: Dim3, args: *mut *mut c_void, shared: usize,
        stream: Handle,
    ) {
        bound()?.cuLaunchCooperativeKernel(
            function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared as c_uint, stream, args,
        )
    }

    // `cudaLaunchConfig_t` has the layout of `CUlaunchConfig`.
    fn cudaLaunchKernelExC, cudaLaunchKernelExC_ptsz(
        config: In<LaunchConfig>, function: Handle, args: *mut *mut c_void,
    ) {
        bound()?.cuLaunchKernelEx(config, function, args, std::ptr::null_mut())
    }

    fn __cudaGetKernel, cudaGetKernel(kernel: Out<Handle>, function: Handle) {
        kernel.set(function)
    }

    fn cudaGetFuncBySymbol(function: Out<Handle>, symbol: Handle) {
        function.set(symbol)
    }

    fn cudaFuncGetAttributes(attributes: Out<FuncAttributes>, _function: Handle) {
        const CAPABILITY_MAJOR: c_int = 75;
        const CAPABILITY_MINOR: c_int = 76;
        let driver = bound()?;
        let device = current_device()?;
        let (mut major, mut minor) = (0, 0);
        driver.cuDeviceGetAttribute(Out::new(&raw mut major), CAPABILITY_MAJOR, device)?;
        driver.cuDeviceGetAttribute(Out::new(&raw mut minor), CAPABILITY_MINOR, device)?;
        attributes.set(FuncAttributes {
            shared_bytes: 0,
            const_bytes: 0,
            local_bytes: 0,
            max_threads_per_block: 1024,
            num_regs: 32,
            ptx_version: major * 10 + minor,
            binary_version: major * 10 + minor,
            cache_mode_ca: 0,
            max_dynamic_shared_bytes: 48 << 10,
            others: [0; 24],
        })
    }

    fn cudaFuncSetAttribute(_function: Handle, _which: c_int, _value: c_int) {
        bound().map(|_| ())
    }

    fn cudaFuncSetCacheConfig(_function: Handle, _config: c_int) {
        bound().map(|_| ())
    }

    fn cudaKernelSetAttributeForDevice(
        _kernel: Handle, _which: c_int, _value: c_int, _device: c_int,
    ) {
        bound().map(|_| ())
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>, function: Handle, block_size: c_int, shared: usize,
    ) {
        bound()?.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared, 0)
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>, function: Handle, block_size: c_int, shared: usize, flags: c_uint,
    ) {
        bound()?.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared, flags)
    }

    fn cudaOccupancyMaxActiveClusters(
        clusters: Out<c_int>, _function: Handle, _config: *const LaunchConfig,
    ) {
        clusters.set(1)
    }

    fn cudaOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<usize>, _function: Handle, _blocks: c_int, _block_size: c_int,
    ) {
        bytes.set(48 << 10)
    }
}

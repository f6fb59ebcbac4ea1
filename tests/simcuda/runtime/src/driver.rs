//! The driver, loaded when the runtime is first used.

use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use simcuda_common::code::{INSUFFICIENT_DRIVER, NO_DEVICE, NOT_INITIALIZED};
use simcuda_common::ffi::{In, Out};
use simcuda_common::hook::Port;
use simcuda_common::types::{
    CaptureId, Device, DevicePtr, Handle, IpcHandle, LaunchConfig, MemAccessDesc,
    MemAllocNodeParams, MemPoolProps, Memcpy2D, Uuid,
};

/// The CUDA version whose signatures are declared below, whatever version of the runtime
/// is built: asking for a later one could give a function with other parameters.
const SIGNATURES: c_int = 12080;

pub type StreamCallback = Option<unsafe extern "C" fn(Handle, c_int, *mut c_void)>;
pub type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;

/// Declares the driver functions that the runtime calls, each as a method.
macro_rules! driver_functions {
    ($( fn $name:ident ( $( $argument:ident : $type:ty ),* $(,)? ); )*) => {
        /// Addresses of the driver's functions.
        #[derive(Debug)]
        pub struct Driver {
            $( $name: unsafe extern "C" fn( $( $type ),* ) -> c_int, )*
        }

        impl Driver {
            fn load(get: GetProcAddress) -> Result<Self, &'static str> {
                Ok(Self {
                    $( $name: {
                        let address = look_up(get, stringify!($name)).ok_or(stringify!($name))?;
                        // SAFETY: the driver gave this address for this name, so it is a
                        // function with this signature.
                        unsafe {
                            std::mem::transmute::<
                                *const c_void,
                                unsafe extern "C" fn( $( $type ),* ) -> c_int,
                            >(address)
                        }
                    }, )*
                })
            }

            $(
                pub fn $name(&self $( , $argument: $type )*) -> Result<(), c_int> {
                    // SAFETY: the arguments are the C caller's, or places of this
                    // library's, and mean to the driver what they mean to the runtime.
                    match unsafe { (self.$name)( $( $argument ),* ) } {
                        0 => Ok(()),
                        code => Err(code),
                    }
                }
            )*
        }
    };
}

driver_functions! {
    fn cuInit(flags: c_uint);
    fn cuDriverGetVersion(version: Out<c_int>);
    fn cuDeviceGetCount(count: Out<c_int>);
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: Device);
    fn cuDeviceGetUuid(uuid: Out<Uuid>, device: Device);
    fn cuDeviceTotalMem(bytes: Out<usize>, device: Device);
    fn cuDeviceGetAttribute(value: Out<c_int>, which: c_int, device: Device);
    fn cuDeviceGetPCIBusId(text: *mut c_char, length: c_int, device: Device);
    fn cuDeviceGetByPCIBusId(device: Out<Device>, text: *const c_char);
    fn cuDeviceCanAccessPeer(can: Out<c_int>, device: Device, peer: Device);
    fn cuDeviceGetP2PAttribute(value: Out<c_int>, which: c_int, device: Device, peer: Device);
    fn cuDeviceGetDefaultMemPool(pool: Out<Handle>, device: Device);
    fn cuDeviceGetMemPool(pool: Out<Handle>, device: Device);
    fn cuDeviceSetMemPool(device: Device, pool: Handle);
    fn cuDeviceGetGraphMemAttribute(device: Device, which: c_int, value: *mut c_void);
    fn cuDeviceSetGraphMemAttribute(device: Device, which: c_int, value: *mut c_void);
    fn cuDeviceGraphMemTrim(device: Device);
    fn cuDevicePrimaryCtxRetain(context: Out<Handle>, device: Device);
    fn cuCtxSetCurrent(context: Handle);
    fn cuCtxGetDevice(device: Out<Device>);
    fn cuCtxSynchronize();
    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>);
    fn cuCtxGetLimit(value: Out<usize>, limit: c_int);
    fn cuCtxSetLimit(limit: c_int, value: usize);
    fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint);
    fn cuCtxDisablePeerAccess(peer: Handle);
    fn cuMemAlloc(address: Out<DevicePtr>, size: usize);
    fn cuMemAllocPitch(
        address: Out<DevicePtr>, pitch: Out<usize>, width: usize, height: usize, element: c_uint,
    );
    fn cuMemAllocManaged(address: Out<DevicePtr>, size: usize, flags: c_uint);
    fn cuMemFree(address: DevicePtr);
    fn cuMemGetInfo(free: Out<usize>, total: Out<usize>);
    fn cuIpcGetMemHandle(handle: Out<IpcHandle>, address: DevicePtr);
    fn cuIpcOpenMemHandle(address: Out<DevicePtr>, handle: IpcHandle, flags: c_uint);
    fn cuIpcCloseMemHandle(address: DevicePtr);
    fn cuIpcGetEventHandle(handle: Out<IpcHandle>, event: Handle);
    fn cuIpcOpenEventHandle(event: Out<Handle>, handle: IpcHandle);
    fn cuMemHostAlloc(address: Out<*mut c_void>, size: usize, flags: c_uint);
    fn cuMemAllocHost(address: Out<*mut c_void>, size: usize);
    fn cuMemFreeHost(address: *mut c_void);
    fn cuMemHostRegister(address: *mut c_void, size: usize, flags: c_uint);
    fn cuMemHostUnregister(address: *mut c_void);
    fn cuMemHostGetDevicePointer(
        device_address: Out<DevicePtr>, address: *mut c_void, flags: c_uint,
    );
    fn cuMemHostGetFlags(flags: Out<c_uint>, address: *mut c_void);
    fn cuMemAllocAsync(address: Out<DevicePtr>, size: usize, stream: Handle);
    fn cuMemAllocFromPoolAsync(address: Out<DevicePtr>, size: usize, pool: Handle, stream: Handle);
    fn cuMemFreeAsync(address: DevicePtr, stream: Handle);
    fn cuMemPoolCreate(pool: Out<Handle>, properties: In<MemPoolProps>);
    fn cuMemPoolDestroy(pool: Handle);
    fn cuMemPoolSetAccess(pool: Handle, descriptions: In<MemAccessDesc>, count: usize);
    fn cuMemPoolGetAttribute(pool: Handle, which: c_int, value: *mut c_void);
    fn cuMemPoolSetAttribute(pool: Handle, which: c_int, value: *mut c_void);
    fn cuMemPoolTrimTo(pool: Handle, keep: usize);
    fn cuMemcpy(destination: DevicePtr, source: DevicePtr, size: usize);
    fn cuMemcpyAsync(destination: DevicePtr, source: DevicePtr, size: usize, stream: Handle);
    fn cuMemcpyHtoD(destination: DevicePtr, source: *const c_void, size: usize);
    fn cuMemcpyDtoH(destination: *mut c_void, source: DevicePtr, size: usize);
    fn cuMemcpyDtoD(destination: DevicePtr, source: DevicePtr, size: usize);
    fn cuMemcpyHtoDAsync(
        destination: DevicePtr, source: *const c_void, size: usize, stream: Handle,
    );
    fn cuMemcpyDtoHAsync(destination: *mut c_void, source: DevicePtr, size: usize, stream: Handle);
    fn cuMemcpyDtoDAsync(destination: DevicePtr, source: DevicePtr, size: usize, stream: Handle);
    fn cuMemcpyPeer(
        destination: DevicePtr, to: Handle, source: DevicePtr, from: Handle, size: usize,
    );
    fn cuMemcpyPeerAsync(
        destination: DevicePtr, to: Handle, source: DevicePtr, from: Handle, size: usize,
        stream: Handle,
    );
    fn cuMemcpy2D(description: In<Memcpy2D>);
    fn cuMemcpy2DAsync(description: In<Memcpy2D>, stream: Handle);
    fn cuMemsetD8(address: DevicePtr, value: u8, count: usize);
    fn cuMemsetD8Async(address: DevicePtr, value: u8, count: usize, stream: Handle);
    fn cuMemsetD2D8(address: DevicePtr, pitch: usize, value: u8, width: usize, height: usize);
    fn cuMemsetD2D8Async(
        address: DevicePtr, pitch: usize, value: u8, width: usize, height: usize, stream: Handle,
    );
    fn cuPointerGetAttributes(
        count: c_uint, attributes: In<c_int>, values: In<*mut c_void>, address: DevicePtr,
    );
    fn cuStreamCreate(stream: Out<Handle>, flags: c_uint);
    fn cuStreamCreateWithPriority(stream: Out<Handle>, flags: c_uint, priority: c_int);
    fn cuStreamDestroy(stream: Handle);
    fn cuStreamSynchronize(stream: Handle);
    fn cuStreamQuery(stream: Handle);
    fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
    fn cuStreamGetPriority(stream: Handle, priority: Out<c_int>);
    fn cuStreamGetFlags(stream: Handle, flags: Out<c_uint>);
    fn cuStreamGetId(stream: Handle, id: Out<c_ulonglong>);
    fn cuStreamAddCallback(
        stream: Handle, callback: StreamCallback, user: *mut c_void, flags: c_uint,
    );
    fn cuLaunchHostFunc(stream: Handle, function: HostFunction, user: *mut c_void);
    fn cuStreamBeginCapture(stream: Handle, mode: c_int);
    fn cuStreamBeginCaptureToGraph(
        stream: Handle, graph: Handle, dependencies: *const Handle, edges: *const c_void,
        count: usize, mode: c_int,
    );
    fn cuStreamEndCapture(stream: Handle, graph: Out<Handle>);
    fn cuStreamIsCapturing(stream: Handle, status: Out<c_int>);
    fn cuStreamGetCaptureInfo(
        stream: Handle, status: Out<c_int>, id: Out<CaptureId>, graph: Out<Handle>,
        dependencies: Out<*const Handle>, edges: Out<*const c_void>, count: Out<usize>,
    );
    fn cuStreamUpdateCaptureDependencies(
        stream: Handle, dependencies: *const Handle, edges: *const c_void, count: usize,
        flags: c_uint,
    );
    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_int>);
    fn cuGraphCreate(graph: Out<Handle>, flags: c_uint);
    fn cuGraphDestroy(graph: Handle);
    fn cuGraphAddMemAllocNode(
        node: Out<Handle>, graph: Handle, dependencies: *const Handle, count: usize,
        params: Out<MemAllocNodeParams>,
    );
    fn cuGraphAddMemFreeNode(
        node: Out<Handle>, graph: Handle, dependencies: *const Handle, count: usize,
        address: DevicePtr,
    );
    fn cuGraphInstantiateWithFlags(exec: Out<Handle>, graph: Handle, flags: c_ulonglong);
    fn cuGraphExecDestroy(exec: Handle);
    fn cuGraphUpload(exec: Handle, stream: Handle);
    fn cuGraphLaunch(exec: Handle, stream: Handle);
    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>);
    fn cuGraphNodeGetType(node: Handle, kind: Out<c_int>);
    fn cuGraphNodeGetDependencies(
        node: Handle, dependencies: Out<Handle>, edges: *mut c_void, count: Out<usize>,
    );
    fn cuGraphDebugDotPrint(graph: Handle, path: *const c_char, flags: c_uint);
    fn cuGraphConditionalHandleCreate(
        handle: Out<c_ulonglong>, graph: Handle, context: Handle, default: c_uint, flags: c_uint,
    );
    fn cuUserObjectCreate(
        object: Out<Handle>, pointer: *mut c_void, destroy: HostFunction, references: c_uint,
        flags: c_uint,
    );
    fn cuUserObjectRetain(object: Handle, count: c_uint);
    fn cuUserObjectRelease(object: Handle, count: c_uint);
    fn cuGraphRetainUserObject(graph: Handle, object: Handle, count: c_uint, flags: c_uint);
    fn cuEventCreate(event: Out<Handle>, flags: c_uint);
    fn cuEventDestroy(event: Handle);
    fn cuEventRecord(event: Handle, stream: Handle);
    fn cuEventRecordWithFlags(event: Handle, stream: Handle, flags: c_uint);
    fn cuEventQuery(event: Handle);
    fn cuEventSynchronize(event: Handle);
    fn cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle);
    fn cuLaunchKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle, params: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    fn cuLaunchCooperativeKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle, params: *mut *mut c_void,
    );
    fn cuLaunchKernelEx(
        config: In<LaunchConfig>, function: Handle, params: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>, function: Handle, block_size: c_int, shared: usize, flags: c_uint,
    );
    fn cuLibraryLoadData(
        library: Out<Handle>, code: *const c_void, jit: *mut c_int, jit_values: *mut *mut c_void,
        jit_count: c_uint, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
    );
    fn cuLibraryLoadFromFile(
        library: Out<Handle>, path: *const c_char, jit: *mut c_int, jit_values: *mut *mut c_void,
        jit_count: c_uint, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
    );
    fn cuLibraryUnload(library: Handle);
    fn cuLibraryGetKernel(kernel: Out<Handle>, library: Handle, name: *const c_char);
    fn cuLibraryGetKernelCount(count: Out<c_uint>, library: Handle);
    fn cuLibraryGetGlobal(
        address: Out<DevicePtr>, size: Out<usize>, library: Handle, name: *const c_char,
    );
    fn cuLibraryGetManaged(
        address: Out<DevicePtr>, size: Out<usize>, library: Handle, name: *const c_char,
    );
    fn cuProfilerStart();
    fn cuProfilerStop();
}

type GetProcAddress =
    unsafe extern "C" fn(*const c_char, Out<*const c_void>, c_int, u64, Out<c_int>) -> c_int;

static GET_PROC_ADDRESS: OnceLock<GetProcAddress> = OnceLock::new();
static PORT: AtomicPtr<Port> = AtomicPtr::new(std::ptr::null_mut());

/// Stands in until the driver is loaded: no hook can be set before that.
static NO_PORT: Port = Port::new(no_slot, no_context);

extern "C" fn no_slot() -> *mut u64 {
    std::ptr::null_mut()
}

extern "C" fn no_context() -> *mut c_void {
    std::ptr::null_mut()
}

/// The driver's hook port.
#[inline(always)]
pub fn port() -> &'static Port {
    let port = PORT.load(Ordering::Acquire);
    // SAFETY: null or the address of a static of the driver, which is never unloaded.
    unsafe { port.as_ref() }.unwrap_or(&NO_PORT)
}

fn look_up(get: GetProcAddress, name: &str) -> Option<*const c_void> {
    let c_name = CString::new(name).ok()?;
    let mut address = std::ptr::null();
    let mut status = 0;
    // SAFETY: the signature is that of cuGetProcAddress_v2; the places live during the call.
    unsafe {
        get(
            c_name.as_ptr(),
            Out::new(&raw mut address),
            SIGNATURES,
            0,
            Out::new(&raw mut status),
        );
    }
    (!address.is_null()).then_some(address)
}

/// Loads `libcuda.so.1` and initialises it.
fn start() -> Result<Driver, c_int> {
    // SAFETY: dlopen and dlsym get C strings.
    let symbol = |name: &std::ffi::CStr| unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            std::ptr::null_mut()
        } else {
            libc::dlsym(library, name.as_ptr())
        }
    };
    let (get, hook_port) = (symbol(c"cuGetProcAddress_v2"), symbol(c"simcuda_hook_port"));
    if get.is_null() || hook_port.is_null() {
        eprintln!(
            "simcuda: the simulated libcuda.so.1 is not the one that is found; start with tests/simcuda/run"
        );
        return Err(INSUFFICIENT_DRIVER);
    }
    // SAFETY: the driver exports these two names as functions of these types.
    let (get, hook_port) = unsafe {
        (
            std::mem::transmute::<*mut c_void, GetProcAddress>(get),
            std::mem::transmute::<*mut c_void, extern "C" fn() -> *const Port>(hook_port),
        )
    };
    PORT.store(hook_port().cast_mut(), Ordering::Release);
    let _ = GET_PROC_ADDRESS.set(get);
    let driver = Driver::load(get).map_err(|missing| {
        eprintln!("simcuda: the simulated driver has no {missing}");
        INSUFFICIENT_DRIVER
    })?;
    driver.cuInit(0).map_err(|code| {
        if code == NO_DEVICE {
            code
        } else {
            NOT_INITIALIZED
        }
    })?;
    Ok(driver)
}

/// The driver, initialised.
pub fn driver() -> Result<&'static Driver, c_int> {
    static DRIVER: OnceLock<Result<Driver, c_int>> = OnceLock::new();
    DRIVER.get_or_init(start).as_ref().map_err(|code| *code)
}

/// What `cudaGetDriverEntryPoint` asks: a driver function by name and version.
pub fn entry_point(
    name: *const c_char,
    address: Out<*const c_void>,
    version: c_int,
    flags: c_ulonglong,
    status: Out<c_int>,
) -> Result<(), c_int> {
    driver()?;
    let get = GET_PROC_ADDRESS.get().ok_or(NOT_INITIALIZED)?;
    // SAFETY: the arguments are the C caller's and mean the same to the driver.
    match unsafe { get(name, address, version, flags, status) } {
        0 => Ok(()),
        code => Err(code),
    }
}

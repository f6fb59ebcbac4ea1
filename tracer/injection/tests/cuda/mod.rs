//! CUDA and CUPTI as a C program calls them. The arguments of all functions that are used here are
//! as wide as a pointer, or travel in the same registers as if they were.

use std::ffi::{CStr, CString, c_int, c_void};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// Whether this process plays CUDA 13.
pub fn is_13() -> bool {
    std::env::var("VRAMSCOPE_TEST_CUDA").as_deref() == Ok("13")
}

pub struct Cuda {
    pub driver: Library,
    pub runtime: Library,
    cupti: Option<Library>,
}

/// A function of up to six words.
type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> c_int;

fn open(name: &str) -> Library {
    // SAFETY: the simulated libraries have no constructors that matter.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.expect("LD_LIBRARY_PATH is set")
}

/// Calls a function of a library; words that it does not take are ignored by it.
fn call(library: &Library, name: &str, words: &[usize]) -> c_int {
    let name = CString::new(name).expect("no zero");
    // SAFETY: the library has a C function of that name, or says that it has not.
    let function = unsafe { library.get::<Function>(name.as_bytes_with_nul()) };
    let function = function.unwrap_or_else(|error| panic!("{name:?}: {error}"));
    let word = |index: usize| words.get(index).copied().unwrap_or(0);
    // SAFETY: the tests pass what the function takes.
    unsafe { function(word(0), word(1), word(2), word(3), word(4), word(5)) }
}

fn with_result(library: &Library, name: &str, words: &[usize]) -> usize {
    let mut result = 0_usize;
    let mut all = vec![(&raw mut result) as usize];
    all.extend(words);
    assert_eq!(call(library, name, &all), 0, "{name}");
    result
}

unsafe extern "C" fn ignore(_user: *mut c_void, _domain: c_int, _id: u32, _data: *const c_void) {}

impl Cuda {
    pub fn load_without_cupti() -> Self {
        let major = if is_13() { 13 } else { 12 };
        let cuda = Self {
            driver: open("libcuda.so.1"),
            runtime: open(&format!("libcudart.so.{major}")),
            cupti: None,
        };
        assert_eq!(call(&cuda.driver, "cuInit", &[0]), 0);
        cuda.use_device(0);
        cuda
    }

    pub fn load() -> Self {
        let major = if is_13() { 13 } else { 12 };
        Self {
            cupti: Some(open(&format!("libcupti.so.{major}"))),
            ..Self::load_without_cupti()
        }
    }

    pub fn use_device(&self, device: usize) {
        assert_eq!(call(&self.runtime, "cudaSetDevice", &[device]), 0);
        assert_eq!(call(&self.runtime, "cudaDeviceSynchronize", &[]), 0);
    }

    /// A function of the runtime that stores its result through its first argument.
    pub fn runtime(&self, name: &str, words: &[usize]) -> usize {
        with_result(&self.runtime, name, words)
    }

    pub fn driver(&self, name: &str, words: &[usize]) -> usize {
        with_result(&self.driver, name, words)
    }

    /// A function without a result, most of them frees.
    pub fn free(&self, name: &str, words: &[usize]) {
        assert_eq!(call(&self.runtime, name, words), 0, "{name}");
    }

    pub fn driver_free(&self, name: &str, words: &[usize]) {
        assert_eq!(call(&self.driver, name, words), 0, "{name}");
    }

    /// The code of an allocation.
    pub fn try_alloc(&self, library: &Library, name: &str, size: usize) -> c_int {
        let mut result = 0_usize;
        call(library, name, &[(&raw mut result) as usize, size])
    }

    /// Address and pitch.
    pub fn pitched(&self, library: &Library, name: &str, words: &[usize]) -> (usize, usize) {
        let mut pitch = 0_usize;
        let mut all = vec![(&raw mut pitch) as usize];
        all.extend(words);
        let block = with_result(library, name, &all);
        (block, pitch)
    }

    /// A pool on a device.
    pub fn pool(&self, library: &Library, name: &str, device: u32) -> usize {
        // CUmemPoolProps: pinned memory, no handles, on a device; the rest is zero.
        let mut properties = [0_u32; 22];
        (properties[0], properties[2], properties[3]) = (1, 1, device);
        with_result(library, name, &[properties.as_ptr() as usize])
    }

    /// Physical memory on a device.
    pub fn physical(&self, size: usize, device: u32) -> usize {
        // CUmemAllocationProp: as above.
        let mut properties = [0_u32; 8];
        (properties[0], properties[2], properties[3]) = (1, 1, device);
        with_result(
            &self.driver,
            "cuMemCreate",
            &[size, properties.as_ptr() as usize, 0],
        )
    }

    /// A node that allocates on a device: its address.
    pub fn alloc_node(
        &self,
        library: &Library,
        name: &str,
        graph: usize,
        device: u32,
        size: usize,
    ) -> usize {
        // CUDA_MEM_ALLOC_NODE_PARAMS: a pool's properties as above, an array of rights, and its
        // length, bytes, and the address that comes back.
        let mut parameters = [0_u64; 15];
        parameters[0] = 1;
        parameters[1] = 1 | u64::from(device) << 32;
        parameters[13] = size as u64;
        let place = parameters.as_mut_ptr() as usize;
        with_result(library, name, &[graph, 0, 0, place]);
        // SAFETY: the array is alive, and the call has written to it behind the compiler's back.
        unsafe { parameters.as_ptr().add(14).read_volatile() as usize }
    }

    /// An object for two devices.
    pub fn multicast(&self, size: usize) -> usize {
        let properties = [2, size, 0, 0];
        with_result(
            &self.driver,
            "cuMulticastCreate",
            &[properties.as_ptr() as usize],
        )
    }

    fn cupti_library(&self) -> &Library {
        self.cupti.as_ref().expect("it was loaded")
    }

    /// A function of CUPTI without arguments.
    pub fn cupti(&self, name: &str) {
        assert_eq!(call(self.cupti_library(), name, &[]), 0, "{name}");
    }

    /// Another tool's subscription, by the first version of the function.
    pub fn try_subscribe(&self) -> Result<usize, c_int> {
        let mut handle = 0_usize;
        let words = [(&raw mut handle) as usize, ignore as *const () as usize, 0];
        match call(self.cupti_library(), "cuptiSubscribe", &words) {
            0 => Ok(handle),
            code => Err(code),
        }
    }

    /// By the second version where there is one, alone.
    pub fn subscribe_as(&self, name: &str) -> usize {
        if is_13() {
            self.subscribe_v2(name, false).expect("it is free")
        } else {
            self.try_subscribe().expect("it is free")
        }
    }

    /// By the second version, beside others.
    pub fn try_subscribe_shared(&self) -> Result<usize, c_int> {
        if is_13() {
            self.subscribe_v2("a guest", true)
        } else {
            self.try_subscribe()
        }
    }

    fn subscribe_v2(&self, name: &str, shared: bool) -> Result<usize, c_int> {
        let name = CString::new(name).expect("no zero");
        let name: &CStr = &name;
        // CUpti_SubscriberParams
        let parameters = [40, name.as_ptr() as usize, 0, 0, usize::from(shared)];
        let mut handle = 0_usize;
        let words = [
            (&raw mut handle) as usize,
            ignore as *const () as usize,
            0,
            parameters.as_ptr() as usize,
        ];
        match call(self.cupti_library(), "cuptiSubscribe_v2", &words) {
            0 => Ok(handle),
            code => Err(code),
        }
    }

    pub fn unsubscribe(&self, handle: usize) {
        assert_eq!(call(self.cupti_library(), "cuptiUnsubscribe", &[handle]), 0);
    }
}

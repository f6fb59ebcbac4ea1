//! `struct cudaDeviceProp`, whose layout CUDA 13 changed.

use std::ffi::{c_char, c_int};

use simcuda_common::code::{INVALID_VALUE, Outcome};
use simcuda_common::ffi::Out;
use simcuda_common::types::Uuid;

use crate::driver::driver;

/// `struct cudaDeviceProp` as bytes.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub struct DeviceProp {
    bytes: [u8; SIZE],
}

const SIZE: usize = if cfg!(feature = "cuda13") { 1008 } else { 1032 };

/// Length of the name at the start of the struct.
const NAME: usize = 256;
/// Offsets of fields that are not filled from a device attribute.
const UUID: usize = 256;
const TOTAL_GLOBAL_MEM: usize = 288;

/// A field: offset in CUDA 12, offset in CUDA 13 (`None` if it has gone), width in
/// bytes, and the `cudaDeviceAttr` that has its value.
type Field = (usize, Option<usize>, usize, c_int);

const FIELDS: &[Field] = &[
    (296, Some(296), 8, 8),   // sharedMemPerBlock
    (304, Some(304), 4, 12),  // regsPerBlock
    (308, Some(308), 4, 10),  // warpSize
    (312, Some(312), 8, 11),  // memPitch
    (320, Some(320), 4, 1),   // maxThreadsPerBlock
    (324, Some(324), 4, 2),   // maxThreadsDim[0]
    (328, Some(328), 4, 3),   // maxThreadsDim[1]
    (332, Some(332), 4, 4),   // maxThreadsDim[2]
    (336, Some(336), 4, 5),   // maxGridSize[0]
    (340, Some(340), 4, 6),   // maxGridSize[1]
    (344, Some(344), 4, 7),   // maxGridSize[2]
    (348, None, 4, 13),       // clockRate
    (352, Some(352), 8, 9),   // totalConstMem
    (360, Some(360), 4, 75),  // major
    (364, Some(364), 4, 76),  // minor
    (368, Some(368), 8, 14),  // textureAlignment
    (376, Some(376), 8, 51),  // texturePitchAlignment
    (384, None, 4, 15),       // deviceOverlap
    (388, Some(384), 4, 16),  // multiProcessorCount
    (400, Some(392), 4, 19),  // canMapHostMemory
    (568, Some(552), 8, 30),  // surfaceAlignment
    (576, Some(560), 4, 31),  // concurrentKernels
    (584, Some(568), 4, 33),  // pciBusID
    (588, Some(572), 4, 34),  // pciDeviceID
    (592, Some(576), 4, 50),  // pciDomainID
    (600, Some(584), 4, 40),  // asyncEngineCount
    (604, Some(588), 4, 41),  // unifiedAddressing
    (608, None, 4, 36),       // memoryClockRate
    (612, Some(592), 4, 37),  // memoryBusWidth
    (616, Some(596), 4, 38),  // l2CacheSize
    (624, Some(604), 4, 39),  // maxThreadsPerMultiProcessor
    (628, Some(608), 4, 78),  // streamPrioritiesSupported
    (632, Some(612), 4, 79),  // globalL1CacheSupported
    (636, Some(616), 4, 80),  // localL1CacheSupported
    (640, Some(624), 8, 81),  // sharedMemPerMultiprocessor
    (648, Some(632), 4, 82),  // regsPerMultiprocessor
    (652, Some(636), 4, 83),  // managedMemory
    (676, Some(656), 4, 89),  // concurrentManagedAccess
    (680, Some(660), 4, 90),  // computePreemptionSupported
    (684, Some(664), 4, 91),  // canUseHostPointerForRegisteredMem
    (688, Some(668), 4, 95),  // cooperativeLaunch
    (696, Some(672), 8, 97),  // sharedMemPerBlockOptin
    (712, Some(688), 4, 106), // maxBlocksPerMultiProcessor
    (720, Some(696), 8, 111), // reservedSharedMemPerBlock
    (728, Some(704), 4, 99),  // hostRegisterSupported
    (744, Some(720), 4, 115), // memoryPoolsSupported
];

fn properties(device: c_int) -> Result<DeviceProp, c_int> {
    let driver = driver()?;
    let mut result = DeviceProp { bytes: [0; SIZE] };
    let bytes = &mut result.bytes;
    let mut put =
        |offset: usize, value: &[u8]| bytes[offset..offset + value.len()].copy_from_slice(value);

    let mut name: [c_char; NAME] = [0; NAME];
    driver.cuDeviceGetName(name.as_mut_ptr(), NAME as c_int, device)?;
    put(0, &name.map(|character| character as u8));
    let mut uuid = Uuid { bytes: [0; 16] };
    driver.cuDeviceGetUuid(Out::new(&raw mut uuid), device)?;
    put(UUID, &uuid.bytes);
    let mut total = 0_usize;
    driver.cuDeviceTotalMem(Out::new(&raw mut total), device)?;
    put(TOTAL_GLOBAL_MEM, &total.to_ne_bytes());

    for &(cuda12, cuda13, width, attribute) in FIELDS {
        let place = if cfg!(feature = "cuda13") {
            cuda13
        } else {
            Some(cuda12)
        };
        let Some(offset) = place else { continue };
        let mut value = 0;
        driver.cuDeviceGetAttribute(Out::new(&raw mut value), attribute, device)?;
        put(offset, &i64::from(value).to_ne_bytes()[..width]);
    }
    Ok(result)
}

fn store(result: Out<DeviceProp>, device: c_int) -> Outcome {
    if result.is_null() {
        return Err(INVALID_VALUE);
    }
    result.set(properties(device)?)
}

#[cfg(feature = "cuda13")]
crate::runtime_api! {
    fn cudaGetDeviceProperties(result: Out<DeviceProp>, device: c_int) {
        store(result, device)
    }
}

// In CUDA 12 the plain name has the smaller struct of CUDA 11, which no wheel asks for.
#[cfg(not(feature = "cuda13"))]
crate::runtime_api! {
    fn cudaGetDeviceProperties_v2(result: Out<DeviceProp>, device: c_int) {
        store(result, device)
    }
}

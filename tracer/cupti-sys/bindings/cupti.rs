#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaPitchedPtr {
    pub ptr: *mut ::std::os::raw::c_void,
    pub pitch: usize,
    pub xsize: usize,
    pub ysize: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaPitchedPtr"][::std::mem::size_of::<cudaPitchedPtr>() - 32usize];
    ["Alignment of cudaPitchedPtr"][::std::mem::align_of::<cudaPitchedPtr>() - 8usize];
    ["Offset of field: cudaPitchedPtr::ptr"][::std::mem::offset_of!(cudaPitchedPtr, ptr) - 0usize];
    ["Offset of field: cudaPitchedPtr::pitch"]
        [::std::mem::offset_of!(cudaPitchedPtr, pitch) - 8usize];
    ["Offset of field: cudaPitchedPtr::xsize"]
        [::std::mem::offset_of!(cudaPitchedPtr, xsize) - 16usize];
    ["Offset of field: cudaPitchedPtr::ysize"]
        [::std::mem::offset_of!(cudaPitchedPtr, ysize) - 24usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaExtent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaExtent"][::std::mem::size_of::<cudaExtent>() - 24usize];
    ["Alignment of cudaExtent"][::std::mem::align_of::<cudaExtent>() - 8usize];
    ["Offset of field: cudaExtent::width"][::std::mem::offset_of!(cudaExtent, width) - 0usize];
    ["Offset of field: cudaExtent::height"][::std::mem::offset_of!(cudaExtent, height) - 8usize];
    ["Offset of field: cudaExtent::depth"][::std::mem::offset_of!(cudaExtent, depth) - 16usize];
};
pub type cudaMemLocationType = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct cudaMemLocation {
    pub type_: cudaMemLocationType,
    pub __bindgen_anon_1: cudaMemLocation__bindgen_ty_1,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union cudaMemLocation__bindgen_ty_1 {
    pub id: ::std::os::raw::c_int,
    pub localized: cudaMemLocation__bindgen_ty_1__bindgen_ty_1,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMemLocation__bindgen_ty_1__bindgen_ty_1 {
    pub deviceId: ::std::os::raw::c_uchar,
    pub localityDomainId: ::std::os::raw::c_uchar,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMemLocation__bindgen_ty_1__bindgen_ty_1"]
        [::std::mem::size_of::<cudaMemLocation__bindgen_ty_1__bindgen_ty_1>() - 2usize];
    ["Alignment of cudaMemLocation__bindgen_ty_1__bindgen_ty_1"]
        [::std::mem::align_of::<cudaMemLocation__bindgen_ty_1__bindgen_ty_1>() - 1usize];
    ["Offset of field: cudaMemLocation__bindgen_ty_1__bindgen_ty_1::deviceId"]
        [::std::mem::offset_of!(cudaMemLocation__bindgen_ty_1__bindgen_ty_1, deviceId) - 0usize];
    ["Offset of field: cudaMemLocation__bindgen_ty_1__bindgen_ty_1::localityDomainId"][::std::mem::offset_of!(
        cudaMemLocation__bindgen_ty_1__bindgen_ty_1,
        localityDomainId
    ) - 1usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMemLocation__bindgen_ty_1"]
        [::std::mem::size_of::<cudaMemLocation__bindgen_ty_1>() - 4usize];
    ["Alignment of cudaMemLocation__bindgen_ty_1"]
        [::std::mem::align_of::<cudaMemLocation__bindgen_ty_1>() - 4usize];
    ["Offset of field: cudaMemLocation__bindgen_ty_1::id"]
        [::std::mem::offset_of!(cudaMemLocation__bindgen_ty_1, id) - 0usize];
    ["Offset of field: cudaMemLocation__bindgen_ty_1::localized"]
        [::std::mem::offset_of!(cudaMemLocation__bindgen_ty_1, localized) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMemLocation"][::std::mem::size_of::<cudaMemLocation>() - 8usize];
    ["Alignment of cudaMemLocation"][::std::mem::align_of::<cudaMemLocation>() - 4usize];
    ["Offset of field: cudaMemLocation::type_"]
        [::std::mem::offset_of!(cudaMemLocation, type_) - 0usize];
};
pub type cudaMemAccessFlags = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct cudaMemAccessDesc {
    pub location: cudaMemLocation,
    pub flags: cudaMemAccessFlags,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMemAccessDesc"][::std::mem::size_of::<cudaMemAccessDesc>() - 12usize];
    ["Alignment of cudaMemAccessDesc"][::std::mem::align_of::<cudaMemAccessDesc>() - 4usize];
    ["Offset of field: cudaMemAccessDesc::location"]
        [::std::mem::offset_of!(cudaMemAccessDesc, location) - 0usize];
    ["Offset of field: cudaMemAccessDesc::flags"]
        [::std::mem::offset_of!(cudaMemAccessDesc, flags) - 8usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct cudaMemPoolProps {
    pub _bindgen_opaque_blob: [u64; 11usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMemPoolProps"][::std::mem::size_of::<cudaMemPoolProps>() - 88usize];
    ["Alignment of cudaMemPoolProps"][::std::mem::align_of::<cudaMemPoolProps>() - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMemAllocNodeParams {
    pub poolProps: cudaMemPoolProps,
    pub accessDescs: *const cudaMemAccessDesc,
    pub accessDescCount: usize,
    pub bytesize: usize,
    pub dptr: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMemAllocNodeParams"][::std::mem::size_of::<cudaMemAllocNodeParams>() - 120usize];
    ["Alignment of cudaMemAllocNodeParams"]
        [::std::mem::align_of::<cudaMemAllocNodeParams>() - 8usize];
    ["Offset of field: cudaMemAllocNodeParams::poolProps"]
        [::std::mem::offset_of!(cudaMemAllocNodeParams, poolProps) - 0usize];
    ["Offset of field: cudaMemAllocNodeParams::accessDescs"]
        [::std::mem::offset_of!(cudaMemAllocNodeParams, accessDescs) - 88usize];
    ["Offset of field: cudaMemAllocNodeParams::accessDescCount"]
        [::std::mem::offset_of!(cudaMemAllocNodeParams, accessDescCount) - 96usize];
    ["Offset of field: cudaMemAllocNodeParams::bytesize"]
        [::std::mem::offset_of!(cudaMemAllocNodeParams, bytesize) - 104usize];
    ["Offset of field: cudaMemAllocNodeParams::dptr"]
        [::std::mem::offset_of!(cudaMemAllocNodeParams, dptr) - 112usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMemAllocNodeParamsV2 {
    pub poolProps: cudaMemPoolProps,
    pub accessDescs: *const cudaMemAccessDesc,
    pub accessDescCount: usize,
    pub bytesize: usize,
    pub dptr: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMemAllocNodeParamsV2"]
        [::std::mem::size_of::<cudaMemAllocNodeParamsV2>() - 120usize];
    ["Alignment of cudaMemAllocNodeParamsV2"]
        [::std::mem::align_of::<cudaMemAllocNodeParamsV2>() - 8usize];
    ["Offset of field: cudaMemAllocNodeParamsV2::poolProps"]
        [::std::mem::offset_of!(cudaMemAllocNodeParamsV2, poolProps) - 0usize];
    ["Offset of field: cudaMemAllocNodeParamsV2::accessDescs"]
        [::std::mem::offset_of!(cudaMemAllocNodeParamsV2, accessDescs) - 88usize];
    ["Offset of field: cudaMemAllocNodeParamsV2::accessDescCount"]
        [::std::mem::offset_of!(cudaMemAllocNodeParamsV2, accessDescCount) - 96usize];
    ["Offset of field: cudaMemAllocNodeParamsV2::bytesize"]
        [::std::mem::offset_of!(cudaMemAllocNodeParamsV2, bytesize) - 104usize];
    ["Offset of field: cudaMemAllocNodeParamsV2::dptr"]
        [::std::mem::offset_of!(cudaMemAllocNodeParamsV2, dptr) - 112usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaIpcMemHandle_st {
    pub reserved: [::std::os::raw::c_char; 64usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaIpcMemHandle_st"][::std::mem::size_of::<cudaIpcMemHandle_st>() - 64usize];
    ["Alignment of cudaIpcMemHandle_st"][::std::mem::align_of::<cudaIpcMemHandle_st>() - 1usize];
    ["Offset of field: cudaIpcMemHandle_st::reserved"]
        [::std::mem::offset_of!(cudaIpcMemHandle_st, reserved) - 0usize];
};
pub type cudaIpcMemHandle_t = cudaIpcMemHandle_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUstream_st {
    _unused: [u8; 0],
}
pub type cudaStream_t = *mut CUstream_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUgraph_st {
    _unused: [u8; 0],
}
pub type cudaGraph_t = *mut CUgraph_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUgraphNode_st {
    _unused: [u8; 0],
}
pub type cudaGraphNode_t = *mut CUgraphNode_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUmemPoolHandle_st {
    _unused: [u8; 0],
}
pub type cudaMemPool_t = *mut CUmemPoolHandle_st;
pub type CUdeviceptr_v2 = ::std::os::raw::c_ulonglong;
pub type CUdeviceptr = CUdeviceptr_v2;
pub type CUdevice_v1 = ::std::os::raw::c_int;
pub type CUdevice = CUdevice_v1;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUctx_st {
    _unused: [u8; 0],
}
pub type CUcontext = *mut CUctx_st;
pub type CUstream = *mut CUstream_st;
pub type CUgraph = *mut CUgraph_st;
pub type CUgraphNode = *mut CUgraphNode_st;
pub type CUmemoryPool = *mut CUmemPoolHandle_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUipcMemHandle_st {
    pub reserved: [::std::os::raw::c_char; 64usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUipcMemHandle_st"][::std::mem::size_of::<CUipcMemHandle_st>() - 64usize];
    ["Alignment of CUipcMemHandle_st"][::std::mem::align_of::<CUipcMemHandle_st>() - 1usize];
    ["Offset of field: CUipcMemHandle_st::reserved"]
        [::std::mem::offset_of!(CUipcMemHandle_st, reserved) - 0usize];
};
pub type CUipcMemHandle_v1 = CUipcMemHandle_st;
pub type CUipcMemHandle = CUipcMemHandle_v1;
pub const CU_GRAPH_NODE_TYPE_MEM_ALLOC: CUgraphNodeType_enum = 10;
pub const CU_GRAPH_NODE_TYPE_MEM_FREE: CUgraphNodeType_enum = 11;
pub type CUgraphNodeType_enum = ::std::os::raw::c_uint;
pub use self::CUgraphNodeType_enum as CUgraphNodeType;
pub type CUmemGenericAllocationHandle_v1 = ::std::os::raw::c_ulonglong;
pub type CUmemGenericAllocationHandle = CUmemGenericAllocationHandle_v1;
pub type CUmemAllocationHandleType_enum = ::std::os::raw::c_uint;
pub use self::CUmemAllocationHandleType_enum as CUmemAllocationHandleType;
pub type CUmemAccess_flags_enum = ::std::os::raw::c_uint;
pub use self::CUmemAccess_flags_enum as CUmemAccess_flags;
pub const CU_MEM_LOCATION_TYPE_DEVICE: CUmemLocationType_enum = 1;
pub type CUmemLocationType_enum = ::std::os::raw::c_uint;
pub use self::CUmemLocationType_enum as CUmemLocationType;
pub type CUmemAllocationType_enum = ::std::os::raw::c_uint;
pub use self::CUmemAllocationType_enum as CUmemAllocationType;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUmemLocation_st {
    pub type_: CUmemLocationType,
    pub __bindgen_anon_1: CUmemLocation_st__bindgen_ty_1,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUmemLocation_st__bindgen_ty_1 {
    pub id: ::std::os::raw::c_int,
    pub localized: CUmemLocation_st__bindgen_ty_1__bindgen_ty_1,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUmemLocation_st__bindgen_ty_1__bindgen_ty_1 {
    pub deviceId: ::std::os::raw::c_uchar,
    pub localityDomainId: ::std::os::raw::c_uchar,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmemLocation_st__bindgen_ty_1__bindgen_ty_1"]
        [::std::mem::size_of::<CUmemLocation_st__bindgen_ty_1__bindgen_ty_1>() - 2usize];
    ["Alignment of CUmemLocation_st__bindgen_ty_1__bindgen_ty_1"]
        [::std::mem::align_of::<CUmemLocation_st__bindgen_ty_1__bindgen_ty_1>() - 1usize];
    ["Offset of field: CUmemLocation_st__bindgen_ty_1__bindgen_ty_1::deviceId"]
        [::std::mem::offset_of!(CUmemLocation_st__bindgen_ty_1__bindgen_ty_1, deviceId) - 0usize];
    ["Offset of field: CUmemLocation_st__bindgen_ty_1__bindgen_ty_1::localityDomainId"][::std::mem::offset_of!(
        CUmemLocation_st__bindgen_ty_1__bindgen_ty_1,
        localityDomainId
    ) - 1usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmemLocation_st__bindgen_ty_1"]
        [::std::mem::size_of::<CUmemLocation_st__bindgen_ty_1>() - 4usize];
    ["Alignment of CUmemLocation_st__bindgen_ty_1"]
        [::std::mem::align_of::<CUmemLocation_st__bindgen_ty_1>() - 4usize];
    ["Offset of field: CUmemLocation_st__bindgen_ty_1::id"]
        [::std::mem::offset_of!(CUmemLocation_st__bindgen_ty_1, id) - 0usize];
    ["Offset of field: CUmemLocation_st__bindgen_ty_1::localized"]
        [::std::mem::offset_of!(CUmemLocation_st__bindgen_ty_1, localized) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmemLocation_st"][::std::mem::size_of::<CUmemLocation_st>() - 8usize];
    ["Alignment of CUmemLocation_st"][::std::mem::align_of::<CUmemLocation_st>() - 4usize];
    ["Offset of field: CUmemLocation_st::type_"]
        [::std::mem::offset_of!(CUmemLocation_st, type_) - 0usize];
};
pub type CUmemLocation_v1 = CUmemLocation_st;
pub type CUmemLocation = CUmemLocation_v1;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUmemAllocationProp_st {
    pub type_: CUmemAllocationType,
    pub requestedHandleTypes: CUmemAllocationHandleType,
    pub location: CUmemLocation,
    pub win32HandleMetaData: *mut ::std::os::raw::c_void,
    pub allocFlags: CUmemAllocationProp_st__bindgen_ty_1,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUmemAllocationProp_st__bindgen_ty_1 {
    pub compressionType: ::std::os::raw::c_uchar,
    pub gpuDirectRDMACapable: ::std::os::raw::c_uchar,
    pub usage: ::std::os::raw::c_ushort,
    pub reserved: [::std::os::raw::c_uchar; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmemAllocationProp_st__bindgen_ty_1"]
        [::std::mem::size_of::<CUmemAllocationProp_st__bindgen_ty_1>() - 8usize];
    ["Alignment of CUmemAllocationProp_st__bindgen_ty_1"]
        [::std::mem::align_of::<CUmemAllocationProp_st__bindgen_ty_1>() - 2usize];
    ["Offset of field: CUmemAllocationProp_st__bindgen_ty_1::compressionType"]
        [::std::mem::offset_of!(CUmemAllocationProp_st__bindgen_ty_1, compressionType) - 0usize];
    ["Offset of field: CUmemAllocationProp_st__bindgen_ty_1::gpuDirectRDMACapable"][::std::mem::offset_of!(
        CUmemAllocationProp_st__bindgen_ty_1,
        gpuDirectRDMACapable
    ) - 1usize];
    ["Offset of field: CUmemAllocationProp_st__bindgen_ty_1::usage"]
        [::std::mem::offset_of!(CUmemAllocationProp_st__bindgen_ty_1, usage) - 2usize];
    ["Offset of field: CUmemAllocationProp_st__bindgen_ty_1::reserved"]
        [::std::mem::offset_of!(CUmemAllocationProp_st__bindgen_ty_1, reserved) - 4usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmemAllocationProp_st"][::std::mem::size_of::<CUmemAllocationProp_st>() - 32usize];
    ["Alignment of CUmemAllocationProp_st"]
        [::std::mem::align_of::<CUmemAllocationProp_st>() - 8usize];
    ["Offset of field: CUmemAllocationProp_st::type_"]
        [::std::mem::offset_of!(CUmemAllocationProp_st, type_) - 0usize];
    ["Offset of field: CUmemAllocationProp_st::requestedHandleTypes"]
        [::std::mem::offset_of!(CUmemAllocationProp_st, requestedHandleTypes) - 4usize];
    ["Offset of field: CUmemAllocationProp_st::location"]
        [::std::mem::offset_of!(CUmemAllocationProp_st, location) - 8usize];
    ["Offset of field: CUmemAllocationProp_st::win32HandleMetaData"]
        [::std::mem::offset_of!(CUmemAllocationProp_st, win32HandleMetaData) - 16usize];
    ["Offset of field: CUmemAllocationProp_st::allocFlags"]
        [::std::mem::offset_of!(CUmemAllocationProp_st, allocFlags) - 24usize];
};
pub type CUmemAllocationProp_v1 = CUmemAllocationProp_st;
pub type CUmemAllocationProp = CUmemAllocationProp_v1;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUmulticastObjectProp_st {
    pub numDevices: ::std::os::raw::c_uint,
    pub size: usize,
    pub handleTypes: ::std::os::raw::c_ulonglong,
    pub flags: ::std::os::raw::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmulticastObjectProp_st"]
        [::std::mem::size_of::<CUmulticastObjectProp_st>() - 32usize];
    ["Alignment of CUmulticastObjectProp_st"]
        [::std::mem::align_of::<CUmulticastObjectProp_st>() - 8usize];
    ["Offset of field: CUmulticastObjectProp_st::numDevices"]
        [::std::mem::offset_of!(CUmulticastObjectProp_st, numDevices) - 0usize];
    ["Offset of field: CUmulticastObjectProp_st::size"]
        [::std::mem::offset_of!(CUmulticastObjectProp_st, size) - 8usize];
    ["Offset of field: CUmulticastObjectProp_st::handleTypes"]
        [::std::mem::offset_of!(CUmulticastObjectProp_st, handleTypes) - 16usize];
    ["Offset of field: CUmulticastObjectProp_st::flags"]
        [::std::mem::offset_of!(CUmulticastObjectProp_st, flags) - 24usize];
};
pub type CUmulticastObjectProp_v1 = CUmulticastObjectProp_st;
pub type CUmulticastObjectProp = CUmulticastObjectProp_v1;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUmemAccessDesc_st {
    pub location: CUmemLocation,
    pub flags: CUmemAccess_flags,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmemAccessDesc_st"][::std::mem::size_of::<CUmemAccessDesc_st>() - 12usize];
    ["Alignment of CUmemAccessDesc_st"][::std::mem::align_of::<CUmemAccessDesc_st>() - 4usize];
    ["Offset of field: CUmemAccessDesc_st::location"]
        [::std::mem::offset_of!(CUmemAccessDesc_st, location) - 0usize];
    ["Offset of field: CUmemAccessDesc_st::flags"]
        [::std::mem::offset_of!(CUmemAccessDesc_st, flags) - 8usize];
};
pub type CUmemAccessDesc_v1 = CUmemAccessDesc_st;
pub type CUmemAccessDesc = CUmemAccessDesc_v1;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUmemPoolProps_st {
    pub allocType: CUmemAllocationType,
    pub handleTypes: CUmemAllocationHandleType,
    pub location: CUmemLocation,
    pub win32SecurityAttributes: *mut ::std::os::raw::c_void,
    pub maxSize: usize,
    pub usage: ::std::os::raw::c_ushort,
    pub gpuDirectRDMACapable: ::std::os::raw::c_uchar,
    pub reserved: [::std::os::raw::c_uchar; 53usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmemPoolProps_st"][::std::mem::size_of::<CUmemPoolProps_st>() - 88usize];
    ["Alignment of CUmemPoolProps_st"][::std::mem::align_of::<CUmemPoolProps_st>() - 8usize];
    ["Offset of field: CUmemPoolProps_st::allocType"]
        [::std::mem::offset_of!(CUmemPoolProps_st, allocType) - 0usize];
    ["Offset of field: CUmemPoolProps_st::handleTypes"]
        [::std::mem::offset_of!(CUmemPoolProps_st, handleTypes) - 4usize];
    ["Offset of field: CUmemPoolProps_st::location"]
        [::std::mem::offset_of!(CUmemPoolProps_st, location) - 8usize];
    ["Offset of field: CUmemPoolProps_st::win32SecurityAttributes"]
        [::std::mem::offset_of!(CUmemPoolProps_st, win32SecurityAttributes) - 16usize];
    ["Offset of field: CUmemPoolProps_st::maxSize"]
        [::std::mem::offset_of!(CUmemPoolProps_st, maxSize) - 24usize];
    ["Offset of field: CUmemPoolProps_st::usage"]
        [::std::mem::offset_of!(CUmemPoolProps_st, usage) - 32usize];
    ["Offset of field: CUmemPoolProps_st::gpuDirectRDMACapable"]
        [::std::mem::offset_of!(CUmemPoolProps_st, gpuDirectRDMACapable) - 34usize];
    ["Offset of field: CUmemPoolProps_st::reserved"]
        [::std::mem::offset_of!(CUmemPoolProps_st, reserved) - 35usize];
};
pub type CUmemPoolProps_v1 = CUmemPoolProps_st;
pub type CUmemPoolProps = CUmemPoolProps_v1;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUDA_MEM_ALLOC_NODE_PARAMS_v1_st {
    pub poolProps: CUmemPoolProps,
    pub accessDescs: *const CUmemAccessDesc,
    pub accessDescCount: usize,
    pub bytesize: usize,
    pub dptr: CUdeviceptr,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUDA_MEM_ALLOC_NODE_PARAMS_v1_st"]
        [::std::mem::size_of::<CUDA_MEM_ALLOC_NODE_PARAMS_v1_st>() - 120usize];
    ["Alignment of CUDA_MEM_ALLOC_NODE_PARAMS_v1_st"]
        [::std::mem::align_of::<CUDA_MEM_ALLOC_NODE_PARAMS_v1_st>() - 8usize];
    ["Offset of field: CUDA_MEM_ALLOC_NODE_PARAMS_v1_st::poolProps"]
        [::std::mem::offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v1_st, poolProps) - 0usize];
    ["Offset of field: CUDA_MEM_ALLOC_NODE_PARAMS_v1_st::accessDescs"]
        [::std::mem::offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v1_st, accessDescs) - 88usize];
    ["Offset of field: CUDA_MEM_ALLOC_NODE_PARAMS_v1_st::accessDescCount"]
        [::std::mem::offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v1_st, accessDescCount) - 96usize];
    ["Offset of field: CUDA_MEM_ALLOC_NODE_PARAMS_v1_st::bytesize"]
        [::std::mem::offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v1_st, bytesize) - 104usize];
    ["Offset of field: CUDA_MEM_ALLOC_NODE_PARAMS_v1_st::dptr"]
        [::std::mem::offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v1_st, dptr) - 112usize];
};
pub type CUDA_MEM_ALLOC_NODE_PARAMS_v1 = CUDA_MEM_ALLOC_NODE_PARAMS_v1_st;
pub type CUDA_MEM_ALLOC_NODE_PARAMS = CUDA_MEM_ALLOC_NODE_PARAMS_v1;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUDA_MEM_ALLOC_NODE_PARAMS_v2_st {
    pub poolProps: CUmemPoolProps,
    pub accessDescs: *const CUmemAccessDesc,
    pub accessDescCount: usize,
    pub bytesize: usize,
    pub dptr: CUdeviceptr,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUDA_MEM_ALLOC_NODE_PARAMS_v2_st"]
        [::std::mem::size_of::<CUDA_MEM_ALLOC_NODE_PARAMS_v2_st>() - 120usize];
    ["Alignment of CUDA_MEM_ALLOC_NODE_PARAMS_v2_st"]
        [::std::mem::align_of::<CUDA_MEM_ALLOC_NODE_PARAMS_v2_st>() - 8usize];
    ["Offset of field: CUDA_MEM_ALLOC_NODE_PARAMS_v2_st::poolProps"]
        [::std::mem::offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v2_st, poolProps) - 0usize];
    ["Offset of field: CUDA_MEM_ALLOC_NODE_PARAMS_v2_st::accessDescs"]
        [::std::mem::offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v2_st, accessDescs) - 88usize];
    ["Offset of field: CUDA_MEM_ALLOC_NODE_PARAMS_v2_st::accessDescCount"]
        [::std::mem::offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v2_st, accessDescCount) - 96usize];
    ["Offset of field: CUDA_MEM_ALLOC_NODE_PARAMS_v2_st::bytesize"]
        [::std::mem::offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v2_st, bytesize) - 104usize];
    ["Offset of field: CUDA_MEM_ALLOC_NODE_PARAMS_v2_st::dptr"]
        [::std::mem::offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v2_st, dptr) - 112usize];
};
pub type CUDA_MEM_ALLOC_NODE_PARAMS_v2 = CUDA_MEM_ALLOC_NODE_PARAMS_v2_st;
pub const CUPTI_SUCCESS: CUptiResult = 0;
pub const CUPTI_ERROR_MAX_LIMIT_REACHED: CUptiResult = 12;
pub const CUPTI_ERROR_INVALID_KIND: CUptiResult = 21;
pub const CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: CUptiResult = 39;
pub type CUptiResult = ::std::os::raw::c_uint;
pub const CUPTI_API_ENTER: CUpti_ApiCallbackSite = 0;
pub const CUPTI_API_EXIT: CUpti_ApiCallbackSite = 1;
pub type CUpti_ApiCallbackSite = ::std::os::raw::c_uint;
pub const CUPTI_CB_DOMAIN_DRIVER_API: CUpti_CallbackDomain = 1;
pub const CUPTI_CB_DOMAIN_RUNTIME_API: CUpti_CallbackDomain = 2;
pub type CUpti_CallbackDomain = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUpti_CallbackData {
    pub callbackSite: CUpti_ApiCallbackSite,
    pub functionName: *const ::std::os::raw::c_char,
    pub functionParams: *const ::std::os::raw::c_void,
    pub functionReturnValue: *mut ::std::os::raw::c_void,
    pub symbolName: *const ::std::os::raw::c_char,
    pub context: CUcontext,
    pub contextUid: u32,
    pub correlationData: *mut u64,
    pub correlationId: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_CallbackData"][::std::mem::size_of::<CUpti_CallbackData>() - 72usize];
    ["Alignment of CUpti_CallbackData"][::std::mem::align_of::<CUpti_CallbackData>() - 8usize];
    ["Offset of field: CUpti_CallbackData::callbackSite"]
        [::std::mem::offset_of!(CUpti_CallbackData, callbackSite) - 0usize];
    ["Offset of field: CUpti_CallbackData::functionName"]
        [::std::mem::offset_of!(CUpti_CallbackData, functionName) - 8usize];
    ["Offset of field: CUpti_CallbackData::functionParams"]
        [::std::mem::offset_of!(CUpti_CallbackData, functionParams) - 16usize];
    ["Offset of field: CUpti_CallbackData::functionReturnValue"]
        [::std::mem::offset_of!(CUpti_CallbackData, functionReturnValue) - 24usize];
    ["Offset of field: CUpti_CallbackData::symbolName"]
        [::std::mem::offset_of!(CUpti_CallbackData, symbolName) - 32usize];
    ["Offset of field: CUpti_CallbackData::context"]
        [::std::mem::offset_of!(CUpti_CallbackData, context) - 40usize];
    ["Offset of field: CUpti_CallbackData::contextUid"]
        [::std::mem::offset_of!(CUpti_CallbackData, contextUid) - 48usize];
    ["Offset of field: CUpti_CallbackData::correlationData"]
        [::std::mem::offset_of!(CUpti_CallbackData, correlationData) - 56usize];
    ["Offset of field: CUpti_CallbackData::correlationId"]
        [::std::mem::offset_of!(CUpti_CallbackData, correlationId) - 64usize];
};
pub type CUpti_CallbackId = u32;
pub type CUpti_CallbackFunc = ::std::option::Option<
    unsafe extern "C" fn(
        userdata: *mut ::std::os::raw::c_void,
        domain: CUpti_CallbackDomain,
        cbid: CUpti_CallbackId,
        cbdata: *const ::std::os::raw::c_void,
    ),
>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUpti_Subscriber_st {
    _unused: [u8; 0],
}
pub type CUpti_SubscriberHandle = *mut CUpti_Subscriber_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUpti_SubscriberParams {
    pub structSize: usize,
    pub subscriberName: *const ::std::os::raw::c_char,
    pub oldSubscriberName: *mut ::std::os::raw::c_char,
    pub oldSubscriberSize: usize,
    pub allowMultipleSubscribers: u8,
    pub padding: [u8; 7usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_SubscriberParams"][::std::mem::size_of::<CUpti_SubscriberParams>() - 40usize];
    ["Alignment of CUpti_SubscriberParams"]
        [::std::mem::align_of::<CUpti_SubscriberParams>() - 8usize];
    ["Offset of field: CUpti_SubscriberParams::structSize"]
        [::std::mem::offset_of!(CUpti_SubscriberParams, structSize) - 0usize];
    ["Offset of field: CUpti_SubscriberParams::subscriberName"]
        [::std::mem::offset_of!(CUpti_SubscriberParams, subscriberName) - 8usize];
    ["Offset of field: CUpti_SubscriberParams::oldSubscriberName"]
        [::std::mem::offset_of!(CUpti_SubscriberParams, oldSubscriberName) - 16usize];
    ["Offset of field: CUpti_SubscriberParams::oldSubscriberSize"]
        [::std::mem::offset_of!(CUpti_SubscriberParams, oldSubscriberSize) - 24usize];
    ["Offset of field: CUpti_SubscriberParams::allowMultipleSubscribers"]
        [::std::mem::offset_of!(CUpti_SubscriberParams, allowMultipleSubscribers) - 32usize];
    ["Offset of field: CUpti_SubscriberParams::padding"]
        [::std::mem::offset_of!(CUpti_SubscriberParams, padding) - 33usize];
};
pub const CUPTI_ACTIVITY_KIND_MEMORY2: CUpti_ActivityKind = 49;
pub const CUPTI_ACTIVITY_KIND_MEMORY_POOL: CUpti_ActivityKind = 50;
pub type CUpti_ActivityKind = ::std::os::raw::c_uint;
pub const CUPTI_ACTIVITY_MEMORY_KIND_PINNED: CUpti_ActivityMemoryKind = 2;
pub const CUPTI_ACTIVITY_MEMORY_KIND_DEVICE: CUpti_ActivityMemoryKind = 3;
pub const CUPTI_ACTIVITY_MEMORY_KIND_MANAGED: CUpti_ActivityMemoryKind = 5;
pub type CUpti_ActivityMemoryKind = ::std::os::raw::c_uint;
pub const CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION: CUpti_ActivityMemoryOperationType = 1;
pub const CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE: CUpti_ActivityMemoryOperationType = 2;
pub type CUpti_ActivityMemoryOperationType = ::std::os::raw::c_uint;
pub const CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL: CUpti_ActivityMemoryPoolType = 1;
pub const CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED: CUpti_ActivityMemoryPoolType = 2;
pub type CUpti_ActivityMemoryPoolType = ::std::os::raw::c_uint;
pub const CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED: CUpti_ActivityMemoryPoolOperationType =
    1;
pub const CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED:
    CUpti_ActivityMemoryPoolOperationType = 2;
pub const CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED: CUpti_ActivityMemoryPoolOperationType =
    3;
pub type CUpti_ActivityMemoryPoolOperationType = ::std::os::raw::c_uint;
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct CUpti_Activity {
    pub kind: CUpti_ActivityKind,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_Activity"][::std::mem::size_of::<CUpti_Activity>() - 8usize];
    ["Alignment of CUpti_Activity"][::std::mem::align_of::<CUpti_Activity>() - 8usize];
    ["Offset of field: CUpti_Activity::kind"]
        [::std::mem::offset_of!(CUpti_Activity, kind) - 0usize];
};
#[repr(C, packed(8))]
#[derive(Copy, Clone)]
pub struct CUpti_ActivityMemory4 {
    pub kind: CUpti_ActivityKind,
    pub memoryOperationType: CUpti_ActivityMemoryOperationType,
    pub memoryKind: CUpti_ActivityMemoryKind,
    pub correlationId: u32,
    pub address: u64,
    pub bytes: u64,
    pub timestamp: u64,
    pub PC: u64,
    pub processId: u32,
    pub deviceId: u32,
    pub contextId: u32,
    pub streamId: u32,
    pub name: *const ::std::os::raw::c_char,
    pub isAsync: u32,
    pub pad1: u32,
    pub memoryPoolConfig: CUpti_ActivityMemory4__bindgen_ty_1,
    pub source: *const ::std::os::raw::c_char,
}
#[repr(C, packed(8))]
#[derive(Copy, Clone)]
pub struct CUpti_ActivityMemory4__bindgen_ty_1 {
    pub memoryPoolType: CUpti_ActivityMemoryPoolType,
    pub pad2: u32,
    pub address: u64,
    pub releaseThreshold: u64,
    pub pool: CUpti_ActivityMemory4__bindgen_ty_1__bindgen_ty_1,
    pub utilizedSize: u64,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUpti_ActivityMemory4__bindgen_ty_1__bindgen_ty_1 {
    pub size: u64,
    pub processId: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_ActivityMemory4__bindgen_ty_1__bindgen_ty_1"]
        [::std::mem::size_of::<CUpti_ActivityMemory4__bindgen_ty_1__bindgen_ty_1>() - 8usize];
    ["Alignment of CUpti_ActivityMemory4__bindgen_ty_1__bindgen_ty_1"]
        [::std::mem::align_of::<CUpti_ActivityMemory4__bindgen_ty_1__bindgen_ty_1>() - 8usize];
    ["Offset of field: CUpti_ActivityMemory4__bindgen_ty_1__bindgen_ty_1::size"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4__bindgen_ty_1__bindgen_ty_1, size) - 0usize];
    ["Offset of field: CUpti_ActivityMemory4__bindgen_ty_1__bindgen_ty_1::processId"][::std::mem::offset_of!(
        CUpti_ActivityMemory4__bindgen_ty_1__bindgen_ty_1,
        processId
    ) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_ActivityMemory4__bindgen_ty_1"]
        [::std::mem::size_of::<CUpti_ActivityMemory4__bindgen_ty_1>() - 40usize];
    ["Alignment of CUpti_ActivityMemory4__bindgen_ty_1"]
        [::std::mem::align_of::<CUpti_ActivityMemory4__bindgen_ty_1>() - 8usize];
    ["Offset of field: CUpti_ActivityMemory4__bindgen_ty_1::memoryPoolType"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4__bindgen_ty_1, memoryPoolType) - 0usize];
    ["Offset of field: CUpti_ActivityMemory4__bindgen_ty_1::pad2"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4__bindgen_ty_1, pad2) - 4usize];
    ["Offset of field: CUpti_ActivityMemory4__bindgen_ty_1::address"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4__bindgen_ty_1, address) - 8usize];
    ["Offset of field: CUpti_ActivityMemory4__bindgen_ty_1::releaseThreshold"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4__bindgen_ty_1, releaseThreshold) - 16usize];
    ["Offset of field: CUpti_ActivityMemory4__bindgen_ty_1::pool"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4__bindgen_ty_1, pool) - 24usize];
    ["Offset of field: CUpti_ActivityMemory4__bindgen_ty_1::utilizedSize"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4__bindgen_ty_1, utilizedSize) - 32usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_ActivityMemory4"][::std::mem::size_of::<CUpti_ActivityMemory4>() - 128usize];
    ["Alignment of CUpti_ActivityMemory4"]
        [::std::mem::align_of::<CUpti_ActivityMemory4>() - 8usize];
    ["Offset of field: CUpti_ActivityMemory4::kind"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, kind) - 0usize];
    ["Offset of field: CUpti_ActivityMemory4::memoryOperationType"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, memoryOperationType) - 4usize];
    ["Offset of field: CUpti_ActivityMemory4::memoryKind"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, memoryKind) - 8usize];
    ["Offset of field: CUpti_ActivityMemory4::correlationId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, correlationId) - 12usize];
    ["Offset of field: CUpti_ActivityMemory4::address"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, address) - 16usize];
    ["Offset of field: CUpti_ActivityMemory4::bytes"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, bytes) - 24usize];
    ["Offset of field: CUpti_ActivityMemory4::timestamp"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, timestamp) - 32usize];
    ["Offset of field: CUpti_ActivityMemory4::PC"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, PC) - 40usize];
    ["Offset of field: CUpti_ActivityMemory4::processId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, processId) - 48usize];
    ["Offset of field: CUpti_ActivityMemory4::deviceId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, deviceId) - 52usize];
    ["Offset of field: CUpti_ActivityMemory4::contextId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, contextId) - 56usize];
    ["Offset of field: CUpti_ActivityMemory4::streamId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, streamId) - 60usize];
    ["Offset of field: CUpti_ActivityMemory4::name"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, name) - 64usize];
    ["Offset of field: CUpti_ActivityMemory4::isAsync"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, isAsync) - 72usize];
    ["Offset of field: CUpti_ActivityMemory4::pad1"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, pad1) - 76usize];
    ["Offset of field: CUpti_ActivityMemory4::memoryPoolConfig"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, memoryPoolConfig) - 80usize];
    ["Offset of field: CUpti_ActivityMemory4::source"]
        [::std::mem::offset_of!(CUpti_ActivityMemory4, source) - 120usize];
};
pub type CUpti_BuffersCallbackRequestFunc = ::std::option::Option<
    unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize, maxNumRecords: *mut usize),
>;
pub type CUpti_BuffersCallbackCompleteFunc = ::std::option::Option<
    unsafe extern "C" fn(
        context: CUcontext,
        streamId: u32,
        buffer: *mut u8,
        size: usize,
        validSize: usize,
    ),
>;
#[repr(C, packed(8))]
#[derive(Copy, Clone)]
pub struct CUpti_ActivityMemory2 {
    pub kind: CUpti_ActivityKind,
    pub memoryOperationType: CUpti_ActivityMemoryOperationType,
    pub memoryKind: CUpti_ActivityMemoryKind,
    pub correlationId: u32,
    pub address: u64,
    pub bytes: u64,
    pub timestamp: u64,
    pub PC: u64,
    pub processId: u32,
    pub deviceId: u32,
    pub contextId: u32,
    pub streamId: u32,
    pub name: *const ::std::os::raw::c_char,
    pub isAsync: u32,
    pub pad1: u32,
    pub memoryPoolConfig: CUpti_ActivityMemory2__bindgen_ty_1,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUpti_ActivityMemory2__bindgen_ty_1 {
    pub memoryPoolType: CUpti_ActivityMemoryPoolType,
    pub pad2: u32,
    pub address: u64,
    pub releaseThreshold: u64,
    pub pool: CUpti_ActivityMemory2__bindgen_ty_1__bindgen_ty_1,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUpti_ActivityMemory2__bindgen_ty_1__bindgen_ty_1 {
    pub size: u64,
    pub processId: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_ActivityMemory2__bindgen_ty_1__bindgen_ty_1"]
        [::std::mem::size_of::<CUpti_ActivityMemory2__bindgen_ty_1__bindgen_ty_1>() - 8usize];
    ["Alignment of CUpti_ActivityMemory2__bindgen_ty_1__bindgen_ty_1"]
        [::std::mem::align_of::<CUpti_ActivityMemory2__bindgen_ty_1__bindgen_ty_1>() - 8usize];
    ["Offset of field: CUpti_ActivityMemory2__bindgen_ty_1__bindgen_ty_1::size"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2__bindgen_ty_1__bindgen_ty_1, size) - 0usize];
    ["Offset of field: CUpti_ActivityMemory2__bindgen_ty_1__bindgen_ty_1::processId"][::std::mem::offset_of!(
        CUpti_ActivityMemory2__bindgen_ty_1__bindgen_ty_1,
        processId
    ) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_ActivityMemory2__bindgen_ty_1"]
        [::std::mem::size_of::<CUpti_ActivityMemory2__bindgen_ty_1>() - 32usize];
    ["Alignment of CUpti_ActivityMemory2__bindgen_ty_1"]
        [::std::mem::align_of::<CUpti_ActivityMemory2__bindgen_ty_1>() - 8usize];
    ["Offset of field: CUpti_ActivityMemory2__bindgen_ty_1::memoryPoolType"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2__bindgen_ty_1, memoryPoolType) - 0usize];
    ["Offset of field: CUpti_ActivityMemory2__bindgen_ty_1::pad2"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2__bindgen_ty_1, pad2) - 4usize];
    ["Offset of field: CUpti_ActivityMemory2__bindgen_ty_1::address"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2__bindgen_ty_1, address) - 8usize];
    ["Offset of field: CUpti_ActivityMemory2__bindgen_ty_1::releaseThreshold"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2__bindgen_ty_1, releaseThreshold) - 16usize];
    ["Offset of field: CUpti_ActivityMemory2__bindgen_ty_1::pool"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2__bindgen_ty_1, pool) - 24usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_ActivityMemory2"][::std::mem::size_of::<CUpti_ActivityMemory2>() - 112usize];
    ["Alignment of CUpti_ActivityMemory2"]
        [::std::mem::align_of::<CUpti_ActivityMemory2>() - 8usize];
    ["Offset of field: CUpti_ActivityMemory2::kind"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, kind) - 0usize];
    ["Offset of field: CUpti_ActivityMemory2::memoryOperationType"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, memoryOperationType) - 4usize];
    ["Offset of field: CUpti_ActivityMemory2::memoryKind"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, memoryKind) - 8usize];
    ["Offset of field: CUpti_ActivityMemory2::correlationId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, correlationId) - 12usize];
    ["Offset of field: CUpti_ActivityMemory2::address"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, address) - 16usize];
    ["Offset of field: CUpti_ActivityMemory2::bytes"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, bytes) - 24usize];
    ["Offset of field: CUpti_ActivityMemory2::timestamp"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, timestamp) - 32usize];
    ["Offset of field: CUpti_ActivityMemory2::PC"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, PC) - 40usize];
    ["Offset of field: CUpti_ActivityMemory2::processId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, processId) - 48usize];
    ["Offset of field: CUpti_ActivityMemory2::deviceId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, deviceId) - 52usize];
    ["Offset of field: CUpti_ActivityMemory2::contextId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, contextId) - 56usize];
    ["Offset of field: CUpti_ActivityMemory2::streamId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, streamId) - 60usize];
    ["Offset of field: CUpti_ActivityMemory2::name"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, name) - 64usize];
    ["Offset of field: CUpti_ActivityMemory2::isAsync"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, isAsync) - 72usize];
    ["Offset of field: CUpti_ActivityMemory2::pad1"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, pad1) - 76usize];
    ["Offset of field: CUpti_ActivityMemory2::memoryPoolConfig"]
        [::std::mem::offset_of!(CUpti_ActivityMemory2, memoryPoolConfig) - 80usize];
};
#[repr(C, packed(8))]
#[derive(Copy, Clone)]
pub struct CUpti_ActivityMemory3 {
    pub kind: CUpti_ActivityKind,
    pub memoryOperationType: CUpti_ActivityMemoryOperationType,
    pub memoryKind: CUpti_ActivityMemoryKind,
    pub correlationId: u32,
    pub address: u64,
    pub bytes: u64,
    pub timestamp: u64,
    pub PC: u64,
    pub processId: u32,
    pub deviceId: u32,
    pub contextId: u32,
    pub streamId: u32,
    pub name: *const ::std::os::raw::c_char,
    pub isAsync: u32,
    pub pad1: u32,
    pub memoryPoolConfig: CUpti_ActivityMemory3__bindgen_ty_1,
}
#[repr(C, packed(8))]
#[derive(Copy, Clone)]
pub struct CUpti_ActivityMemory3__bindgen_ty_1 {
    pub memoryPoolType: CUpti_ActivityMemoryPoolType,
    pub pad2: u32,
    pub address: u64,
    pub releaseThreshold: u64,
    pub pool: CUpti_ActivityMemory3__bindgen_ty_1__bindgen_ty_1,
    pub utilizedSize: u64,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union CUpti_ActivityMemory3__bindgen_ty_1__bindgen_ty_1 {
    pub size: u64,
    pub processId: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_ActivityMemory3__bindgen_ty_1__bindgen_ty_1"]
        [::std::mem::size_of::<CUpti_ActivityMemory3__bindgen_ty_1__bindgen_ty_1>() - 8usize];
    ["Alignment of CUpti_ActivityMemory3__bindgen_ty_1__bindgen_ty_1"]
        [::std::mem::align_of::<CUpti_ActivityMemory3__bindgen_ty_1__bindgen_ty_1>() - 8usize];
    ["Offset of field: CUpti_ActivityMemory3__bindgen_ty_1__bindgen_ty_1::size"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3__bindgen_ty_1__bindgen_ty_1, size) - 0usize];
    ["Offset of field: CUpti_ActivityMemory3__bindgen_ty_1__bindgen_ty_1::processId"][::std::mem::offset_of!(
        CUpti_ActivityMemory3__bindgen_ty_1__bindgen_ty_1,
        processId
    ) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_ActivityMemory3__bindgen_ty_1"]
        [::std::mem::size_of::<CUpti_ActivityMemory3__bindgen_ty_1>() - 40usize];
    ["Alignment of CUpti_ActivityMemory3__bindgen_ty_1"]
        [::std::mem::align_of::<CUpti_ActivityMemory3__bindgen_ty_1>() - 8usize];
    ["Offset of field: CUpti_ActivityMemory3__bindgen_ty_1::memoryPoolType"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3__bindgen_ty_1, memoryPoolType) - 0usize];
    ["Offset of field: CUpti_ActivityMemory3__bindgen_ty_1::pad2"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3__bindgen_ty_1, pad2) - 4usize];
    ["Offset of field: CUpti_ActivityMemory3__bindgen_ty_1::address"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3__bindgen_ty_1, address) - 8usize];
    ["Offset of field: CUpti_ActivityMemory3__bindgen_ty_1::releaseThreshold"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3__bindgen_ty_1, releaseThreshold) - 16usize];
    ["Offset of field: CUpti_ActivityMemory3__bindgen_ty_1::pool"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3__bindgen_ty_1, pool) - 24usize];
    ["Offset of field: CUpti_ActivityMemory3__bindgen_ty_1::utilizedSize"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3__bindgen_ty_1, utilizedSize) - 32usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_ActivityMemory3"][::std::mem::size_of::<CUpti_ActivityMemory3>() - 120usize];
    ["Alignment of CUpti_ActivityMemory3"]
        [::std::mem::align_of::<CUpti_ActivityMemory3>() - 8usize];
    ["Offset of field: CUpti_ActivityMemory3::kind"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, kind) - 0usize];
    ["Offset of field: CUpti_ActivityMemory3::memoryOperationType"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, memoryOperationType) - 4usize];
    ["Offset of field: CUpti_ActivityMemory3::memoryKind"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, memoryKind) - 8usize];
    ["Offset of field: CUpti_ActivityMemory3::correlationId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, correlationId) - 12usize];
    ["Offset of field: CUpti_ActivityMemory3::address"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, address) - 16usize];
    ["Offset of field: CUpti_ActivityMemory3::bytes"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, bytes) - 24usize];
    ["Offset of field: CUpti_ActivityMemory3::timestamp"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, timestamp) - 32usize];
    ["Offset of field: CUpti_ActivityMemory3::PC"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, PC) - 40usize];
    ["Offset of field: CUpti_ActivityMemory3::processId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, processId) - 48usize];
    ["Offset of field: CUpti_ActivityMemory3::deviceId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, deviceId) - 52usize];
    ["Offset of field: CUpti_ActivityMemory3::contextId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, contextId) - 56usize];
    ["Offset of field: CUpti_ActivityMemory3::streamId"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, streamId) - 60usize];
    ["Offset of field: CUpti_ActivityMemory3::name"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, name) - 64usize];
    ["Offset of field: CUpti_ActivityMemory3::isAsync"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, isAsync) - 72usize];
    ["Offset of field: CUpti_ActivityMemory3::pad1"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, pad1) - 76usize];
    ["Offset of field: CUpti_ActivityMemory3::memoryPoolConfig"]
        [::std::mem::offset_of!(CUpti_ActivityMemory3, memoryPoolConfig) - 80usize];
};
#[repr(C, packed(8))]
#[derive(Debug, Copy, Clone)]
pub struct CUpti_ActivityMemoryPool {
    pub kind: CUpti_ActivityKind,
    pub memoryPoolOperationType: CUpti_ActivityMemoryPoolOperationType,
    pub memoryPoolType: CUpti_ActivityMemoryPoolType,
    pub correlationId: u32,
    pub processId: u32,
    pub deviceId: u32,
    pub minBytesToKeep: usize,
    pub address: u64,
    pub size: u64,
    pub releaseThreshold: u64,
    pub timestamp: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_ActivityMemoryPool"]
        [::std::mem::size_of::<CUpti_ActivityMemoryPool>() - 64usize];
    ["Alignment of CUpti_ActivityMemoryPool"]
        [::std::mem::align_of::<CUpti_ActivityMemoryPool>() - 8usize];
    ["Offset of field: CUpti_ActivityMemoryPool::kind"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool, kind) - 0usize];
    ["Offset of field: CUpti_ActivityMemoryPool::memoryPoolOperationType"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool, memoryPoolOperationType) - 4usize];
    ["Offset of field: CUpti_ActivityMemoryPool::memoryPoolType"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool, memoryPoolType) - 8usize];
    ["Offset of field: CUpti_ActivityMemoryPool::correlationId"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool, correlationId) - 12usize];
    ["Offset of field: CUpti_ActivityMemoryPool::processId"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool, processId) - 16usize];
    ["Offset of field: CUpti_ActivityMemoryPool::deviceId"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool, deviceId) - 20usize];
    ["Offset of field: CUpti_ActivityMemoryPool::minBytesToKeep"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool, minBytesToKeep) - 24usize];
    ["Offset of field: CUpti_ActivityMemoryPool::address"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool, address) - 32usize];
    ["Offset of field: CUpti_ActivityMemoryPool::size"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool, size) - 40usize];
    ["Offset of field: CUpti_ActivityMemoryPool::releaseThreshold"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool, releaseThreshold) - 48usize];
    ["Offset of field: CUpti_ActivityMemoryPool::timestamp"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool, timestamp) - 56usize];
};
#[repr(C, packed(8))]
#[derive(Debug, Copy, Clone)]
pub struct CUpti_ActivityMemoryPool2 {
    pub kind: CUpti_ActivityKind,
    pub memoryPoolOperationType: CUpti_ActivityMemoryPoolOperationType,
    pub memoryPoolType: CUpti_ActivityMemoryPoolType,
    pub correlationId: u32,
    pub processId: u32,
    pub deviceId: u32,
    pub minBytesToKeep: usize,
    pub address: u64,
    pub size: u64,
    pub releaseThreshold: u64,
    pub timestamp: u64,
    pub utilizedSize: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUpti_ActivityMemoryPool2"]
        [::std::mem::size_of::<CUpti_ActivityMemoryPool2>() - 72usize];
    ["Alignment of CUpti_ActivityMemoryPool2"]
        [::std::mem::align_of::<CUpti_ActivityMemoryPool2>() - 8usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::kind"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, kind) - 0usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::memoryPoolOperationType"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, memoryPoolOperationType) - 4usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::memoryPoolType"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, memoryPoolType) - 8usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::correlationId"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, correlationId) - 12usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::processId"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, processId) - 16usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::deviceId"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, deviceId) - 20usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::minBytesToKeep"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, minBytesToKeep) - 24usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::address"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, address) - 32usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::size"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, size) - 40usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::releaseThreshold"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, releaseThreshold) - 48usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::timestamp"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, timestamp) - 56usize];
    ["Offset of field: CUpti_ActivityMemoryPool2::utilizedSize"]
        [::std::mem::offset_of!(CUpti_ActivityMemoryPool2, utilizedSize) - 64usize];
};
pub const CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost: CUpti_driver_api_trace_cbid_enum = 38;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc: CUpti_driver_api_trace_cbid_enum = 39;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2: CUpti_driver_api_trace_cbid_enum = 243;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2: CUpti_driver_api_trace_cbid_enum = 244;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2: CUpti_driver_api_trace_cbid_enum = 245;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2: CUpti_driver_api_trace_cbid_enum = 294;
pub const CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle: CUpti_driver_api_trace_cbid_enum = 329;
pub const CUPTI_DRIVER_TRACE_CBID_cuIpcCloseMemHandle: CUpti_driver_api_trace_cbid_enum = 330;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged: CUpti_driver_api_trace_cbid_enum = 371;
pub const CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture: CUpti_driver_api_trace_cbid_enum = 495;
pub const CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz: CUpti_driver_api_trace_cbid_enum = 496;
pub const CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture: CUpti_driver_api_trace_cbid_enum = 497;
pub const CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz: CUpti_driver_api_trace_cbid_enum = 498;
pub const CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2: CUpti_driver_api_trace_cbid_enum = 539;
pub const CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz: CUpti_driver_api_trace_cbid_enum =
    540;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemAddressReserve: CUpti_driver_api_trace_cbid_enum = 547;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemAddressFree: CUpti_driver_api_trace_cbid_enum = 548;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemCreate: CUpti_driver_api_trace_cbid_enum = 549;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemRelease: CUpti_driver_api_trace_cbid_enum = 550;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemMap: CUpti_driver_api_trace_cbid_enum = 551;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemUnmap: CUpti_driver_api_trace_cbid_enum = 552;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemRetainAllocationHandle: CUpti_driver_api_trace_cbid_enum =
    565;
pub const CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle_v2: CUpti_driver_api_trace_cbid_enum = 567;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync: CUpti_driver_api_trace_cbid_enum = 598;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz: CUpti_driver_api_trace_cbid_enum = 599;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync: CUpti_driver_api_trace_cbid_enum = 600;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz: CUpti_driver_api_trace_cbid_enum = 601;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemPoolTrimTo: CUpti_driver_api_trace_cbid_enum = 602;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemPoolSetAttribute: CUpti_driver_api_trace_cbid_enum = 603;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemPoolCreate: CUpti_driver_api_trace_cbid_enum = 607;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemPoolDestroy: CUpti_driver_api_trace_cbid_enum = 608;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync: CUpti_driver_api_trace_cbid_enum = 611;
pub const CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz: CUpti_driver_api_trace_cbid_enum =
    612;
pub const CUPTI_DRIVER_TRACE_CBID_cuGraphAddMemAllocNode: CUpti_driver_api_trace_cbid_enum = 638;
pub const CUPTI_DRIVER_TRACE_CBID_cuGraphAddMemFreeNode: CUpti_driver_api_trace_cbid_enum = 639;
pub const CUPTI_DRIVER_TRACE_CBID_cuMulticastCreate: CUpti_driver_api_trace_cbid_enum = 706;
pub const CUPTI_DRIVER_TRACE_CBID_cuMulticastBindMem: CUpti_driver_api_trace_cbid_enum = 708;
pub const CUPTI_DRIVER_TRACE_CBID_cuMulticastBindAddr: CUpti_driver_api_trace_cbid_enum = 709;
pub const CUPTI_DRIVER_TRACE_CBID_cuMulticastUnbind: CUpti_driver_api_trace_cbid_enum = 710;
pub const CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode: CUpti_driver_api_trace_cbid_enum = 712;
pub const CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph: CUpti_driver_api_trace_cbid_enum =
    720;
pub const CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz:
    CUpti_driver_api_trace_cbid_enum = 721;
pub const CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2: CUpti_driver_api_trace_cbid_enum = 723;
pub const CUPTI_DRIVER_TRACE_CBID_cuMulticastBindMem_v2: CUpti_driver_api_trace_cbid_enum = 820;
pub const CUPTI_DRIVER_TRACE_CBID_cuMulticastBindAddr_v2: CUpti_driver_api_trace_cbid_enum = 821;
pub type CUpti_driver_api_trace_cbid_enum = ::std::os::raw::c_uint;
pub use self::CUpti_driver_api_trace_cbid_enum as CUpti_driver_api_trace_cbid;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020: CUpti_runtime_api_trace_cbid_enum = 20;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMallocPitch_v3020: CUpti_runtime_api_trace_cbid_enum = 21;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020: CUpti_runtime_api_trace_cbid_enum = 22;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMallocHost_v3020: CUpti_runtime_api_trace_cbid_enum = 25;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaFreeHost_v3020: CUpti_runtime_api_trace_cbid_enum = 26;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaHostAlloc_v3020: CUpti_runtime_api_trace_cbid_enum = 27;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMalloc3D_v3020: CUpti_runtime_api_trace_cbid_enum = 140;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaIpcOpenMemHandle_v4010: CUpti_runtime_api_trace_cbid_enum =
    179;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaIpcCloseMemHandle_v4010: CUpti_runtime_api_trace_cbid_enum =
    180;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMallocManaged_v6000: CUpti_runtime_api_trace_cbid_enum = 206;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_v10000:
    CUpti_runtime_api_trace_cbid_enum = 315;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_ptsz_v10000:
    CUpti_runtime_api_trace_cbid_enum = 316;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_v10000: CUpti_runtime_api_trace_cbid_enum =
    319;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_ptsz_v10000:
    CUpti_runtime_api_trace_cbid_enum = 320;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_v11020: CUpti_runtime_api_trace_cbid_enum = 373;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_ptsz_v11020: CUpti_runtime_api_trace_cbid_enum =
    374;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaFreeAsync_v11020: CUpti_runtime_api_trace_cbid_enum = 375;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaFreeAsync_ptsz_v11020: CUpti_runtime_api_trace_cbid_enum =
    376;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolTrimTo_v11020: CUpti_runtime_api_trace_cbid_enum =
    377;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolSetAttribute_v11020:
    CUpti_runtime_api_trace_cbid_enum = 378;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolCreate_v11020: CUpti_runtime_api_trace_cbid_enum =
    383;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolDestroy_v11020: CUpti_runtime_api_trace_cbid_enum =
    384;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMallocFromPoolAsync_v11020:
    CUpti_runtime_api_trace_cbid_enum = 391;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaMallocFromPoolAsync_ptsz_v11020:
    CUpti_runtime_api_trace_cbid_enum = 392;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddMemAllocNode_v11040:
    CUpti_runtime_api_trace_cbid_enum = 419;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddMemFreeNode_v11040:
    CUpti_runtime_api_trace_cbid_enum = 421;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddNode_v12020: CUpti_runtime_api_trace_cbid_enum = 445;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCaptureToGraph_v12030:
    CUpti_runtime_api_trace_cbid_enum = 452;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCaptureToGraph_ptsz_v12030:
    CUpti_runtime_api_trace_cbid_enum = 453;
pub const CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddNode_v12030: CUpti_runtime_api_trace_cbid_enum = 460;
pub type CUpti_runtime_api_trace_cbid_enum = ::std::os::raw::c_uint;
pub use self::CUpti_runtime_api_trace_cbid_enum as CUpti_runtime_api_trace_cbid;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMalloc_v3020_params_st {
    pub devPtr: *mut *mut ::std::os::raw::c_void,
    pub size: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMalloc_v3020_params_st"]
        [::std::mem::size_of::<cudaMalloc_v3020_params_st>() - 16usize];
    ["Alignment of cudaMalloc_v3020_params_st"]
        [::std::mem::align_of::<cudaMalloc_v3020_params_st>() - 8usize];
    ["Offset of field: cudaMalloc_v3020_params_st::devPtr"]
        [::std::mem::offset_of!(cudaMalloc_v3020_params_st, devPtr) - 0usize];
    ["Offset of field: cudaMalloc_v3020_params_st::size"]
        [::std::mem::offset_of!(cudaMalloc_v3020_params_st, size) - 8usize];
};
pub type cudaMalloc_v3020_params = cudaMalloc_v3020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMallocPitch_v3020_params_st {
    pub devPtr: *mut *mut ::std::os::raw::c_void,
    pub pitch: *mut usize,
    pub width: usize,
    pub height: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMallocPitch_v3020_params_st"]
        [::std::mem::size_of::<cudaMallocPitch_v3020_params_st>() - 32usize];
    ["Alignment of cudaMallocPitch_v3020_params_st"]
        [::std::mem::align_of::<cudaMallocPitch_v3020_params_st>() - 8usize];
    ["Offset of field: cudaMallocPitch_v3020_params_st::devPtr"]
        [::std::mem::offset_of!(cudaMallocPitch_v3020_params_st, devPtr) - 0usize];
    ["Offset of field: cudaMallocPitch_v3020_params_st::pitch"]
        [::std::mem::offset_of!(cudaMallocPitch_v3020_params_st, pitch) - 8usize];
    ["Offset of field: cudaMallocPitch_v3020_params_st::width"]
        [::std::mem::offset_of!(cudaMallocPitch_v3020_params_st, width) - 16usize];
    ["Offset of field: cudaMallocPitch_v3020_params_st::height"]
        [::std::mem::offset_of!(cudaMallocPitch_v3020_params_st, height) - 24usize];
};
pub type cudaMallocPitch_v3020_params = cudaMallocPitch_v3020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaFree_v3020_params_st {
    pub devPtr: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaFree_v3020_params_st"]
        [::std::mem::size_of::<cudaFree_v3020_params_st>() - 8usize];
    ["Alignment of cudaFree_v3020_params_st"]
        [::std::mem::align_of::<cudaFree_v3020_params_st>() - 8usize];
    ["Offset of field: cudaFree_v3020_params_st::devPtr"]
        [::std::mem::offset_of!(cudaFree_v3020_params_st, devPtr) - 0usize];
};
pub type cudaFree_v3020_params = cudaFree_v3020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMallocHost_v3020_params_st {
    pub ptr: *mut *mut ::std::os::raw::c_void,
    pub size: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMallocHost_v3020_params_st"]
        [::std::mem::size_of::<cudaMallocHost_v3020_params_st>() - 16usize];
    ["Alignment of cudaMallocHost_v3020_params_st"]
        [::std::mem::align_of::<cudaMallocHost_v3020_params_st>() - 8usize];
    ["Offset of field: cudaMallocHost_v3020_params_st::ptr"]
        [::std::mem::offset_of!(cudaMallocHost_v3020_params_st, ptr) - 0usize];
    ["Offset of field: cudaMallocHost_v3020_params_st::size"]
        [::std::mem::offset_of!(cudaMallocHost_v3020_params_st, size) - 8usize];
};
pub type cudaMallocHost_v3020_params = cudaMallocHost_v3020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaFreeHost_v3020_params_st {
    pub ptr: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaFreeHost_v3020_params_st"]
        [::std::mem::size_of::<cudaFreeHost_v3020_params_st>() - 8usize];
    ["Alignment of cudaFreeHost_v3020_params_st"]
        [::std::mem::align_of::<cudaFreeHost_v3020_params_st>() - 8usize];
    ["Offset of field: cudaFreeHost_v3020_params_st::ptr"]
        [::std::mem::offset_of!(cudaFreeHost_v3020_params_st, ptr) - 0usize];
};
pub type cudaFreeHost_v3020_params = cudaFreeHost_v3020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaHostAlloc_v3020_params_st {
    pub pHost: *mut *mut ::std::os::raw::c_void,
    pub size: usize,
    pub flags: ::std::os::raw::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaHostAlloc_v3020_params_st"]
        [::std::mem::size_of::<cudaHostAlloc_v3020_params_st>() - 24usize];
    ["Alignment of cudaHostAlloc_v3020_params_st"]
        [::std::mem::align_of::<cudaHostAlloc_v3020_params_st>() - 8usize];
    ["Offset of field: cudaHostAlloc_v3020_params_st::pHost"]
        [::std::mem::offset_of!(cudaHostAlloc_v3020_params_st, pHost) - 0usize];
    ["Offset of field: cudaHostAlloc_v3020_params_st::size"]
        [::std::mem::offset_of!(cudaHostAlloc_v3020_params_st, size) - 8usize];
    ["Offset of field: cudaHostAlloc_v3020_params_st::flags"]
        [::std::mem::offset_of!(cudaHostAlloc_v3020_params_st, flags) - 16usize];
};
pub type cudaHostAlloc_v3020_params = cudaHostAlloc_v3020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMalloc3D_v3020_params_st {
    pub pitchedDevPtr: *mut cudaPitchedPtr,
    pub extent: cudaExtent,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMalloc3D_v3020_params_st"]
        [::std::mem::size_of::<cudaMalloc3D_v3020_params_st>() - 32usize];
    ["Alignment of cudaMalloc3D_v3020_params_st"]
        [::std::mem::align_of::<cudaMalloc3D_v3020_params_st>() - 8usize];
    ["Offset of field: cudaMalloc3D_v3020_params_st::pitchedDevPtr"]
        [::std::mem::offset_of!(cudaMalloc3D_v3020_params_st, pitchedDevPtr) - 0usize];
    ["Offset of field: cudaMalloc3D_v3020_params_st::extent"]
        [::std::mem::offset_of!(cudaMalloc3D_v3020_params_st, extent) - 8usize];
};
pub type cudaMalloc3D_v3020_params = cudaMalloc3D_v3020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaIpcOpenMemHandle_v4010_params_st {
    pub devPtr: *mut *mut ::std::os::raw::c_void,
    pub handle: cudaIpcMemHandle_t,
    pub flags: ::std::os::raw::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaIpcOpenMemHandle_v4010_params_st"]
        [::std::mem::size_of::<cudaIpcOpenMemHandle_v4010_params_st>() - 80usize];
    ["Alignment of cudaIpcOpenMemHandle_v4010_params_st"]
        [::std::mem::align_of::<cudaIpcOpenMemHandle_v4010_params_st>() - 8usize];
    ["Offset of field: cudaIpcOpenMemHandle_v4010_params_st::devPtr"]
        [::std::mem::offset_of!(cudaIpcOpenMemHandle_v4010_params_st, devPtr) - 0usize];
    ["Offset of field: cudaIpcOpenMemHandle_v4010_params_st::handle"]
        [::std::mem::offset_of!(cudaIpcOpenMemHandle_v4010_params_st, handle) - 8usize];
    ["Offset of field: cudaIpcOpenMemHandle_v4010_params_st::flags"]
        [::std::mem::offset_of!(cudaIpcOpenMemHandle_v4010_params_st, flags) - 72usize];
};
pub type cudaIpcOpenMemHandle_v4010_params = cudaIpcOpenMemHandle_v4010_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaIpcCloseMemHandle_v4010_params_st {
    pub devPtr: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaIpcCloseMemHandle_v4010_params_st"]
        [::std::mem::size_of::<cudaIpcCloseMemHandle_v4010_params_st>() - 8usize];
    ["Alignment of cudaIpcCloseMemHandle_v4010_params_st"]
        [::std::mem::align_of::<cudaIpcCloseMemHandle_v4010_params_st>() - 8usize];
    ["Offset of field: cudaIpcCloseMemHandle_v4010_params_st::devPtr"]
        [::std::mem::offset_of!(cudaIpcCloseMemHandle_v4010_params_st, devPtr) - 0usize];
};
pub type cudaIpcCloseMemHandle_v4010_params = cudaIpcCloseMemHandle_v4010_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMallocManaged_v6000_params_st {
    pub devPtr: *mut *mut ::std::os::raw::c_void,
    pub size: usize,
    pub flags: ::std::os::raw::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMallocManaged_v6000_params_st"]
        [::std::mem::size_of::<cudaMallocManaged_v6000_params_st>() - 24usize];
    ["Alignment of cudaMallocManaged_v6000_params_st"]
        [::std::mem::align_of::<cudaMallocManaged_v6000_params_st>() - 8usize];
    ["Offset of field: cudaMallocManaged_v6000_params_st::devPtr"]
        [::std::mem::offset_of!(cudaMallocManaged_v6000_params_st, devPtr) - 0usize];
    ["Offset of field: cudaMallocManaged_v6000_params_st::size"]
        [::std::mem::offset_of!(cudaMallocManaged_v6000_params_st, size) - 8usize];
    ["Offset of field: cudaMallocManaged_v6000_params_st::flags"]
        [::std::mem::offset_of!(cudaMallocManaged_v6000_params_st, flags) - 16usize];
};
pub type cudaMallocManaged_v6000_params = cudaMallocManaged_v6000_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMallocAsync_v11020_params_st {
    pub devPtr: *mut *mut ::std::os::raw::c_void,
    pub size: usize,
    pub hStream: cudaStream_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMallocAsync_v11020_params_st"]
        [::std::mem::size_of::<cudaMallocAsync_v11020_params_st>() - 24usize];
    ["Alignment of cudaMallocAsync_v11020_params_st"]
        [::std::mem::align_of::<cudaMallocAsync_v11020_params_st>() - 8usize];
    ["Offset of field: cudaMallocAsync_v11020_params_st::devPtr"]
        [::std::mem::offset_of!(cudaMallocAsync_v11020_params_st, devPtr) - 0usize];
    ["Offset of field: cudaMallocAsync_v11020_params_st::size"]
        [::std::mem::offset_of!(cudaMallocAsync_v11020_params_st, size) - 8usize];
    ["Offset of field: cudaMallocAsync_v11020_params_st::hStream"]
        [::std::mem::offset_of!(cudaMallocAsync_v11020_params_st, hStream) - 16usize];
};
pub type cudaMallocAsync_v11020_params = cudaMallocAsync_v11020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMallocAsync_ptsz_v11020_params_st {
    pub devPtr: *mut *mut ::std::os::raw::c_void,
    pub size: usize,
    pub hStream: cudaStream_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMallocAsync_ptsz_v11020_params_st"]
        [::std::mem::size_of::<cudaMallocAsync_ptsz_v11020_params_st>() - 24usize];
    ["Alignment of cudaMallocAsync_ptsz_v11020_params_st"]
        [::std::mem::align_of::<cudaMallocAsync_ptsz_v11020_params_st>() - 8usize];
    ["Offset of field: cudaMallocAsync_ptsz_v11020_params_st::devPtr"]
        [::std::mem::offset_of!(cudaMallocAsync_ptsz_v11020_params_st, devPtr) - 0usize];
    ["Offset of field: cudaMallocAsync_ptsz_v11020_params_st::size"]
        [::std::mem::offset_of!(cudaMallocAsync_ptsz_v11020_params_st, size) - 8usize];
    ["Offset of field: cudaMallocAsync_ptsz_v11020_params_st::hStream"]
        [::std::mem::offset_of!(cudaMallocAsync_ptsz_v11020_params_st, hStream) - 16usize];
};
pub type cudaMallocAsync_ptsz_v11020_params = cudaMallocAsync_ptsz_v11020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaFreeAsync_v11020_params_st {
    pub devPtr: *mut ::std::os::raw::c_void,
    pub hStream: cudaStream_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaFreeAsync_v11020_params_st"]
        [::std::mem::size_of::<cudaFreeAsync_v11020_params_st>() - 16usize];
    ["Alignment of cudaFreeAsync_v11020_params_st"]
        [::std::mem::align_of::<cudaFreeAsync_v11020_params_st>() - 8usize];
    ["Offset of field: cudaFreeAsync_v11020_params_st::devPtr"]
        [::std::mem::offset_of!(cudaFreeAsync_v11020_params_st, devPtr) - 0usize];
    ["Offset of field: cudaFreeAsync_v11020_params_st::hStream"]
        [::std::mem::offset_of!(cudaFreeAsync_v11020_params_st, hStream) - 8usize];
};
pub type cudaFreeAsync_v11020_params = cudaFreeAsync_v11020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaFreeAsync_ptsz_v11020_params_st {
    pub devPtr: *mut ::std::os::raw::c_void,
    pub hStream: cudaStream_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaFreeAsync_ptsz_v11020_params_st"]
        [::std::mem::size_of::<cudaFreeAsync_ptsz_v11020_params_st>() - 16usize];
    ["Alignment of cudaFreeAsync_ptsz_v11020_params_st"]
        [::std::mem::align_of::<cudaFreeAsync_ptsz_v11020_params_st>() - 8usize];
    ["Offset of field: cudaFreeAsync_ptsz_v11020_params_st::devPtr"]
        [::std::mem::offset_of!(cudaFreeAsync_ptsz_v11020_params_st, devPtr) - 0usize];
    ["Offset of field: cudaFreeAsync_ptsz_v11020_params_st::hStream"]
        [::std::mem::offset_of!(cudaFreeAsync_ptsz_v11020_params_st, hStream) - 8usize];
};
pub type cudaFreeAsync_ptsz_v11020_params = cudaFreeAsync_ptsz_v11020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMemPoolTrimTo_v11020_params_st {
    pub memPool: cudaMemPool_t,
    pub minBytesToKeep: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMemPoolTrimTo_v11020_params_st"]
        [::std::mem::size_of::<cudaMemPoolTrimTo_v11020_params_st>() - 16usize];
    ["Alignment of cudaMemPoolTrimTo_v11020_params_st"]
        [::std::mem::align_of::<cudaMemPoolTrimTo_v11020_params_st>() - 8usize];
    ["Offset of field: cudaMemPoolTrimTo_v11020_params_st::memPool"]
        [::std::mem::offset_of!(cudaMemPoolTrimTo_v11020_params_st, memPool) - 0usize];
    ["Offset of field: cudaMemPoolTrimTo_v11020_params_st::minBytesToKeep"]
        [::std::mem::offset_of!(cudaMemPoolTrimTo_v11020_params_st, minBytesToKeep) - 8usize];
};
pub type cudaMemPoolTrimTo_v11020_params = cudaMemPoolTrimTo_v11020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMemPoolCreate_v11020_params_st {
    pub memPool: *mut cudaMemPool_t,
    pub poolProps: *const cudaMemPoolProps,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMemPoolCreate_v11020_params_st"]
        [::std::mem::size_of::<cudaMemPoolCreate_v11020_params_st>() - 16usize];
    ["Alignment of cudaMemPoolCreate_v11020_params_st"]
        [::std::mem::align_of::<cudaMemPoolCreate_v11020_params_st>() - 8usize];
    ["Offset of field: cudaMemPoolCreate_v11020_params_st::memPool"]
        [::std::mem::offset_of!(cudaMemPoolCreate_v11020_params_st, memPool) - 0usize];
    ["Offset of field: cudaMemPoolCreate_v11020_params_st::poolProps"]
        [::std::mem::offset_of!(cudaMemPoolCreate_v11020_params_st, poolProps) - 8usize];
};
pub type cudaMemPoolCreate_v11020_params = cudaMemPoolCreate_v11020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMemPoolDestroy_v11020_params_st {
    pub memPool: cudaMemPool_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMemPoolDestroy_v11020_params_st"]
        [::std::mem::size_of::<cudaMemPoolDestroy_v11020_params_st>() - 8usize];
    ["Alignment of cudaMemPoolDestroy_v11020_params_st"]
        [::std::mem::align_of::<cudaMemPoolDestroy_v11020_params_st>() - 8usize];
    ["Offset of field: cudaMemPoolDestroy_v11020_params_st::memPool"]
        [::std::mem::offset_of!(cudaMemPoolDestroy_v11020_params_st, memPool) - 0usize];
};
pub type cudaMemPoolDestroy_v11020_params = cudaMemPoolDestroy_v11020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMallocFromPoolAsync_v11020_params_st {
    pub ptr: *mut *mut ::std::os::raw::c_void,
    pub size: usize,
    pub memPool: cudaMemPool_t,
    pub stream: cudaStream_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMallocFromPoolAsync_v11020_params_st"]
        [::std::mem::size_of::<cudaMallocFromPoolAsync_v11020_params_st>() - 32usize];
    ["Alignment of cudaMallocFromPoolAsync_v11020_params_st"]
        [::std::mem::align_of::<cudaMallocFromPoolAsync_v11020_params_st>() - 8usize];
    ["Offset of field: cudaMallocFromPoolAsync_v11020_params_st::ptr"]
        [::std::mem::offset_of!(cudaMallocFromPoolAsync_v11020_params_st, ptr) - 0usize];
    ["Offset of field: cudaMallocFromPoolAsync_v11020_params_st::size"]
        [::std::mem::offset_of!(cudaMallocFromPoolAsync_v11020_params_st, size) - 8usize];
    ["Offset of field: cudaMallocFromPoolAsync_v11020_params_st::memPool"]
        [::std::mem::offset_of!(cudaMallocFromPoolAsync_v11020_params_st, memPool) - 16usize];
    ["Offset of field: cudaMallocFromPoolAsync_v11020_params_st::stream"]
        [::std::mem::offset_of!(cudaMallocFromPoolAsync_v11020_params_st, stream) - 24usize];
};
pub type cudaMallocFromPoolAsync_v11020_params = cudaMallocFromPoolAsync_v11020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaMallocFromPoolAsync_ptsz_v11020_params_st {
    pub ptr: *mut *mut ::std::os::raw::c_void,
    pub size: usize,
    pub memPool: cudaMemPool_t,
    pub stream: cudaStream_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaMallocFromPoolAsync_ptsz_v11020_params_st"]
        [::std::mem::size_of::<cudaMallocFromPoolAsync_ptsz_v11020_params_st>() - 32usize];
    ["Alignment of cudaMallocFromPoolAsync_ptsz_v11020_params_st"]
        [::std::mem::align_of::<cudaMallocFromPoolAsync_ptsz_v11020_params_st>() - 8usize];
    ["Offset of field: cudaMallocFromPoolAsync_ptsz_v11020_params_st::ptr"]
        [::std::mem::offset_of!(cudaMallocFromPoolAsync_ptsz_v11020_params_st, ptr) - 0usize];
    ["Offset of field: cudaMallocFromPoolAsync_ptsz_v11020_params_st::size"]
        [::std::mem::offset_of!(cudaMallocFromPoolAsync_ptsz_v11020_params_st, size) - 8usize];
    ["Offset of field: cudaMallocFromPoolAsync_ptsz_v11020_params_st::memPool"]
        [::std::mem::offset_of!(cudaMallocFromPoolAsync_ptsz_v11020_params_st, memPool) - 16usize];
    ["Offset of field: cudaMallocFromPoolAsync_ptsz_v11020_params_st::stream"]
        [::std::mem::offset_of!(cudaMallocFromPoolAsync_ptsz_v11020_params_st, stream) - 24usize];
};
pub type cudaMallocFromPoolAsync_ptsz_v11020_params = cudaMallocFromPoolAsync_ptsz_v11020_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaGraphAddMemAllocNode_v11040_params_st {
    pub pGraphNode: *mut cudaGraphNode_t,
    pub graph: cudaGraph_t,
    pub pDependencies: *const cudaGraphNode_t,
    pub numDependencies: usize,
    pub nodeParams: *mut cudaMemAllocNodeParams,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaGraphAddMemAllocNode_v11040_params_st"]
        [::std::mem::size_of::<cudaGraphAddMemAllocNode_v11040_params_st>() - 40usize];
    ["Alignment of cudaGraphAddMemAllocNode_v11040_params_st"]
        [::std::mem::align_of::<cudaGraphAddMemAllocNode_v11040_params_st>() - 8usize];
    ["Offset of field: cudaGraphAddMemAllocNode_v11040_params_st::pGraphNode"]
        [::std::mem::offset_of!(cudaGraphAddMemAllocNode_v11040_params_st, pGraphNode) - 0usize];
    ["Offset of field: cudaGraphAddMemAllocNode_v11040_params_st::graph"]
        [::std::mem::offset_of!(cudaGraphAddMemAllocNode_v11040_params_st, graph) - 8usize];
    ["Offset of field: cudaGraphAddMemAllocNode_v11040_params_st::pDependencies"][::std::mem::offset_of!(
        cudaGraphAddMemAllocNode_v11040_params_st,
        pDependencies
    ) - 16usize];
    ["Offset of field: cudaGraphAddMemAllocNode_v11040_params_st::numDependencies"][::std::mem::offset_of!(
        cudaGraphAddMemAllocNode_v11040_params_st,
        numDependencies
    ) - 24usize];
    ["Offset of field: cudaGraphAddMemAllocNode_v11040_params_st::nodeParams"]
        [::std::mem::offset_of!(cudaGraphAddMemAllocNode_v11040_params_st, nodeParams) - 32usize];
};
pub type cudaGraphAddMemAllocNode_v11040_params = cudaGraphAddMemAllocNode_v11040_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaGraphAddMemFreeNode_v11040_params_st {
    pub pGraphNode: *mut cudaGraphNode_t,
    pub graph: cudaGraph_t,
    pub pDependencies: *const cudaGraphNode_t,
    pub numDependencies: usize,
    pub dptr: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cudaGraphAddMemFreeNode_v11040_params_st"]
        [::std::mem::size_of::<cudaGraphAddMemFreeNode_v11040_params_st>() - 40usize];
    ["Alignment of cudaGraphAddMemFreeNode_v11040_params_st"]
        [::std::mem::align_of::<cudaGraphAddMemFreeNode_v11040_params_st>() - 8usize];
    ["Offset of field: cudaGraphAddMemFreeNode_v11040_params_st::pGraphNode"]
        [::std::mem::offset_of!(cudaGraphAddMemFreeNode_v11040_params_st, pGraphNode) - 0usize];
    ["Offset of field: cudaGraphAddMemFreeNode_v11040_params_st::graph"]
        [::std::mem::offset_of!(cudaGraphAddMemFreeNode_v11040_params_st, graph) - 8usize];
    ["Offset of field: cudaGraphAddMemFreeNode_v11040_params_st::pDependencies"]
        [::std::mem::offset_of!(cudaGraphAddMemFreeNode_v11040_params_st, pDependencies) - 16usize];
    ["Offset of field: cudaGraphAddMemFreeNode_v11040_params_st::numDependencies"][::std::mem::offset_of!(
        cudaGraphAddMemFreeNode_v11040_params_st,
        numDependencies
    ) - 24usize];
    ["Offset of field: cudaGraphAddMemFreeNode_v11040_params_st::dptr"]
        [::std::mem::offset_of!(cudaGraphAddMemFreeNode_v11040_params_st, dptr) - 32usize];
};
pub type cudaGraphAddMemFreeNode_v11040_params = cudaGraphAddMemFreeNode_v11040_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemFreeHost_params_st {
    pub p: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemFreeHost_params_st"][::std::mem::size_of::<cuMemFreeHost_params_st>() - 8usize];
    ["Alignment of cuMemFreeHost_params_st"]
        [::std::mem::align_of::<cuMemFreeHost_params_st>() - 8usize];
    ["Offset of field: cuMemFreeHost_params_st::p"]
        [::std::mem::offset_of!(cuMemFreeHost_params_st, p) - 0usize];
};
pub type cuMemFreeHost_params = cuMemFreeHost_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemHostAlloc_params_st {
    pub pp: *mut *mut ::std::os::raw::c_void,
    pub bytesize: usize,
    pub Flags: ::std::os::raw::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemHostAlloc_params_st"]
        [::std::mem::size_of::<cuMemHostAlloc_params_st>() - 24usize];
    ["Alignment of cuMemHostAlloc_params_st"]
        [::std::mem::align_of::<cuMemHostAlloc_params_st>() - 8usize];
    ["Offset of field: cuMemHostAlloc_params_st::pp"]
        [::std::mem::offset_of!(cuMemHostAlloc_params_st, pp) - 0usize];
    ["Offset of field: cuMemHostAlloc_params_st::bytesize"]
        [::std::mem::offset_of!(cuMemHostAlloc_params_st, bytesize) - 8usize];
    ["Offset of field: cuMemHostAlloc_params_st::Flags"]
        [::std::mem::offset_of!(cuMemHostAlloc_params_st, Flags) - 16usize];
};
pub type cuMemHostAlloc_params = cuMemHostAlloc_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemAlloc_v2_params_st {
    pub dptr: *mut CUdeviceptr,
    pub bytesize: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemAlloc_v2_params_st"][::std::mem::size_of::<cuMemAlloc_v2_params_st>() - 16usize];
    ["Alignment of cuMemAlloc_v2_params_st"]
        [::std::mem::align_of::<cuMemAlloc_v2_params_st>() - 8usize];
    ["Offset of field: cuMemAlloc_v2_params_st::dptr"]
        [::std::mem::offset_of!(cuMemAlloc_v2_params_st, dptr) - 0usize];
    ["Offset of field: cuMemAlloc_v2_params_st::bytesize"]
        [::std::mem::offset_of!(cuMemAlloc_v2_params_st, bytesize) - 8usize];
};
pub type cuMemAlloc_v2_params = cuMemAlloc_v2_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemAllocPitch_v2_params_st {
    pub dptr: *mut CUdeviceptr,
    pub pPitch: *mut usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub ElementSizeBytes: ::std::os::raw::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemAllocPitch_v2_params_st"]
        [::std::mem::size_of::<cuMemAllocPitch_v2_params_st>() - 40usize];
    ["Alignment of cuMemAllocPitch_v2_params_st"]
        [::std::mem::align_of::<cuMemAllocPitch_v2_params_st>() - 8usize];
    ["Offset of field: cuMemAllocPitch_v2_params_st::dptr"]
        [::std::mem::offset_of!(cuMemAllocPitch_v2_params_st, dptr) - 0usize];
    ["Offset of field: cuMemAllocPitch_v2_params_st::pPitch"]
        [::std::mem::offset_of!(cuMemAllocPitch_v2_params_st, pPitch) - 8usize];
    ["Offset of field: cuMemAllocPitch_v2_params_st::WidthInBytes"]
        [::std::mem::offset_of!(cuMemAllocPitch_v2_params_st, WidthInBytes) - 16usize];
    ["Offset of field: cuMemAllocPitch_v2_params_st::Height"]
        [::std::mem::offset_of!(cuMemAllocPitch_v2_params_st, Height) - 24usize];
    ["Offset of field: cuMemAllocPitch_v2_params_st::ElementSizeBytes"]
        [::std::mem::offset_of!(cuMemAllocPitch_v2_params_st, ElementSizeBytes) - 32usize];
};
pub type cuMemAllocPitch_v2_params = cuMemAllocPitch_v2_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemFree_v2_params_st {
    pub dptr: CUdeviceptr,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemFree_v2_params_st"][::std::mem::size_of::<cuMemFree_v2_params_st>() - 8usize];
    ["Alignment of cuMemFree_v2_params_st"]
        [::std::mem::align_of::<cuMemFree_v2_params_st>() - 8usize];
    ["Offset of field: cuMemFree_v2_params_st::dptr"]
        [::std::mem::offset_of!(cuMemFree_v2_params_st, dptr) - 0usize];
};
pub type cuMemFree_v2_params = cuMemFree_v2_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemAllocHost_v2_params_st {
    pub pp: *mut *mut ::std::os::raw::c_void,
    pub bytesize: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemAllocHost_v2_params_st"]
        [::std::mem::size_of::<cuMemAllocHost_v2_params_st>() - 16usize];
    ["Alignment of cuMemAllocHost_v2_params_st"]
        [::std::mem::align_of::<cuMemAllocHost_v2_params_st>() - 8usize];
    ["Offset of field: cuMemAllocHost_v2_params_st::pp"]
        [::std::mem::offset_of!(cuMemAllocHost_v2_params_st, pp) - 0usize];
    ["Offset of field: cuMemAllocHost_v2_params_st::bytesize"]
        [::std::mem::offset_of!(cuMemAllocHost_v2_params_st, bytesize) - 8usize];
};
pub type cuMemAllocHost_v2_params = cuMemAllocHost_v2_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuIpcOpenMemHandle_params_st {
    pub pdptr: *mut CUdeviceptr,
    pub handle: CUipcMemHandle,
    pub Flags: ::std::os::raw::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuIpcOpenMemHandle_params_st"]
        [::std::mem::size_of::<cuIpcOpenMemHandle_params_st>() - 80usize];
    ["Alignment of cuIpcOpenMemHandle_params_st"]
        [::std::mem::align_of::<cuIpcOpenMemHandle_params_st>() - 8usize];
    ["Offset of field: cuIpcOpenMemHandle_params_st::pdptr"]
        [::std::mem::offset_of!(cuIpcOpenMemHandle_params_st, pdptr) - 0usize];
    ["Offset of field: cuIpcOpenMemHandle_params_st::handle"]
        [::std::mem::offset_of!(cuIpcOpenMemHandle_params_st, handle) - 8usize];
    ["Offset of field: cuIpcOpenMemHandle_params_st::Flags"]
        [::std::mem::offset_of!(cuIpcOpenMemHandle_params_st, Flags) - 72usize];
};
pub type cuIpcOpenMemHandle_params = cuIpcOpenMemHandle_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuIpcCloseMemHandle_params_st {
    pub dptr: CUdeviceptr,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuIpcCloseMemHandle_params_st"]
        [::std::mem::size_of::<cuIpcCloseMemHandle_params_st>() - 8usize];
    ["Alignment of cuIpcCloseMemHandle_params_st"]
        [::std::mem::align_of::<cuIpcCloseMemHandle_params_st>() - 8usize];
    ["Offset of field: cuIpcCloseMemHandle_params_st::dptr"]
        [::std::mem::offset_of!(cuIpcCloseMemHandle_params_st, dptr) - 0usize];
};
pub type cuIpcCloseMemHandle_params = cuIpcCloseMemHandle_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemAllocManaged_params_st {
    pub dptr: *mut CUdeviceptr,
    pub bytesize: usize,
    pub flags: ::std::os::raw::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemAllocManaged_params_st"]
        [::std::mem::size_of::<cuMemAllocManaged_params_st>() - 24usize];
    ["Alignment of cuMemAllocManaged_params_st"]
        [::std::mem::align_of::<cuMemAllocManaged_params_st>() - 8usize];
    ["Offset of field: cuMemAllocManaged_params_st::dptr"]
        [::std::mem::offset_of!(cuMemAllocManaged_params_st, dptr) - 0usize];
    ["Offset of field: cuMemAllocManaged_params_st::bytesize"]
        [::std::mem::offset_of!(cuMemAllocManaged_params_st, bytesize) - 8usize];
    ["Offset of field: cuMemAllocManaged_params_st::flags"]
        [::std::mem::offset_of!(cuMemAllocManaged_params_st, flags) - 16usize];
};
pub type cuMemAllocManaged_params = cuMemAllocManaged_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemAddressReserve_params_st {
    pub ptr: *mut CUdeviceptr,
    pub size: usize,
    pub alignment: usize,
    pub addr: CUdeviceptr,
    pub flags: ::std::os::raw::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemAddressReserve_params_st"]
        [::std::mem::size_of::<cuMemAddressReserve_params_st>() - 40usize];
    ["Alignment of cuMemAddressReserve_params_st"]
        [::std::mem::align_of::<cuMemAddressReserve_params_st>() - 8usize];
    ["Offset of field: cuMemAddressReserve_params_st::ptr"]
        [::std::mem::offset_of!(cuMemAddressReserve_params_st, ptr) - 0usize];
    ["Offset of field: cuMemAddressReserve_params_st::size"]
        [::std::mem::offset_of!(cuMemAddressReserve_params_st, size) - 8usize];
    ["Offset of field: cuMemAddressReserve_params_st::alignment"]
        [::std::mem::offset_of!(cuMemAddressReserve_params_st, alignment) - 16usize];
    ["Offset of field: cuMemAddressReserve_params_st::addr"]
        [::std::mem::offset_of!(cuMemAddressReserve_params_st, addr) - 24usize];
    ["Offset of field: cuMemAddressReserve_params_st::flags"]
        [::std::mem::offset_of!(cuMemAddressReserve_params_st, flags) - 32usize];
};
pub type cuMemAddressReserve_params = cuMemAddressReserve_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemAddressFree_params_st {
    pub ptr: CUdeviceptr,
    pub size: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemAddressFree_params_st"]
        [::std::mem::size_of::<cuMemAddressFree_params_st>() - 16usize];
    ["Alignment of cuMemAddressFree_params_st"]
        [::std::mem::align_of::<cuMemAddressFree_params_st>() - 8usize];
    ["Offset of field: cuMemAddressFree_params_st::ptr"]
        [::std::mem::offset_of!(cuMemAddressFree_params_st, ptr) - 0usize];
    ["Offset of field: cuMemAddressFree_params_st::size"]
        [::std::mem::offset_of!(cuMemAddressFree_params_st, size) - 8usize];
};
pub type cuMemAddressFree_params = cuMemAddressFree_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemCreate_params_st {
    pub handle: *mut CUmemGenericAllocationHandle,
    pub size: usize,
    pub prop: *const CUmemAllocationProp,
    pub flags: ::std::os::raw::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemCreate_params_st"][::std::mem::size_of::<cuMemCreate_params_st>() - 32usize];
    ["Alignment of cuMemCreate_params_st"]
        [::std::mem::align_of::<cuMemCreate_params_st>() - 8usize];
    ["Offset of field: cuMemCreate_params_st::handle"]
        [::std::mem::offset_of!(cuMemCreate_params_st, handle) - 0usize];
    ["Offset of field: cuMemCreate_params_st::size"]
        [::std::mem::offset_of!(cuMemCreate_params_st, size) - 8usize];
    ["Offset of field: cuMemCreate_params_st::prop"]
        [::std::mem::offset_of!(cuMemCreate_params_st, prop) - 16usize];
    ["Offset of field: cuMemCreate_params_st::flags"]
        [::std::mem::offset_of!(cuMemCreate_params_st, flags) - 24usize];
};
pub type cuMemCreate_params = cuMemCreate_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemRelease_params_st {
    pub handle: CUmemGenericAllocationHandle,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemRelease_params_st"][::std::mem::size_of::<cuMemRelease_params_st>() - 8usize];
    ["Alignment of cuMemRelease_params_st"]
        [::std::mem::align_of::<cuMemRelease_params_st>() - 8usize];
    ["Offset of field: cuMemRelease_params_st::handle"]
        [::std::mem::offset_of!(cuMemRelease_params_st, handle) - 0usize];
};
pub type cuMemRelease_params = cuMemRelease_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemMap_params_st {
    pub ptr: CUdeviceptr,
    pub size: usize,
    pub offset: usize,
    pub handle: CUmemGenericAllocationHandle,
    pub flags: ::std::os::raw::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemMap_params_st"][::std::mem::size_of::<cuMemMap_params_st>() - 40usize];
    ["Alignment of cuMemMap_params_st"][::std::mem::align_of::<cuMemMap_params_st>() - 8usize];
    ["Offset of field: cuMemMap_params_st::ptr"]
        [::std::mem::offset_of!(cuMemMap_params_st, ptr) - 0usize];
    ["Offset of field: cuMemMap_params_st::size"]
        [::std::mem::offset_of!(cuMemMap_params_st, size) - 8usize];
    ["Offset of field: cuMemMap_params_st::offset"]
        [::std::mem::offset_of!(cuMemMap_params_st, offset) - 16usize];
    ["Offset of field: cuMemMap_params_st::handle"]
        [::std::mem::offset_of!(cuMemMap_params_st, handle) - 24usize];
    ["Offset of field: cuMemMap_params_st::flags"]
        [::std::mem::offset_of!(cuMemMap_params_st, flags) - 32usize];
};
pub type cuMemMap_params = cuMemMap_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemUnmap_params_st {
    pub ptr: CUdeviceptr,
    pub size: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemUnmap_params_st"][::std::mem::size_of::<cuMemUnmap_params_st>() - 16usize];
    ["Alignment of cuMemUnmap_params_st"][::std::mem::align_of::<cuMemUnmap_params_st>() - 8usize];
    ["Offset of field: cuMemUnmap_params_st::ptr"]
        [::std::mem::offset_of!(cuMemUnmap_params_st, ptr) - 0usize];
    ["Offset of field: cuMemUnmap_params_st::size"]
        [::std::mem::offset_of!(cuMemUnmap_params_st, size) - 8usize];
};
pub type cuMemUnmap_params = cuMemUnmap_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemRetainAllocationHandle_params_st {
    pub handle: *mut CUmemGenericAllocationHandle,
    pub addr: *mut ::std::os::raw::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemRetainAllocationHandle_params_st"]
        [::std::mem::size_of::<cuMemRetainAllocationHandle_params_st>() - 16usize];
    ["Alignment of cuMemRetainAllocationHandle_params_st"]
        [::std::mem::align_of::<cuMemRetainAllocationHandle_params_st>() - 8usize];
    ["Offset of field: cuMemRetainAllocationHandle_params_st::handle"]
        [::std::mem::offset_of!(cuMemRetainAllocationHandle_params_st, handle) - 0usize];
    ["Offset of field: cuMemRetainAllocationHandle_params_st::addr"]
        [::std::mem::offset_of!(cuMemRetainAllocationHandle_params_st, addr) - 8usize];
};
pub type cuMemRetainAllocationHandle_params = cuMemRetainAllocationHandle_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuIpcOpenMemHandle_v2_params_st {
    pub pdptr: *mut CUdeviceptr,
    pub handle: CUipcMemHandle,
    pub Flags: ::std::os::raw::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuIpcOpenMemHandle_v2_params_st"]
        [::std::mem::size_of::<cuIpcOpenMemHandle_v2_params_st>() - 80usize];
    ["Alignment of cuIpcOpenMemHandle_v2_params_st"]
        [::std::mem::align_of::<cuIpcOpenMemHandle_v2_params_st>() - 8usize];
    ["Offset of field: cuIpcOpenMemHandle_v2_params_st::pdptr"]
        [::std::mem::offset_of!(cuIpcOpenMemHandle_v2_params_st, pdptr) - 0usize];
    ["Offset of field: cuIpcOpenMemHandle_v2_params_st::handle"]
        [::std::mem::offset_of!(cuIpcOpenMemHandle_v2_params_st, handle) - 8usize];
    ["Offset of field: cuIpcOpenMemHandle_v2_params_st::Flags"]
        [::std::mem::offset_of!(cuIpcOpenMemHandle_v2_params_st, Flags) - 72usize];
};
pub type cuIpcOpenMemHandle_v2_params = cuIpcOpenMemHandle_v2_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemAllocAsync_params_st {
    pub dptr: *mut CUdeviceptr,
    pub bytesize: usize,
    pub hStream: CUstream,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemAllocAsync_params_st"]
        [::std::mem::size_of::<cuMemAllocAsync_params_st>() - 24usize];
    ["Alignment of cuMemAllocAsync_params_st"]
        [::std::mem::align_of::<cuMemAllocAsync_params_st>() - 8usize];
    ["Offset of field: cuMemAllocAsync_params_st::dptr"]
        [::std::mem::offset_of!(cuMemAllocAsync_params_st, dptr) - 0usize];
    ["Offset of field: cuMemAllocAsync_params_st::bytesize"]
        [::std::mem::offset_of!(cuMemAllocAsync_params_st, bytesize) - 8usize];
    ["Offset of field: cuMemAllocAsync_params_st::hStream"]
        [::std::mem::offset_of!(cuMemAllocAsync_params_st, hStream) - 16usize];
};
pub type cuMemAllocAsync_params = cuMemAllocAsync_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemAllocAsync_ptsz_params_st {
    pub dptr: *mut CUdeviceptr,
    pub bytesize: usize,
    pub hStream: CUstream,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemAllocAsync_ptsz_params_st"]
        [::std::mem::size_of::<cuMemAllocAsync_ptsz_params_st>() - 24usize];
    ["Alignment of cuMemAllocAsync_ptsz_params_st"]
        [::std::mem::align_of::<cuMemAllocAsync_ptsz_params_st>() - 8usize];
    ["Offset of field: cuMemAllocAsync_ptsz_params_st::dptr"]
        [::std::mem::offset_of!(cuMemAllocAsync_ptsz_params_st, dptr) - 0usize];
    ["Offset of field: cuMemAllocAsync_ptsz_params_st::bytesize"]
        [::std::mem::offset_of!(cuMemAllocAsync_ptsz_params_st, bytesize) - 8usize];
    ["Offset of field: cuMemAllocAsync_ptsz_params_st::hStream"]
        [::std::mem::offset_of!(cuMemAllocAsync_ptsz_params_st, hStream) - 16usize];
};
pub type cuMemAllocAsync_ptsz_params = cuMemAllocAsync_ptsz_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemFreeAsync_params_st {
    pub dptr: CUdeviceptr,
    pub hStream: CUstream,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemFreeAsync_params_st"]
        [::std::mem::size_of::<cuMemFreeAsync_params_st>() - 16usize];
    ["Alignment of cuMemFreeAsync_params_st"]
        [::std::mem::align_of::<cuMemFreeAsync_params_st>() - 8usize];
    ["Offset of field: cuMemFreeAsync_params_st::dptr"]
        [::std::mem::offset_of!(cuMemFreeAsync_params_st, dptr) - 0usize];
    ["Offset of field: cuMemFreeAsync_params_st::hStream"]
        [::std::mem::offset_of!(cuMemFreeAsync_params_st, hStream) - 8usize];
};
pub type cuMemFreeAsync_params = cuMemFreeAsync_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemFreeAsync_ptsz_params_st {
    pub dptr: CUdeviceptr,
    pub hStream: CUstream,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemFreeAsync_ptsz_params_st"]
        [::std::mem::size_of::<cuMemFreeAsync_ptsz_params_st>() - 16usize];
    ["Alignment of cuMemFreeAsync_ptsz_params_st"]
        [::std::mem::align_of::<cuMemFreeAsync_ptsz_params_st>() - 8usize];
    ["Offset of field: cuMemFreeAsync_ptsz_params_st::dptr"]
        [::std::mem::offset_of!(cuMemFreeAsync_ptsz_params_st, dptr) - 0usize];
    ["Offset of field: cuMemFreeAsync_ptsz_params_st::hStream"]
        [::std::mem::offset_of!(cuMemFreeAsync_ptsz_params_st, hStream) - 8usize];
};
pub type cuMemFreeAsync_ptsz_params = cuMemFreeAsync_ptsz_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemPoolTrimTo_params_st {
    pub pool: CUmemoryPool,
    pub minBytesToKeep: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemPoolTrimTo_params_st"]
        [::std::mem::size_of::<cuMemPoolTrimTo_params_st>() - 16usize];
    ["Alignment of cuMemPoolTrimTo_params_st"]
        [::std::mem::align_of::<cuMemPoolTrimTo_params_st>() - 8usize];
    ["Offset of field: cuMemPoolTrimTo_params_st::pool"]
        [::std::mem::offset_of!(cuMemPoolTrimTo_params_st, pool) - 0usize];
    ["Offset of field: cuMemPoolTrimTo_params_st::minBytesToKeep"]
        [::std::mem::offset_of!(cuMemPoolTrimTo_params_st, minBytesToKeep) - 8usize];
};
pub type cuMemPoolTrimTo_params = cuMemPoolTrimTo_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemPoolCreate_params_st {
    pub pool: *mut CUmemoryPool,
    pub poolProps: *const CUmemPoolProps,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemPoolCreate_params_st"]
        [::std::mem::size_of::<cuMemPoolCreate_params_st>() - 16usize];
    ["Alignment of cuMemPoolCreate_params_st"]
        [::std::mem::align_of::<cuMemPoolCreate_params_st>() - 8usize];
    ["Offset of field: cuMemPoolCreate_params_st::pool"]
        [::std::mem::offset_of!(cuMemPoolCreate_params_st, pool) - 0usize];
    ["Offset of field: cuMemPoolCreate_params_st::poolProps"]
        [::std::mem::offset_of!(cuMemPoolCreate_params_st, poolProps) - 8usize];
};
pub type cuMemPoolCreate_params = cuMemPoolCreate_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemPoolDestroy_params_st {
    pub pool: CUmemoryPool,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemPoolDestroy_params_st"]
        [::std::mem::size_of::<cuMemPoolDestroy_params_st>() - 8usize];
    ["Alignment of cuMemPoolDestroy_params_st"]
        [::std::mem::align_of::<cuMemPoolDestroy_params_st>() - 8usize];
    ["Offset of field: cuMemPoolDestroy_params_st::pool"]
        [::std::mem::offset_of!(cuMemPoolDestroy_params_st, pool) - 0usize];
};
pub type cuMemPoolDestroy_params = cuMemPoolDestroy_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemAllocFromPoolAsync_params_st {
    pub dptr: *mut CUdeviceptr,
    pub bytesize: usize,
    pub pool: CUmemoryPool,
    pub hStream: CUstream,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemAllocFromPoolAsync_params_st"]
        [::std::mem::size_of::<cuMemAllocFromPoolAsync_params_st>() - 32usize];
    ["Alignment of cuMemAllocFromPoolAsync_params_st"]
        [::std::mem::align_of::<cuMemAllocFromPoolAsync_params_st>() - 8usize];
    ["Offset of field: cuMemAllocFromPoolAsync_params_st::dptr"]
        [::std::mem::offset_of!(cuMemAllocFromPoolAsync_params_st, dptr) - 0usize];
    ["Offset of field: cuMemAllocFromPoolAsync_params_st::bytesize"]
        [::std::mem::offset_of!(cuMemAllocFromPoolAsync_params_st, bytesize) - 8usize];
    ["Offset of field: cuMemAllocFromPoolAsync_params_st::pool"]
        [::std::mem::offset_of!(cuMemAllocFromPoolAsync_params_st, pool) - 16usize];
    ["Offset of field: cuMemAllocFromPoolAsync_params_st::hStream"]
        [::std::mem::offset_of!(cuMemAllocFromPoolAsync_params_st, hStream) - 24usize];
};
pub type cuMemAllocFromPoolAsync_params = cuMemAllocFromPoolAsync_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMemAllocFromPoolAsync_ptsz_params_st {
    pub dptr: *mut CUdeviceptr,
    pub bytesize: usize,
    pub pool: CUmemoryPool,
    pub hStream: CUstream,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMemAllocFromPoolAsync_ptsz_params_st"]
        [::std::mem::size_of::<cuMemAllocFromPoolAsync_ptsz_params_st>() - 32usize];
    ["Alignment of cuMemAllocFromPoolAsync_ptsz_params_st"]
        [::std::mem::align_of::<cuMemAllocFromPoolAsync_ptsz_params_st>() - 8usize];
    ["Offset of field: cuMemAllocFromPoolAsync_ptsz_params_st::dptr"]
        [::std::mem::offset_of!(cuMemAllocFromPoolAsync_ptsz_params_st, dptr) - 0usize];
    ["Offset of field: cuMemAllocFromPoolAsync_ptsz_params_st::bytesize"]
        [::std::mem::offset_of!(cuMemAllocFromPoolAsync_ptsz_params_st, bytesize) - 8usize];
    ["Offset of field: cuMemAllocFromPoolAsync_ptsz_params_st::pool"]
        [::std::mem::offset_of!(cuMemAllocFromPoolAsync_ptsz_params_st, pool) - 16usize];
    ["Offset of field: cuMemAllocFromPoolAsync_ptsz_params_st::hStream"]
        [::std::mem::offset_of!(cuMemAllocFromPoolAsync_ptsz_params_st, hStream) - 24usize];
};
pub type cuMemAllocFromPoolAsync_ptsz_params = cuMemAllocFromPoolAsync_ptsz_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuGraphAddMemAllocNode_params_st {
    pub phGraphNode: *mut CUgraphNode,
    pub hGraph: CUgraph,
    pub dependencies: *const CUgraphNode,
    pub numDependencies: usize,
    pub nodeParams: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuGraphAddMemAllocNode_params_st"]
        [::std::mem::size_of::<cuGraphAddMemAllocNode_params_st>() - 40usize];
    ["Alignment of cuGraphAddMemAllocNode_params_st"]
        [::std::mem::align_of::<cuGraphAddMemAllocNode_params_st>() - 8usize];
    ["Offset of field: cuGraphAddMemAllocNode_params_st::phGraphNode"]
        [::std::mem::offset_of!(cuGraphAddMemAllocNode_params_st, phGraphNode) - 0usize];
    ["Offset of field: cuGraphAddMemAllocNode_params_st::hGraph"]
        [::std::mem::offset_of!(cuGraphAddMemAllocNode_params_st, hGraph) - 8usize];
    ["Offset of field: cuGraphAddMemAllocNode_params_st::dependencies"]
        [::std::mem::offset_of!(cuGraphAddMemAllocNode_params_st, dependencies) - 16usize];
    ["Offset of field: cuGraphAddMemAllocNode_params_st::numDependencies"]
        [::std::mem::offset_of!(cuGraphAddMemAllocNode_params_st, numDependencies) - 24usize];
    ["Offset of field: cuGraphAddMemAllocNode_params_st::nodeParams"]
        [::std::mem::offset_of!(cuGraphAddMemAllocNode_params_st, nodeParams) - 32usize];
};
pub type cuGraphAddMemAllocNode_params = cuGraphAddMemAllocNode_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuGraphAddMemFreeNode_params_st {
    pub phGraphNode: *mut CUgraphNode,
    pub hGraph: CUgraph,
    pub dependencies: *const CUgraphNode,
    pub numDependencies: usize,
    pub dptr: CUdeviceptr,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuGraphAddMemFreeNode_params_st"]
        [::std::mem::size_of::<cuGraphAddMemFreeNode_params_st>() - 40usize];
    ["Alignment of cuGraphAddMemFreeNode_params_st"]
        [::std::mem::align_of::<cuGraphAddMemFreeNode_params_st>() - 8usize];
    ["Offset of field: cuGraphAddMemFreeNode_params_st::phGraphNode"]
        [::std::mem::offset_of!(cuGraphAddMemFreeNode_params_st, phGraphNode) - 0usize];
    ["Offset of field: cuGraphAddMemFreeNode_params_st::hGraph"]
        [::std::mem::offset_of!(cuGraphAddMemFreeNode_params_st, hGraph) - 8usize];
    ["Offset of field: cuGraphAddMemFreeNode_params_st::dependencies"]
        [::std::mem::offset_of!(cuGraphAddMemFreeNode_params_st, dependencies) - 16usize];
    ["Offset of field: cuGraphAddMemFreeNode_params_st::numDependencies"]
        [::std::mem::offset_of!(cuGraphAddMemFreeNode_params_st, numDependencies) - 24usize];
    ["Offset of field: cuGraphAddMemFreeNode_params_st::dptr"]
        [::std::mem::offset_of!(cuGraphAddMemFreeNode_params_st, dptr) - 32usize];
};
pub type cuGraphAddMemFreeNode_params = cuGraphAddMemFreeNode_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMulticastCreate_params_st {
    pub mcHandle: *mut CUmemGenericAllocationHandle,
    pub prop: *const CUmulticastObjectProp,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMulticastCreate_params_st"]
        [::std::mem::size_of::<cuMulticastCreate_params_st>() - 16usize];
    ["Alignment of cuMulticastCreate_params_st"]
        [::std::mem::align_of::<cuMulticastCreate_params_st>() - 8usize];
    ["Offset of field: cuMulticastCreate_params_st::mcHandle"]
        [::std::mem::offset_of!(cuMulticastCreate_params_st, mcHandle) - 0usize];
    ["Offset of field: cuMulticastCreate_params_st::prop"]
        [::std::mem::offset_of!(cuMulticastCreate_params_st, prop) - 8usize];
};
pub type cuMulticastCreate_params = cuMulticastCreate_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMulticastBindMem_params_st {
    pub mcHandle: CUmemGenericAllocationHandle,
    pub mcOffset: usize,
    pub memHandle: CUmemGenericAllocationHandle,
    pub memOffset: usize,
    pub size: usize,
    pub flags: ::std::os::raw::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMulticastBindMem_params_st"]
        [::std::mem::size_of::<cuMulticastBindMem_params_st>() - 48usize];
    ["Alignment of cuMulticastBindMem_params_st"]
        [::std::mem::align_of::<cuMulticastBindMem_params_st>() - 8usize];
    ["Offset of field: cuMulticastBindMem_params_st::mcHandle"]
        [::std::mem::offset_of!(cuMulticastBindMem_params_st, mcHandle) - 0usize];
    ["Offset of field: cuMulticastBindMem_params_st::mcOffset"]
        [::std::mem::offset_of!(cuMulticastBindMem_params_st, mcOffset) - 8usize];
    ["Offset of field: cuMulticastBindMem_params_st::memHandle"]
        [::std::mem::offset_of!(cuMulticastBindMem_params_st, memHandle) - 16usize];
    ["Offset of field: cuMulticastBindMem_params_st::memOffset"]
        [::std::mem::offset_of!(cuMulticastBindMem_params_st, memOffset) - 24usize];
    ["Offset of field: cuMulticastBindMem_params_st::size"]
        [::std::mem::offset_of!(cuMulticastBindMem_params_st, size) - 32usize];
    ["Offset of field: cuMulticastBindMem_params_st::flags"]
        [::std::mem::offset_of!(cuMulticastBindMem_params_st, flags) - 40usize];
};
pub type cuMulticastBindMem_params = cuMulticastBindMem_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMulticastBindAddr_params_st {
    pub mcHandle: CUmemGenericAllocationHandle,
    pub mcOffset: usize,
    pub memptr: CUdeviceptr,
    pub size: usize,
    pub flags: ::std::os::raw::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMulticastBindAddr_params_st"]
        [::std::mem::size_of::<cuMulticastBindAddr_params_st>() - 40usize];
    ["Alignment of cuMulticastBindAddr_params_st"]
        [::std::mem::align_of::<cuMulticastBindAddr_params_st>() - 8usize];
    ["Offset of field: cuMulticastBindAddr_params_st::mcHandle"]
        [::std::mem::offset_of!(cuMulticastBindAddr_params_st, mcHandle) - 0usize];
    ["Offset of field: cuMulticastBindAddr_params_st::mcOffset"]
        [::std::mem::offset_of!(cuMulticastBindAddr_params_st, mcOffset) - 8usize];
    ["Offset of field: cuMulticastBindAddr_params_st::memptr"]
        [::std::mem::offset_of!(cuMulticastBindAddr_params_st, memptr) - 16usize];
    ["Offset of field: cuMulticastBindAddr_params_st::size"]
        [::std::mem::offset_of!(cuMulticastBindAddr_params_st, size) - 24usize];
    ["Offset of field: cuMulticastBindAddr_params_st::flags"]
        [::std::mem::offset_of!(cuMulticastBindAddr_params_st, flags) - 32usize];
};
pub type cuMulticastBindAddr_params = cuMulticastBindAddr_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMulticastUnbind_params_st {
    pub mcHandle: CUmemGenericAllocationHandle,
    pub dev: CUdevice,
    pub mcOffset: usize,
    pub size: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMulticastUnbind_params_st"]
        [::std::mem::size_of::<cuMulticastUnbind_params_st>() - 32usize];
    ["Alignment of cuMulticastUnbind_params_st"]
        [::std::mem::align_of::<cuMulticastUnbind_params_st>() - 8usize];
    ["Offset of field: cuMulticastUnbind_params_st::mcHandle"]
        [::std::mem::offset_of!(cuMulticastUnbind_params_st, mcHandle) - 0usize];
    ["Offset of field: cuMulticastUnbind_params_st::dev"]
        [::std::mem::offset_of!(cuMulticastUnbind_params_st, dev) - 8usize];
    ["Offset of field: cuMulticastUnbind_params_st::mcOffset"]
        [::std::mem::offset_of!(cuMulticastUnbind_params_st, mcOffset) - 16usize];
    ["Offset of field: cuMulticastUnbind_params_st::size"]
        [::std::mem::offset_of!(cuMulticastUnbind_params_st, size) - 24usize];
};
pub type cuMulticastUnbind_params = cuMulticastUnbind_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMulticastBindMem_v2_params_st {
    pub mcHandle: CUmemGenericAllocationHandle,
    pub dev: CUdevice,
    pub mcOffset: usize,
    pub memHandle: CUmemGenericAllocationHandle,
    pub memOffset: usize,
    pub size: usize,
    pub flags: ::std::os::raw::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMulticastBindMem_v2_params_st"]
        [::std::mem::size_of::<cuMulticastBindMem_v2_params_st>() - 56usize];
    ["Alignment of cuMulticastBindMem_v2_params_st"]
        [::std::mem::align_of::<cuMulticastBindMem_v2_params_st>() - 8usize];
    ["Offset of field: cuMulticastBindMem_v2_params_st::mcHandle"]
        [::std::mem::offset_of!(cuMulticastBindMem_v2_params_st, mcHandle) - 0usize];
    ["Offset of field: cuMulticastBindMem_v2_params_st::dev"]
        [::std::mem::offset_of!(cuMulticastBindMem_v2_params_st, dev) - 8usize];
    ["Offset of field: cuMulticastBindMem_v2_params_st::mcOffset"]
        [::std::mem::offset_of!(cuMulticastBindMem_v2_params_st, mcOffset) - 16usize];
    ["Offset of field: cuMulticastBindMem_v2_params_st::memHandle"]
        [::std::mem::offset_of!(cuMulticastBindMem_v2_params_st, memHandle) - 24usize];
    ["Offset of field: cuMulticastBindMem_v2_params_st::memOffset"]
        [::std::mem::offset_of!(cuMulticastBindMem_v2_params_st, memOffset) - 32usize];
    ["Offset of field: cuMulticastBindMem_v2_params_st::size"]
        [::std::mem::offset_of!(cuMulticastBindMem_v2_params_st, size) - 40usize];
    ["Offset of field: cuMulticastBindMem_v2_params_st::flags"]
        [::std::mem::offset_of!(cuMulticastBindMem_v2_params_st, flags) - 48usize];
};
pub type cuMulticastBindMem_v2_params = cuMulticastBindMem_v2_params_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cuMulticastBindAddr_v2_params_st {
    pub mcHandle: CUmemGenericAllocationHandle,
    pub dev: CUdevice,
    pub mcOffset: usize,
    pub memptr: CUdeviceptr,
    pub size: usize,
    pub flags: ::std::os::raw::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cuMulticastBindAddr_v2_params_st"]
        [::std::mem::size_of::<cuMulticastBindAddr_v2_params_st>() - 48usize];
    ["Alignment of cuMulticastBindAddr_v2_params_st"]
        [::std::mem::align_of::<cuMulticastBindAddr_v2_params_st>() - 8usize];
    ["Offset of field: cuMulticastBindAddr_v2_params_st::mcHandle"]
        [::std::mem::offset_of!(cuMulticastBindAddr_v2_params_st, mcHandle) - 0usize];
    ["Offset of field: cuMulticastBindAddr_v2_params_st::dev"]
        [::std::mem::offset_of!(cuMulticastBindAddr_v2_params_st, dev) - 8usize];
    ["Offset of field: cuMulticastBindAddr_v2_params_st::mcOffset"]
        [::std::mem::offset_of!(cuMulticastBindAddr_v2_params_st, mcOffset) - 16usize];
    ["Offset of field: cuMulticastBindAddr_v2_params_st::memptr"]
        [::std::mem::offset_of!(cuMulticastBindAddr_v2_params_st, memptr) - 24usize];
    ["Offset of field: cuMulticastBindAddr_v2_params_st::size"]
        [::std::mem::offset_of!(cuMulticastBindAddr_v2_params_st, size) - 32usize];
    ["Offset of field: cuMulticastBindAddr_v2_params_st::flags"]
        [::std::mem::offset_of!(cuMulticastBindAddr_v2_params_st, flags) - 40usize];
};
pub type cuMulticastBindAddr_v2_params = cuMulticastBindAddr_v2_params_st;
pub struct Functions {
    __library: ::libloading::Library,
    pub cuptiGetResultString: Result<
        unsafe extern "C" fn(
            result: CUptiResult,
            str_: *mut *const ::std::os::raw::c_char,
        ) -> CUptiResult,
        ::libloading::Error,
    >,
    pub cuptiGetVersion:
        Result<unsafe extern "C" fn(version: *mut u32) -> CUptiResult, ::libloading::Error>,
    pub cuptiSubscribe: Result<
        unsafe extern "C" fn(
            subscriber: *mut CUpti_SubscriberHandle,
            callback: CUpti_CallbackFunc,
            userdata: *mut ::std::os::raw::c_void,
        ) -> CUptiResult,
        ::libloading::Error,
    >,
    pub cuptiSubscribe_v2: Result<
        unsafe extern "C" fn(
            subscriber: *mut CUpti_SubscriberHandle,
            callback: CUpti_CallbackFunc,
            userdata: *mut ::std::os::raw::c_void,
            pParams: *mut CUpti_SubscriberParams,
        ) -> CUptiResult,
        ::libloading::Error,
    >,
    pub cuptiUnsubscribe: Result<
        unsafe extern "C" fn(subscriber: CUpti_SubscriberHandle) -> CUptiResult,
        ::libloading::Error,
    >,
    pub cuptiGetCallbackState: Result<
        unsafe extern "C" fn(
            enable: *mut u32,
            subscriber: CUpti_SubscriberHandle,
            domain: CUpti_CallbackDomain,
            cbid: CUpti_CallbackId,
        ) -> CUptiResult,
        ::libloading::Error,
    >,
    pub cuptiEnableCallback: Result<
        unsafe extern "C" fn(
            enable: u32,
            subscriber: CUpti_SubscriberHandle,
            domain: CUpti_CallbackDomain,
            cbid: CUpti_CallbackId,
        ) -> CUptiResult,
        ::libloading::Error,
    >,
    pub cuptiEnableDomain: Result<
        unsafe extern "C" fn(
            enable: u32,
            subscriber: CUpti_SubscriberHandle,
            domain: CUpti_CallbackDomain,
        ) -> CUptiResult,
        ::libloading::Error,
    >,
    pub cuptiGetDeviceId: Result<
        unsafe extern "C" fn(context: CUcontext, deviceId: *mut u32) -> CUptiResult,
        ::libloading::Error,
    >,
    pub cuptiActivityEnable:
        Result<unsafe extern "C" fn(kind: CUpti_ActivityKind) -> CUptiResult, ::libloading::Error>,
    pub cuptiActivityDisable:
        Result<unsafe extern "C" fn(kind: CUpti_ActivityKind) -> CUptiResult, ::libloading::Error>,
    pub cuptiActivityGetNumDroppedRecords: Result<
        unsafe extern "C" fn(context: CUcontext, streamId: u32, dropped: *mut usize) -> CUptiResult,
        ::libloading::Error,
    >,
    pub cuptiActivityGetNextRecord: Result<
        unsafe extern "C" fn(
            buffer: *mut u8,
            validBufferSizeBytes: usize,
            record: *mut *mut CUpti_Activity,
        ) -> CUptiResult,
        ::libloading::Error,
    >,
    pub cuptiActivityRegisterCallbacks: Result<
        unsafe extern "C" fn(
            funcBufferRequested: CUpti_BuffersCallbackRequestFunc,
            funcBufferCompleted: CUpti_BuffersCallbackCompleteFunc,
        ) -> CUptiResult,
        ::libloading::Error,
    >,
    pub cuptiActivityFlushAll:
        Result<unsafe extern "C" fn(flag: u32) -> CUptiResult, ::libloading::Error>,
    pub cuptiFinalize: Result<unsafe extern "C" fn() -> CUptiResult, ::libloading::Error>,
    pub cuptiActivityEnableAllocationSource:
        Result<unsafe extern "C" fn(enable: u8) -> CUptiResult, ::libloading::Error>,
}
impl Functions {
    pub unsafe fn new<P>(path: P) -> Result<Self, ::libloading::Error>
    where
        P: AsRef<::std::ffi::OsStr>,
    {
        let library = ::libloading::Library::new(path)?;
        Self::from_library(library)
    }
    pub unsafe fn from_library<L>(library: L) -> Result<Self, ::libloading::Error>
    where
        L: Into<::libloading::Library>,
    {
        let __library = library.into();
        let cuptiGetResultString = __library.get(b"cuptiGetResultString\0").map(|sym| *sym);
        let cuptiGetVersion = __library.get(b"cuptiGetVersion\0").map(|sym| *sym);
        let cuptiSubscribe = __library.get(b"cuptiSubscribe\0").map(|sym| *sym);
        let cuptiSubscribe_v2 = __library.get(b"cuptiSubscribe_v2\0").map(|sym| *sym);
        let cuptiUnsubscribe = __library.get(b"cuptiUnsubscribe\0").map(|sym| *sym);
        let cuptiGetCallbackState = __library.get(b"cuptiGetCallbackState\0").map(|sym| *sym);
        let cuptiEnableCallback = __library.get(b"cuptiEnableCallback\0").map(|sym| *sym);
        let cuptiEnableDomain = __library.get(b"cuptiEnableDomain\0").map(|sym| *sym);
        let cuptiGetDeviceId = __library.get(b"cuptiGetDeviceId\0").map(|sym| *sym);
        let cuptiActivityEnable = __library.get(b"cuptiActivityEnable\0").map(|sym| *sym);
        let cuptiActivityDisable = __library.get(b"cuptiActivityDisable\0").map(|sym| *sym);
        let cuptiActivityGetNumDroppedRecords = __library
            .get(b"cuptiActivityGetNumDroppedRecords\0")
            .map(|sym| *sym);
        let cuptiActivityGetNextRecord = __library
            .get(b"cuptiActivityGetNextRecord\0")
            .map(|sym| *sym);
        let cuptiActivityRegisterCallbacks = __library
            .get(b"cuptiActivityRegisterCallbacks\0")
            .map(|sym| *sym);
        let cuptiActivityFlushAll = __library.get(b"cuptiActivityFlushAll\0").map(|sym| *sym);
        let cuptiFinalize = __library.get(b"cuptiFinalize\0").map(|sym| *sym);
        let cuptiActivityEnableAllocationSource = __library
            .get(b"cuptiActivityEnableAllocationSource\0")
            .map(|sym| *sym);
        Ok(Functions {
            __library,
            cuptiGetResultString,
            cuptiGetVersion,
            cuptiSubscribe,
            cuptiSubscribe_v2,
            cuptiUnsubscribe,
            cuptiGetCallbackState,
            cuptiEnableCallback,
            cuptiEnableDomain,
            cuptiGetDeviceId,
            cuptiActivityEnable,
            cuptiActivityDisable,
            cuptiActivityGetNumDroppedRecords,
            cuptiActivityGetNextRecord,
            cuptiActivityRegisterCallbacks,
            cuptiActivityFlushAll,
            cuptiFinalize,
            cuptiActivityEnableAllocationSource,
        })
    }
    pub unsafe fn cuptiGetResultString(
        &self,
        result: CUptiResult,
        str_: *mut *const ::std::os::raw::c_char,
    ) -> CUptiResult {
        (self
            .cuptiGetResultString
            .as_ref()
            .expect("Expected function, got error."))(result, str_)
    }
    pub unsafe fn cuptiGetVersion(&self, version: *mut u32) -> CUptiResult {
        (self
            .cuptiGetVersion
            .as_ref()
            .expect("Expected function, got error."))(version)
    }
    pub unsafe fn cuptiSubscribe(
        &self,
        subscriber: *mut CUpti_SubscriberHandle,
        callback: CUpti_CallbackFunc,
        userdata: *mut ::std::os::raw::c_void,
    ) -> CUptiResult {
        (self
            .cuptiSubscribe
            .as_ref()
            .expect("Expected function, got error."))(subscriber, callback, userdata)
    }
    pub unsafe fn cuptiSubscribe_v2(
        &self,
        subscriber: *mut CUpti_SubscriberHandle,
        callback: CUpti_CallbackFunc,
        userdata: *mut ::std::os::raw::c_void,
        pParams: *mut CUpti_SubscriberParams,
    ) -> CUptiResult {
        (self
            .cuptiSubscribe_v2
            .as_ref()
            .expect("Expected function, got error."))(
            subscriber, callback, userdata, pParams
        )
    }
    pub unsafe fn cuptiUnsubscribe(&self, subscriber: CUpti_SubscriberHandle) -> CUptiResult {
        (self
            .cuptiUnsubscribe
            .as_ref()
            .expect("Expected function, got error."))(subscriber)
    }
    pub unsafe fn cuptiGetCallbackState(
        &self,
        enable: *mut u32,
        subscriber: CUpti_SubscriberHandle,
        domain: CUpti_CallbackDomain,
        cbid: CUpti_CallbackId,
    ) -> CUptiResult {
        (self
            .cuptiGetCallbackState
            .as_ref()
            .expect("Expected function, got error."))(enable, subscriber, domain, cbid)
    }
    pub unsafe fn cuptiEnableCallback(
        &self,
        enable: u32,
        subscriber: CUpti_SubscriberHandle,
        domain: CUpti_CallbackDomain,
        cbid: CUpti_CallbackId,
    ) -> CUptiResult {
        (self
            .cuptiEnableCallback
            .as_ref()
            .expect("Expected function, got error."))(enable, subscriber, domain, cbid)
    }
    pub unsafe fn cuptiEnableDomain(
        &self,
        enable: u32,
        subscriber: CUpti_SubscriberHandle,
        domain: CUpti_CallbackDomain,
    ) -> CUptiResult {
        (self
            .cuptiEnableDomain
            .as_ref()
            .expect("Expected function, got error."))(enable, subscriber, domain)
    }
    pub unsafe fn cuptiGetDeviceId(&self, context: CUcontext, deviceId: *mut u32) -> CUptiResult {
        (self
            .cuptiGetDeviceId
            .as_ref()
            .expect("Expected function, got error."))(context, deviceId)
    }
    pub unsafe fn cuptiActivityEnable(&self, kind: CUpti_ActivityKind) -> CUptiResult {
        (self
            .cuptiActivityEnable
            .as_ref()
            .expect("Expected function, got error."))(kind)
    }
    pub unsafe fn cuptiActivityDisable(&self, kind: CUpti_ActivityKind) -> CUptiResult {
        (self
            .cuptiActivityDisable
            .as_ref()
            .expect("Expected function, got error."))(kind)
    }
    pub unsafe fn cuptiActivityGetNumDroppedRecords(
        &self,
        context: CUcontext,
        streamId: u32,
        dropped: *mut usize,
    ) -> CUptiResult {
        (self
            .cuptiActivityGetNumDroppedRecords
            .as_ref()
            .expect("Expected function, got error."))(context, streamId, dropped)
    }
    pub unsafe fn cuptiActivityGetNextRecord(
        &self,
        buffer: *mut u8,
        validBufferSizeBytes: usize,
        record: *mut *mut CUpti_Activity,
    ) -> CUptiResult {
        (self
            .cuptiActivityGetNextRecord
            .as_ref()
            .expect("Expected function, got error."))(buffer, validBufferSizeBytes, record)
    }
    pub unsafe fn cuptiActivityRegisterCallbacks(
        &self,
        funcBufferRequested: CUpti_BuffersCallbackRequestFunc,
        funcBufferCompleted: CUpti_BuffersCallbackCompleteFunc,
    ) -> CUptiResult {
        (self
            .cuptiActivityRegisterCallbacks
            .as_ref()
            .expect("Expected function, got error."))(
            funcBufferRequested, funcBufferCompleted
        )
    }
    pub unsafe fn cuptiActivityFlushAll(&self, flag: u32) -> CUptiResult {
        (self
            .cuptiActivityFlushAll
            .as_ref()
            .expect("Expected function, got error."))(flag)
    }
    pub unsafe fn cuptiFinalize(&self) -> CUptiResult {
        (self
            .cuptiFinalize
            .as_ref()
            .expect("Expected function, got error."))()
    }
    pub unsafe fn cuptiActivityEnableAllocationSource(&self, enable: u8) -> CUptiResult {
        (self
            .cuptiActivityEnableAllocationSource
            .as_ref()
            .expect("Expected function, got error."))(enable)
    }
}

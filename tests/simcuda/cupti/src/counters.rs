//! Hardware counters of CUDA 12's event and metric interfaces: a simulated device has none. PyTorch
//! 2.4 has them imported, and asks for none unless a profiler wants counters.

use std::ffi::c_int;

use crate::result::NOT_SUPPORTED;

macro_rules! without_counters {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> c_int {
            NOT_SUPPORTED.0
        }
    )*};
}

without_counters! {
    cuptiEventGetAttribute
    cuptiEventGetIdFromName
    cuptiEventGroupGetAttribute
    cuptiEventGroupReadEvent
    cuptiEventGroupSetAttribute
    cuptiEventGroupSetDisable
    cuptiEventGroupSetEnable
    cuptiEventGroupSetsCreate
    cuptiEventGroupSetsDestroy
    cuptiMetricEnumEvents
    cuptiMetricGetAttribute
    cuptiMetricGetIdFromName
    cuptiMetricGetNumEvents
    cuptiMetricGetValue
    cuptiSetEventCollectionMode
}

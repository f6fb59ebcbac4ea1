//! Calls of the CUDA driver, as CUPTI tells them.

use vramscope_wire as wire;

use super::{head, push, stack};
use crate::{cupti::DriverCall, live, native::Place};

/// A call that changed the driver's memory, for CUPTI's callbacks. Who asked is taken for those
/// that hand memory out.
pub extern "C" fn on_driver(call: &DriverCall) {
    let Some(inside) = live::enter() else {
        return;
    };
    let live = inside.live();
    let mut record = wire::vs_driver {
        head: head(live, wire::vs_kind_VS_DRIVER),
        address: call.address,
        size: call.size,
        extra: call.extra,
        function: call.function,
        result: 0,
        device: call.device,
        pad: 0,
        context: 0,
    };
    let takes = !matches!(
        call.function,
        wire::vs_driver_function_VS_MEM_FREE
            | wire::vs_driver_function_VS_FREE_ASYNC
            | wire::vs_driver_function_VS_HOST_FREE
            | wire::vs_driver_function_VS_VMM_RELEASE
            | wire::vs_driver_function_VS_VMM_MAP
            | wire::vs_driver_function_VS_VMM_UNMAP
            | wire::vs_driver_function_VS_CAPTURE_BEGIN
            | wire::vs_driver_function_VS_CAPTURE_END
            | wire::vs_driver_function_VS_POOL_TRIM
            | wire::vs_driver_function_VS_POOL_DESTROY
            | wire::vs_driver_function_VS_POOL_THRESHOLD
    );
    if takes {
        stack::fill(live, &mut record.head, Some(Place::here()));
    }
    push(live, &record);
}

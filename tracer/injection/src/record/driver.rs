//! Calls of the CUDA driver, as CUPTI tells them.

use vramscope_wire as wire;

use super::{head, push, stack};
use crate::{live, native::Place};

/// A call that changed the driver's memory. Who asked is taken for those that hand memory out.
pub fn on_driver(
    function: wire::vs_driver_function,
    address: u64,
    size: u64,
    extra: u64,
    device: i32,
) {
    let Some(inside) = live::enter() else {
        return;
    };
    let live = inside.live();
    let mut record = wire::vs_driver {
        head: head(live, wire::vs_kind_VS_DRIVER),
        address,
        size,
        extra,
        function,
        result: 0,
        device,
        pad: 0,
    };
    let takes = !matches!(
        function,
        wire::vs_driver_function_VS_MEM_FREE
            | wire::vs_driver_function_VS_FREE_ASYNC
            | wire::vs_driver_function_VS_HOST_FREE
            | wire::vs_driver_function_VS_VMM_RELEASE
            | wire::vs_driver_function_VS_VMM_MAP
            | wire::vs_driver_function_VS_VMM_UNMAP
    );
    if takes {
        stack::fill(live, &mut record.head, Some(Place::here()));
    }
    push(live, &record);
}

//! The list of surviving blocks, for programs that want to compare it with something.

use serde_json::{Value, json};
use vramscope_collector::{Collector, view::View};

/// Adds `survivors` to every device of a JSON report: address, size, the step of birth and the
/// stack's id of each block that was allocated since the attach and is still there.
pub fn add(report: &mut Value, view: &View, collector: &Collector) {
    let Some(process) = view.processes.first() else {
        return;
    };
    let Some(devices) = report["devices"].as_array_mut() else {
        return;
    };
    for (shown, device) in devices.iter_mut().zip(&process.devices) {
        let mut blocks: Vec<_> = collector
            .survivors(process.info.pid, device.device)
            .collect();
        blocks.sort_by_key(|block| block.address);
        shown["survivors"] = blocks
            .iter()
            .map(|block| {
                let site = device.sites.iter().find(|site| site.id == block.site);
                json!({
                    "address": block.address.0,
                    "size": block.size,
                    "born_step": block.born_step,
                    "site": block.site.0,
                    "stack": site.map(|site| site.stack.iter().map(|frame| json!({
                        "file": frame.file,
                        "line": frame.line,
                        "function": frame.function,
                        "kind": frame.kind,
                    })).collect::<Vec<_>>()),
                })
            })
            .collect();
    }
}

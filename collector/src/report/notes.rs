//! What the numbers do not tell: losses, missing probes, unknown origins. Said plainly.

use vramscope_events::LostCause;

use super::{shares, units};
use crate::{
    escape,
    view::{Class, DeviceView, ProbeState, ProcessView, StepSource, View},
};

/// What is missing from the whole view, one sentence each.
pub fn of_view(view: &View) -> Vec<String> {
    let mut out = vec![lost(view)];
    for probe in &view.probes {
        let name = escape::line(&probe.name, 80);
        match &probe.state {
            ProbeState::Attached => {}
            ProbeState::Absent { consequence } => {
                let consequence = escape::line(consequence, 300);
                out.push(format!("No probe on {name}: {consequence}."));
            }
            ProbeState::Failed { reason } => {
                let reason = escape::line(reason, 300);
                out.push(format!("The probe on {name} failed: {reason}."));
            }
        }
    }
    out
}

fn lost(view: &View) -> String {
    if view.lost.events == 0 {
        return "No event was lost.".into();
    }
    let causes: Vec<String> = (view.lost.by_cause.iter())
        .map(|(cause, count)| format!("{} {}", units::count(*count), cause_words(*cause)))
        .collect();
    let causes = match causes.is_empty() {
        true => String::new(),
        false => format!(" ({})", causes.join(", ")),
    };
    let events = units::count(view.lost.events);
    format!("{events} events were lost{causes}: growth, blocks and shares are bounds, not counts.")
}

pub(super) fn cause_words(cause: LostCause) -> &'static str {
    match cause {
        LostCause::RingFull => "because the ring was full",
        LostCause::StackUnreadable => "stacks that could not be read",
        LostCause::TableFull => "because a table was full",
        LostCause::Undecodable => "that could not be decoded",
    }
}

/// What the driver's layer tells where nothing else is seen.
fn driver_alone(process: &ProcessView, device: &DeviceView) -> Vec<String> {
    if device.sites.is_empty() && device.peak_allocated == 0 {
        return vec!["Nothing was allocated on it while it was watched.".into()];
    }
    if process.info.torch.is_some() {
        return vec![
            "PyTorch does not report its blocks here (cudaMallocAsync does not): only what the \
             driver gave is seen."
                .into(),
        ];
    }
    vec![
        "There is no PyTorch allocator here: seen is what the process takes from the driver, which \
         library asked, and on which line. Growth of that is certain."
            .into(),
        "An allocator with a pool of its own (CuPy, JAX, TensorFlow, RMM) takes large pieces and hands \
         out parts of them unseen: a leak shows only when the pool grows, on the line that made it \
         grow, and JAX and TensorFlow take most of the device at once unless told otherwise."
            .into(),
    ]
}

/// What is not known of one device, one sentence each.
pub fn of_device(process: &ProcessView, device: &DeviceView) -> Vec<String> {
    let mut out = Vec::new();
    if process.exited.is_some() {
        out.push(format!(
            "Process {} has ended: these are its last numbers.",
            process.info.pid
        ));
    }
    if device.baseline > 0 {
        out.push(format!(
            "{} were allocated before the attach: no stack is known for them.",
            units::bytes(device.baseline)
        ));
    }
    let unknown = device.sites.iter().filter(|site| site.stack.is_empty());
    let unknown: u64 = unknown.map(|site| site.live_bytes).sum();
    if unknown > 0 {
        out.push(format!(
            "{} were allocated by threads of which no frame is known.",
            units::bytes(unknown)
        ));
    }
    if !device.tensor_layer {
        out.extend(driver_alone(process, device));
    }
    out.extend(shares::notes(process, device));
    let check = &device.check;
    if check.corrected > 0 {
        out.push(format!(
            "The ledger was put right {} times by {} in all: PyTorch's own totals disagreed.",
            units::count(check.corrected),
            units::bytes(check.corrected_bytes)
        ));
    }
    let grows = device.verdict.as_ref().is_some_and(|verdict| {
        matches!(verdict.class, Class::Leak | Class::OutsideFramework)
            && verdict.out_of_memory.is_none()
    });
    if grows && device.capacity.is_none() {
        out.push("The capacity of the device is not known: no time to OOM can be told.".into());
    }
    match process.steps.source {
        StepSource::Time => out.push(
            "No mark of a step was found: one second is taken as one step. Name a line with \
             --step-on FILE:LINE for growth per real step."
                .into(),
        ),
        StepSource::Heartbeat => {
            out.push("Nothing runs backward(): a step is a rhythm found in the allocations.".into())
        }
        StepSource::User | StepSource::Backward | StepSource::None => {}
    }
    out
}

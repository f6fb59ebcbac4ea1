//! What to do, in a sentence.

use super::held::{Held, Says};
use crate::view::{Class, LeakKind};

/// The advice for a class and the kind of leak that the stacks suggest.
pub(super) fn advice(
    class: Class,
    kind: Option<LeakKind>,
    held: Option<&Held<'_>>,
) -> &'static str {
    match held.map(|held| held.says) {
        Some(Says::Fills { .. }) => {
            return "Nothing leaks: the container stops at its bound, and the device has the room \
                    that it still needs.";
        }
        Some(Says::Overflows { .. }) => {
            return "Give the container a smaller bound, or keep what it holds on the CPU.";
        }
        _ => {}
    }
    match class {
        Class::Leak | Class::Growing => match kind {
            Some(kind) => leak(kind),
            None => "Look for what keeps the tensors that this line makes.",
        },
        Class::WarmUp => "Wait until it has settled.",
        Class::Capacity => {
            "Nothing leaks: the steps themselves need more. Bound the batch by its longest sample, \
             use a smaller batch, checkpointing or a lower precision."
        }
        Class::CacheGrowth => {
            "Nothing leaks: the framework's cache keeps what the largest steps needed, and gives \
             it back when the device is full."
        }
        Class::Fragmentation => {
            "Nothing leaks: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or make large \
             blocks of few different sizes."
        }
        Class::OutsideFramework => {
            "The framework's tensors are not it: see the driver's sites for the library that takes \
             it (NCCL communicators, cuBLAS or cuDNN workspaces, CUDA graphs, other allocators)."
        }
        Class::Healthy => "Nothing to do.",
    }
}

fn leak(kind: LeakKind) -> &'static str {
    match kind {
        LeakKind::GraphKept => {
            "Likely something keeps a loss or an output with its graph: keep loss.item() or \
             tensor.detach() instead, or run it under torch.no_grad()."
        }
        LeakKind::Scalars => {
            "Likely a list of scalars on the device: keep value.item(), or empty the list."
        }
        LeakKind::Evaluation => {
            "Likely an evaluation that keeps its outputs: run it under torch.no_grad() and move \
             what you keep to the CPU."
        }
        LeakKind::OutputsKept => {
            "Likely a container keeps what this line makes (a view of it keeps all of it): move it \
             to the CPU, copy the part you need, or empty the container."
        }
        LeakKind::Hook => {
            "Likely a hook that is registered again and again, or keeps what it sees: keep its \
             handle and call remove()."
        }
        LeakKind::ParameterCopies => {
            "Likely copies of a model or of optimizer state are kept: drop the old one before the \
             next is made, or copy to the CPU."
        }
        LeakKind::Exception => {
            "Likely an exception whose traceback keeps the frame and its tensors: do not store it, \
             or clear it with traceback.clear_frames()."
        }
        LeakKind::Cache => {
            "Likely a cache that never forgets: give it a bound, or a key that comes again."
        }
        LeakKind::DoubleBackward => {
            "Likely a backward with create_graph or retain_graph that leaves its graph: use \
             torch.autograd.grad, or set the gradients to None afterwards."
        }
    }
}

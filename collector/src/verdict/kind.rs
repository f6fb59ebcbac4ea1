//! What kind of leak the stacks of the survivors suggest. Always an inference.

use vramscope_events::FrameKind;

use super::{growth::Growth, suspects::Suspect};
use crate::{
    stacks::NamedStack,
    view::{FrameView, LeakKind, Rhythm},
};

/// A block that holds a scalar: PyTorch's allocator rounds up to 512 bytes.
const SCALAR_BLOCK: u64 = 512;

/// A culprit with its names.
pub(crate) struct Named<'a> {
    pub suspect: &'a Suspect<'a>,
    pub stack: NamedStack,
    pub share: f64,
}

impl Named<'_> {
    fn frames(&self) -> impl Iterator<Item = &FrameView> {
        self.stack
            .iter()
            .map(AsRef::as_ref)
            .filter(|frame| frame.kind == FrameKind::Python)
    }

    /// The functions and the text of the user's lines, in lower case.
    fn any_user(&self, test: impl Fn(&str) -> bool) -> bool {
        self.frames().filter(|frame| frame.user).any(|frame| {
            let source = frame.source.as_deref().unwrap_or("");
            test(&frame.function.to_lowercase()) || test(&source.to_lowercase())
        })
    }

    fn any_function(&self, names: &[&str]) -> bool {
        self.frames().any(|frame| {
            let last = frame.function.rsplit('.').next().unwrap_or("");
            names.contains(&last)
        })
    }

    /// Made inside a module's forward or one of the functions it is made of.
    fn forward(&self) -> bool {
        !self.suspect.follows()
            && self.frames().any(|frame| {
                !frame.user
                    && (frame.file.contains("torch/nn/") || frame.file.contains("torch\\nn\\"))
            })
    }

    fn user_line(&self) -> Option<(&str, u32)> {
        let frame = self.frames().find(|frame| frame.user)?;
        Some((&frame.file, frame.line))
    }
}

/// The kind that fits, most telling sign first.
pub(crate) fn kind(culprits: &[Named<'_>], growth: &Growth) -> Option<LeakKind> {
    let lead = culprits.first()?;
    let backward_share: f64 = culprits
        .iter()
        .filter(|culprit| culprit.suspect.follows())
        .map(|culprit| culprit.share)
        .sum();
    let again =
        |text: &str| text.contains("create_graph=true") || text.contains("retain_graph=true");
    let calls_again = culprits
        .iter()
        .any(|culprit| culprit.suspect.follows() && culprit.any_user(again));
    if calls_again || (backward_share > 0.3 && culprits.iter().any(|c| c.any_user(again))) {
        return Some(LeakKind::DoubleBackward);
    }
    let state = culprits.iter().any(|c| c.suspect.site.is_optimizer());
    if state || copies_parameters(lead) {
        return Some(match lead.any_user(|text| text.contains("cache")) {
            true => LeakKind::Cache,
            false => LeakKind::ParameterCopies,
        });
    }
    let hook = |text: &str| text.contains("hook");
    if culprits.iter().any(|culprit| culprit.any_user(hook)) {
        return Some(LeakKind::Hook);
    }
    let caught = |text: &str| text.contains("except") || text.contains("traceback");
    if lead.any_user(caught) {
        return Some(LeakKind::Exception);
    }
    let blocks: u64 = culprits
        .iter()
        .map(|culprit| per_generation(culprit.suspect))
        .sum();
    let evaluates = |text: &str| {
        ["eval", "valid", "test_", "infer", "no_grad"]
            .iter()
            .any(|word| text.contains(word))
    };
    let in_phase = growth.rhythm == Rhythm::PerPeriod && lead.any_user(evaluates);
    if in_phase {
        return Some(LeakKind::Evaluation);
    }
    if graph_kept(culprits) {
        return Some(LeakKind::GraphKept);
    }
    let (generations, held) = lead.suspect.held();
    if blocks == 1 && held <= SCALAR_BLOCK * u64::from(generations) {
        return Some(LeakKind::Scalars);
    }
    if lead.any_user(|text| text.contains("cache") || text.contains("memo")) {
        return Some(LeakKind::Cache);
    }
    if !lead.suspect.pattern.even && growth.rhythm != Rhythm::PerStep {
        return Some(LeakKind::Cache);
    }
    Some(LeakKind::OutputsKept)
}

/// Module copies and moves.
fn copies_parameters(culprit: &Named<'_>) -> bool {
    culprit.any_function(&[
        "deepcopy",
        "__deepcopy__",
        "_apply",
        "_reconstruct",
        "load_state_dict",
        "state_dict",
        "reset_parameters",
        "_load_from_state_dict",
    ])
}

/// Several blocks that one line of the user's made in one pass survive together, and a module made
/// at least one of them: a graph that keeps what its nodes saved. A single one is an output.
fn graph_kept(culprits: &[Named<'_>]) -> bool {
    culprits.iter().filter(|c| c.forward()).any(|forward| {
        let line = forward.user_line();
        let together: u64 = culprits
            .iter()
            .filter(|culprit| !culprit.suspect.follows() && culprit.user_line() == line)
            .map(|culprit| per_generation(culprit.suspect))
            .sum();
        together >= 2
    })
}

/// Survivors of a generation, in the middle.
fn per_generation(suspect: &Suspect<'_>) -> u64 {
    let site = suspect.site;
    let generations = u64::from(site.generations.count()).max(1);
    (site.live_blocks + generations / 2) / generations
}

//! Survivors as a flame graph: who called whom to allocate what is still there.
//!
//! Root to leaf is outermost call to allocation, the root on top. [`folded`] is the text that other
//! tools read (one stack a line, frames parted by `;`, the weight at the end), [`svg`] the picture.

mod label;
mod svg;

use std::collections::BTreeMap;

use crate::view::{ProcessView, SiteView};

pub use label::{Origin, UNKNOWN, label, origin};
pub use svg::{Error, Picture, draw, svg};

/// What makes a frame wide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Bytes that are still there.
    #[default]
    Bytes,
    /// Blocks that are still there.
    Blocks,
    /// Bytes by which the survivors grow a step; what does not grow is left out.
    Growth,
}

impl Weight {
    /// The weight of a site, rounded to a whole number.
    pub fn of(self, site: &SiteView) -> u64 {
        match self {
            Weight::Bytes => site.live_bytes,
            Weight::Blocks => site.live_blocks,
            // A cast from a float saturates, and makes 0 of a NaN.
            Weight::Growth => site.growth_bytes_per_step.round() as u64,
        }
    }
}

/// Sites (by full stack) as folded stacks, sorted, one a line. Stacks that read the same are put
/// together; those without weight are left out.
pub fn folded(sites: &[SiteView], process: &ProcessView, weight: Weight) -> String {
    let mut out = String::new();
    for (stack, weight) in fold(sites, process, weight) {
        out.push_str(&stack);
        out.push(' ');
        out.push_str(&weight.to_string());
        out.push('\n');
    }
    out
}

/// Folded stacks with their weights.
fn fold(sites: &[SiteView], process: &ProcessView, weight: Weight) -> BTreeMap<String, u64> {
    let mut out: BTreeMap<String, u64> = BTreeMap::new();
    for site in sites {
        let weight = weight.of(site);
        if weight == 0 {
            continue;
        }
        let sum = out.entry(fold_one(site, process)).or_default();
        *sum = sum.saturating_add(weight);
    }
    out
}

fn fold_one(site: &SiteView, process: &ProcessView) -> String {
    if site.stack.is_empty() {
        return label::UNKNOWN.to_owned();
    }
    let mut out = String::new();
    for frame in site.stack.iter().rev() {
        if !out.is_empty() {
            out.push(';');
        }
        out.push_str(&label(frame, &process.info));
    }
    out
}

#[cfg(test)]
mod tests;

//! Folded stacks: one a line, frames parted by `;`, the weight at the end. What `inferno`,
//! `flamegraph.pl` and speedscope read.

use std::collections::BTreeMap;

use crate::selection::{Part, Selection, Weight};

/// All parts of a selection, sorted, one stack a line. With several parts, each stack begins with
/// its part's name. Stacks that read the same are put together; those without weight are left out.
pub fn write(selection: &Selection, weight: Weight) -> String {
    let mut all = BTreeMap::new();
    for part in &selection.parts {
        let root = (selection.parts.len() > 1).then(|| format!("[{}]", part.name()));
        add(&mut all, selection, part, weight, root.as_deref());
    }
    let mut out = String::new();
    for (stack, weight) in all {
        out.push_str(&stack);
        out.push(' ');
        out.push_str(&weight.to_string());
        out.push('\n');
    }
    out
}

/// Two selections side by side: the weight before and the weight after, as `difffolded.pl` writes
/// it.
pub fn write_difference(before: &Selection, after: &Selection, weight: Weight) -> String {
    let mut both: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in fold_all(before, weight) {
        both.entry(line.0).or_default().0 = line.1;
    }
    for line in fold_all(after, weight) {
        both.entry(line.0).or_default().1 = line.1;
    }
    let lines = both
        .iter()
        .map(|(stack, (was, is))| format!("{stack} {was} {is}\n"));
    lines.collect()
}

fn fold_all(selection: &Selection, weight: Weight) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for part in &selection.parts {
        add(&mut all, selection, part, weight, None);
    }
    all
}

/// The folded stacks of one part with their weights.
pub fn fold(selection: &Selection, part: &Part, weight: Weight) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    add(&mut out, selection, part, weight, None);
    out
}

fn add(
    out: &mut BTreeMap<String, u64>,
    selection: &Selection,
    part: &Part,
    weight: Weight,
    root: Option<&str>,
) {
    for row in part.by_stack() {
        let weight = row.weight(weight);
        if weight == 0 {
            continue;
        }
        let stack = selection.table.folded(row.stack);
        let stack = match root {
            Some(root) => format!("{root};{stack}"),
            None => stack,
        };
        let sum = out.entry(stack).or_default();
        *sum = sum.saturating_add(weight);
    }
}

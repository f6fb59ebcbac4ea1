//! Holders in sentences.

use vramscope_agent::report::{Answer, Holder, Kind};

/// What one holder is, in a line, without how many blocks it has.
///
/// ```
/// # use vramscope_holders::{Holder, Kind, words};
/// let holder = Holder {
///     kind: Kind::Graph,
///     path: "__main__.smoothed".into(),
///     example: "__main__.smoothed".into(),
///     graph: vec!["AddBackward0".into(), "MulBackward0".into()],
///     graph_length: 2,
///     notes: vec![],
///     container_length: None,
///     container_bound: None,
///     members: vec![0, 1],
/// };
/// assert_eq!(
///     words::holder(&holder),
///     "the autograd graph behind `__main__.smoothed` (AddBackward0 -> MulBackward0)"
/// );
/// ```
pub fn holder(holder: &Holder) -> String {
    let notes = match holder.notes.is_empty() {
        true => String::new(),
        false => format!(" ({})", holder.notes.join("; ")),
    };
    match holder.kind {
        Kind::Tensor | Kind::Gradient => format!("`{}`{notes}", holder.path),
        Kind::Graph => {
            let mut nodes = holder.graph.join(" -> ");
            if holder.graph.len() as u64 != holder.graph_length {
                nodes.push_str(&format!("; up to {} nodes", holder.graph_length));
            }
            format!(
                "the autograd graph behind `{}`{notes} ({nodes})",
                holder.path
            )
        }
        Kind::Garbage => format!(
            "garbage that waits for the collector: {}{notes}",
            holder.path
        ),
        Kind::Extension => format!("{}{notes}", holder.path),
        Kind::Native if holder.path.is_empty() => format!("no Python object: native{notes}"),
        Kind::Native => format!("native: {}{notes}", holder.path),
        Kind::Unknown if holder.path.is_empty() => "not found before the search ended".into(),
        Kind::Unknown => holder.path.clone(),
    }
}

/// The verdict's half sentence: what keeps most of the blocks, where that is known.
pub fn summary(answer: &Answer) -> Option<String> {
    let total: usize = answer.holders.iter().map(|one| one.members.len()).sum();
    let first = answer
        .holders
        .iter()
        .find(|one| !matches!(one.kind, Kind::Unknown))?;
    Some(format!(
        "{} of {total} survivors are kept by {}",
        first.members.len(),
        holder(first)
    ))
}

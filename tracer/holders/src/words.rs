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
        Kind::Tensor | Kind::Gradient => format!("{}{notes}", quoted(&holder.path)),
        Kind::Graph => {
            let mut nodes = folded(&holder.graph).join(" -> ");
            if holder.graph.len() as u64 != holder.graph_length {
                nodes.push_str(&format!("; up to {} nodes", holder.graph_length));
            }
            let path = quoted(&holder.path);
            format!("the autograd graph behind {path}{notes} ({nodes})")
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

/// The same in a few words that go after "held by".
///
/// ```
/// # use vramscope_holders::{Holder, Kind, words};
/// let holder = Holder {
///     kind: Kind::Tensor,
///     path: "__main__.replay[*]".into(),
///     example: "__main__.replay[3]".into(),
///     graph: vec![],
///     graph_length: 0,
///     notes: vec!["a deque of 87, at most 120".into()],
///     container_length: Some(87),
///     container_bound: Some(120),
///     members: vec![0, 1],
/// };
/// assert_eq!(words::short(&holder), "`__main__.replay`");
/// ```
pub fn short(holder: &Holder) -> String {
    // That it is at some position in it goes without saying.
    let path = holder.path.trim_end_matches("[*]");
    match holder.kind {
        Kind::Tensor | Kind::Gradient => quoted(path),
        Kind::Graph => format!("the autograd graph behind {}", quoted(path)),
        Kind::Garbage => "garbage that waits for the collector".into(),
        Kind::Native if path.is_empty() => "no Python object (native)".into(),
        Kind::Native => "a cycle in C++".into(),
        Kind::Extension => "C or C++ code".into(),
        Kind::Unknown => "something that was not found".into(),
    }
}

/// The names of a way's nodes, without the repetitions at both sides of what was left out:
/// thousands of steps of a running mean are the same two nodes again and again.
fn folded(graph: &[String]) -> Vec<&str> {
    /// The longest part that is looked for: a step of a running mean, of a momentum.
    const LONGEST: usize = 4;
    let names: Vec<&str> = graph.iter().map(String::as_str).collect();
    let Some(gap) = names.iter().position(|name| *name == "…") else {
        return names;
    };
    let (head, tail) = (&names[..gap], &names[gap + 1..]);
    let repeats = |length: &usize| {
        head.len() >= 2 * length && head.iter().zip(&head[*length..]).all(|(a, b)| a == b)
    };
    let Some(length) = (1..=LONGEST).find(repeats) else {
        return names;
    };
    let part = &head[..length];
    // Where in the part the end begins is chance: whatever goes on longest.
    let goes_on = (0..length).map(|start| {
        let round = part.iter().cycle().skip(start);
        tail.iter().zip(round).take_while(|(a, b)| a == b).count()
    });
    let rest = &tail[goes_on.max().unwrap_or(0)..];
    [part, &["…"], rest].concat()
}

/// A way between quotes; one that begins with a variable's name has its own.
fn quoted(path: &str) -> String {
    match path.starts_with("local ") {
        true => path.to_owned(),
        false => format!("`{path}`"),
    }
}

/// A kind as it is written in JSON.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Tensor => "tensor",
        Kind::Gradient => "gradient",
        Kind::Graph => "graph",
        Kind::Garbage => "garbage",
        Kind::Extension => "extension",
        Kind::Native => "native",
        Kind::Unknown => "unknown",
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

#[cfg(test)]
mod tests {
    use super::*;

    fn folded_text(way: &str) -> String {
        let graph: Vec<String> = way.split(' ').map(str::to_owned).collect();
        folded(&graph).join(" ")
    }

    #[test]
    fn repetitions_are_told_once() {
        assert_eq!(
            folded_text("Add Mul Add Mul Add Mul … Mul Add Mul Mean Pow"),
            "Add Mul … Mean Pow"
        );
        assert_eq!(folded_text("Add Add Add Add … Add Mul"), "Add … Mul");
        assert_eq!(folded_text("A B A B A B … A B A"), "A B …");
        // Nothing is left out, or nothing repeats: all is said.
        assert_eq!(folded_text("Add Mul Add Mul"), "Add Mul Add Mul");
        assert_eq!(folded_text("A B C D E F … G"), "A B C D E F … G");
        assert_eq!(folded_text("A B A C … A B"), "A B A C … A B");
    }
}

//! Blocks that are held in the same way, together.

use rustc_hash::FxHashMap;

use crate::{
    bounds::{self, Container},
    graph::Graphs,
    paths::{Path, Paths},
    python::Gil,
    report::{Holder, Kind},
    tensors::Reader,
    walk::Walk,
};

/// How a block was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// By the tensor at this position of the walk, and the node of its graph that saved it.
    At {
        kind: Kind,
        node: u32,
        saved: Option<u32>,
    },
    /// In another way that is told already.
    Told,
}

/// The most nodes of a graph that are named at either end of a way.
const NAMED_NODES: usize = 6;
/// A container that holds blocks under more names than these is told as one.
const MOST_NAMES: usize = 3;

#[derive(Debug)]
struct Group {
    holder: Holder,
    /// The node that saved a block, the farthest from the tensor.
    saved: Option<(u32, u64)>,
    parent: Option<u32>,
    parent_path: String,
}

/// The groups so far.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: Vec<Group>,
    by_key: FxHashMap<(Kind, String), usize>,
}

impl Groups {
    /// Adds a block that is told in words.
    pub(crate) fn add_words(&mut self, kind: Kind, words: &str, block: u32) {
        let at = self.group(kind, words, || words.to_owned());
        self.groups[at].holder.members.push(block);
    }

    /// Adds a block that a way leads to.
    #[allow(clippy::too_many_arguments)] // What is known of one block, all of it.
    pub(crate) fn add(
        &mut self,
        gil: &Gil<'_>,
        walk: &mut Walk,
        path: &Path,
        kind: Kind,
        node: u32,
        saved: Option<u32>,
        block: u32,
        size: Option<u64>,
    ) {
        let graded;
        let path = match kind {
            Kind::Gradient => {
                graded = Paths::gradient(path);
                &graded
            }
            _ => path,
        };
        let is_new = !self.by_key.contains_key(&(kind, path.pattern.clone()));
        let at = self.group(kind, &path.pattern, || path.exact.clone());
        let group = &mut self.groups[at];
        group.holder.members.push(block);
        if let Some(saved) = saved
            && group.saved.is_none_or(|(known, _)| known < saved)
        {
            group.saved = Some((saved, 0));
        }
        if !is_new {
            return;
        }
        group.parent = walk.parent(node);
        group.parent_path = path.above.clone();
        if let Some(object) = path.container.and_then(|at| walk.live(gil, at))
            && let Some(Container {
                what,
                length,
                bound,
            }) = bounds::of(gil, object)
        {
            let holder = &mut group.holder;
            holder.container_length = Some(length);
            holder.container_bound = bound;
            // As they are said: an `lru_cache`, too.
            let article = match what.starts_with(['O', 'A', 'E', 'I', 'l']) && what != "list" {
                true => "an",
                false => "a",
            };
            holder.notes.push(match bound {
                Some(bound) => format!("{article} {what} of {length}, at most {bound}"),
                None => format!("{article} {what} of {length}"),
            });
        }
        if kind == Kind::Tensor
            && let Some(size) = size
            && let Some(object) = walk.live(gil, node)
            // The getter of these two runs no code of the program.
            && ["Tensor", "Parameter"].contains(&object.kind_name().as_str())
            && let Some(Some(bytes)) = gil.attribute(object, c"nbytes", |bytes| gil.number(bytes))
            && bytes.max(0).cast_unsigned() * 2 <= size
        {
            group
                .holder
                .notes
                .push(format!("a view of {bytes} bytes keeps a block of {size}"));
        }
    }

    fn group(&mut self, kind: Kind, pattern: &str, example: impl FnOnce() -> String) -> usize {
        if let Some(at) = self.by_key.get(&(kind, pattern.to_owned())) {
            return *at;
        }
        let at = self.groups.len();
        self.groups.push(Group {
            holder: Holder {
                kind,
                path: pattern.to_owned(),
                example: example(),
                graph: Vec::new(),
                graph_length: 0,
                notes: Vec::new(),
                container_length: None,
                container_bound: None,
                members: Vec::new(),
            },
            saved: None,
            parent: None,
            parent_path: String::new(),
        });
        self.by_key.insert((kind, pattern.to_owned()), at);
        at
    }

    /// All holders, those of most blocks first.
    pub(crate) fn finish(self, graphs: &Graphs, reader: &Reader<'_>) -> Vec<Holder> {
        let mut names: FxHashMap<(Kind, u32), usize> = FxHashMap::default();
        for group in &self.groups {
            if let Some(parent) = group.parent {
                *names.entry((group.holder.kind, parent)).or_default() += 1;
            }
        }
        let mut holders: Vec<Holder> = Vec::new();
        let mut merged: FxHashMap<(Kind, u32), usize> = FxHashMap::default();
        for group in self.groups {
            let mut holder = group.holder;
            if let Some((saved, _)) = group.saved {
                let (_, way) = graphs.way(saved, reader);
                holder.graph_length = way.len() as u64;
                holder.graph = cut(way);
            }
            let key = group.parent.map(|parent| (holder.kind, parent));
            match key.filter(|key| names.get(key).is_some_and(|count| *count > MOST_NAMES)) {
                Some(key) => match merged.get(&key) {
                    Some(at) => holders[*at].members.extend(holder.members),
                    None => {
                        holder.path = format!("{}[*]", group.parent_path);
                        merged.insert(key, holders.len());
                        holders.push(holder);
                    }
                },
                None => holders.push(holder),
            }
        }
        for holder in &mut holders {
            holder.members.sort_unstable();
        }
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.members.len()));
        holders
    }
}

/// Long ways without their middle.
pub(crate) fn cut(mut way: Vec<String>) -> Vec<String> {
    if way.len() > 2 * NAMED_NODES {
        let last = way.split_off(way.len() - NAMED_NODES);
        way.truncate(NAMED_NODES);
        way.push("…".into());
        way.extend(last);
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ways_keep_both_ends() {
        let way: Vec<String> = (0..40).map(|at| at.to_string()).collect();
        let cut = cut(way);
        assert_eq!(cut.len(), 13);
        assert_eq!(
            (cut[5].as_str(), cut[6].as_str(), cut[7].as_str()),
            ("5", "…", "34")
        );
    }
}

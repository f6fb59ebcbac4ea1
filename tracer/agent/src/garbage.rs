//! Tensors that no root leads to: garbage in cycles, or what C and C++ hold.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    labels::{self, Label, short_kind},
    pace::Slice,
    python::{Gil, Object},
    report::Kind,
    rtti::Class,
    tensors::Reader,
    walk::Walk,
};

/// So many tensors without a root are looked into; the others are taken to be held in the same ways.
const MOST_TARGETS: usize = 256;
/// So many references are followed.
const MOST_EDGES: usize = 10_000;
/// The longest way up from a tensor.
const LONGEST_WAY: usize = 6;
/// Objects between two looks at the clock.
const CLOCK_EVERY: usize = 256;

/// A block whose tensor no root leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loose {
    pub block: u32,
    /// The Python object, for the slice in which it was found.
    object: u64,
    /// Its `TensorImpl`, or that of the tensor whose gradient it is; 0 for a storage.
    pub tensor: u64,
}

/// A look at all objects, which may take several slices.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Objects that were looked at.
    seen: usize,
    pub found: Vec<Loose>,
}

/// So many objects are looked at again in the next slice: the young ones come first and change.
const OVERLAP: usize = 4_000;

impl Look {
    /// Objects that were looked at.
    pub(crate) fn seen(&self) -> usize {
        self.seen
    }

    /// Looks on for the tensors that no root leads to and that have wanted blocks; whether all
    /// objects were looked at. None where the version cannot tell of its objects without making a
    /// list of them.
    pub(crate) fn step(
        &mut self,
        gil: &Gil<'_>,
        walk: &mut Walk,
        reader: &mut Reader<'_>,
        slice: &Slice,
    ) -> Option<bool> {
        let skip = self.seen.saturating_sub(OVERLAP);
        let mut seen = 0_usize;
        let mut whole = true;
        let listed = gil.all(&mut |object| {
            seen += 1;
            if seen <= skip {
                return true;
            }
            if walk.is_wrapper(gil, object) && !walk.knows(object) {
                let (tensor, blocks) = blocks_of(reader, object.address());
                self.found
                    .extend(blocks.into_iter().flatten().map(|block| Loose {
                        block,
                        object: object.address(),
                        tensor,
                    }));
            }
            whole = !seen.is_multiple_of(CLOCK_EVERY) || !slice.is_over();
            whole
        });
        self.seen = seen;
        listed.then_some(whole)
    }
}

/// What an object is to another that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edge {
    parent: u64,
    /// The parent's type.
    kind: String,
    /// How it leads to the child, as it is written.
    label: String,
}

/// A search upwards from tensors that no root leads to, level by level, over several slices. What is
/// kept between slices is compared and never looked into.
#[derive(Debug)]
pub(crate) struct Ancestry {
    edges: FxHashMap<u64, Vec<Edge>>,
    looked_for: FxHashSet<u64>,
    above: FxHashSet<u64>,
    seen: usize,
    /// In the levels before.
    seen_before: usize,
    level: usize,
    targets: Vec<u64>,
}

impl Ancestry {
    pub(crate) fn of<'a>(tensors: impl Iterator<Item = &'a Loose>) -> Ancestry {
        let targets: Vec<u64> = tensors
            .map(|loose| loose.object)
            .take(MOST_TARGETS)
            .collect();
        Ancestry {
            edges: FxHashMap::default(),
            looked_for: targets.iter().copied().collect(),
            above: FxHashSet::default(),
            seen: 0,
            seen_before: 0,
            level: 0,
            targets,
        }
    }

    /// Objects that were looked at, in all levels.
    pub(crate) fn seen(&self) -> usize {
        self.seen_before + self.seen
    }

    /// Looks on until the slice is over; whether all is known.
    pub(crate) fn step(&mut self, gil: &Gil<'_>, walk: &Walk, slice: &Slice) -> bool {
        while !self.is_done() {
            let skip = self.seen.saturating_sub(OVERLAP);
            let mut seen = 0_usize;
            let mut whole = true;
            gil.all(&mut |object| {
                seen += 1;
                if seen > skip && !walk.knows(object) {
                    self.look_into(gil, object);
                }
                whole = !seen.is_multiple_of(CLOCK_EVERY) || !slice.is_over();
                whole
            });
            self.seen = seen;
            if !whole {
                return false;
            }
            self.seen_before += self.seen;
            self.seen = 0;
            self.level += 1;
            let edges = &self.edges;
            self.looked_for = std::mem::take(&mut self.above);
            self.looked_for.retain(|object| !edges.contains_key(object));
        }
        true
    }

    fn is_done(&self) -> bool {
        self.looked_for.is_empty()
            || self.level >= LONGEST_WAY
            || self.edges.len() > MOST_EDGES
            || self
                .targets
                .iter()
                .all(|target| self.way(*target).is_some())
    }

    fn look_into(&mut self, gil: &Gil<'_>, object: Object<'_>) {
        let mut found = Vec::new();
        gil.children(object, &mut |child| {
            if self.looked_for.contains(&child.address()) {
                found.push(child.address());
            }
            true
        });
        for child in found {
            let edges = self.edges.entry(child).or_default();
            if edges.iter().any(|edge| edge.parent == object.address()) {
                continue;
            }
            let label = labels::of(gil, object, &|address| address == child);
            edges.push(Edge {
                parent: object.address(),
                kind: short_kind(object),
                label: match label.get(&child) {
                    Some(Label::Attribute(name) | Label::Key(name)) => format!(".{name}"),
                    Some(Label::Index(_)) => "[*]".into(),
                    Some(Label::Words(text)) => format!(", {text}"),
                    _ => String::new(),
                },
            });
            self.above.insert(object.address());
        }
    }

    /// What holds a tensor: whether it is one of those that were looked into, and then the cycle or
    /// nobody in Python.
    pub(crate) fn holder(&self, tensor: &Loose) -> Option<(Kind, String)> {
        if !self.targets.contains(&tensor.object) {
            return None;
        }
        Some(match self.way(tensor.object) {
            Some(words) => (Kind::Garbage, format!("cycle through {words}")),
            None => (
                Kind::Extension,
                "no variable of Python leads to the tensor: C or C++ code holds it".into(),
            ),
        })
    }

    /// The shortest way from an object that (through others) refers to itself down to the tensor.
    fn way(&self, tensor: u64) -> Option<String> {
        let mut below: FxHashMap<u64, (u64, &Edge)> = FxHashMap::default();
        let mut level = vec![tensor];
        for _ in 0..LONGEST_WAY {
            let mut above = Vec::new();
            for object in level {
                if object != tensor && self.refers_to_itself(object) {
                    return Some(written(object, tensor, &below));
                }
                for edge in self.edges.get(&object).into_iter().flatten() {
                    if edge.parent != tensor && !below.contains_key(&edge.parent) {
                        below.insert(edge.parent, (object, edge));
                        above.push(edge.parent);
                    }
                }
            }
            level = above;
        }
        None
    }

    fn refers_to_itself(&self, object: u64) -> bool {
        let parents = |at: u64| {
            let edges = self.edges.get(&at).into_iter().flatten();
            edges.map(|edge| edge.parent)
        };
        let mut seen = FxHashSet::default();
        let mut stack: Vec<u64> = parents(object).collect();
        while let Some(at) = stack.pop() {
            if at == object {
                return true;
            }
            if seen.len() < MOST_EDGES && seen.insert(at) {
                stack.extend(parents(at));
            }
        }
        false
    }
}

fn written(from: u64, tensor: u64, below: &FxHashMap<u64, (u64, &Edge)>) -> String {
    let mut words = String::new();
    let mut at = from;
    while at != tensor {
        let Some((child, edge)) = below.get(&at) else {
            break;
        };
        if words.is_empty() {
            words.push_str(&edge.kind);
        }
        words.push_str(&edge.label);
        at = *child;
    }
    words
}

/// The `TensorImpl` that an object wraps, its block and its gradient's.
fn blocks_of(reader: &mut Reader<'_>, object: u64) -> (u64, [Option<u32>; 2]) {
    match reader.wrapped(object) {
        Some((tensor, Class::Tensor)) => {
            let found = reader.tensor(tensor);
            let gradient = match found.gradient {
                0 => None,
                gradient => reader.tensor(gradient).block,
            };
            (tensor, [found.block, gradient])
        }
        Some((storage, Class::Storage)) => (0, [reader.storage(storage), None]),
        _ => (0, [None, None]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_upwards() {
        // 1 -> 2 -> tensor 9, 2 -> 1; 5 -> 6.
        let edge = |parent, kind: &str, label: &str| Edge {
            parent,
            kind: kind.into(),
            label: label.into(),
        };
        let ancestry = Ancestry {
            edges: FxHashMap::from_iter([
                (9, vec![edge(2, "Node", ".tensor")]),
                (2, vec![edge(1, "list", "[*]")]),
                (1, vec![edge(2, "Node", ".list")]),
                (6, vec![edge(5, "list", "[*]")]),
            ]),
            looked_for: FxHashSet::default(),
            above: FxHashSet::default(),
            seen: 0,
            seen_before: 0,
            level: 0,
            targets: vec![9, 6],
        };
        assert_eq!(ancestry.way(9).as_deref(), Some("Node.tensor"));
        assert_eq!(ancestry.way(6), None);
    }
}

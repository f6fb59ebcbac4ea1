//! Tensors that no root leads to: garbage in cycles, or what C and C++ hold.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    labels::{self, short_kind},
    pace::Slice,
    python::Gil,
    report::Kind,
    rtti::Class,
    tensors::Reader,
    walk::Walk,
};

/// The most objects without a root that are looked into.
const MOST_LOOSE: usize = 300_000;
/// The longest way up from a tensor.
const LONGEST_WAY: usize = 12;
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

/// The tensors that no root leads to and that have wanted blocks; None where the version cannot tell
/// of its objects without making a list of them, or when time is up.
pub(crate) fn tensors(
    gil: &Gil<'_>,
    walk: &mut Walk,
    reader: &mut Reader<'_>,
    slice: &Slice,
) -> Option<Vec<Loose>> {
    let mut found = Vec::new();
    let mut seen = 0_usize;
    let mut whole = true;
    let listed = gil.all(&mut |object| {
        seen += 1;
        if walk.is_wrapper(gil, object) && !walk.knows(object) {
            let (tensor, blocks) = blocks_of(reader, object.address());
            found.extend(blocks.into_iter().flatten().map(|block| Loose {
                block,
                object: object.address(),
                tensor,
            }));
        }
        whole = seen % CLOCK_EVERY != 0 || !slice.is_over();
        whole
    });
    (listed && whole).then_some(found)
}

/// What holds those of them that are not settled yet: garbage or somebody outside of Python.
pub(crate) fn holders(
    gil: &Gil<'_>,
    walk: &mut Walk,
    reader: &mut Reader<'_>,
    slice: &Slice,
    is_settled: &dyn Fn(u32) -> bool,
) -> Option<Vec<(u32, Kind, String)>> {
    let mut blocks = tensors(gil, walk, reader, slice)?;
    blocks.retain(|loose| !is_settled(loose.block));
    let mut objects: Vec<u64> = Vec::new();
    let mut seen = 0_usize;
    let mut whole = true;
    gil.all(&mut |object| {
        seen += 1;
        if !walk.knows(object) {
            objects.push(object.address());
        }
        whole = objects.len() < MOST_LOOSE && (seen % CLOCK_EVERY != 0 || !slice.is_over());
        whole
    });
    if !whole {
        return None;
    }
    let loose: FxHashSet<u64> = objects.iter().copied().collect();
    let targets = blocks.iter().map(|loose| loose.object).collect();
    let parents = parents(gil, &objects, &loose, targets, slice)?;
    Some(
        blocks
            .into_iter()
            .map(|loose| {
                let (kind, words) = describe(gil, loose.object, &parents);
                (loose.block, kind, words)
            })
            .collect(),
    )
}

/// Who among the loose refers to the targets, who to those, and so on; None when time is up.
fn parents(
    gil: &Gil<'_>,
    objects: &[u64],
    loose: &FxHashSet<u64>,
    targets: FxHashSet<u64>,
    slice: &Slice,
) -> Option<FxHashMap<u64, Vec<u64>>> {
    let mut parents: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
    let mut looked_for = targets;
    for _ in 0..LONGEST_WAY {
        let mut above = FxHashSet::default();
        for (at, address) in objects.iter().enumerate() {
            if at % CLOCK_EVERY == 0 && slice.is_over() {
                return None;
            }
            gil.children(gil.listed(*address), &mut |child| {
                if looked_for.contains(&child.address()) && loose.contains(&child.address()) {
                    parents.entry(child.address()).or_default().push(*address);
                    above.insert(*address);
                }
                true
            });
        }
        above.retain(|object| !parents.contains_key(object));
        if above.is_empty() {
            break;
        }
        looked_for = above;
    }
    Some(parents)
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

/// Goes up from a tensor until an object comes again.
fn describe(gil: &Gil<'_>, object: u64, parents: &FxHashMap<u64, Vec<u64>>) -> (Kind, String) {
    let Some(way) = way_into_a_cycle(object, parents) else {
        let words = "no variable of Python leads to the tensor: C or C++ code holds it";
        return (Kind::Extension, words.into());
    };
    // From the object that comes twice down to the tensor.
    let mut words = short_kind(gil.listed(way[0]));
    for pair in way.windows(2) {
        let parent = gil.listed(pair[0]);
        let label = labels::of(gil, parent, &|address| address == pair[1]);
        words.push_str(&match label.get(&pair[1]) {
            Some(labels::Label::Attribute(name) | labels::Label::Key(name)) => format!(".{name}"),
            Some(labels::Label::Index(_)) => "[*]".into(),
            Some(labels::Label::Words(text)) => format!(", {text}"),
            _ => String::new(),
        });
    }
    (Kind::Garbage, format!("cycle through {words}"))
}

/// The shortest way from an object that (through others) refers to itself down to the tensor.
fn way_into_a_cycle(tensor: u64, parents: &FxHashMap<u64, Vec<u64>>) -> Option<Vec<u64>> {
    let mut from: FxHashMap<u64, u64> = FxHashMap::default();
    let mut level = vec![tensor];
    for _ in 0..LONGEST_WAY {
        let mut above = Vec::new();
        for object in level {
            if object != tensor && refers_to_itself(object, parents) {
                let mut way = vec![object];
                let mut at = object;
                while let Some(below) = from.get(&at) {
                    way.push(*below);
                    at = *below;
                }
                return Some(way);
            }
            for parent in parents.get(&object).into_iter().flatten() {
                if *parent == tensor || from.contains_key(parent) {
                    continue;
                }
                from.insert(*parent, object);
                above.push(*parent);
            }
        }
        level = above;
    }
    None
}

fn refers_to_itself(object: u64, parents: &FxHashMap<u64, Vec<u64>>) -> bool {
    let mut seen = FxHashSet::default();
    let mut stack: Vec<u64> = parents.get(&object).cloned().unwrap_or_default();
    while let Some(at) = stack.pop() {
        if at == object {
            return true;
        }
        if seen.len() < 10_000 && seen.insert(at) {
            stack.extend(parents.get(&at).into_iter().flatten());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_upwards() {
        // 1 -> 2 -> tensor 9, 2 -> 1; 5 -> 6.
        let parents =
            FxHashMap::from_iter([(9, vec![2]), (2, vec![1]), (1, vec![2]), (6, vec![5])]);
        assert_eq!(way_into_a_cycle(9, &parents), Some(vec![2, 9]));
        assert_eq!(way_into_a_cycle(6, &parents), None);
    }
}

//! The walk over all Python objects that roots lead to, breadth first, in slices.
//!
//! Between two slices the program runs, and objects that were found may be gone. No reference is
//! kept on any; what is kept is how each was found. In a new slice an object counts as alive only
//! when something has shown it again: the roots are asked anew, and a parent that is alive is walked
//! once more for its children. So the parts of the object graph that are still to be looked into
//! are vouched for, level by level, and what is not found again is dropped.
#![allow(unsafe_code)]

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    pace::Slice,
    python::{Gil, Object},
    roots::{self, Root},
    rtti::Class,
    tensors::Reader,
};

/// Marks a parent that is a root's number.
const IS_ROOT: u32 = 1 << 31;
/// So many objects are seen between two looks at the clock.
const CLOCK_EVERY: u32 = 256;

#[derive(Clone, Copy, Debug)]
struct Node {
    address: u64,
    parent: u32,
    /// The slice in which it was last shown to be alive.
    shown: u32,
}

/// A block whose tensor was found, by the position of the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub block: u32,
    pub node: u32,
    pub is_gradient: bool,
}

/// What a type means to the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Plain,
    /// Wraps something of PyTorch's.
    Wrapper,
}

/// The walk.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    nodes: Vec<Node>,
    by_address: FxHashMap<u64, u32>,
    pub roots: Vec<Root>,
    queue: VecDeque<u32>,
    /// Children of the first in the queue that were seen before.
    seen_of_first: u64,
    slice: u32,
    shown_children_of: FxHashSet<u32>,
    roles: FxHashMap<u64, Role>,
    pub hits: Vec<Hit>,
    /// Tensors behind which a graph is: the tensor and the graph's node.
    pub graphs: Vec<(u32, u64)>,
    pub tensors: u64,
    pub objects: u64,
    /// Objects that were gone when they were to be looked into.
    pub dropped: u64,
}

/// How a slice of the walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Everything was looked into.
    Done,
    /// Time is up, and there is more.
    More,
    /// The memory that may be taken is used up.
    Full,
}

impl Walk {
    /// About the memory that it takes, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        (self.nodes.capacity() * size_of::<Node>()
            + self.by_address.capacity() * 16
            + self.queue.capacity() * 4
            + self.shown_children_of.capacity() * 8
            + self.hits.capacity() * size_of::<Hit>()) as u64
    }

    /// Begins a slice: nothing is alive until it is shown.
    pub(crate) fn begin(&mut self, gil: &Gil<'_>, reader: &mut Reader<'_>) {
        self.slice += 1;
        self.shown_children_of.clear();
        roots::each(gil, &mut |gil, object, root| {
            if let Some(at) = self.by_address.get(&object.address()) {
                self.nodes[*at as usize].shown = self.slice;
                return;
            }
            let number = IS_ROOT | self.roots.len() as u32;
            if self.add(gil, object, number, reader) {
                self.roots.push(root());
            }
        });
    }

    /// Looks into objects until the slice is over.
    pub(crate) fn step(
        &mut self,
        gil: &Gil<'_>,
        reader: &mut Reader<'_>,
        slice: &Slice,
        memory: u64,
    ) -> Progress {
        let mut clock = 0_u32;
        while let Some(&at) = self.queue.front() {
            if self.memory() > memory {
                return Progress::Full;
            }
            let Some(object) = self.live(gil, at) else {
                self.forget(at);
                self.queue.pop_front();
                self.seen_of_first = 0;
                continue;
            };
            let skip = self.seen_of_first;
            let mut seen = 0;
            let whole = gil.children(object, &mut |child| {
                seen += 1;
                if seen <= skip {
                    return true;
                }
                clock += 1;
                self.meet(gil, child, at, reader);
                !clock.is_multiple_of(CLOCK_EVERY) || !slice.is_over()
            });
            if !whole {
                self.seen_of_first = seen;
                return Progress::More;
            }
            self.objects += 1;
            self.queue.pop_front();
            self.seen_of_first = 0;
            clock += 1;
            if clock.is_multiple_of(CLOCK_EVERY) && slice.is_over() {
                return Progress::More;
            }
        }
        Progress::Done
    }

    fn meet(&mut self, gil: &Gil<'_>, child: Object<'_>, parent: u32, reader: &mut Reader<'_>) {
        if child.is_tracked() && !self.by_address.contains_key(&child.address()) {
            self.add(gil, child, parent, reader);
        }
    }

    /// Takes an object in; false for one that can hold nothing.
    fn add(
        &mut self,
        gil: &Gil<'_>,
        object: Object<'_>,
        parent: u32,
        reader: &mut Reader<'_>,
    ) -> bool {
        if !object.is_tracked() || self.by_address.contains_key(&object.address()) {
            return false;
        }
        let at = self.nodes.len() as u32;
        self.by_address.insert(object.address(), at);
        self.nodes.push(Node {
            address: object.address(),
            parent,
            shown: self.slice,
        });
        self.queue.push_back(at);
        if self.role(gil, object) == Role::Wrapper {
            self.wrapper(object.address(), at, reader);
        }
        true
    }

    fn role(&mut self, gil: &Gil<'_>, object: Object<'_>) -> Role {
        if let Some(role) = self.roles.get(&object.kind()) {
            return *role;
        }
        let role = role(gil, object);
        self.roles.insert(object.kind(), role);
        role
    }

    /// Whether objects of this one's type wrap C++ objects of PyTorch's: its own types and whatever
    /// is derived from them.
    pub(crate) fn is_wrapper(&mut self, gil: &Gil<'_>, object: Object<'_>) -> bool {
        self.role(gil, object) == Role::Wrapper
    }

    fn wrapper(&mut self, object: u64, at: u32, reader: &mut Reader<'_>) {
        let mut hit = |block: Option<u32>, is_gradient| {
            if let Some(block) = block {
                self.hits.push(Hit {
                    block,
                    node: at,
                    is_gradient,
                });
            }
        };
        match reader.wrapped(object) {
            Some((tensor, Class::Tensor)) => {
                self.tensors += 1;
                let found = reader.tensor(tensor);
                hit(found.block, false);
                let mut graphs = [found.graph, 0];
                if found.gradient != 0 {
                    let gradient = reader.tensor(found.gradient);
                    hit(gradient.block, true);
                    graphs[1] = gradient.graph;
                }
                for graph in graphs {
                    if graph != 0 {
                        self.graphs.push((at, graph));
                    }
                }
            }
            Some((storage, Class::Storage)) => hit(reader.storage(storage), false),
            Some((node, Class::Node(_))) => self.graphs.push((at, node)),
            _ => {}
        }
    }

    /// The object, if it is alive in this slice.
    pub(crate) fn live<'g>(&mut self, gil: &'g Gil<'_>, at: u32) -> Option<Object<'g>> {
        // Up to the first ancestor that was shown to be alive, then down again.
        let mut way = vec![at];
        loop {
            let node = self.nodes[way[way.len() - 1] as usize];
            if node.shown == self.slice {
                break;
            }
            if node.parent & IS_ROOT != 0 || self.shown_children_of.contains(&node.parent) {
                return None;
            }
            way.push(node.parent);
        }
        while let Some(parent) = way.pop() {
            if way.is_empty() {
                break;
            }
            let address = self.nodes[parent as usize].address;
            if self.shown_children_of.insert(parent) {
                // SAFETY: it was shown in this slice, by the roots or by a live parent, and nothing
                // has run since.
                let object = unsafe { gil.trust(address) };
                gil.children(object, &mut |child| {
                    if let Some(at) = self.by_address.get(&child.address()) {
                        self.nodes[*at as usize].shown = self.slice;
                    }
                    true
                });
            }
            let child = way[way.len() - 1];
            if self.nodes[child as usize].shown != self.slice {
                return None;
            }
        }
        // SAFETY: as above.
        Some(unsafe { gil.trust(self.nodes[at as usize].address) })
    }

    /// It is gone: its address may be another object's by now.
    fn forget(&mut self, at: u32) {
        let address = self.nodes[at as usize].address;
        if self.by_address.get(&address) == Some(&at) {
            self.by_address.remove(&address);
        }
        self.dropped += 1;
    }

    pub(crate) fn knows_address(&self, address: u64) -> bool {
        self.by_address.contains_key(&address)
    }

    pub(crate) fn knows(&self, object: Object<'_>) -> bool {
        self.by_address.contains_key(&object.address())
    }

    pub(crate) fn address(&self, at: u32) -> u64 {
        self.nodes[at as usize].address
    }

    /// From an object up to its root: the positions, and the root's number.
    pub(crate) fn ancestors(&self, at: u32) -> (Vec<u32>, u32) {
        let mut way = vec![at];
        loop {
            let parent = self.nodes[way[way.len() - 1] as usize].parent;
            if parent & IS_ROOT != 0 {
                return (way, parent & !IS_ROOT);
            }
            way.push(parent);
        }
    }

    pub(crate) fn parent(&self, at: u32) -> Option<u32> {
        let parent = self.nodes[at as usize].parent;
        (parent & IS_ROOT == 0).then_some(parent)
    }
}

fn role(gil: &Gil<'_>, object: Object<'_>) -> Role {
    let wraps = gil.any_base(object, &mut |name| {
        [
            "torch._C.TensorBase",
            "torch._C._TensorBase",
            "torch._C.StorageBase",
        ]
        .contains(&name)
            || name.contains("Backward")
            || name == "AccumulateGrad"
            || name == "torch._C._FunctionBase"
    });
    if wraps { Role::Wrapper } else { Role::Plain }
}

//! The walk over all Python objects that roots lead to, breadth first, in slices.
//!
//! Between two slices the program runs, and objects that were found may be gone. No reference is
//! kept on any; what is kept is how each was found. In a new slice an object counts as alive only
//! when something has shown it again: the roots are asked anew, and a parent that is alive is walked
//! once more for its children. So the parts of the object graph that are still to be looked into
//! are vouched for, level by level, and what is not found again is dropped.

mod alive;

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
/// What a tensor counts there: it is read by system calls.
const CLOCK_OF_TENSOR: u32 = 8;
/// So many references of an object are followed at once to see whether it leads anywhere.
const FEW: u32 = 64;
/// A place of the table of addresses, which is never more than seven eighths full.
const BYTES_A_KNOWN: usize = 20;
/// The place of what is no item of a large container.
const NO_PLACE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    address: u64,
    parent: u32,
    /// The slice in which it was last shown to be alive.
    shown: u32,
    /// Where in a large container it lies, else [`NO_PLACE`].
    place: u32,
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

/// How far the walk goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reach {
    /// From `__main__` and the variables of functions that run, and not into other modules: nearly
    /// everything that a program keeps is found so, and it is a small part of all objects.
    #[default]
    Near,
    /// Everything.
    Far,
}

/// The walk.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    nodes: Vec<Node>,
    by_address: FxHashMap<u64, u32>,
    pub roots: Vec<Root>,
    queue: VecDeque<u32>,
    /// How much of the first in the queue was seen before.
    seen_of_first: Seen,
    reach: Reach,
    /// What lies beyond a near reach, as of this slice.
    far: FxHashSet<u64>,
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

/// Where looking into an object stopped.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Children that the collector's walk shows.
    children: u64,
    /// The place in a large container.
    place: u64,
}

/// How a slice of the walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Everything within reach was looked into.
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
            + self.by_address.capacity() * BYTES_A_KNOWN
            + self.queue.capacity() * 4
            + self.shown_children_of.capacity() * 8
            + self.far.capacity() * 9
            + self.hits.capacity() * size_of::<Hit>()) as u64
    }

    /// What the next objects may take at most: tables double.
    fn memory_soon(&self) -> u64 {
        let full = |length: usize, capacity: usize| length + 1 >= capacity;
        let mut more = 0;
        if full(self.nodes.len(), self.nodes.capacity()) {
            more += self.nodes.capacity() * size_of::<Node>();
        }
        if full(self.by_address.len(), self.by_address.capacity()) {
            // Old and new are there at once.
            more += 2 * self.by_address.capacity() * BYTES_A_KNOWN;
        }
        self.memory() + more as u64
    }

    /// Begins a slice: nothing is alive until it is shown.
    pub(crate) fn begin(&mut self, gil: &Gil<'_>, reader: &mut Reader<'_>) {
        self.slice += 1;
        self.shown_children_of.clear();
        if self.reach == Reach::Near {
            roots::far(gil, &mut self.far);
        }
        roots::each(gil, &mut |gil, object, root| {
            if let Some(at) = self.by_address.get(&object.address()) {
                self.nodes[*at as usize].shown = self.slice;
                return;
            }
            if self.far.contains(&object.address()) {
                return;
            }
            let number = IS_ROOT | self.roots.len() as u32;
            if self.add(gil, object, number, NO_PLACE, reader) {
                self.roots.push(root());
            }
        });
    }

    /// A number that is another once anything was seen.
    pub(crate) fn seen(&self) -> u64 {
        self.objects + self.nodes.len() as u64 + self.seen_of_first.place
    }

    /// From the next slice on, everything is within reach; false where it was already.
    pub(crate) fn go_far(&mut self) -> bool {
        let went = self.reach == Reach::Near;
        self.reach = Reach::Far;
        self.far = FxHashSet::default();
        went
    }

    /// Looks into objects until the slice is over.
    pub(crate) fn step(
        &mut self,
        gil: &Gil<'_>,
        reader: &mut Reader<'_>,
        slice: &Slice,
        memory: u64,
    ) -> Progress {
        let mut clock = Clock { seen: 0, slice };
        while let Some(&at) = self.queue.front() {
            if self.memory_soon() > memory {
                return Progress::Full;
            }
            let Some(object) = self.live(gil, at) else {
                self.forget(at);
                self.next_in_queue();
                continue;
            };
            let whole = match gil.is_large(object) {
                true => self.look_into_large(gil, object, at, reader, &mut clock, memory),
                false => self.look_into(gil, object, at, [0; 2], reader, &mut clock),
            };
            if !whole {
                return match self.memory_soon() > memory {
                    true => Progress::Full,
                    false => Progress::More,
                };
            }
            self.objects += 1;
            self.next_in_queue();
            if clock.is_over(1) {
                return Progress::More;
            }
        }
        Progress::Done
    }

    fn next_in_queue(&mut self) {
        self.queue.pop_front();
        self.seen_of_first = Seen::default();
    }

    /// Looks at the children that the collector's walk shows, from where it stopped on, as far as one
    /// of `until`; whether that was all.
    fn look_into(
        &mut self,
        gil: &Gil<'_>,
        object: Object<'_>,
        at: u32,
        until: [u64; 2],
        reader: &mut Reader<'_>,
        clock: &mut Clock<'_>,
    ) -> bool {
        let skip = self.seen_of_first.children;
        let mut seen = 0;
        let mut is_over = false;
        gil.children(object, &mut |child| {
            if until.contains(&child.address()) {
                return false;
            }
            seen += 1;
            if seen > skip {
                let weight = self.meet(gil, child, at, NO_PLACE, reader);
                is_over = clock.is_over(weight);
            }
            !is_over
        });
        self.seen_of_first.children = seen.max(skip);
        !is_over
    }

    /// The same for a large container: what else hangs on it, then its items by their places.
    fn look_into_large(
        &mut self,
        gil: &Gil<'_>,
        object: Object<'_>,
        at: u32,
        reader: &mut Reader<'_>,
        clock: &mut Clock<'_>,
        memory: u64,
    ) -> bool {
        if !gil.is_plain_container(object) && self.seen_of_first.place == 0 {
            let until = gil.first_items(object);
            if !self.look_into(gil, object, at, until, reader, clock) {
                return false;
            }
        }
        while let Some(entry) = gil.entry(object, self.seen_of_first.place) {
            let place = u32::try_from(self.seen_of_first.place).unwrap_or(NO_PLACE);
            let mut weight = 1;
            for child in [entry.key, entry.value].into_iter().flatten() {
                weight += self.meet(gil, child, at, place, reader);
            }
            self.seen_of_first.place = entry.next;
            if clock.is_over(weight) || self.memory_soon() > memory {
                return false;
            }
        }
        true
    }

    /// Takes a child in that leads anywhere; how much the clock is to count for it.
    fn meet(
        &mut self,
        gil: &Gil<'_>,
        child: Object<'_>,
        parent: u32,
        place: u32,
        reader: &mut Reader<'_>,
    ) -> u32 {
        if !child.is_tracked()
            || self.by_address.contains_key(&child.address())
            || self.far.contains(&child.address())
        {
            return 1;
        }
        if self.role(gil, child) == Role::Wrapper {
            self.add(gil, child, parent, place, reader);
            return CLOCK_OF_TENSOR;
        }
        let (leads_on, seen) = self.leads_on(gil, child);
        match leads_on {
            true => drop(self.add(gil, child, parent, place, reader)),
            false => self.objects += 1,
        }
        seen
    }

    /// Whether an object refers to one that is not known, as far as a short look tells; and how many
    /// references were looked at. Most objects hold numbers and text, and need not be remembered.
    fn leads_on(&self, gil: &Gil<'_>, object: Object<'_>) -> (bool, u32) {
        let kind = object.kind();
        let mut seen = 0;
        let none = gil.children(object, &mut |child| {
            seen += 1;
            let address = child.address();
            let is_new = address != kind
                && child.is_tracked()
                && !self.by_address.contains_key(&address)
                && !self.far.contains(&address);
            !is_new && seen < FEW
        });
        (!none, seen)
    }

    /// Takes an object in; false for one that can hold nothing.
    fn add(
        &mut self,
        gil: &Gil<'_>,
        object: Object<'_>,
        parent: u32,
        place: u32,
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
            place,
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

    /// Where in a large container an object lies.
    pub(crate) fn place(&self, at: u32) -> Option<u64> {
        let place = self.nodes[at as usize].place;
        (place != NO_PLACE).then(|| place.into())
    }

    pub(crate) fn parent(&self, at: u32) -> Option<u32> {
        let parent = self.nodes[at as usize].parent;
        (parent & IS_ROOT == 0).then_some(parent)
    }
}

/// Looks at the time now and then.
struct Clock<'a> {
    seen: u32,
    slice: &'a Slice,
}

impl Clock<'_> {
    /// Counts `weight` more; whether the slice is over.
    fn is_over(&mut self, weight: u32) -> bool {
        self.seen += weight;
        if self.seen < CLOCK_EVERY {
            return false;
        }
        self.seen = 0;
        self.slice.is_over()
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

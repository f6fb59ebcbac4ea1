//! The autograd graphs behind live tensors: which node has saved which block.
//!
//! The nodes are found from their neighbours' memory: whatever word of a node, or of an array that
//! two neighbouring words of it enclose, points to another node or to a tensor is an edge. No node
//! is locked, unpacked or kept: an unpack hook (checkpointing, offloading) would run the program's
//! own code. Threads that run backward may free nodes meanwhile; what is read of those is nonsense
//! that names no class.

use rustc_hash::FxHashMap;

use crate::{peek::plausible, rtti::Class, tensors::Reader};

/// `std::make_shared` puts its counts before the object: a table and two of four bytes.
const COUNTS: u64 = 16;
/// Where glibc's allocator keeps a block's size: in the word before it, with flags in the low bits.
const SIZE_MASK: u64 = !0xf;
/// Nodes are of 200 to 2,000 bytes.
const LARGEST_NODE: usize = 8 * 1024;
const SMALLEST_NODE: usize = 96;
/// What is taken where the size before a block makes no sense: another allocator's.
const USUAL_NODE: usize = 320;
/// The longest array in a node that is looked into: edges and saved lists.
const LONGEST_ARRAY: u64 = 1 << 20;

/// The node of a function that is written in Python.
const PYTHON_NODE: &str = "PyNode";

/// How a node was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// From this source, by its position.
    Source(u32),
    /// From another node, by its position.
    Node(u32),
}

#[derive(Clone, Copy, Debug)]
struct Node {
    address: u64,
    name: u32,
    from: From,
}

/// A block that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    /// Which of the wanted blocks.
    pub block: u32,
    /// The node that saved it.
    pub node: u32,
    /// It is the gradient of a tensor that the node has.
    pub is_gradient: bool,
}

/// A search through graphs.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    nodes: Vec<Node>,
    seen: FxHashMap<u64, u32>,
    next: usize,
    pub saved: Vec<Saved>,
    /// A tensor that is looked for, and the first node that has it.
    looked_for: u64,
    found_at: Option<u32>,
}

/// How far a cycle is followed.
const LONGEST_CYCLE: usize = 2_000;

/// The nodes on the way from a tensor, over its gradient or what computed it, back to itself: a cycle
/// that only C++ knows of.
pub(crate) fn cycle(tensor: u64, reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let found = reader.tensor(tensor);
    let mut graphs = Graphs {
        looked_for: tensor,
        ..Graphs::default()
    };
    let mut first = Vec::new();
    if found.gradient != 0 {
        let behind = reader.tensor(found.gradient).graph;
        graphs.reach(behind, From::Source(0), reader);
        first.push(".grad".to_owned());
    }
    graphs.reach(found.graph, From::Source(1), reader);
    while graphs.found_at.is_none() && graphs.nodes.len() < LONGEST_CYCLE && graphs.step(16, reader)
    {
    }
    let (source, way) = graphs.way(graphs.found_at?, reader);
    if source != 0 {
        first.clear();
    }
    first.extend(way);
    Some(first)
}

impl Graphs {
    /// Adds the node behind a tensor.
    pub(crate) fn add_source(&mut self, source: u32, node: u64, reader: &mut Reader<'_>) {
        self.reach(node, From::Source(source), reader);
    }

    fn reach(&mut self, address: u64, from: From, reader: &mut Reader<'_>) {
        if self.seen.contains_key(&address) {
            return;
        }
        let Class::Node(name) = reader.classes.of(address) else {
            return;
        };
        self.seen.insert(address, self.nodes.len() as u32);
        self.nodes.push(Node {
            address,
            name,
            from,
        });
    }

    pub(crate) fn nodes(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// About the memory that it takes, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        (self.nodes.capacity() * size_of::<Node>() + self.seen.capacity() * 16) as u64
    }

    /// Looks into the next nodes, nearest first; whether there are more.
    pub(crate) fn step(&mut self, count: usize, reader: &mut Reader<'_>) -> bool {
        for _ in 0..count {
            let Some(node) = self.nodes.get(self.next).copied() else {
                return false;
            };
            self.look_into(self.next as u32, node.address, reader);
            self.next += 1;
        }
        true
    }

    fn look_into(&mut self, at: u32, node: u64, reader: &mut Reader<'_>) {
        let size = size(node, reader).unwrap_or(USUAL_NODE);
        let words = reader.peek.words(node, size / 8);
        let mut words = words;
        if reader.classes.name(self.nodes[at as usize].name) == PYTHON_NODE {
            // What a function in Python has saved lies in its context object.
            if let Some(context) = words.iter().find_map(|word| context(*word, reader)) {
                words.extend(context);
            }
        }
        let mut pointers = words.get(1..).unwrap_or_default().to_vec();
        for (begin, end) in arrays(&words, reader) {
            pointers.extend(reader.peek.words(begin, ((end - begin) / 8) as usize));
        }
        pointers.retain(|word| plausible(*word) && *word != node);
        pointers.sort_unstable();
        pointers.dedup();
        let tables = reader.peek.scattered(&pointers);
        for (pointer, table) in pointers.iter().zip(tables) {
            match reader.classes.of_table(table) {
                Class::Node(_) => self.reach(*pointer, From::Node(at), reader),
                Class::Tensor => self.tensor(*pointer, at, reader),
                _ => {}
            }
        }
    }

    /// A tensor that a node has: its block, its gradient's, and the graphs behind both.
    fn tensor(&mut self, tensor: u64, at: u32, reader: &mut Reader<'_>) {
        if tensor == self.looked_for {
            self.found_at.get_or_insert(at);
        }
        let found = reader.tensor(tensor);
        let mut save = |block: Option<u32>, is_gradient| {
            if let Some(block) = block {
                self.saved.push(Saved {
                    block,
                    node: at,
                    is_gradient,
                });
            }
        };
        save(found.block, false);
        let mut graphs = [found.graph, 0];
        if found.gradient != 0 {
            let gradient = reader.tensor(found.gradient);
            save(gradient.block, true);
            graphs[1] = gradient.graph;
        }
        for graph in graphs {
            if graph != 0 {
                self.reach(graph, From::Node(at), reader);
            }
        }
    }

    /// The way to a node: the source, and the nodes' names from the source on.
    pub(crate) fn way(&self, node: u32, reader: &Reader<'_>) -> (u32, Vec<String>) {
        let mut names = Vec::new();
        let mut at = node;
        loop {
            let Some(node) = self.nodes.get(at as usize) else {
                return (0, names);
            };
            names.push(reader.classes.name(node.name).to_owned());
            match node.from {
                From::Node(from) => at = from,
                From::Source(source) => {
                    names.reverse();
                    return (source, names);
                }
            }
        }
    }

    /// The source that a node was reached from, and how many nodes lie on the way.
    pub(crate) fn source(&self, node: u32) -> (u32, u64) {
        let (mut at, mut length) = (node, 0);
        while let Some(node) = self.nodes.get(at as usize) {
            length += 1;
            match node.from {
                From::Node(from) => at = from,
                From::Source(source) => return (source, length),
            }
        }
        (0, length)
    }
}

/// The arrays that an object has: three words in a row that are a vector's beginning, its end and
/// the end of what it may grow to, where that is just what the allocator has given.
fn arrays(words: &[u64], reader: &Reader<'_>) -> Vec<(u64, u64)> {
    let triples: Vec<[u64; 3]> = words
        .windows(3)
        .map(|words| [words[0], words[1], words[2]])
        .filter(|[begin, end, room]| {
            plausible(*begin)
                && plausible(*end)
                && begin < end
                && end <= room
                && room - begin <= LONGEST_ARRAY
        })
        .collect();
    let sizes: Vec<u64> = triples.iter().map(|[begin, ..]| begin - 8).collect();
    let sizes = reader.peek.scattered(&sizes);
    triples
        .into_iter()
        .zip(sizes)
        .filter(|([begin, _, room], size)| {
            let usable = (size & SIZE_MASK).saturating_sub(8);
            (room - begin..=room - begin + 24).contains(&usable)
        })
        .map(|([begin, end, _], _)| (begin, end))
        .collect()
}

/// The memory of an object of a class derived from `torch.autograd.Function`'s context.
fn context(object: u64, reader: &Reader<'_>) -> Option<Vec<u64>> {
    /// In a type: its name, and the size of its objects.
    const TYPE_NAME: u64 = 24;
    const TYPE_SIZE: u64 = 32;
    if !plausible(object) {
        return None;
    }
    let kind = reader
        .peek
        .word(object + 8)
        .filter(|kind| plausible(*kind))?;
    let name = reader.peek.text(reader.peek.word(kind + TYPE_NAME)?)?;
    let size = reader.peek.word(kind + TYPE_SIZE)?;
    (name.ends_with("Backward") && size <= LARGEST_NODE as u64)
        .then(|| reader.peek.words(object, (size / 8) as usize))
}

/// The bytes of a node, as the allocator knows them: of a block of its own, or behind the counts of a
/// shared pointer (PyTorch's `AccumulateGrad`).
fn size(node: u64, reader: &Reader<'_>) -> Option<usize> {
    let of_block = |block: u64, before: u64| {
        let size = reader.peek.word(block - 8)? & SIZE_MASK;
        let usable = usize::try_from(size.checked_sub(8 + before)?).ok()?;
        (SMALLEST_NODE..=LARGEST_NODE)
            .contains(&usable)
            .then_some(usable)
    };
    of_block(node, 0).or_else(|| of_block(node - COUNTS, COUNTS))
}

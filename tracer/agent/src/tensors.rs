//! PyTorch's C++ objects: from a tensor to its block, its gradient and the graph behind it.

use rustc_hash::FxHashMap;

use crate::{
    peek::{Peek, plausible},
    rtti::{Class, Classes},
};

/// How many words of an object are searched for a pointer to another. In PyTorch 2.4 to 2.15 they
/// are among the first four of a Python tensor and of a `TensorImpl`; the data pointer is among the
/// first five of a `StorageImpl`.
const OBJECT_WORDS: usize = 8;
/// `AutogradMeta`: the table, a name, the gradient, the graph. The name is a `std::string`: four
/// words, or one in libraries of the old C++ string interface (PyTorch 2.4).
const META_WORDS: usize = 9;
const NAME_INLINE: u64 = 24;

/// The blocks that are asked for, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    by_address: FxHashMap<u64, u32>,
}

impl Wanted {
    pub(crate) fn new(addresses: &[u64]) -> Wanted {
        Wanted {
            by_address: addresses
                .iter()
                .enumerate()
                .map(|(at, address)| (*address, at as u32))
                .collect(),
        }
    }

    fn find(&self, words: &[u64]) -> Option<u32> {
        words
            .iter()
            .find_map(|word| self.by_address.get(word).copied())
    }
}

/// What hangs on a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tensor {
    /// Which of the wanted blocks is its own.
    pub block: Option<u32>,
    /// Its gradient's `TensorImpl`; 0 for none.
    pub gradient: u64,
    /// The node of the graph that computed it; 0 for none.
    pub graph: u64,
}

/// Reads tensors.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub peek: Peek,
    pub classes: Classes,
    pub wanted: &'a Wanted,
}

impl Reader<'_> {
    /// The `TensorImpl` or `StorageImpl` that a Python object wraps.
    pub(crate) fn wrapped(&mut self, object: u64) -> Option<(u64, Class)> {
        let words = self.peek.words(object + 16, 3);
        for word in words {
            let class = self.classes.of(word);
            if let Class::Tensor | Class::Storage | Class::Node(_) = class {
                return Some((word, class));
            }
            // One that is only borrowed: a pointer to the pointer.
            if plausible(word)
                && let Some(inner) = self.peek.word(word)
                && self.classes.of(inner) == Class::Tensor
            {
                return Some((inner, Class::Tensor));
            }
        }
        None
    }

    /// What hangs on a `TensorImpl`.
    pub(crate) fn tensor(&mut self, tensor: u64) -> Tensor {
        let mut found = Tensor::default();
        for word in self.peek.words(tensor + 8, OBJECT_WORDS - 1) {
            match self.classes.of(word) {
                Class::Storage if found.block.is_none() => found.block = self.storage(word),
                Class::Meta => {
                    (found.gradient, found.graph) = self.meta(word);
                    break;
                }
                _ => {}
            }
        }
        found
    }

    /// Which block a `StorageImpl` holds.
    pub(crate) fn storage(&mut self, storage: u64) -> Option<u32> {
        self.wanted
            .find(&self.peek.words(storage + 8, OBJECT_WORDS - 1))
    }

    fn meta(&mut self, meta: u64) -> (u64, u64) {
        let words = self.peek.words(meta, META_WORDS);
        let text_is_inline = words.get(1) == Some(&(meta + NAME_INLINE));
        let gradient_at = if text_is_inline { 5 } else { 2 };
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        let (gradient, graph) = (word(gradient_at), word(gradient_at + 1));
        let gradient = match self.classes.of(gradient) {
            Class::Tensor => gradient,
            _ => 0,
        };
        let graph = match self.classes.of(graph) {
            Class::Node(_) => graph,
            _ => 0,
        };
        (gradient, graph)
    }
}

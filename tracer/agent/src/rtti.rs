//! C++ classes by their own names: a polymorphic object's first word is its table of functions, and
//! the word before that table leads to the class's name (Itanium C++ ABI, 2.9.5). So no structure
//! of PyTorch's needs to be known by version: what a word points to says what it is.

use rustc_hash::FxHashMap;

use crate::peek::{Peek, plausible};

/// What an object is, as far as the search wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// `c10::TensorImpl` and what is derived from it.
    Tensor,
    /// `c10::StorageImpl`.
    Storage,
    /// `torch::autograd::AutogradMeta` and what is derived from it.
    Meta,
    /// A node of an autograd graph; the number is its name's.
    Node(u32),
    /// Anything else.
    Other,
}

/// The classes seen so far, by their tables.
#[derive(Debug)]
pub(crate) struct Classes {
    peek: Peek,
    by_table: FxHashMap<u64, Class>,
    names: Vec<String>,
}

impl Classes {
    pub(crate) fn new(peek: Peek) -> Classes {
        Classes {
            peek,
            by_table: FxHashMap::default(),
            names: Vec::new(),
        }
    }

    /// What the object at an address is.
    pub(crate) fn of(&mut self, address: u64) -> Class {
        if !plausible(address) {
            return Class::Other;
        }
        let table = self.peek.word(address).unwrap_or(0);
        self.of_table(table)
    }

    /// What an object with this first word is.
    pub(crate) fn of_table(&mut self, table: u64) -> Class {
        if !plausible(table) {
            return Class::Other;
        }
        if let Some(class) = self.by_table.get(&table) {
            return *class;
        }
        let class = self.read(table);
        // Words that are no tables are as many as there are words.
        if class != Class::Other || self.by_table.len() < 1 << 16 {
            self.by_table.insert(table, class);
        }
        class
    }

    fn read(&mut self, table: u64) -> Class {
        let name = self
            .peek
            .word(table - 8)
            .filter(|info| plausible(*info))
            .and_then(|info| self.peek.word(info + 8))
            .and_then(|name| self.peek.text(name));
        let Some(parts) = name.as_deref().and_then(parts) else {
            return Class::Other;
        };
        let Some(last) = parts.last() else {
            return Class::Other;
        };
        match &parts[..] {
            [.., "StorageImpl"] => Class::Storage,
            _ if last.ends_with("TensorImpl") || last.ends_with("TensorWrapper") => Class::Tensor,
            [
                "torch",
                "autograd",
                "AutogradMeta" | "DifferentiableViewMeta",
            ] => Class::Meta,
            ["torch", "autograd", .., last] if is_node(last) => {
                let number = self.names.len() as u32;
                self.names.push((*last).to_owned());
                Class::Node(number)
            }
            // Nodes of extensions.
            [.., last] if last.ends_with("Backward") || last.starts_with("CppNode") => {
                let number = self.names.len() as u32;
                self.names.push((*last).to_owned());
                Class::Node(number)
            }
            _ => Class::Other,
        }
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("?", String::as_str)
    }
}

fn is_node(class: &str) -> bool {
    class.contains("Backward")
        || [
            "AccumulateGrad",
            "CopySlices",
            "PyNode",
            "Error",
            "DelayedError",
            "UndefinedGrad",
            "GraphRoot",
            "Identity",
            "CopyBackwards",
        ]
        .contains(&class)
}

/// The names in a mangled class name, outermost first: `N3c1010TensorImplE`, `3Foo`.
fn parts(mangled: &str) -> Option<Vec<&str>> {
    let (mut rest, nested) = match mangled.strip_prefix('N') {
        Some(rest) => (rest, true),
        None => (mangled, false),
    };
    let mut parts = Vec::new();
    while rest.starts_with(|first: char| first.is_ascii_digit()) {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let length: usize = rest[..digits].parse().ok()?;
        let end = digits.checked_add(length)?;
        parts.push(rest.get(digits..end)?);
        rest = rest.get(end..)?;
    }
    let ended = if nested {
        rest.starts_with(['E', 'I'])
    } else {
        rest.is_empty() || rest.starts_with('I')
    };
    (ended && !parts.is_empty()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names() {
        assert_eq!(parts("N3c1010TensorImplE"), Some(vec!["c10", "TensorImpl"]));
        assert_eq!(
            parts("N5torch8autograd7CppNodeI5MyAddEE"),
            Some(vec!["torch", "autograd", "CppNode"])
        );
        assert_eq!(parts("3Foo"), Some(vec!["Foo"]));
        assert_eq!(parts("9Foo"), None);
        assert_eq!(parts("N3c10"), None);
        assert_eq!(parts("St9exception"), None);
    }
}

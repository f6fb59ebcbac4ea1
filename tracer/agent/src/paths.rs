//! Ways from roots to objects, written down.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::{
    labels::{self, Label, Labels},
    python::Gil,
    walk::Walk,
};

/// A way, written with its positions and without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    /// `__main__.history[137]`
    pub exact: String,
    /// `__main__.history[*]`
    pub pattern: String,
    /// What the next label means.
    after: After,
    /// The pattern without its last step.
    pub above: String,
    /// The outermost container that the way leads through by a position, or cache, as the walk counts.
    pub container: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum After {
    #[default]
    Object,
    Namespace,
    /// A dictionary in which `torch.nn.Module` keeps attributes: `_modules`, `_parameters`.
    Members,
    Cache,
    Named(&'static str, Vec<String>),
}

/// What `torch.nn.Module.__getattr__` looks into.
const MEMBERS: [&str; 3] = ["_modules", "_parameters", "_buffers"];

impl Path {
    fn root(name: &str, is_namespace: bool) -> Path {
        Path {
            exact: name.to_owned(),
            pattern: name.to_owned(),
            after: if is_namespace {
                After::Namespace
            } else {
                After::Object
            },
            above: String::new(),
            container: None,
        }
    }

    fn then(&self, label: &Label) -> Path {
        let mut path = self.clone();
        path.after = After::Object;
        path.above.clone_from(&self.pattern);
        match (label, &self.after) {
            (Label::Key(_) | Label::Index(_), After::Cache) => {}
            (Label::Key(name), After::Namespace) | (Label::Attribute(name), _)
                if MEMBERS.contains(&name.as_str()) =>
            {
                path.after = After::Members;
            }
            // As `torch.nn.Sequential` is written.
            (Label::Key(name), After::Members) if name.bytes().all(|c| c.is_ascii_digit()) => {
                path.say(&format!("[{name}]"));
            }
            (Label::Key(name), After::Namespace | After::Members) | (Label::Attribute(name), _) => {
                path.say(&format!(".{name}"));
            }
            (Label::Key(name), _) => path.say(&format!("['{name}']")),
            (Label::Index(at), After::Named(what, names)) => {
                let name = usize::try_from(*at).ok().and_then(|at| names.get(at));
                let name = name.map_or("?", String::as_str);
                path.say(&format!(", {what} `{name}`"));
            }
            (Label::Index(at), _) => {
                path.exact.push_str(&format!("[{at}]"));
                path.pattern.push_str("[*]");
            }
            (Label::Cached, _) => {
                path.say(", kept by functools.lru_cache");
                path.after = After::Cache;
            }
            (Label::Words(_), After::Cache) => {}
            (Label::Namespace, _) => path.after = After::Namespace,
            (Label::Silent, _) => path.after = self.after.clone(),
            (Label::Named { what, names }, _) => path.after = After::Named(what, names.clone()),
            (Label::Words(words), _) if words.starts_with('[') => path.say(words),
            (Label::Words(words), _) => path.say(&format!(", {words}")),
        }
        path
    }

    fn say(&mut self, text: &str) {
        self.exact.push_str(text);
        self.pattern.push_str(text);
    }
}

/// The longest chain of linked objects that is written out.
const MOST_WORDS: usize = 400;

/// Writes ways down, each part once a slice.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    paths: FxHashMap<u32, Path>,
    labels: FxHashMap<u32, Labels>,
}

impl Paths {
    /// Forgets what was read in another slice; the ways that were written stay.
    pub(crate) fn begin(&mut self) {
        self.labels.clear();
    }

    /// The way to a gradient of a tensor.
    pub(crate) fn gradient(path: &Path) -> Path {
        path.then(&Label::Attribute("grad".into()))
    }

    /// The way to an object; None when part of it is gone.
    pub(crate) fn of(&mut self, gil: &Gil<'_>, walk: &mut Walk, at: u32) -> Option<Path> {
        let (way, root) = walk.ancestors(at);
        let known = way.iter().position(|node| self.paths.contains_key(node));
        let from = known.unwrap_or(way.len());
        let mut path = match known {
            Some(known) => self.paths.get(&way[known])?.clone(),
            None => {
                let root = walk.roots.get(root as usize)?;
                let path = Path::root(&root.name, root.is_namespace);
                self.paths.insert(*way.last()?, path.clone());
                path
            }
        };
        let steps: Vec<u32> = way[..from].iter().rev().copied().collect();
        for child in steps {
            if known.is_none() && Some(&child) == way.last() {
                continue;
            }
            let parent = walk.parent(child)?;
            let label = self.label(gil, walk, parent, child)?;
            path = path.then(&label);
            let by_position = matches!(label, Label::Index(_)) && path.pattern.ends_with("[*]");
            if by_position || matches!(label, Label::Cached) {
                path.container.get_or_insert(parent);
            }
            if path.exact.len() > MOST_WORDS {
                shorten(&mut path.exact);
                shorten(&mut path.pattern);
            }
            self.paths.insert(child, path.clone());
        }
        Some(path)
    }

    fn label(&mut self, gil: &Gil<'_>, walk: &mut Walk, parent: u32, child: u32) -> Option<Label> {
        let address = walk.address(child);
        if let Some(place) = walk.place(child) {
            let object = walk.live(gil, parent)?;
            return labels::at(gil, object, place, address);
        }
        let labels = match self.labels.entry(parent) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let object = walk.live(gil, parent)?;
                let walk = &*walk;
                // What is no item of a large container is told by the collector's walk alone.
                place.insert(labels::of(gil, object, &|address| {
                    walk.knows_address(address)
                }))
            }
        };
        labels.get(&address).cloned()
    }
}

/// Keeps both ends.
fn shorten(text: &mut String) {
    let keep = MOST_WORDS / 2;
    let cut = |at: usize, text: &str| (at..text.len()).find(|at| text.is_char_boundary(*at));
    if let (Some(first), Some(last)) = (cut(keep - 20, text), cut(text.len() - keep + 20, text)) {
        *text = format!("{} … {}", &text[..first], &text[last..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_written_as_python() {
        let path = Path::root("__main__", true)
            .then(&Label::Key("history".into()))
            .then(&Label::Key("logits".into()))
            .then(&Label::Index(137));
        assert_eq!(path.exact, "__main__.history['logits'][137]");
        assert_eq!(path.pattern, "__main__.history['logits'][*]");
        let path = Path::root("__main__", true)
            .then(&Label::Key("hook".into()))
            .then(&Label::Named {
                what: "closure variable",
                names: vec!["before".into()],
            })
            .then(&Label::Index(0))
            .then(&Label::Silent);
        assert_eq!(path.exact, "__main__.hook, closure variable `before`");
        let path = Path::root("__main__", true)
            .then(&Label::Key("model".into()))
            .then(&Label::Namespace)
            .then(&Label::Key("_modules".into()))
            .then(&Label::Key("0".into()))
            .then(&Label::Namespace)
            .then(&Label::Key("_parameters".into()))
            .then(&Label::Key("weight".into()));
        assert_eq!(path.exact, "__main__.model[0].weight");
    }
}

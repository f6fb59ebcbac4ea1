//! How an object leads to another, in words that a person knows.

use rustc_hash::FxHashMap;

use crate::{
    bounds,
    python::{Gil, Object},
    roots,
};

/// What leads from an object to one that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// `.name`
    Attribute(String),
    /// `['name']`, or `.name` in a namespace.
    Key(String),
    /// `[3]`, of a position or of an `int` that is a key.
    Index(i64),
    /// Its namespace: nothing is said, and the next key is an attribute.
    Namespace,
    /// Nothing is said.
    Silent,
    /// A tuple of what these names stand for: closures and defaults.
    Named {
        what: &'static str,
        names: Vec<String>,
    },
    /// What a `functools.lru_cache` keeps; the key says nothing to a person.
    Cached,
    /// Anything else.
    Words(String),
}

/// The labels of those of an object's children that are wanted.
pub(crate) type Labels = FxHashMap<u64, Label>;

/// `PyHeapTypeObject.ht_cached_keys` and what is needed of `PyDictKeysObject` (3.11 to 3.14).
const KEYS_OF_TYPE: [(u32, u64); 4] = [(11, 872), (12, 880), (13, 880), (14, 880)];
const KEYS_HEAD: u64 = 32;
/// What hangs on a large container beside its items comes first.
const MOST_OF_LARGE: i64 = 64;
/// The longest list of names that a class shares among its objects.
const MOST_SHARED: u64 = 64;

/// Names all the ways from a live object to its children.
pub(crate) fn of(gil: &Gil<'_>, parent: Object<'_>, is_wanted: &dyn Fn(u64) -> bool) -> Labels {
    let types = gil.python().types;
    let mut labels = Labels::default();
    let is_large = gil.is_large(parent);
    let mut put = |child: Object<'_>, label: &dyn Fn() -> Label| {
        if is_wanted(child.address()) {
            labels.entry(child.address()).or_insert_with(label);
        }
    };
    let kind = parent.kind();
    if !is_large && (gil.is(parent, types.tuple) || gil.is(parent, types.list)) {
        let mut at = 0;
        while let Some(item) = gil.item(parent, at) {
            put(item, &|| Label::Index(at as i64));
            at += 1;
        }
    }
    if !is_large && gil.is(parent, types.dict) {
        gil.entries(parent, &mut |key, value| {
            put(value, &|| key_label(gil, key));
            put(key, &|| Label::Words("a key".into()));
            true
        });
    }
    if kind == types.function {
        function(gil, parent, &mut put);
    } else if kind == types.cell {
        gil.children(parent, &mut |child| {
            put(child, &|| Label::Silent);
            true
        });
    } else if kind == types.module {
        if let Some(namespace) = gil.namespace(parent) {
            put(namespace, &|| Label::Namespace);
        }
    } else if kind == types.method {
        for (name, label) in [(c"__self__", "bound to"), (c"__func__", "function")] {
            gil.attribute(parent, name, |part| {
                put(part, &|| Label::Words(label.into()))
            });
        }
    } else if kind == types.traceback {
        gil.attribute(parent, c"tb_next", |next| put(next, &|| Label::Silent));
        gil.attribute(parent, c"tb_frame", |frame| put(frame, &|| Label::Silent));
    } else if gil.is(parent, types.class) {
        gil.children(parent, &mut |child| {
            if child.kind() == types.dict {
                put(child, &|| Label::Namespace);
            }
            true
        });
    }
    instance(gil, parent, &mut put);
    rest(gil, parent, &mut put);
    labels
}

/// Names the way from a large container to an item at or near a place.
pub(crate) fn at(gil: &Gil<'_>, parent: Object<'_>, place: u64, child: u64) -> Option<Label> {
    let place = gil.place_of(parent, place, child)?;
    let entry = gil.entry(parent, place)?;
    Some(match entry.key {
        Some(key) if key.address() == child => Label::Words("a key".into()),
        Some(key) => key_label(gil, key),
        None if gil.is(parent, gil.python().types.list)
            || gil.is(parent, gil.python().types.tuple) =>
        {
            Label::Index(place.cast_signed())
        }
        None => Label::Words("an element".into()),
    })
}

type Put<'a, 'p> = &'a mut dyn FnMut(Object<'_>, &dyn Fn() -> Label);

fn key_label(gil: &Gil<'_>, key: Object<'_>) -> Label {
    if let Some(text) = gil.text(key) {
        return Label::Key(text);
    }
    if let Some(number) = gil.number(key) {
        return Label::Index(number);
    }
    let kind = key.kind_name();
    if kind.contains("weakref") || kind.contains("_localdummy") {
        // Of a `threading.local`: one namespace for each thread.
        return Label::Namespace;
    }
    Label::Words(format!("[a {}]", short_kind(key)))
}

fn function(gil: &Gil<'_>, function: Object<'_>, put: Put<'_, '_>) {
    let [closure, defaults, keywords, globals] = gil.function_parts(function);
    let code_names = |attribute| {
        gil.attribute(function, c"__code__", |code| {
            gil.attribute(code, attribute, |names| {
                (0..names.item_count())
                    .filter_map(|at| gil.item(names, at).and_then(|name| gil.text(name)))
                    .collect::<Vec<_>>()
            })
        })
        .flatten()
        .unwrap_or_default()
    };
    if let Some(closure) = closure {
        put(closure, &|| Label::Named {
            what: "closure variable",
            names: code_names(c"co_freevars"),
        });
    }
    if let Some(defaults) = defaults {
        put(defaults, &|| {
            let count = gil
                .attribute(function, c"__code__", |code| {
                    gil.attribute(code, c"co_argcount", |count| gil.number(count))
                })
                .flatten()
                .flatten()
                .unwrap_or(0);
            let mut names = code_names(c"co_varnames");
            names.truncate(count.max(0) as usize);
            let skipped = names.len().saturating_sub(defaults.item_count() as usize);
            Label::Named {
                what: "default of argument",
                names: names.split_off(skipped),
            }
        });
    }
    if let Some(keywords) = keywords {
        put(keywords, &|| Label::Words("keyword defaults".into()));
    }
    if let Some(globals) = globals {
        put(globals, &|| Label::Words("globals".into()));
    }
    gil.children(function, &mut |child| {
        if child.kind() == gil.python().types.dict {
            put(child, &|| Label::Namespace);
        }
        true
    });
}

/// Attributes: in slots, in a dictionary of its own, or in the object with names of its class.
fn instance(gil: &Gil<'_>, object: Object<'_>, put: Put<'_, '_>) {
    if !object.is_heap_type() {
        return;
    }
    gil.each_slot(object, &mut |name, value| {
        put(value, &|| Label::Attribute(name.to_owned()));
    });
    if let Some(dict) = gil.own_dict(object) {
        put(dict, &|| Label::Namespace);
    }
    let minor = gil.python().version.1;
    if let Some((_, at)) = KEYS_OF_TYPE.iter().find(|(version, _)| *version == minor) {
        for (name, value) in gil.inline_values(object, *at, KEYS_HEAD, MOST_SHARED) {
            put(value, &|| Label::Attribute(name.clone()));
        }
    }
}

/// What the walk of the collector shows and nothing above has named.
fn rest(gil: &Gil<'_>, parent: Object<'_>, put: Put<'_, '_>) {
    let name = parent.kind_name();
    let types = gil.python().types;
    let is_code_runner = ["generator", "coroutine", "async_generator"].contains(&name.as_str());
    if parent.kind() == types.frame || is_code_runner {
        let code = if is_code_runner {
            gil.code_of(parent)
        } else {
            None
        };
        let code_attribute = c"f_code";
        let mut name_slots = |code: Object<'_>, what: &str| {
            let names = roots::variables(gil, code);
            let values = gil.slots_after_code(parent, code, names.len());
            for (name, value) in names.iter().zip(values) {
                if let Some(value) = value {
                    put(value, &|| Label::Words(format!("local `{name}` of {what}")));
                }
            }
        };
        if parent.kind() == types.frame {
            let what = roots::describe(gil, parent);
            gil.attribute(parent, code_attribute, |code| name_slots(code, &what));
        } else if let Some(code) = code {
            name_slots(code, &format!("{name} {}", roots::describe_code(gil, code)));
        }
    }
    // Items of a large container are told by their places.
    let most = if gil.is_large(parent) {
        MOST_OF_LARGE
    } else {
        i64::MAX
    };
    let mut position = -1;
    let is_sequence = name == "collections.deque";
    gil.children(parent, &mut |child| {
        if child.address() == parent.kind() {
            return true;
        }
        position += 1;
        if position >= most {
            return false;
        }
        put(child, &|| {
            if is_sequence {
                return Label::Index(position);
            }
            match name.as_str() {
                bounds::CACHE => Label::Cached,
                "_thread._local" => Label::Silent,
                "set" | "frozenset" => Label::Words("an element".into()),
                "frame" => Label::Words(roots::describe(gil, parent)),
                // Before 3.11.
                _ if is_code_runner && child.kind() == types.frame => Label::Silent,
                "functools.partial" => Label::Words("argument".into()),
                _ if child.kind() == types.traceback => Label::Attribute("__traceback__".into()),
                _ if child.kind() == types.dict && parent.is_heap_type() => Label::Namespace,
                _ => Label::Words(format!("inside {}", short_kind(parent))),
            }
        });
        true
    });
}

/// `deque` of `collections.deque`.
pub(crate) fn short_kind(object: Object<'_>) -> String {
    let name = object.kind_name();
    name.rsplit('.').next().unwrap_or(&name).to_owned()
}

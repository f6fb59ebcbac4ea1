//! How many items a container has, and how many it may have.

use crate::{
    labels,
    python::{Gil, Object},
};

/// What the wrappers of `functools.lru_cache` are.
pub(crate) const CACHE: &str = "functools._lru_cache_wrapper";

/// A container that holds blocks.
pub(crate) struct Container {
    /// What it is, as a person says it.
    pub what: String,
    /// Its items.
    pub length: u64,
    /// The most that it can have, where it has such a bound.
    pub bound: Option<u64>,
}

/// What is worth saying of the container that holds a block.
pub(crate) fn of(gil: &Gil<'_>, object: Object<'_>) -> Option<Container> {
    let types = gil.python().types;
    let kind = object.kind_name();
    let (what, length, bound) = if gil.is(object, types.dict) {
        (labels::short_kind(object), gil.dict_size(object), None)
    } else if gil.is(object, types.list) || gil.is(object, types.tuple) {
        (labels::short_kind(object), object.item_count(), None)
    } else if kind == "collections.deque" {
        let bound = gil.attribute(object, c"maxlen", |bound| gil.number(bound));
        ("deque".into(), object.item_count(), bound.flatten())
    } else if kind == CACHE {
        let attributes = gil.own_dict(object);
        let bound = attributes.and_then(|attributes| cache_bound(gil, attributes));
        ("lru_cache".into(), cached(gil, object, attributes)?, bound)
    } else {
        return None;
    };
    Some(Container {
        what,
        length,
        bound: bound.and_then(|bound| u64::try_from(bound).ok()),
    })
}

/// The results that a cache keeps: the size of its dictionary, which is not that of its attributes.
fn cached(gil: &Gil<'_>, cache: Object<'_>, attributes: Option<Object<'_>>) -> Option<u64> {
    let attributes = attributes.map(Object::address);
    let mut length = None;
    gil.children(cache, &mut |child| {
        let is_it = gil.is(child, gil.python().types.dict) && Some(child.address()) != attributes;
        if is_it {
            length = Some(gil.dict_size(child));
        }
        !is_it
    });
    length
}

/// `maxsize`. The cache itself keeps it where only C sees it; its function `cache_parameters` (3.9 and
/// later) has it as a closure variable, and need not be called for that.
fn cache_bound(gil: &Gil<'_>, attributes: Object<'_>) -> Option<i64> {
    let types = gil.python().types;
    let mut bound = None;
    gil.entries(attributes, &mut |name, function| {
        let is_it = gil.text(name).as_deref() == Some("cache_parameters");
        if is_it && function.kind() == types.function {
            bound = closure_variable(gil, function, "maxsize");
        }
        !is_it
    });
    bound
}

/// A number that a function's closure has under a name.
fn closure_variable(gil: &Gil<'_>, function: Object<'_>, wanted: &str) -> Option<i64> {
    let [closure, ..] = gil.function_parts(function);
    let names = gil.attribute(function, c"__code__", |code| {
        gil.attribute(code, c"co_freevars", |names| {
            let texts = (0..names.item_count()).map(|at| gil.item(names, at));
            texts
                .map(|name| name.and_then(|name| gil.text(name)))
                .collect::<Vec<_>>()
        })
    });
    let mut names = names.flatten()?.into_iter();
    let place = names.position(|name| name.as_deref() == Some(wanted))?;
    let cell = gil.item(closure?, place as u64)?;
    let mut number = None;
    if cell.kind() == gil.python().types.cell {
        gil.children(cell, &mut |value| {
            number = gil.number(value);
            true
        });
    }
    number
}

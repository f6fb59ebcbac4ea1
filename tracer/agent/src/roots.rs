//! Where a person begins to look: the modules' names and the variables of functions that run.

use std::ffi::CStr;

use rustc_hash::FxHashSet;

use crate::python::{Gil, Object};

/// The deepest frame of a thread that is looked at.
const DEEPEST: usize = 200;
/// `PyFrameObject.f_frame`, the way to the interpreter's own frame: 3.11 to 3.14 (Include/internal/pycore_frame.h).
const FRAME_OF_OBJECT: u64 = 24;

/// Tells a root.
pub(crate) type See<'a> = dyn FnMut(&Gil<'_>, Object<'_>, &dyn Fn() -> Root) + 'a;

/// A root's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// As it begins a path.
    pub name: String,
    /// The object is a namespace: what it holds are names, not keys.
    pub is_namespace: bool,
}

/// The modules but `__main__`, and their namespaces, by their addresses.
pub(crate) fn far(gil: &Gil<'_>, far: &mut FxHashSet<u64>) {
    far.clear();
    let Some(modules) = gil.modules() else {
        return;
    };
    far.insert(modules.address());
    let mut main = [0; 2];
    gil.entries(modules, &mut |name, module| {
        let namespace = gil.namespace(module).map_or(0, Object::address);
        far.extend([module.address(), namespace]);
        if gil.text(name).as_deref() == Some("__main__") {
            main = [module.address(), namespace];
        }
        true
    });
    // It may have another name as well.
    for known in main {
        far.remove(&known);
    }
}

/// All roots, those that a person knows best first.
pub(crate) fn each(gil: &Gil<'_>, see: &mut See<'_>) {
    let Some(modules) = gil.modules() else {
        return;
    };
    let mut main = None;
    gil.entries(modules, &mut |name, module| {
        if gil.text(name).as_deref() == Some("__main__") {
            main = Some(module);
        }
        main.is_none()
    });
    if let Some(namespace) = main.and_then(|main| gil.namespace(main)) {
        see(gil, namespace, &|| Root {
            name: "__main__".into(),
            is_namespace: true,
        });
    }
    gil.frames(&mut |frame| each_local(gil, frame, 0, see));
    gil.entries(modules, &mut |name, module| {
        let namespace = gil.namespace(module);
        see(gil, namespace.unwrap_or(module), &|| Root {
            name: gil.text(name).unwrap_or_else(|| "a module".into()),
            is_namespace: namespace.is_some(),
        });
        true
    });
    see(gil, modules, &|| Root {
        name: "sys.modules".into(),
        is_namespace: false,
    });
}

fn each_local(gil: &Gil<'_>, frame: Object<'_>, depth: usize, see: &mut See<'_>) {
    if frame.kind() != gil.python().types.frame || depth > DEEPEST {
        return;
    }
    namespaces(gil, frame, see);
    {
        for (slot, value) in locals(gil, frame).into_iter().enumerate() {
            if let Some(value) = value {
                see(gil, value, &|| Root {
                    name: format!(
                        "local `{}` of {}",
                        gil.attribute(frame, c"f_code", |code| variable(gil, code, slot))
                            .flatten()
                            .unwrap_or_else(|| "?".into()),
                        describe(gil, frame)
                    ),
                    is_namespace: false,
                });
            }
        }
    }
    gil.attribute(frame, c"f_back", |back| {
        each_local(gil, back, depth + 1, see);
    });
}

/// A frame's global names, which are a module's or those that `exec` was given, and the names of the
/// body of a class.
fn namespaces(gil: &Gil<'_>, frame: Object<'_>, see: &mut See<'_>) {
    let named = |dict: Object<'_>| {
        let mut name = None;
        gil.entries(dict, &mut |key, value| {
            if gil.text(key).as_deref() == Some("__name__") {
                name = gil.text(value);
            }
            name.is_none()
        });
        name
    };
    let mut globals = 0;
    gil.attribute(frame, c"f_globals", |dict| {
        globals = dict.address();
        see(gil, dict, &|| Root {
            name: named(dict)
                .unwrap_or_else(|| format!("global names of {}", describe(gil, frame))),
            is_namespace: true,
        });
    });
    let Some(at) = gil.python().frame_names_at() else {
        return;
    };
    let names = gil.frame_slots(frame, FRAME_OF_OBJECT, at, 1);
    if let Some(names) = names.into_iter().flatten().next()
        && names.address() != globals
    {
        see(gil, names, &|| Root {
            name: format!("local names of {}", describe(gil, frame)),
            is_namespace: true,
        });
    }
}

/// The values of a running frame's variables.
fn locals<'g>(gil: &'g Gil<'_>, frame: Object<'g>) -> Vec<Option<Object<'g>>> {
    let count = gil
        .attribute(frame, c"f_code", |code| variables(gil, code).len())
        .unwrap_or(0);
    let at = gil.python().frame_variables_at();
    gil.frame_slots(frame, FRAME_OF_OBJECT, at, count)
}

/// The names of a function's variables, in the order of their slots.
pub(crate) fn variables(gil: &Gil<'_>, code: Object<'_>) -> Vec<String> {
    let names = |attribute: &CStr| {
        gil.attribute(code, attribute, |tuple| {
            (0..tuple.item_count())
                .filter_map(|at| gil.item(tuple, at).and_then(|name| gil.text(name)))
                .collect::<Vec<_>>()
        })
        .unwrap_or_default()
    };
    let mut all = names(c"co_varnames");
    for name in names(c"co_cellvars") {
        // An argument that an inner function uses is both.
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all.extend(names(c"co_freevars"));
    all
}

pub(crate) fn variable(gil: &Gil<'_>, code: Object<'_>, slot: usize) -> Option<String> {
    variables(gil, code).into_iter().nth(slot)
}

/// `train() (train.py:27)` of a frame.
pub(crate) fn describe(gil: &Gil<'_>, frame: Object<'_>) -> String {
    let line = gil
        .attribute(frame, c"f_lineno", |line| gil.number(line))
        .flatten();
    let code = gil
        .attribute(frame, c"f_code", |code| describe_code(gil, code))
        .unwrap_or_default();
    match line {
        Some(line) => format!("{}:{line})", code.trim_end_matches(')')),
        None => code,
    }
}

/// `train() (train.py)` of a code object.
pub(crate) fn describe_code(gil: &Gil<'_>, code: Object<'_>) -> String {
    let text = |name: &CStr| gil.attribute(code, name, |text| gil.text(text)).flatten();
    let name = text(c"co_qualname")
        .or_else(|| text(c"co_name"))
        .unwrap_or_else(|| "?".into());
    let file = text(c"co_filename").unwrap_or_else(|| "?".into());
    let file = file.rsplit('/').next().unwrap_or_default();
    format!("{name}() ({file})")
}

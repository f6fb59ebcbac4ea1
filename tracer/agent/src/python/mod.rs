//! CPython as it is in this process: the room in which foreign functions are called and objects of
//! the interpreter are read.
//!
//! The rules that make this sound: a [`Gil`] exists only while this thread holds the GIL, and no
//! function here runs Python code or gives the GIL away, so that nothing changes during its life. An
//! [`Object`] is borrowed from a `Gil` and is alive for that long. What survives between two slices
//! are numbers, and they become objects again only by [`Gil::trust`], which its caller answers for.
#![allow(unsafe_code)]

mod calls;
mod container;
mod layout;
mod object;

use std::{
    ffi::{CStr, c_int, c_void},
    marker::PhantomData,
    mem,
};

use calls::{Functions, find};
pub(crate) use object::Object;
use object::TypeHead;

type Raw = *mut c_void;
type Visit = unsafe extern "C-unwind" fn(Raw, *mut c_void) -> c_int;
type Traverse = unsafe extern "C-unwind" fn(Raw, Visit, *mut c_void) -> c_int;

/// Types of the interpreter, by the names of their exported objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Types {
    pub dict: u64,
    pub list: u64,
    pub tuple: u64,
    pub text: u64,
    pub number: u64,
    pub module: u64,
    pub function: u64,
    pub cell: u64,
    pub method: u64,
    pub class: u64,
    pub frame: u64,
    pub member: u64,
    pub traceback: u64,
    pub set: u64,
    pub frozen_set: u64,
}

/// The interpreter of this process.
pub(crate) struct Python {
    call: Functions,
    is_finalizing: Option<unsafe extern "C-unwind" fn() -> c_int>,
    gc_disable: Option<unsafe extern "C-unwind" fn() -> c_int>,
    gc_enable: Option<unsafe extern "C-unwind" fn() -> c_int>,
    visit_all: Option<VisitAll>,
    next_of_set: Option<NextOfSet>,
    pub types: Types,
    /// Major and minor version.
    pub version: (u32, u32),
    /// As `sys.version` begins.
    pub version_text: String,
}

type VisitOne = unsafe extern "C-unwind" fn(Raw, *mut c_void) -> c_int;
type NextOfSet = unsafe extern "C-unwind" fn(Raw, *mut isize, *mut Raw, *mut isize) -> c_int;
type VisitAll = unsafe extern "C-unwind" fn(VisitOne, *mut c_void);

/// Why there is nothing to search.
pub(crate) type Refusal = String;

impl Python {
    /// Finds the interpreter.
    pub(crate) fn find() -> Result<Python, Refusal> {
        let call = Functions::find().map_err(|missing| {
            format!("no CPython is loaded in this process: it has no {missing}")
        })?;
        // SAFETY: may be called at any time; the text is static.
        let text = unsafe { CStr::from_ptr((call.Py_GetVersion)()) };
        let text = text.to_string_lossy();
        if text.contains("free-threading") {
            return Err(format!(
                "Python {}: free-threaded builds are not supported, as nothing holds their \
                 objects still",
                text.split(' ').next().unwrap_or_default()
            ));
        }
        let version_text = text.split(' ').next().unwrap_or_default().to_owned();
        let mut numbers = version_text
            .split('.')
            .map(|part| part.parse().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if !((3, 8)..=(3, 14)).contains(&version) {
            return Err(format!(
                "Python {version_text}: only CPython 3.8 to 3.14 is supported"
            ));
        }
        let kind = |name: &str| {
            find(name)
                .map(|address| address as u64)
                .ok_or(name.to_owned())
        };
        let types = (|| {
            Ok::<_, String>(Types {
                dict: kind("PyDict_Type")?,
                list: kind("PyList_Type")?,
                tuple: kind("PyTuple_Type")?,
                text: kind("PyUnicode_Type")?,
                number: kind("PyLong_Type")?,
                module: kind("PyModule_Type")?,
                function: kind("PyFunction_Type")?,
                cell: kind("PyCell_Type")?,
                method: kind("PyMethod_Type")?,
                class: kind("PyType_Type")?,
                frame: kind("PyFrame_Type")?,
                member: kind("PyMemberDescr_Type")?,
                traceback: kind("PyTraceBack_Type")?,
                set: kind("PySet_Type")?,
                frozen_set: kind("PyFrozenSet_Type")?,
            })
        })()
        .map_err(|missing| format!("no CPython is loaded in this process: it has no {missing}"))?;
        // SAFETY: `int f(void)` all of them, where they exist (3.10 and 3.13, and before with an
        // underscore); the last but one is `void f(gcvisitobjects_t, void *)` (3.12), the last
        // `int f(PyObject *, Py_ssize_t *, PyObject **, Py_hash_t *)`.
        let (is_finalizing, gc_disable, gc_enable, visit_all, next_of_set) = unsafe {
            (
                find("Py_IsFinalizing")
                    .or_else(|| find("_Py_IsFinalizing"))
                    .map(|f| mem::transmute::<Raw, unsafe extern "C-unwind" fn() -> c_int>(f)),
                find("PyGC_Disable")
                    .map(|f| mem::transmute::<Raw, unsafe extern "C-unwind" fn() -> c_int>(f)),
                find("PyGC_Enable")
                    .map(|f| mem::transmute::<Raw, unsafe extern "C-unwind" fn() -> c_int>(f)),
                find("PyUnstable_GC_VisitObjects").map(|f| mem::transmute::<Raw, VisitAll>(f)),
                find("_PySet_NextEntry").map(|f| mem::transmute::<Raw, NextOfSet>(f)),
            )
        };
        Ok(Python {
            call,
            is_finalizing,
            gc_disable,
            gc_enable,
            visit_all,
            next_of_set,
            types,
            version,
            version_text,
        })
    }

    /// Whether the interpreter can still be entered.
    pub(crate) fn is_running(&self) -> bool {
        // SAFETY: both may be called at any time, without the GIL.
        unsafe {
            (self.call.Py_IsInitialized)() != 0
                && self
                    .is_finalizing
                    .is_none_or(|finalizing| finalizing() == 0)
        }
    }

    /// Waits for the GIL and holds it until the answer is dropped. None when the interpreter ends.
    ///
    /// An interpreter that ends while we wait ends this thread (`pthread_exit`): all frames up to
    /// the thread's first are of the kind that may be unwound so.
    pub(crate) fn acquire(&self) -> Option<Gil<'_>> {
        if !self.is_running() {
            return None;
        }
        // SAFETY: the interpreter is initialized; this thread holds no GIL (a `Gil` is never kept
        // across a call of this).
        let state = unsafe { (self.call.PyGILState_Ensure)() };
        // A collection is not to be caused by the few objects that are made for us. Nobody else
        // runs before it is undone.
        // SAFETY: the GIL is held.
        let collects = self
            .gc_disable
            .is_some_and(|disable| unsafe { disable() } == 1);
        Some(Gil {
            python: self,
            state,
            collects,
            not_send: PhantomData,
        })
    }
}

/// The GIL, held.
pub(crate) struct Gil<'a> {
    python: &'a Python,
    state: c_int,
    collects: bool,
    not_send: PhantomData<*mut ()>,
}

impl Drop for Gil<'_> {
    fn drop(&mut self) {
        // SAFETY: the GIL is held by this thread since `acquire`, whose state this is.
        unsafe {
            if self.collects
                && let Some(enable) = self.python.gc_enable
            {
                enable();
            }
            (self.python.call.PyGILState_Release)(self.state);
        }
    }
}

impl<'a> Gil<'a> {
    pub(crate) fn python(&self) -> &'a Python {
        self.python
    }

    /// Makes an object of an address again.
    ///
    /// # Safety
    /// The object is alive now: since this `Gil` was acquired, some live object or the interpreter
    /// has told of it.
    pub(crate) unsafe fn trust(&self, address: u64) -> Object<'_> {
        self.object(address as Raw)
    }

    fn object(&self, raw: Raw) -> Object<'_> {
        Object {
            raw,
            gil: PhantomData,
        }
    }

    fn some(&self, raw: Raw) -> Option<Object<'_>> {
        (!raw.is_null()).then(|| self.object(raw))
    }

    /// Calls `see` for every object that this one refers to, until it answers false; whether it
    /// never did. The object must be tracked.
    pub(crate) fn children(
        &self,
        object: Object<'_>,
        see: &mut dyn FnMut(Object<'_>) -> bool,
    ) -> bool {
        let Some(traverse) = object.head().traverse else {
            return true;
        };
        let mut see = see;
        let context = (&raw mut see).cast::<c_void>();
        // SAFETY: the object is alive and its type's own function walks it, as the collector lets
        // it; `context` is what `visit` expects and outlives the call.
        unsafe { traverse(object.raw, visit, context) == 0 }
    }

    /// All tracked objects, where the version has a way that makes no list of them.
    pub(crate) fn all(&self, see: &mut dyn FnMut(Object<'_>) -> bool) -> bool {
        let Some(visit_all) = self.python.visit_all else {
            return false;
        };
        let mut see = see;
        // SAFETY: the GIL is held; `context` is what `visit_one` expects and outlives the call.
        unsafe { visit_all(visit_one, (&raw mut see).cast::<c_void>()) };
        true
    }

    /// Entries of a dictionary, until `see` answers false.
    pub(crate) fn entries<'s>(
        &'s self,
        dict: Object<'s>,
        see: &mut dyn FnMut(Object<'s>, Object<'s>) -> bool,
    ) {
        let (mut at, mut key, mut value) = (0, std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: `dict` is a live dictionary and does not change during the walk, as no Python
        // code runs; key and value are borrowed from it.
        while unsafe {
            (self.python.call.PyDict_Next)(dict.raw, &raw mut at, &raw mut key, &raw mut value)
        } != 0
        {
            if !see(self.object(key), self.object(value)) {
                return;
            }
        }
    }

    pub(crate) fn dict_size(&self, dict: Object<'_>) -> u64 {
        // SAFETY: `dict` is a live dictionary.
        unsafe { (self.python.call.PyDict_Size)(dict.raw) }
            .max(0)
            .cast_unsigned() as u64
    }

    /// An item of a list or tuple; None past its end.
    pub(crate) fn item<'s>(&'s self, sequence: Object<'s>, index: u64) -> Option<Object<'s>> {
        let types = &self.python.types;
        if index >= sequence.item_count() {
            return None;
        }
        // From 3.14 on a tuple keeps its hash before its items.
        let tuple_items = if self.python.version >= (3, 14) {
            32
        } else {
            24
        };
        // SAFETY: a tuple's items follow its head, a list's lie where its third word points to;
        // the index is below their count.
        unsafe {
            let items = if self.is(sequence, types.list) {
                sequence.word(24) as *const Raw
            } else {
                let items = sequence.raw.cast::<u8>().add(tuple_items);
                items.cast::<Raw>().cast_const()
            };
            self.some(*items.add(index as usize))
        }
    }

    /// Whether it is of this type or one derived from it.
    pub(crate) fn is(&self, object: Object<'_>, kind: u64) -> bool {
        let own = object.kind();
        // SAFETY: both are live types.
        own == kind || unsafe { (self.python.call.PyType_IsSubtype)(own as Raw, kind as Raw) } != 0
    }

    /// Whether the name of its type, or of one that it is derived from, satisfies `wanted`. Names
    /// are with their modules for types that are written in C.
    pub(crate) fn any_base(
        &self,
        object: Object<'_>,
        wanted: &mut dyn FnMut(&str) -> bool,
    ) -> bool {
        let mut kind = object.kind() as *const TypeHead;
        while !kind.is_null() {
            // SAFETY: a live type and, as long as it lives, the types that it is derived from;
            // their names end with a zero.
            let (name, base) = unsafe { (CStr::from_ptr((*kind).name), (*kind).base) };
            if wanted(&name.to_string_lossy()) {
                return true;
            }
            kind = base.cast_const().cast();
        }
        false
    }

    /// A string's text.
    pub(crate) fn text(&self, object: Object<'_>) -> Option<String> {
        if object.kind() != self.python.types.text {
            return None;
        }
        let mut length = 0;
        // SAFETY: a live string; the text belongs to it.
        let text =
            unsafe { (self.python.call.PyUnicode_AsUTF8AndSize)(object.raw, &raw mut length) };
        if text.is_null() {
            self.forget_error();
            return None;
        }
        // SAFETY: the interpreter gives UTF-8 of that length.
        let bytes =
            unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length.max(0) as usize) };
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// An `int`'s value, where it is not too large.
    pub(crate) fn number(&self, object: Object<'_>) -> Option<i64> {
        if object.kind() != self.python.types.number {
            return None;
        }
        // SAFETY: a live int.
        let value = unsafe { (self.python.call.PyLong_AsLongLong)(object.raw) };
        // SAFETY: the GIL is held.
        if value == -1 && !unsafe { (self.python.call.PyErr_Occurred)() }.is_null() {
            self.forget_error();
            return None;
        }
        Some(value)
    }

    /// An attribute of an object of one of the interpreter's own types, whose getters run no
    /// Python code. The answer is owned for as long as `see` runs.
    pub(crate) fn attribute<T>(
        &self,
        object: Object<'_>,
        name: &CStr,
        see: impl FnOnce(Object<'_>) -> T,
    ) -> Option<T> {
        // SAFETY: the object is alive, the name ends with a zero.
        let value = unsafe { (self.python.call.PyObject_GetAttrString)(object.raw, name.as_ptr()) };
        if value.is_null() {
            self.forget_error();
            return None;
        }
        let answer = see(self.object(value));
        // SAFETY: `PyObject_GetAttrString` gave a reference of our own.
        unsafe { (self.python.call.Py_DecRef)(value) };
        Some(answer)
    }

    fn forget_error(&self) {
        // SAFETY: the GIL is held; the error is this thread's own, which had none before.
        unsafe { (self.python.call.PyErr_Clear)() };
    }

    /// `sys.modules`.
    pub(crate) fn modules(&self) -> Option<Object<'_>> {
        // SAFETY: the GIL is held; the answer is borrowed from the interpreter.
        self.some(unsafe { (self.python.call.PyImport_GetModuleDict)() })
    }

    /// A module's namespace; None for what is no module.
    pub(crate) fn namespace<'s>(&'s self, module: Object<'s>) -> Option<Object<'s>> {
        if !self.is(module, self.python.types.module) {
            return None;
        }
        // SAFETY: a live module; the answer is borrowed from it.
        self.some(unsafe { (self.python.call.PyModule_GetDict)(module.raw) })
    }

    /// A function's closure, defaults, keyword defaults and globals.
    pub(crate) fn function_parts<'s>(&'s self, function: Object<'s>) -> [Option<Object<'s>>; 4] {
        let call = &self.python.call;
        // SAFETY: a live function; the answers are borrowed from it.
        unsafe {
            [
                call.PyFunction_GetClosure,
                call.PyFunction_GetDefaults,
                call.PyFunction_GetKwDefaults,
                call.PyFunction_GetGlobals,
            ]
            .map(|part| self.some(part(function.raw)))
        }
    }

    /// The current frame of every thread: `sys._current_frames()`.
    pub(crate) fn frames(&self, see: &mut dyn FnMut(Object<'_>)) {
        // SAFETY: the names end with a zero; the function is the interpreter's own, takes no
        // arguments and runs no Python code; its answer is ours.
        unsafe {
            let function = (self.python.call.PySys_GetObject)(c"_current_frames".as_ptr());
            if function.is_null() {
                return;
            }
            let dict = (self.python.call.PyObject_CallObject)(function, std::ptr::null_mut());
            if dict.is_null() {
                self.forget_error();
                return;
            }
            self.entries(self.object(dict), &mut |_, frame| {
                see(frame);
                true
            });
            (self.python.call.Py_DecRef)(dict);
        }
    }

    /// How many interpreters the process has.
    pub(crate) fn interpreters(&self) -> usize {
        // SAFETY: the GIL is held; the list changes only with it.
        unsafe {
            let mut count = 0;
            let mut interpreter = (self.python.call.PyInterpreterState_Head)();
            while !interpreter.is_null() {
                count += 1;
                interpreter = (self.python.call.PyInterpreterState_Next)(interpreter);
            }
            count
        }
    }

    /// Whether the collector runs by itself; None where the version does not tell.
    pub(crate) fn collects(&self) -> Option<bool> {
        self.python.gc_disable.map(|_| self.collects)
    }
}

unsafe extern "C-unwind" fn visit(child: Raw, context: *mut c_void) -> c_int {
    // SAFETY: `children` gave this context, and it is alive during the call.
    let see = unsafe { &mut **context.cast::<&mut dyn FnMut(Object<'_>) -> bool>() };
    c_int::from(!see(Object {
        raw: child,
        gil: PhantomData,
    }))
}

unsafe extern "C-unwind" fn visit_one(object: Raw, context: *mut c_void) -> c_int {
    // SAFETY: `all` gave this context, and it is alive during the call.
    let see = unsafe { &mut **context.cast::<&mut dyn FnMut(Object<'_>) -> bool>() };
    c_int::from(see(Object {
        raw: object,
        gil: PhantomData,
    }))
}

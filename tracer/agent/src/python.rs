//! CPython as it is in this process: the room in which foreign functions are called and objects of
//! the interpreter are read.
//!
//! The rules that make this sound: a [`Gil`] exists only while this thread holds the GIL, and no
//! function here runs Python code or gives the GIL away, so that nothing changes during its life. An
//! [`Object`] is borrowed from a `Gil` and is alive for that long. What survives between two slices
//! are numbers, and they become objects again only by [`Gil::trust`], which its caller answers for.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    marker::PhantomData,
    mem,
};

type Raw = *mut c_void;
type Visit = unsafe extern "C-unwind" fn(Raw, *mut c_void) -> c_int;
type Traverse = unsafe extern "C-unwind" fn(Raw, Visit, *mut c_void) -> c_int;
type IsGc = unsafe extern "C-unwind" fn(Raw) -> c_int;

/// The beginning of `PyTypeObject`: the same from 3.8 to 3.13 with the GIL (Include/cpython/object.h).
#[repr(C)]
struct TypeHead {
    refcount: isize,
    kind: Raw,
    size: isize,
    name: *const c_char,
    basic_size: isize,
    item_size: isize,
    between_sizes_and_flags: [usize; 15],
    flags: usize,
    doc: *const c_char,
    traverse: Option<Traverse>,
    clear: usize,
    compare: usize,
    weak_offset: isize,
    iteration: [usize; 2],
    methods: usize,
    members: usize,
    getset: usize,
    base: Raw,
    dict: Raw,
    describe: [usize; 2],
    dict_offset: isize,
    making: [usize; 4],
    is_gc: Option<IsGc>,
}

const _: () = assert!(mem::offset_of!(TypeHead, flags) == 168);
const _: () = assert!(mem::offset_of!(TypeHead, traverse) == 184);
const _: () = assert!(mem::offset_of!(TypeHead, base) == 256);
const _: () = assert!(mem::offset_of!(TypeHead, is_gc) == 328);

/// `Py_TPFLAGS_*` (Include/object.h).
const HAVE_GC: usize = 1 << 14;
const HEAP_TYPE: usize = 1 << 9;
/// `PyGC_Head`: two words before the object; the first is 0 where it is not tracked.
const GC_HEAD: usize = 16;

macro_rules! functions {
    ($($(#[$attribute:meta])* $name:ident: fn($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// The functions of the interpreter, found by name.
        #[derive(Clone, Copy)]
        #[allow(non_snake_case)]
        struct Functions { $($name: unsafe extern "C-unwind" fn($($argument),*) $(-> $answer)?,)* }

        impl Functions {
            fn find() -> Result<Functions, &'static str> {
                Ok(Functions { $($name: {
                    let address = find(stringify!($name)).ok_or(stringify!($name))?;
                    // SAFETY: CPython documents the function of this name with this signature,
                    // from 3.8 on.
                    unsafe {
                        mem::transmute::<Raw, unsafe extern "C-unwind" fn($($argument),*) $(-> $answer)?>(address)
                    }
                },)* })
            }
        }
    };
}

functions! {
    Py_IsInitialized: fn() -> c_int;
    PyGILState_Ensure: fn() -> c_int;
    PyGILState_Release: fn(c_int);
    Py_GetVersion: fn() -> *const c_char;
    PyImport_GetModuleDict: fn() -> Raw;
    PyDict_Next: fn(Raw, *mut isize, *mut Raw, *mut Raw) -> c_int;
    PyDict_Size: fn(Raw) -> isize;
    PyType_IsSubtype: fn(Raw, Raw) -> c_int;
    PyUnicode_AsUTF8AndSize: fn(Raw, *mut isize) -> *const c_char;
    PyLong_AsLongLong: fn(Raw) -> i64;
    PyErr_Clear: fn();
    PyErr_Occurred: fn() -> Raw;
    PyObject_GetAttrString: fn(Raw, *const c_char) -> Raw;
    PyObject_CallObject: fn(Raw, Raw) -> Raw;
    PySys_GetObject: fn(*const c_char) -> Raw;
    Py_DecRef: fn(Raw);
    PyFunction_GetClosure: fn(Raw) -> Raw;
    PyFunction_GetDefaults: fn(Raw) -> Raw;
    PyFunction_GetKwDefaults: fn(Raw) -> Raw;
    PyFunction_GetGlobals: fn(Raw) -> Raw;
    PyModule_GetDict: fn(Raw) -> Raw;
    PyInterpreterState_Head: fn() -> Raw;
    PyInterpreterState_Next: fn(Raw) -> Raw;
}

fn find(name: &str) -> Option<Raw> {
    let name = CString::new(name).ok()?;
    // SAFETY: a look-up by name in what the process has loaded; the string ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

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
}

/// The interpreter of this process.
pub(crate) struct Python {
    call: Functions,
    is_finalizing: Option<unsafe extern "C-unwind" fn() -> c_int>,
    gc_disable: Option<unsafe extern "C-unwind" fn() -> c_int>,
    gc_enable: Option<unsafe extern "C-unwind" fn() -> c_int>,
    visit_all: Option<VisitAll>,
    pub types: Types,
    /// Major and minor version.
    pub version: (u32, u32),
    /// As `sys.version` begins.
    pub version_text: String,
}

type VisitOne = unsafe extern "C-unwind" fn(Raw, *mut c_void) -> c_int;
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
        if !((3, 8)..=(3, 13)).contains(&version) {
            return Err(format!(
                "Python {version_text}: only CPython 3.8 to 3.13 is supported"
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
            })
        })()
        .map_err(|missing| format!("no CPython is loaded in this process: it has no {missing}"))?;
        // SAFETY: `int f(void)` all of them, where they exist (3.10 and 3.13, and before with an
        // underscore); the last is `void f(gcvisitobjects_t, void *)` (3.12).
        let (is_finalizing, gc_disable, gc_enable, visit_all) = unsafe {
            (
                find("Py_IsFinalizing")
                    .or_else(|| find("_Py_IsFinalizing"))
                    .map(|f| mem::transmute::<Raw, unsafe extern "C-unwind" fn() -> c_int>(f)),
                find("PyGC_Disable")
                    .map(|f| mem::transmute::<Raw, unsafe extern "C-unwind" fn() -> c_int>(f)),
                find("PyGC_Enable")
                    .map(|f| mem::transmute::<Raw, unsafe extern "C-unwind" fn() -> c_int>(f)),
                find("PyUnstable_GC_VisitObjects").map(|f| mem::transmute::<Raw, VisitAll>(f)),
            )
        };
        Ok(Python {
            call,
            is_finalizing,
            gc_disable,
            gc_enable,
            visit_all,
            types,
            version,
            version_text,
        })
    }

    /// Where the interpreter's own frame keeps the names of the body of a class or of an `exec`
    /// (`f_locals`): 3.11 to 3.13. Older ones show it to the collector.
    pub(crate) fn frame_names_at(&self) -> Option<u64> {
        match self.version {
            (3, 11) => Some(24),
            (3, 12 | 13) => Some(40),
            _ => None,
        }
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

/// A live object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Object<'g> {
    raw: Raw,
    gil: PhantomData<&'g ()>,
}

impl Object<'_> {
    pub(crate) fn address(self) -> u64 {
        self.raw as u64
    }

    /// Its type's address.
    pub(crate) fn kind(self) -> u64 {
        // SAFETY: the object is alive; `ob_type` is its second word in every version.
        unsafe { *self.raw.cast::<u64>().add(1) }
    }

    fn head(self) -> &'static TypeHead {
        // SAFETY: an object's type is alive as long as the object; the head is the same in all
        // versions that `Python::find` lets pass. The reference is used at once, never kept.
        unsafe { &*(self.kind() as *const TypeHead) }
    }

    /// Whether the collector knows it: whatever can hold a tensor is known to it.
    pub(crate) fn is_tracked(self) -> bool {
        let head = self.head();
        // SAFETY: `is_gc` is asked as the collector itself does; before an object of such a type
        // lies its `PyGC_Head`.
        unsafe {
            head.flags & HAVE_GC != 0
                && head.is_gc.is_none_or(|is_gc| is_gc(self.raw) != 0)
                && *self.raw.cast::<u8>().sub(GC_HEAD).cast::<u64>() != 0
        }
    }

    /// Its type's name, as C knows it: `list`, `collections.deque`, `Foo`.
    pub(crate) fn kind_name(self) -> String {
        // SAFETY: a type's name ends with a zero and lives as long as the type.
        let name = unsafe { CStr::from_ptr(self.head().name) };
        name.to_string_lossy().into_owned()
    }

    /// The size of an object of its type, without items.
    pub(crate) fn basic_size(self) -> u64 {
        self.head().basic_size.cast_unsigned() as u64
    }

    /// Where the pointer to its `__dict__` lies; 0 for none.
    pub(crate) fn dict_offset(self) -> i64 {
        self.head().dict_offset as i64
    }

    pub(crate) fn is_heap_type(self) -> bool {
        self.head().flags & HEAP_TYPE != 0
    }

    /// A word of the object's own memory.
    ///
    /// The offset must lie within what its type says is the object's size.
    fn word(self, offset: u64) -> u64 {
        debug_assert!(offset + 8 <= self.basic_size());
        // SAFETY: within a live object.
        unsafe { *self.raw.cast::<u8>().add(offset as usize).cast::<u64>() }
    }

    /// The number of items of a list or a tuple.
    pub(crate) fn item_count(self) -> u64 {
        self.word(16)
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
        // SAFETY: a tuple's items follow its head, a list's lie where its third word points to;
        // the index is below their count.
        unsafe {
            let items = if self.is(sequence, types.list) {
                sequence.word(24) as *const Raw
            } else {
                sequence.raw.cast::<u8>().add(24).cast::<Raw>().cast_const()
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

    /// The current frame of every thread, with the thread's id: `sys._current_frames()`.
    pub(crate) fn frames(&self, see: &mut dyn FnMut(i64, Object<'_>)) {
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
            self.entries(self.object(dict), &mut |thread, frame| {
                if let Some(thread) = self.number(thread) {
                    see(thread, frame);
                }
                true
            });
            (self.python.call.Py_DecRef)(dict);
        }
    }

    /// The first slots of the variables of a frame object. From 3.11 on they lie at `locals` from where
    /// the word at `frame_at` of the object leads; before, at the object's end.
    pub(crate) fn frame_slots<'s>(
        &'s self,
        frame: Object<'s>,
        frame_at: u64,
        locals: u64,
        count: usize,
    ) -> Vec<Option<Object<'s>>> {
        if frame.kind() != self.python.types.frame {
            return Vec::new();
        }
        // SAFETY: a live frame object leads to the interpreter's frame, which is alive as long as
        // it; that holds `count` slots, each a live object or NULL. In these versions the lowest bit
        // of a slot is never used as a mark.
        unsafe {
            let slots = if self.python.version < (3, 11) {
                let last = frame.basic_size() as usize - 8;
                frame.raw.cast::<u8>().add(last).cast::<Raw>().cast_const()
            } else {
                (frame.word(frame_at) as *const u8)
                    .add(locals as usize)
                    .cast::<Raw>()
            };
            (0..count).map(|at| self.some(*slots.add(at))).collect()
        }
    }

    /// What is in the slots of an object, with their names: those that its classes in Python declare.
    pub(crate) fn each_slot(&self, object: Object<'_>, see: &mut dyn FnMut(&str, Object<'_>)) {
        /// `PyMemberDescrObject.d_member`, and name, kind and offset in a `PyMemberDef`.
        const MEMBER: u64 = 40;
        const OBJECT_SLOT: [c_int; 2] = [16, 6];
        let size = object.basic_size();
        let mut kind = object.kind() as *const TypeHead;
        while !kind.is_null() {
            // SAFETY: live types; their dictionaries, where they have any, are alive with them.
            let (dict, flags, base) = unsafe { ((*kind).dict, (*kind).flags, (*kind).base) };
            if flags & HEAP_TYPE != 0 && !dict.is_null() {
                self.entries(self.object(dict), &mut |_, value| {
                    if value.kind() != self.python.types.member {
                        return true;
                    }
                    // SAFETY: a live member descriptor leads to a definition: a name that ends
                    // with a zero, a kind, and an offset.
                    let (name, member_kind, offset) = unsafe {
                        let member = *value
                            .raw
                            .cast::<u8>()
                            .add(MEMBER as usize)
                            .cast::<*const u8>();
                        (
                            CStr::from_ptr(*member.cast::<*const c_char>()),
                            *member.add(8).cast::<c_int>(),
                            *member.add(16).cast::<isize>(),
                        )
                    };
                    let offset = offset.max(0).cast_unsigned() as u64;
                    if OBJECT_SLOT.contains(&member_kind)
                        && offset % 8 == 0
                        && (16..size.saturating_sub(7)).contains(&offset)
                        && let Some(value) = self.some(object.word(offset) as Raw)
                    {
                        see(&name.to_string_lossy(), value);
                    }
                    true
                });
            }
            kind = base.cast_const().cast();
        }
    }

    /// The `__dict__` of an object whose type says where it lies; none is made.
    pub(crate) fn own_dict<'s>(&'s self, object: Object<'s>) -> Option<Object<'s>> {
        let offset = u64::try_from(object.dict_offset()).ok()?;
        if offset < 16 || offset % 8 != 0 || offset + 8 > object.basic_size() {
            return None;
        }
        self.some(object.word(offset) as Raw)
    }

    /// The attributes that an object keeps in itself, with the names that its class shares (3.11 to
    /// 3.13). Only pairs whose value the collector's walk of the object shows are given.
    pub(crate) fn inline_values<'s>(
        &'s self,
        object: Object<'s>,
        keys_at: u64,
        keys_head: u64,
        most: u64,
    ) -> Vec<(String, Object<'s>)> {
        let peek = crate::peek::Peek::new();
        let values = match self.python.version.1 {
            // Before the collector's head: a pointer to the values.
            11 => peek.word(object.address() - 32),
            // The same less one where it is no dictionary.
            12 => peek
                .word(object.address() - 24)
                .filter(|word| word & 1 == 1)
                .map(|word| word + 1),
            // Behind the object, after four bytes of head (as many as there are sizes).
            13 => Some(object.address() + object.basic_size() + 8),
            _ => None,
        };
        let keys = peek.word(object.kind() + keys_at);
        let (Some(values), Some(keys)) = (values, keys) else {
            return Vec::new();
        };
        let head = peek.words(keys, 4);
        let (Some(sizes), Some(count)) = (head.get(1), head.get(3)) else {
            return Vec::new();
        };
        let index_bytes = 1_u64 << ((sizes >> 8) & 0xff).min(20);
        let count = (*count).min(most);
        let mut live: Vec<u64> = Vec::new();
        self.children(object, &mut |child| {
            live.push(child.address());
            true
        });
        let names = peek.words(keys + keys_head + index_bytes, 2 * count as usize);
        let values = peek.words(values, count as usize);
        names
            .chunks(2)
            .zip(values)
            .filter(|(_, value)| live.contains(value))
            .filter_map(|(name, value)| {
                let name = self.checked_text(name[0], peek)?;
                Some((name, self.object(value as Raw)))
            })
            .collect()
    }

    /// The text of what may be a string: read as if it were not ours.
    fn checked_text(&self, address: u64, peek: crate::peek::Peek) -> Option<String> {
        (peek.word(address + 8)? == self.python.types.text)
            .then(|| self.text(self.object(address as Raw)))
            .flatten()
    }

    /// The code of a generator or the like.
    pub(crate) fn code_of<'s>(&'s self, runner: Object<'s>) -> Option<Object<'s>> {
        [c"gi_code", c"cr_code", c"ag_code"]
            .into_iter()
            .find_map(|name| {
                // It stays alive: the runner holds it.
                self.attribute(runner, name, |code| code.raw)
                    .map(|raw| self.object(raw))
            })
    }

    /// The slots of the variables of a frame object or a generator, found by its code: 3.11 to 3.13
    /// keep them a fixed way from the pointer to it, older ones at the end of the frame object.
    pub(crate) fn slots_after_code<'s>(
        &'s self,
        runner: Object<'s>,
        code: Object<'s>,
        count: usize,
    ) -> Vec<Option<Object<'s>>> {
        let peek = crate::peek::Peek::new();
        let is_frame = runner.kind() == self.python.types.frame;
        let locals = match self.python.version.1 {
            ..=10 if is_frame => Some(runner.address() + runner.basic_size() - 8),
            ..=10 => None,
            minor => {
                let begin = if is_frame {
                    peek.word(runner.address() + 24)
                } else {
                    Some(runner.address())
                };
                let code_at = if minor == 11 { 32 } else { 0 };
                begin.and_then(|begin| {
                    let words = peek.words(begin, 32);
                    let at = words.iter().rposition(|word| *word == code.address())? as u64;
                    Some(begin + 8 * at - code_at + 72)
                })
            }
        };
        let Some(locals) = locals else {
            return Vec::new();
        };
        let mut live: Vec<u64> = Vec::new();
        self.children(runner, &mut |child| {
            live.push(child.address());
            true
        });
        peek.words(locals, count)
            .into_iter()
            .map(|word| live.contains(&word).then(|| self.object(word as Raw)))
            .collect()
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

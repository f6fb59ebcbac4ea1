//! One object: what its own memory and its type tell.

use std::{
    ffi::{CStr, c_char, c_int},
    marker::PhantomData,
    mem,
};

use super::{Raw, Traverse};

type IsGc = unsafe extern "C-unwind" fn(Raw) -> c_int;

/// The beginning of `PyTypeObject`: the same from 3.8 to 3.14 with the GIL (Include/cpython/object.h).
#[repr(C)]
pub(super) struct TypeHead {
    pub(super) refcount: isize,
    pub(super) kind: Raw,
    pub(super) size: isize,
    pub(super) name: *const c_char,
    pub(super) basic_size: isize,
    pub(super) item_size: isize,
    pub(super) between_sizes_and_flags: [usize; 15],
    pub(super) flags: usize,
    pub(super) doc: *const c_char,
    pub(super) traverse: Option<Traverse>,
    pub(super) clear: usize,
    pub(super) compare: usize,
    pub(super) weak_offset: isize,
    pub(super) iteration: [usize; 2],
    pub(super) methods: usize,
    pub(super) members: usize,
    pub(super) getset: usize,
    pub(super) base: Raw,
    pub(super) dict: Raw,
    pub(super) describe: [usize; 2],
    pub(super) dict_offset: isize,
    pub(super) making: [usize; 4],
    pub(super) is_gc: Option<IsGc>,
}

const _: () = assert!(mem::offset_of!(TypeHead, flags) == 168);
const _: () = assert!(mem::offset_of!(TypeHead, traverse) == 184);
const _: () = assert!(mem::offset_of!(TypeHead, base) == 256);
const _: () = assert!(mem::offset_of!(TypeHead, is_gc) == 328);

/// `Py_TPFLAGS_*` (Include/object.h).
const HAVE_GC: usize = 1 << 14;
pub(super) const HEAP_TYPE: usize = 1 << 9;
/// `Py_TPFLAGS_LIST_SUBCLASS`, `…_TUPLE_…`, `…_DICT_…`.
const LIST: usize = 1 << 25;
const TUPLE: usize = 1 << 26;
const DICT: usize = 1 << 29;
/// `PyGC_Head`: two words before the object; the first is 0 where it is not tracked.
const GC_HEAD: usize = 16;

/// A live object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Object<'g> {
    pub(super) raw: Raw,
    pub(super) gil: PhantomData<&'g ()>,
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

    pub(super) fn head(self) -> &'static TypeHead {
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

    /// Whether its type is a list, a tuple, a dictionary or derived from one of them: a flag of the
    /// type says so.
    pub(crate) fn may_be_container(self) -> bool {
        self.head().flags & (LIST | TUPLE | DICT) != 0
    }

    /// A word of the object's own memory.
    ///
    /// The offset must lie within what its type says is the object's size.
    pub(super) fn word(self, offset: u64) -> u64 {
        debug_assert!(offset + 8 <= self.basic_size());
        // SAFETY: within a live object.
        unsafe { *self.raw.cast::<u8>().add(offset as usize).cast::<u64>() }
    }

    /// The number of items of a list or a tuple.
    pub(crate) fn item_count(self) -> u64 {
        self.word(16)
    }
}

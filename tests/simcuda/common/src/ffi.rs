//! Pointers handed over by C callers.
//!
//! Every API function receives raw pointers that only the caller can vouch for.
//! [`Out`] and [`In`] have the ABI of such a pointer and do the one dangerous
//! thing, the access, in one place, so that the functions themselves are safe code.

use std::ffi::{CStr, c_char, c_void};

use crate::code::{INVALID_VALUE, Outcome};

/// A `T *` argument through which a result is stored.
#[repr(transparent)]
#[derive(Debug)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    pub fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn pointer(self) -> *mut T {
        self.0
    }

    /// Stores a required result; a null pointer is the caller's error.
    pub fn set(self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the C caller passed a non-null pointer to room for one `T`; it may be
        // unaligned only if the caller broke the ABI, which `write_unaligned` survives.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Stores an optional result; a null pointer means the caller does not want it.
    pub fn set_if_wanted(self, value: T) {
        let _ = self.set(value);
    }

    /// Reads what the caller put there (arguments that go both ways).
    pub fn get(self) -> Result<T, i32>
    where
        T: Copy,
    {
        In(self.0.cast_const()).get()
    }

    /// Fills the pointed-to object with zero bytes.
    pub fn clear(self) -> Outcome {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: as in `set`; all C structs of this ABI are valid when zero.
        unsafe { self.0.cast::<u8>().write_bytes(0, size_of::<T>()) };
        Ok(())
    }

    pub fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}

/// A `const T *` argument.
#[repr(transparent)]
#[derive(Debug)]
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}

impl<T> In<T> {
    pub fn new(pointer: *const T) -> Self {
        Self(pointer)
    }
}

impl<T: Copy> In<T> {
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn pointer(self) -> *const T {
        self.0
    }

    /// Reads the object; a null pointer is the caller's error.
    pub fn get(self) -> Result<T, i32> {
        self.get_at(0)
    }

    /// Reads element `index` of an array.
    pub fn get_at(self, index: usize) -> Result<T, i32> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the C caller passed an array of at least `index + 1` elements.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }
}

/// A C string argument as text; an error if null, lossy if it is not UTF-8.
pub fn text(string: *const c_char) -> Result<String, i32> {
    if string.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the C caller passed a NUL-terminated string that lives during this call.
    Ok(unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned())
}

/// Copies `value` into a `char[length]` buffer, cut to fit and always terminated.
pub fn store_text(buffer: *mut c_char, length: usize, value: &str) -> Outcome {
    if buffer.is_null() || length == 0 {
        return Err(INVALID_VALUE);
    }
    let bytes = &value.as_bytes()[..value.len().min(length - 1)];
    // SAFETY: the C caller passed a buffer of `length` bytes, and `bytes` is shorter.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len());
        buffer.add(bytes.len()).write(0);
    }
    Ok(())
}

/// A pointer that is only passed on or compared, never followed.
pub type Opaque = *mut c_void;

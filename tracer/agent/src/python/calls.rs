//! The functions of the interpreter, found by name in what the process has loaded.

use std::{
    ffi::{CString, c_char, c_int, c_void},
    mem,
};

type Raw = *mut c_void;

macro_rules! functions {
    ($($(#[$attribute:meta])* $name:ident: fn($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// The functions of the interpreter, found by name.
        #[derive(Clone, Copy)]
        #[allow(non_snake_case)]
        pub(super) struct Functions { $(pub(super) $name: unsafe extern "C-unwind" fn($($argument),*) $(-> $answer)?,)* }

        impl Functions {
            pub(super) fn find() -> Result<Functions, &'static str> {
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

pub(super) fn find(name: &str) -> Option<Raw> {
    let name = CString::new(name).ok()?;
    // SAFETY: a look-up by name in what the process has loaded; the string ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

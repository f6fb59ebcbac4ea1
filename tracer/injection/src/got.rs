//! Pointers of other libraries that lead to us for a while.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::{
    collections::HashSet,
    ffi::{CStr, CString, c_void},
};

use crate::{
    objects::{self, Object},
    record::{self, Hook},
};

/// Where the originals are, by library.
const MEMORY: &CStr = c"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";
const OUT_OF_MEMORY: &CStr = c"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE";
/// The rest of the name says which types it takes, spelled differently by PyTorch's versions.
const EXECUTE: &[u8] = b"_ZN5torch8autograd6Engine7executeE";
/// What others call to use CUPTI.
const CUPTI: [(&CStr, Hook); 5] = [
    (c"cuptiSubscribe", Hook::CuptiSubscribe),
    (c"cuptiSubscribe_v2", Hook::CuptiSubscribeV2),
    (c"cuptiUnsubscribe", Hook::CuptiUnsubscribe),
    (c"cuptiActivityEnable", Hook::CuptiActivityEnable),
    (c"cuptiFinalize", Hook::CuptiFinalize),
];
/// `PyTypeObject.tp_dealloc` (CPython 3.8 to 3.14: `Include/cpython/object.h`).
const TYPE_DEALLOC: usize = 48;

/// A pointer that was changed.
struct Changed {
    hook: Hook,
    /// What identifies the object it lies in.
    base: usize,
    path: CString,
    slot: usize,
    before: usize,
}

/// All pointers that were changed, and what was looked at.
#[derive(Default)]
pub struct Pointers {
    changed: Vec<Changed>,
    seen: HashSet<(usize, CString)>,
    /// The function that the user named.
    step: Option<CString>,
    /// Functions that are referred to but could not be found, or pointers that could not be
    /// changed.
    failed: Vec<(Hook, &'static str)>,
}

impl Pointers {
    /// None changed yet. `step`: a function that marks a step.
    pub fn new(step: Option<CString>) -> Pointers {
        Pointers {
            step,
            ..Pointers::default()
        }
    }

    /// How many pointers of a hook were changed.
    pub fn count(&self, hook: Hook) -> usize {
        let of_hook = self.changed.iter().filter(|changed| changed.hook == hook);
        of_hook.count()
    }

    /// What went wrong with a hook.
    pub fn failure(&self, hook: Hook) -> Option<&'static str> {
        let mut of_hook = self.failed.iter().filter(|(failed, _)| *failed == hook);
        of_hook.next().map(|(_, why)| *why)
    }

    /// Changes the pointers of the libraries that were not looked at yet.
    pub fn scan(&mut self) {
        self.failed.clear();
        // What is found is changed after the walk: looking a symbol up takes the linker's lock in
        // its own order. The objects are looked at again before anything is written.
        let mut found: Vec<(Hook, CString, usize, CString, usize)> = Vec::new();
        let ours = record::trampoline(Hook::Memory);
        objects::each(&mut |object| {
            // libc10's own calls are about host memory.
            if object.contains(ours) || is(object, "libc10.so") {
                return;
            }
            let key = (object.base, object.path.to_owned());
            if !self.seen.insert(key) {
                return;
            }
            object.references(&mut |reference| {
                if let Some(hook) = self.wanted(reference.name) {
                    found.push((
                        hook,
                        reference.name.to_owned(),
                        object.base,
                        object.path.to_owned(),
                        reference.slot,
                    ));
                }
            });
        });
        for (hook, name, base, path, slot) in found {
            match self.find_original(hook, &name) {
                Some(original) => {
                    if record::original(hook) == 0 {
                        record::set_original(hook, original);
                    }
                    self.change(hook, base, path, slot);
                }
                None => self
                    .failed
                    .push((hook, "referred to, but found in no library")),
            }
        }
        if self.count(Hook::CodeFreed) == 0 {
            self.code_type();
        }
        self.keep();
    }

    fn wanted(&self, name: &CStr) -> Option<Hook> {
        if name == MEMORY {
            Some(Hook::Memory)
        } else if name == OUT_OF_MEMORY {
            Some(Hook::OutOfMemory)
        } else if name.to_bytes().starts_with(EXECUTE) {
            Some(Hook::Execute)
        } else if let Some((_, hook)) = CUPTI.iter().find(|(known, _)| *known == name) {
            Some(*hook)
        } else if self.step.as_deref() == Some(name) {
            Some(Hook::Step)
        } else {
            None
        }
    }

    fn find_original(&self, hook: Hook, name: &CStr) -> Option<usize> {
        if record::original(hook) != 0 && hook != Hook::Step {
            return Some(record::original(hook));
        }
        let library = match hook {
            Hook::Memory | Hook::OutOfMemory => c"libc10.so",
            Hook::Execute => c"libtorch_cpu.so",
            _ => return symbol_anywhere(name),
        };
        symbol_of(library, name).or_else(|| symbol_anywhere(name))
    }

    /// CPython calls `code_dealloc` through its type object, which lies in writable memory.
    fn code_type(&mut self) {
        let Some(code_type) = symbol_anywhere(c"PyCode_Type") else {
            return;
        };
        let slot = code_type + TYPE_DEALLOC;
        let mut place = None;
        objects::each(&mut |object| {
            if object.contains(slot) {
                place = Some((object.base, object.path.to_owned()));
            }
        });
        let Some((base, path)) = place else {
            return;
        };
        // SAFETY: within a type object of a loaded library.
        let before = unsafe { (*(slot as *const AtomicUsize)).load(Ordering::SeqCst) };
        if before == 0 || before == record::trampoline(Hook::CodeFreed) {
            return;
        }
        record::set_original(Hook::CodeFreed, before);
        self.change(Hook::CodeFreed, base, path, slot);
    }

    /// Points `slot` to the hook, if its object is still there.
    fn change(&mut self, hook: Hook, base: usize, path: CString, slot: usize) {
        let target = record::trampoline(hook);
        let mut before = None;
        objects::each(&mut |object| {
            if object.base == base && object.path == path.as_c_str() {
                before = exchange(slot, target);
            }
        });
        match before {
            Some(before) if before != target => self.changed.push(Changed {
                hook,
                base,
                path,
                slot,
                before,
            }),
            Some(_) => {}
            None => self
                .failed
                .push((hook, "its pointer could not be made writable")),
        }
    }

    /// Writes again what the dynamic linker has overwritten: a thread that was in the middle of
    /// finding a function for the first time stores its address afterwards.
    fn keep(&mut self) {
        let changed = &self.changed;
        objects::each(&mut |object| {
            for one in changed {
                if object.base == one.base && object.path == one.path.as_c_str() {
                    let target = record::trampoline(one.hook);
                    // SAFETY: the slot lies in an object that is loaded.
                    let now = unsafe { (*(one.slot as *const AtomicUsize)).load(Ordering::SeqCst) };
                    if now != target {
                        exchange(one.slot, target);
                    }
                }
            }
        });
    }

    /// Puts back what was there before; pointers that somebody else has changed since are left.
    pub fn restore(&mut self) {
        let changed = &self.changed;
        objects::each(&mut |object| {
            for one in changed {
                if object.base != one.base || object.path != one.path.as_c_str() {
                    continue;
                }
                // SAFETY: the slot lies in an object that is loaded.
                let now = unsafe { (*(one.slot as *const AtomicUsize)).load(Ordering::SeqCst) };
                if now == record::trampoline(one.hook) {
                    exchange(one.slot, one.before);
                }
            }
        });
        self.changed.clear();
        self.seen.clear();
    }
}

fn is(object: &Object<'_>, name: &str) -> bool {
    object.file_name() == name.as_bytes()
}

/// Stores a pointer and gives what was there; `None` where the page cannot be made writable.
fn exchange(slot: usize, value: usize) -> Option<usize> {
    // SAFETY: the slot is an aligned pointer in an object that the caller knows to be loaded.
    // Relocated pointers may lie in memory that the dynamic linker has made read-only (RELRO);
    // the page gets back the rights that it had.
    unsafe {
        let page_bytes = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let page = (slot & !(page_bytes - 1)) as *mut c_void;
        let writable = is_writable(slot)?;
        if !writable && libc::mprotect(page, page_bytes, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return None;
        }
        let before = (*(slot as *const AtomicUsize)).swap(value, Ordering::SeqCst);
        if !writable {
            libc::mprotect(page, page_bytes, libc::PROT_READ);
        }
        Some(before)
    }
}

/// Whether the page of `address` can be written to; `None` where it is not mapped.
fn is_writable(address: usize) -> Option<bool> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        (start..end)
            .contains(&address)
            .then(|| rest.as_bytes().get(1) == Some(&b'w'))
    })
}

/// A symbol of a library that is loaded under this name.
pub fn symbol_of(library: &CStr, name: &CStr) -> Option<usize> {
    // SAFETY: C strings; NOLOAD loads nothing, and what it counts up is counted down again.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let found = libc::dlsym(handle, name.as_ptr());
        libc::dlclose(handle);
        (!found.is_null()).then_some(found as usize)
    }
}

/// A symbol of the program or of any library.
pub fn symbol_anywhere(name: &CStr) -> Option<usize> {
    // SAFETY: a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if !found.is_null() {
        return Some(found as usize);
    }
    // A library that was loaded for its own use only, such as an embedded libpython.
    let mut paths = Vec::new();
    objects::each(&mut |object| {
        if !object.path.is_empty() {
            paths.push(object.path.to_owned());
        }
    });
    paths.iter().find_map(|path| symbol_of(path, name))
}

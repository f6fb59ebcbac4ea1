//! Handles: numbers that stand for the library's objects.
//!
//! A handle is looked up, never followed as a pointer, so a stale or foreign handle is
//! an error for the caller and cannot crash the process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use simcuda_common::code::INVALID_HANDLE;

use crate::types::Handle;

/// The kinds of objects; the number is part of the handle, so kinds cannot be mixed up.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum Kind {
    Context = 1,
    Stream,
    Event,
    Graph,
    GraphExec,
    Physical,
    Pool,
    Module,
    Function,
    Link,
    UserObject,
    Multicast,
}

/// The live objects of one kind.
#[derive(Debug)]
pub struct Registry<T> {
    kind: Kind,
    next: AtomicUsize,
    live: RwLock<HashMap<Handle, Arc<T>>>,
}

impl<T> Registry<T> {
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            next: AtomicUsize::new(1),
            live: RwLock::default(),
        }
    }

    /// Registers an object; `make` gets the handle that it will have.
    pub fn insert_with(&self, make: impl FnOnce(Handle) -> T) -> (Handle, Arc<T>) {
        // Multiples of 16, like pointers from an allocator: callers pack bits into them.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let handle = ((self.kind as usize) << 40) | (number << 4);
        let object = Arc::new(make(handle));
        self.live
            .write()
            .expect("no panics")
            .insert(handle, object.clone());
        (handle, object)
    }

    pub fn insert(&self, object: T) -> Handle {
        self.insert_with(|_| object).0
    }

    pub fn get(&self, handle: Handle) -> Result<Arc<T>, i32> {
        self.live
            .read()
            .expect("no panics")
            .get(&handle)
            .cloned()
            .ok_or(INVALID_HANDLE)
    }

    pub fn remove(&self, handle: Handle) -> Result<Arc<T>, i32> {
        self.live
            .write()
            .expect("no panics")
            .remove(&handle)
            .ok_or(INVALID_HANDLE)
    }

    /// Makes an object findable (again) under the handle that it was made with.
    pub fn restore(&self, handle: Handle, object: Arc<T>) {
        self.live.write().expect("no panics").insert(handle, object);
    }

    /// All live objects, for the rare walks over them.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.live
            .read()
            .expect("no panics")
            .values()
            .cloned()
            .collect()
    }
}

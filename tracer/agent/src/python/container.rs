//! Containers of very many items, read by position: a walk can go on where it stopped, and whether a
//! container still has an item is seen at once.

use super::{Gil, Object, Raw};

/// From so many items on a container is read by position.
pub(crate) const MANY: u64 = 1024;
/// An item is looked for in so many places before and behind where it was seen: a list may have lost
/// some of its first ones since.
const NEAR: u64 = 64;

/// One place of a container.
pub(crate) struct Entry<'g> {
    /// The key; none in a list, a tuple or a set.
    pub key: Option<Object<'g>>,
    /// The value or element; none in a list that is being made.
    pub value: Option<Object<'g>>,
    /// The place after it.
    pub next: u64,
}

impl Gil<'_> {
    /// Whether an object is a container that is to be read by position.
    pub(crate) fn is_large(&self, object: Object<'_>) -> bool {
        if self.is_set(object.kind()) {
            return self.python.next_of_set.is_some() && set_size(object) >= MANY;
        }
        // Most objects are of types that are not derived from any.
        object.may_be_container()
            && match self.is(object, self.python.types.dict) {
                true => self.dict_size(object) >= MANY,
                false => object.item_count() >= MANY,
            }
    }

    /// The addresses of what the collector's walk of a large container shows first of its items; before
    /// them come the parts that a class derived from a container adds.
    pub(crate) fn first_items(&self, container: Object<'_>) -> [u64; 2] {
        let address = |object: Option<Object<'_>>| object.map_or(0, Object::address);
        if self.is(container, self.python.types.dict) {
            // Keys that are text are not shown.
            let first = self.entry(container, 0);
            return first.map_or([0; 2], |first| [address(first.key), address(first.value)]);
        }
        // Lists and tuples are walked from their end.
        let last = container.item_count().saturating_sub(1);
        [address(self.item(container, last)), 0]
    }

    /// Whether an object is of one of the interpreter's own containers, which hold nothing but items.
    pub(crate) fn is_plain_container(&self, object: Object<'_>) -> bool {
        let types = &self.python.types;
        let kind = object.kind();
        self.is_set(kind) || [types.list, types.tuple, types.dict].contains(&kind)
    }

    /// What lies at a place of a list, a tuple, a dictionary or a set; None past its end, and of
    /// anything else.
    pub(crate) fn entry<'s>(&'s self, container: Object<'s>, place: u64) -> Option<Entry<'s>> {
        let types = &self.python.types;
        if self.is(container, types.dict) {
            let mut at = isize::try_from(place).ok()?;
            let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: `container` is a live dictionary, and any place of it may be asked for; key
            // and value are borrowed from it.
            let is_there = unsafe {
                (self.python.call.PyDict_Next)(
                    container.raw,
                    &raw mut at,
                    &raw mut key,
                    &raw mut value,
                )
            };
            return (is_there != 0).then(|| Entry {
                key: self.some(key),
                value: self.some(value),
                next: at.cast_unsigned() as u64,
            });
        }
        if let Some(next) = self.python.next_of_set
            && self.is_set(container.kind())
        {
            let mut at = isize::try_from(place).ok()?;
            let (mut key, mut hash): (Raw, isize) = (std::ptr::null_mut(), 0);
            // SAFETY: as above, of a set; the hash is not used.
            let is_there = unsafe { next(container.raw, &raw mut at, &raw mut key, &raw mut hash) };
            return (is_there != 0).then(|| Entry {
                key: None,
                value: self.some(key),
                next: at.cast_unsigned() as u64,
            });
        }
        let is_sequence = self.is(container, types.list) || self.is(container, types.tuple);
        (is_sequence && place < container.item_count()).then(|| Entry {
            key: None,
            value: self.item(container, place),
            next: place + 1,
        })
    }

    /// The place of a large container that has this key, value or element, if it is near `place`.
    pub(crate) fn place_of(&self, container: Object<'_>, place: u64, wanted: u64) -> Option<u64> {
        let has = |entry: &Entry<'_>| {
            let is = |object: &Option<Object<'_>>| {
                object.is_some_and(|object| object.address() == wanted)
            };
            is(&entry.key) || is(&entry.value)
        };
        if self.entry(container, place).as_ref().is_some_and(has) {
            return Some(place);
        }
        let mut at = place.saturating_sub(NEAR);
        let until = place + NEAR;
        while at < until {
            let entry = self.entry(container, at)?;
            if has(&entry) {
                return Some(at);
            }
            at = entry.next.max(at + 1);
        }
        None
    }

    fn is_set(&self, kind: u64) -> bool {
        let types = &self.python.types;
        kind == types.set || kind == types.frozen_set
    }
}

/// `PySetObject.used`, its fourth word.
fn set_size(set: Object<'_>) -> u64 {
    set.word(24)
}

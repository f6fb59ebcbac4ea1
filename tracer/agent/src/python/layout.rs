//! Where the interpreter keeps what it has no function for, by version: the variables of frames and
//! generators, slots, and attributes inside of objects.

use std::ffi::{CStr, c_char, c_int};

use super::{
    Gil, Object, Python, Raw,
    object::{HEAP_TYPE, TypeHead},
};
use crate::peek::Peek;

impl Python {
    /// Where the interpreter's own frame keeps the names of the body of a class or of an `exec`
    /// (`f_locals`): 3.11 and later. Older ones show it to the collector.
    pub(crate) fn frame_names_at(&self) -> Option<u64> {
        match self.version {
            (3, 11) => Some(24),
            (3, 12..) => Some(40),
            _ => None,
        }
    }

    /// Where the interpreter's own frame keeps the values of variables (`localsplus`): 3.11 and
    /// later.
    pub(crate) fn frame_variables_at(&self) -> u64 {
        if self.version >= (3, 14) { 80 } else { 72 }
    }

    /// What is left of a frame's slot without its marks: from 3.14 on the lowest two bits tell who
    /// counts the reference, and both together that it is a number (`_PyStackRef`).
    fn unmarked(&self, word: u64) -> u64 {
        const MARKS: u64 = 3;
        match (self.version >= (3, 14), word & MARKS) {
            (false, _) => word,
            (true, MARKS) => 0,
            (true, _) => word & !MARKS,
        }
    }
}

impl Gil<'_> {
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
        // it; that holds `count` slots, each a live object or NULL, with marks in some versions.
        unsafe {
            let slots = if self.python.version < (3, 11) {
                let last = frame.basic_size() as usize - 8;
                frame.raw.cast::<u8>().add(last).cast::<Raw>().cast_const()
            } else {
                (frame.word(frame_at) as *const u8)
                    .add(locals as usize)
                    .cast::<Raw>()
            };
            (0..count)
                .map(|at| self.some(self.python.unmarked(*slots.add(at) as u64) as Raw))
                .collect()
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
                        && offset.is_multiple_of(8)
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
        if offset < 16 || !offset.is_multiple_of(8) || offset + 8 > object.basic_size() {
            return None;
        }
        self.some(object.word(offset) as Raw)
    }

    /// The attributes that an object keeps in itself, with the names that its class shares (3.11
    /// and later). Only pairs whose value the collector's walk of the object shows are given.
    pub(crate) fn inline_values<'s>(
        &'s self,
        object: Object<'s>,
        keys_at: u64,
        keys_head: u64,
        most: u64,
    ) -> Vec<(String, Object<'s>)> {
        let peek = Peek::new();
        let values = match self.python.version.1 {
            // Before the collector's head: a pointer to the values.
            11 => peek.word(object.address() - 32),
            // The same less one where it is no dictionary.
            12 => peek
                .word(object.address() - 24)
                .filter(|word| word & 1 == 1)
                .map(|word| word + 1),
            // Behind the object, after four bytes of head (as many as there are sizes).
            13 | 14 => Some(object.address() + object.basic_size() + 8),
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
    fn checked_text(&self, address: u64, peek: Peek) -> Option<String> {
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

    /// The slots of the variables of a frame object or a generator, found by its code: 3.11 and
    /// later keep them a fixed way from the pointer to it, older ones at the end of the frame object.
    pub(crate) fn slots_after_code<'s>(
        &'s self,
        runner: Object<'s>,
        code: Object<'s>,
        count: usize,
    ) -> Vec<Option<Object<'s>>> {
        let peek = Peek::new();
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
                    let is_code = |word: &u64| self.python.unmarked(*word) == code.address();
                    let at = words.iter().rposition(is_code)? as u64;
                    Some(begin + 8 * at - code_at + self.python.frame_variables_at())
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
            .map(|word| self.python.unmarked(word))
            .map(|word| live.contains(&word).then(|| self.object(word as Raw)))
            .collect()
    }
}

//! Which parts of an address range are free: best fit, with coalescing.

use std::collections::{BTreeMap, BTreeSet};

/// The free parts of a range of addresses.
#[derive(Debug)]
pub struct Ranges {
    /// start -> size
    by_address: BTreeMap<usize, usize>,
    /// (size, start)
    by_size: BTreeSet<(usize, usize)>,
}

impl Ranges {
    /// All of `start..start + size` is free.
    pub fn new(start: usize, size: usize) -> Self {
        let mut ranges = Self {
            by_address: BTreeMap::new(),
            by_size: BTreeSet::new(),
        };
        ranges.insert(start, size);
        ranges
    }

    /// Takes `size` bytes at a multiple of `alignment`, from the smallest free part that
    /// fits, at its lowest address. The order of calls alone decides the addresses.
    pub fn take(&mut self, size: usize, alignment: usize) -> Option<usize> {
        let (start, whole, address) =
            self.by_size
                .range((size, 0)..)
                .find_map(|&(whole, start)| {
                    let address = start.checked_next_multiple_of(alignment)?;
                    (address.checked_add(size)? <= start + whole).then_some((start, whole, address))
                })?;
        self.remove(start, whole);
        self.insert(start, address - start);
        self.insert(address + size, start + whole - (address + size));
        Some(address)
    }

    /// Takes exactly `address..address + size` if it is free.
    pub fn take_at(&mut self, address: usize, size: usize) -> bool {
        let Some((&start, &whole)) = self.by_address.range(..=address).next_back() else {
            return false;
        };
        let Some(end) = address.checked_add(size) else {
            return false;
        };
        if end > start + whole {
            return false;
        }
        self.remove(start, whole);
        self.insert(start, address - start);
        self.insert(end, start + whole - end);
        true
    }

    /// Gives back what was taken.
    pub fn give_back(&mut self, mut start: usize, mut size: usize) {
        if let Some((&before, &before_size)) = self.by_address.range(..start).next_back()
            && before + before_size == start
        {
            self.remove(before, before_size);
            start = before;
            size += before_size;
        }
        if let Some(&after_size) = self.by_address.get(&(start + size)) {
            self.remove(start + size, after_size);
            size += after_size;
        }
        self.insert(start, size);
    }

    fn insert(&mut self, start: usize, size: usize) {
        if size != 0 {
            self.by_address.insert(start, size);
            self.by_size.insert((size, start));
        }
    }

    fn remove(&mut self, start: usize, size: usize) {
        self.by_address.remove(&start);
        self.by_size.remove(&(size, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_neighbours_become_one_range_again() {
        let mut ranges = Ranges::new(0x1000, 0x4000);
        let parts: Vec<_> = (0..4)
            .map(|_| ranges.take(0x1000, 0x1000).expect("room"))
            .collect();
        assert_eq!(parts, [0x1000, 0x2000, 0x3000, 0x4000]);
        assert_eq!(ranges.take(1, 1), None);
        for part in [parts[1], parts[3], parts[2], parts[0]] {
            ranges.give_back(part, 0x1000);
        }
        assert_eq!(ranges.take(0x4000, 0x1000), Some(0x1000));
    }

    #[test]
    fn the_smallest_fitting_range_is_used_and_alignment_is_kept() {
        let mut ranges = Ranges::new(0x1000, 0x10000);
        assert_eq!(ranges.take(0x100, 0x4000), Some(0x4000));
        assert!(ranges.take_at(0x6000, 0x1000));
        assert!(!ranges.take_at(0x6800, 0x1000));
        // 0x4100..0x6000 is the smallest that holds 0x1000 aligned bytes, after 0x1000..0x4000.
        assert_eq!(ranges.take(0x1000, 0x1000), Some(0x5000));
    }
}

//! A sparse power-of-two histogram: most sites allocate one or two sizes.

use serde::{Deserialize, Serialize};

use crate::view::Log2Histogram;

/// Counts by power of two, only those that are not zero.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SparseHistogram {
    counts: Vec<(u8, u64)>,
}

impl SparseHistogram {
    #[inline]
    pub fn add(&mut self, value: u64) {
        let bucket = Log2Histogram::bucket(value) as u8;
        match self.counts.iter_mut().find(|(known, _)| *known == bucket) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((bucket, 1)),
        }
    }

    pub fn view(&self) -> Log2Histogram {
        let mut view = Log2Histogram::default();
        view.fill(self.counts.iter().map(|(b, n)| (usize::from(*b), *n)));
        view
    }
}

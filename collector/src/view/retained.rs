//! What keeps a site's survivors alive, once the process was asked.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vramscope_events::{Holders, Time};

/// The last answer about a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retained {
    /// When the process answered.
    pub asked_at: Time,
    /// When it was asked about the site before.
    pub asked_before: Option<Time>,
    /// The length that each of the holders had then, in the order of [`Holders::holders`].
    pub lengths_before: Vec<Option<u64>>,
    /// The answer. The stacks in it are those of all sites that were asked about together.
    pub holders: Arc<Holders>,
}

impl Retained {
    /// The length before and now of the holder at `index`, where both are known.
    pub fn grown(&self, index: usize) -> Option<(u64, u64)> {
        let before = *self.lengths_before.get(index)?;
        let now = self.holders.holders.get(index)?.length;
        before.zip(now)
    }

    /// `grew from 120 to 148 since it was asked 30 s before`, where the holder at `index` did.
    pub fn growth_words(&self, index: usize) -> Option<String> {
        let (before, now) = self.grown(index)?;
        let past = self.asked_at.seconds_since(self.asked_before?);
        let verb = match now.cmp(&before) {
            std::cmp::Ordering::Greater => "grew",
            std::cmp::Ordering::Less => "shrank",
            std::cmp::Ordering::Equal => return None,
        };
        Some(format!(
            "{verb} from {} to {} since it was asked {} before",
            crate::report::units::count(before),
            crate::report::units::count(now),
            crate::report::units::duration(past),
        ))
    }

    /// The length of the holder with this way.
    pub(crate) fn of_path(&self, path: &str) -> Option<u64> {
        let mut holders = self.holders.holders.iter();
        holders
            .find(|holder| !path.is_empty() && holder.path == path)
            .and_then(|holder| holder.length)
    }
}

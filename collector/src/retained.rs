//! What the process answered when it was asked who holds some blocks: kept until it is asked again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vramscope_events::{Holders, Time};

use crate::view::{Retained, SiteId};

/// Answers kept for a device; beyond it the oldest go.
const MAX_ANSWERS: usize = 64;

/// The answers about one device.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answers {
    answers: Vec<Answer>,
    /// Counts changes, so that a view knows what it can keep.
    pub version: u64,
}

/// One answer, with the sites that it is about.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    /// Sorted.
    sites: Vec<SiteId>,
    retained: Arc<Retained>,
}

impl Answers {
    /// Keeps an answer about `sites`; what was said of them before is of the past.
    pub fn add(&mut self, time: Time, mut sites: Vec<SiteId>, holders: Arc<Holders>) {
        sites.sort_unstable();
        sites.dedup();
        let before = self.latest(&sites);
        let lengths = (holders.holders.iter())
            .map(|holder| before.and_then(|before| before.of_path(&holder.path)))
            .collect();
        let retained = Retained {
            asked_at: time,
            asked_before: before.map(|before| before.asked_at),
            lengths_before: lengths,
            holders,
        };
        for answer in &mut self.answers {
            (answer.sites).retain(|site| sites.binary_search(site).is_err());
        }
        self.answers.retain(|answer| !answer.sites.is_empty());
        if self.answers.len() == MAX_ANSWERS {
            self.answers.remove(0);
        }
        self.answers.push(Answer {
            sites,
            retained: Arc::new(retained),
        });
        self.version += 1;
    }

    /// The last answer about any of `sites`.
    fn latest(&self, sites: &[SiteId]) -> Option<&Retained> {
        let about = |answer: &&Answer| sites.iter().any(|site| answer.is_about(*site));
        let last = self.answers.iter().rev().find(about);
        last.map(|answer| answer.retained.as_ref())
    }

    /// What is known of a site.
    pub fn of(&self, site: SiteId) -> Option<&Arc<Retained>> {
        self.about(site).map(|(_, retained)| retained)
    }

    /// The same, with all sites that it is about, sorted.
    pub fn about(&self, site: SiteId) -> Option<(&[SiteId], &Arc<Retained>)> {
        let answer = self.answers.iter().find(|answer| answer.is_about(site))?;
        Some((&answer.sites, &answer.retained))
    }
}

impl Answer {
    fn is_about(&self, site: SiteId) -> bool {
        self.sites.binary_search(&site).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use vramscope_events::Holder;

    use super::*;

    fn answer(path: &str, length: u64) -> Arc<Holders> {
        Arc::new(Holders {
            holders: vec![Holder {
                kind: "tensor".into(),
                path: path.into(),
                blocks: length,
                length: Some(length),
                ..Holder::default()
            }],
            ..Holders::default()
        })
    }

    #[test]
    fn a_second_answer_knows_the_first() {
        let mut answers = Answers::default();
        answers.add(Time(10), vec![SiteId(4), SiteId(2)], answer("a[*]", 120));
        answers.add(Time(40), vec![SiteId(2), SiteId(7)], answer("a[*]", 148));
        let second = answers.of(SiteId(7)).unwrap();
        assert_eq!(second.asked_before, Some(Time(10)));
        assert_eq!(second.grown(0), Some((120, 148)));
        // The first one is still what is known of the site that the second is not about.
        assert_eq!(answers.of(SiteId(4)).unwrap().asked_at, Time(10));
        // Another holder is not the same one grown.
        answers.add(Time(50), vec![SiteId(2)], answer("b[*]", 300));
        assert_eq!(answers.of(SiteId(2)).unwrap().grown(0), None);
    }

    #[test]
    fn there_are_never_more_than_a_few() {
        let mut answers = Answers::default();
        for site in 0..1_000 {
            answers.add(Time(site), vec![SiteId(site as u32)], answer("a", 1));
        }
        assert_eq!(answers.answers.len(), MAX_ANSWERS);
        assert!(answers.of(SiteId(0)).is_none() && answers.of(SiteId(999)).is_some());
    }
}

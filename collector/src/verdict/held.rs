//! What the process said holds the blocks, where it was asked: that decides what generations alone
//! cannot, whether a container that fills has an end.

use vramscope_events::Holder;

use super::{growth::Growth, oom, words};
use crate::{
    device::Device,
    view::{Retained, SiteId},
};

/// Share of the blocks that a holder must have for its bound to bound the growth.
const NEARLY_ALL: f64 = 0.9;
/// Share of the growth that the sites asked about must explain.
const MOST_GROWTH: f64 = 0.5;
/// Blocks above what a full container holds, from which on the answer is of the past.
const OUTDATED: f64 = 1.1;

/// An answer about the sites that grow.
pub(crate) struct Held<'a> {
    retained: &'a Retained,
    /// The holder of most blocks.
    index: usize,
    pub says: Says,
}

/// What follows from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Says {
    /// Only who it is.
    Who,
    /// The container has a bound, and what it lacks fits the device.
    Fills { length: u64, bound: u64 },
    /// The container has a bound, but full it needs more than there is: so many bytes.
    Overflows {
        length: u64,
        bound: u64,
        missing: f64,
    },
    /// It has no bound, and grew from one question to the next.
    Grows,
}

impl<'a> Held<'a> {
    /// What is known of the sites that make `growth`.
    pub fn of(device: &'a Device, growth: &Growth, recent_peak: u64) -> Option<Held<'a>> {
        let mut culprits = growth.culprits.iter();
        let (sites, retained) = culprits.find_map(|one| device.answers.about(one.site))?;
        let main = retained.holders.main()?;
        let index = (retained.holders.holders.iter()).position(|holder| holder == main)?;
        let mut held = Held {
            retained,
            index,
            says: Says::Who,
        };
        let explained: f64 = (growth.culprits.iter())
            .filter(|culprit| sites.binary_search(&culprit.site).is_ok())
            .map(|culprit| culprit.share)
            .sum();
        if explained >= MOST_GROWTH {
            held.says = held.conclude(device, sites, recent_peak);
        }
        Some(held)
    }

    fn conclude(&self, device: &Device, sites: &[SiteId], recent_peak: u64) -> Says {
        let answer = &self.retained.holders;
        let main = self.holder();
        let share = main.blocks as f64 / answer.held().max(1) as f64;
        let Some((bound, length)) = main.bound.zip(main.length.filter(|length| *length > 0)) else {
            let grew = (self.retained.grown(self.index)).is_some_and(|(before, now)| now > before);
            return match grew && main.bound.is_none() && share >= MOST_GROWTH {
                true => Says::Grows,
                false => Says::Who,
            };
        };
        if share < NEARLY_ALL {
            return Says::Who;
        }
        // A sample stands for all.
        let all = answer.survivors as f64 / answer.asked.max(1) as f64;
        let an_entry = main.blocks as f64 * all / length as f64;
        let live: u64 = (device.main_book().sites().iter())
            .filter(|site| sites.binary_search(&site.id).is_ok())
            .map(|site| site.live_blocks)
            .sum();
        if live as f64 > an_entry * bound as f64 * OUTDATED + 2.0 {
            return Says::Who;
        }
        let missing = bound.saturating_sub(length) as f64 * main.bytes as f64 * all / length as f64;
        match oom::headroom(device, recent_peak) {
            Some(headroom) if missing > headroom as f64 => Says::Overflows {
                length,
                bound,
                missing,
            },
            _ => Says::Fills { length, bound },
        }
    }

    fn holder(&self) -> &Holder {
        &self.retained.holders.holders[self.index]
    }

    /// The holder in a few words.
    pub fn short(&self) -> &str {
        &self.holder().short
    }

    /// What goes after the class's own sentence.
    pub fn clause(&self) -> String {
        let short = self.short();
        let grown = self.retained.growth_words(self.index);
        match self.says {
            Says::Overflows {
                length,
                bound,
                missing,
            } => format!(
                "held by {short}, a bounded container, {} of at most {}: full it needs {} more, \
                 which the device does not have",
                words::count(length),
                words::count(bound),
                words::bytes(missing),
            ),
            _ => match grown {
                Some(grown) => format!("held by {short}, which {grown}"),
                None => format!("held by {short}"),
            },
        }
    }

    /// The class's sentence where a container fills.
    pub fn filling(&self, length: u64, bound: u64) -> String {
        format!(
            "no leak: a bounded container fills, {} of at most {}: {}",
            words::count(length),
            words::count(bound),
            self.short(),
        )
    }

    /// The fact behind it.
    pub fn evidence(&self) -> String {
        let main = self.holder();
        format!(
            "asked, the process said: {} of {} survivors are held by {}",
            words::count(main.blocks),
            words::count(self.retained.holders.held()),
            main.words,
        )
    }
}

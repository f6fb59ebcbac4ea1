//! What keeps a site's survivors alive, in lines.

use super::units;
use crate::{
    escape,
    view::{Retained, SiteView},
};

/// Columns of a sentence about a holder.
const SENTENCE: usize = 400;

/// Sites with an answer, each answer once: what was asked about together is told together.
pub fn answered(sites: &[SiteView]) -> Vec<&SiteView> {
    let mut told: Vec<&SiteView> = Vec::new();
    for site in sites {
        let new = |told: &&SiteView| told.retained.as_ref() != site.retained.as_ref();
        if site.retained.is_some() && told.iter().all(new) {
            told.push(site);
        }
    }
    told
}

/// `138 survivors 12 s ago, held by`, `100,000 of 312,000 survivors 12 s ago, held by`. `seconds`:
/// since it was asked.
pub fn opening(retained: &Retained, seconds: f64) -> String {
    let holders = &retained.holders;
    let sample = match holders.asked < holders.survivors {
        true => format!("{} of ", units::count(holders.asked)),
        false => String::new(),
    };
    format!(
        "{sample}{} survivors, asked {} ago, held by",
        units::count(holders.survivors),
        units::duration(seconds),
    )
}

/// A line for each holder: how many blocks, how many bytes, who. Safe to print.
pub fn lines(retained: &Retained) -> Vec<String> {
    let holders = retained.holders.holders.iter().enumerate();
    let lines = holders.map(|(index, holder)| {
        let bytes = match holder.bytes {
            0 => String::new(),
            bytes => format!(", {}", units::bytes(bytes)),
        };
        let grown = retained.growth_words(index);
        format!(
            "{}{bytes}: {}{}",
            units::count(holder.blocks),
            escape::line(&holder.words, SENTENCE),
            grown.map(|grown| format!("; {grown}")).unwrap_or_default(),
        )
    });
    lines.collect()
}

/// What else is to be known of the answer: why it is not complete, notes, what it cost. Safe.
pub fn remarks(retained: &Retained) -> Vec<String> {
    let holders = &retained.holders;
    let partial = (holders.partial.iter()).map(|why| format!("partial: {why}"));
    let notes = holders.notes.iter().map(|note| format!("note: {note}"));
    let cost = Some(&holders.cost).filter(|cost| !cost.is_empty());
    let cost = cost.map(|cost| format!("cost: {cost}"));
    (partial.chain(notes).chain(cost))
        .map(|line| escape::line(&line, SENTENCE))
        .collect()
}

//! What keeps blocks alive, as the process itself answered when it was asked.

use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, StackId};

/// The answer to one question: what holds the survivors of a site.
///
/// All text but the words of [`Holders::cost`] may quote names of the process: foreign text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holders {
    /// The device on which the blocks lie.
    pub device: DeviceId,
    /// Where the blocks were allocated: every stack of the site that was asked about.
    pub stacks: Vec<StackId>,
    /// Survivors of the site when it was asked.
    pub survivors: u64,
    /// How many of them were asked about: all, or a sample.
    pub asked: u64,
    /// Who holds them, most blocks first. Blocks that were freed meanwhile are in none.
    pub holders: Vec<Holder>,
    /// Why the answer is not complete; `None` when it is.
    pub partial: Option<String>,
    /// What else is to be known of the process.
    pub notes: Vec<String>,
    /// What asking cost the process, in a sentence.
    pub cost: String,
}

/// Blocks that are kept alive in one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holder {
    /// What kind of holder: `tensor`, `gradient`, `graph`, `garbage`, `extension`, `native`,
    /// `unknown`.
    pub kind: String,
    /// All that is known of it, in a sentence.
    pub words: String,
    /// The holder alone, in a few words that go after "held by".
    pub short: String,
    /// The way from a name that a person knows, positions as `[*]`; the same in every answer about
    /// the same holder.
    pub path: String,
    /// How many of the blocks asked about.
    pub blocks: u64,
    /// Bytes in them.
    pub bytes: Bytes,
    /// Entries of the container, or nodes of the graph, that keeps them.
    pub length: Option<u64>,
    /// How many entries the container can have, where it has a bound.
    pub bound: Option<u64>,
}

impl Holders {
    /// The blocks of which the holder was told.
    pub fn held(&self) -> u64 {
        self.holders.iter().map(|holder| holder.blocks).sum()
    }

    /// The holder of most blocks, where one is known.
    pub fn main(&self) -> Option<&Holder> {
        (self.holders.iter()).find(|holder| holder.kind != "unknown" && holder.blocks > 0)
    }
}

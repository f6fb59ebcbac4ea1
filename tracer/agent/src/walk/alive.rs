//! What of the objects that were found is still alive: see the walk's own page.
#![allow(unsafe_code)]

use super::{IS_ROOT, NO_PLACE, Walk};
use crate::python::{Gil, Object};

/// So many children of a large container are shown by the collector's walk.
const MOST_SHOWN: u32 = 8 * 1024;

impl Walk {
    /// The object, if it is alive in this slice.
    pub(crate) fn live<'g>(&mut self, gil: &'g Gil<'_>, at: u32) -> Option<Object<'g>> {
        // Up to the first ancestor that was shown to be alive, then down again.
        let mut way = vec![at];
        loop {
            let node = self.nodes[way[way.len() - 1] as usize];
            if node.shown == self.slice {
                break;
            }
            let shown = node.place == NO_PLACE && self.shown_children_of.contains(&node.parent);
            if node.parent & IS_ROOT != 0 || shown {
                return None;
            }
            way.push(node.parent);
        }
        while let Some(parent) = way.pop() {
            let Some(child) = way.last() else {
                break;
            };
            self.show(gil, parent, *child);
            if self.nodes[*child as usize].shown != self.slice {
                return None;
            }
        }
        // SAFETY: as above.
        Some(unsafe { gil.trust(self.nodes[at as usize].address) })
    }

    /// Shows that a child of an object which is alive is alive too, if it still is a child.
    fn show(&mut self, gil: &Gil<'_>, parent: u32, child: u32) {
        // SAFETY: it was shown in this slice, by the roots or by a live parent, and nothing has run
        // since.
        let object = unsafe { gil.trust(self.nodes[parent as usize].address) };
        let node = self.nodes[child as usize];
        if node.place != NO_PLACE {
            let place = gil.place_of(object, node.place.into(), node.address);
            if let Some(place) = place.and_then(|place| u32::try_from(place).ok()) {
                let node = &mut self.nodes[child as usize];
                (node.shown, node.place) = (self.slice, place);
            }
            return;
        }
        if !self.shown_children_of.insert(parent) {
            return;
        }
        // One that was small when it was looked into may be large by now.
        let most = match gil.is_large(object) {
            true => MOST_SHOWN,
            false => u32::MAX,
        };
        let mut seen = 0;
        gil.children(object, &mut |child| {
            if let Some(at) = self.by_address.get(&child.address()) {
                self.nodes[*at as usize].shown = self.slice;
            }
            seen += 1;
            seen < most
        });
    }
}

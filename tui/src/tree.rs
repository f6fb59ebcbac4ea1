//! Merged stacks as a tree, unfolded only where somebody looks: a node works out its children
//! when it is unfolded, so a view costs what is on the screen and not what there is.

use std::{
    cmp::Reverse,
    hash::{Hash, Hasher},
    sync::Arc,
};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use vramscope_collector::view::{FrameView, SiteView};
use vramscope_events::Bytes;

use crate::table::{Order, Table};

/// Names a node over views: a hash of the frames on the way to it.
pub type Path = u64;

/// How far unfolding goes by itself where there is no choice.
const MAX_CHAIN: usize = 64;
/// Sites are numbered by first appearance; beyond this number the tree is built for every view.
const MAX_NUMBER: usize = 1 << 24;
const NONE: u32 = u32::MAX;
/// How many rows "unfold everything" may add.
const MAX_UNFOLDED: usize = 2000;

/// A frame and what was allocated under it.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub path: Path,
    /// `None` for allocations of which no frame is known.
    pub frame: Option<Arc<FrameView>>,
    /// How many frames lie before it.
    pub depth: usize,
    /// Bytes a step.
    pub growth: f64,
    /// Live bytes.
    pub live_bytes: Bytes,
    /// Live blocks.
    pub live_blocks: u64,
    /// Whether there is anything below.
    pub has_children: bool,
    parent: Option<usize>,
    /// Its sites, by slot.
    slots: Vec<u32>,
    children: Option<Vec<usize>>,
}

/// What a site adds to its nodes.
#[derive(Clone, Copy, Default)]
struct Weight {
    growth: f64,
    live_bytes: Bytes,
    live_blocks: u64,
}

impl Weight {
    fn of(site: &SiteView) -> Weight {
        let growth = site.growth_bytes_per_step;
        Weight {
            growth: if growth.is_finite() { growth } else { 0.0 },
            live_bytes: site.live_bytes,
            live_blocks: site.live_blocks,
        }
    }
}

/// The tree, the unfolded paths and the selected one.
#[derive(Default)]
pub struct Tree {
    /// Allocating lines first instead of callers first.
    pub bottom_up: bool,
    nodes: Vec<Node>,
    roots: Vec<usize>,
    rows: Vec<usize>,
    whole: f64,
    unfolded: FxHashSet<Path>,
    selected: Option<Path>,
    selected_row: usize,
    touched: bool,
    sites: Arc<[SiteView]>,
    order: Order,
    /// The edition of the table that the nodes were made from; `None`: make them anew.
    edition: Option<u64>,
    /// The slot of each site, by its number: slots outlive views, indices do not.
    slot_of_site: Vec<u32>,
    /// The index in `sites` of each slot.
    indices: Vec<u32>,
    weights: Vec<Weight>,
}

impl Tree {
    /// How many nodes are shown.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The node that is shown in a row.
    pub fn row(&self, row: usize) -> Option<&Node> {
        self.rows.get(row).map(|&index| &self.nodes[index])
    }

    /// The nodes at the roots.
    pub fn roots(&self) -> impl Iterator<Item = &Node> {
        self.roots.iter().map(|&index| &self.nodes[index])
    }

    /// What all roots weigh together in the present order; nothing that shrinks.
    pub fn whole(&self) -> f64 {
        self.whole
    }

    /// What a node weighs in the present order.
    pub fn weight(&self, node: &Node) -> f64 {
        match self.order {
            Order::Live => node.live_bytes as f64,
            Order::Survivors => node.live_blocks as f64,
            _ => node.growth.max(0.0),
        }
    }

    /// Whether `node` is unfolded.
    pub fn is_unfolded(&self, node: &Node) -> bool {
        node.has_children && self.unfolded.contains(&node.path)
    }

    /// The row of the selected node.
    pub fn selected(&self) -> usize {
        self.selected_row
    }

    /// Selects a row.
    pub fn select(&mut self, row: usize) {
        self.selected_row = row.min(self.rows.len().saturating_sub(1));
        self.selected = self.row(self.selected_row).map(|node| node.path);
    }

    /// Selects a node, which is shown in some row.
    fn select_node(&mut self, index: usize) {
        let row = self.rows.iter().position(|&other| other == index);
        self.select(row.unwrap_or(0));
    }

    /// Makes the tree of the table's sites. While the stacks are the same ones only the sums are
    /// made anew.
    pub fn refresh(&mut self, table: &Table, order: Order) {
        self.sites = Arc::clone(table.sites());
        self.order = order;
        if self.edition == Some(table.edition()) {
            self.sum_again(table);
        } else {
            self.edition = Some(table.edition());
            self.build(table);
        }
        self.flatten();
    }

    fn build(&mut self, table: &Table) {
        self.slot_of_site.clear();
        self.weights.clear();
        self.indices.clear();
        for (index, site) in table.kept() {
            let (slot, number) = (self.indices.len() as u32, site.id.0 as usize);
            if number >= MAX_NUMBER {
                // Without a slot it cannot be summed again.
                self.edition = None;
            } else {
                if self.slot_of_site.len() <= number {
                    self.slot_of_site.resize(number + 1, NONE);
                }
                self.slot_of_site[number] = slot;
            }
            self.indices.push(index);
            self.weights.push(Weight::of(site));
        }
        self.nodes.clear();
        let all: Vec<u32> = (0..self.indices.len() as u32).collect();
        self.roots = self.split(&all, None);
        if !self.touched {
            self.unfolded.clear();
            self.unfold_main_path();
        }
    }

    fn sum_again(&mut self, table: &Table) {
        for (index, site) in table.kept() {
            let slot = self.slot_of_site.get(site.id.0 as usize).copied();
            if let Some(slot) = slot.filter(|&slot| slot != NONE) {
                self.indices[slot as usize] = index;
                self.weights[slot as usize] = Weight::of(site);
            }
        }
        for node in &mut self.nodes {
            let mut sum = Weight::default();
            for &slot in &node.slots {
                let weight = self.weights[slot as usize];
                sum.growth += weight.growth;
                sum.live_bytes = sum.live_bytes.saturating_add(weight.live_bytes);
                sum.live_blocks = sum.live_blocks.saturating_add(weight.live_blocks);
            }
            node.growth = sum.growth;
            node.live_bytes = sum.live_bytes;
            node.live_blocks = sum.live_blocks;
        }
        let mut roots = std::mem::take(&mut self.roots);
        self.sort(&mut roots);
        self.roots = roots;
        for index in 0..self.nodes.len() {
            if let Some(mut children) = self.nodes[index].children.take() {
                self.sort(&mut children);
                self.nodes[index].children = Some(children);
            }
        }
    }

    fn sort(&self, siblings: &mut [usize]) {
        siblings.sort_by_key(|&index| {
            let node = &self.nodes[index];
            let first = match self.order {
                Order::Live => node.live_bytes as i64,
                Order::Survivors => node.live_blocks as i64,
                _ => (node.growth * 16.0) as i64,
            };
            (Reverse(first), Reverse(node.live_bytes), index)
        });
    }

    /// Forgets what was unfolded: the tree stands on its head, or another device is shown.
    pub fn reset(&mut self) {
        self.unfolded.clear();
        self.selected = None;
        self.selected_row = 0;
        self.touched = false;
        self.edition = None;
    }

    /// Unfolds the selected node and on as long as there is no choice; on an unfolded one, selects
    /// its first child.
    pub fn unfold(&mut self) {
        let Some(&index) = self.rows.get(self.selected()) else {
            return;
        };
        self.touched = true;
        if self.is_unfolded(&self.nodes[index]) {
            if let Some(&child) = self.children(index).first() {
                self.select_node(child);
            }
            return;
        }
        let mut at = index;
        for _ in 0..MAX_CHAIN {
            self.unfolded.insert(self.nodes[at].path);
            match self.children(at)[..] {
                [only] => at = only,
                _ => break,
            }
        }
        self.flatten();
    }

    /// Folds the selected node; on a folded one, selects its parent.
    pub fn fold(&mut self) {
        let Some(&index) = self.rows.get(self.selected()) else {
            return;
        };
        self.touched = true;
        if self.is_unfolded(&self.nodes[index]) {
            self.unfolded.remove(&self.nodes[index].path);
            self.flatten();
        } else if let Some(parent) = self.nodes[index].parent {
            self.select_node(parent);
        }
    }

    /// Unfolds or folds the selected node.
    pub fn toggle(&mut self) {
        let unfolded = self
            .rows
            .get(self.selected())
            .is_some_and(|&index| self.is_unfolded(&self.nodes[index]));
        if unfolded { self.fold() } else { self.unfold() }
    }

    /// Unfolds all below the selected node, within reason.
    pub fn unfold_all(&mut self) {
        let Some(&index) = self.rows.get(self.selected()) else {
            return;
        };
        self.touched = true;
        let mut waiting = std::collections::VecDeque::from([index]);
        let mut added = 0;
        while let Some(at) = waiting.pop_front() {
            if added > MAX_UNFOLDED {
                break;
            }
            self.unfolded.insert(self.nodes[at].path);
            let children = self.children(at);
            added += children.len();
            waiting.extend(children);
        }
        self.flatten();
    }

    /// Unfolds the way to what weighs most, as long as it weighs most of what there is.
    fn unfold_main_path(&mut self) {
        let mut level = self.roots.clone();
        for _ in 0..MAX_CHAIN {
            let Some(&first) = level.first() else { return };
            let weight = |&index: &usize| self.weight(&self.nodes[index]);
            let total: f64 = level.iter().map(weight).sum();
            if total <= 0.0 || weight(&first) < 0.5 * total {
                return;
            }
            self.unfolded.insert(self.nodes[first].path);
            level = self.children(first);
        }
    }

    fn children(&mut self, index: usize) -> Vec<usize> {
        if let Some(children) = &self.nodes[index].children {
            return children.clone();
        }
        let slots = std::mem::take(&mut self.nodes[index].slots);
        let children = self.split(&slots, Some(index));
        self.nodes[index].slots = slots;
        self.nodes[index].children = Some(children.clone());
        children
    }

    /// Makes nodes of the frames that follow `parent` in the stacks of the sites in `slots`.
    fn split(&mut self, slots: &[u32], parent: Option<usize>) -> Vec<usize> {
        let depth = parent.map_or(0, |index| self.nodes[index].depth + 1);
        let above = parent.map_or(0, |index| self.nodes[index].path);
        // Most stacks share their frames, so most are told by address; the rest by content.
        let mut by_address: FxHashMap<usize, usize> = FxHashMap::default();
        let mut by_frame: FxHashMap<Option<Arc<FrameView>>, usize> = FxHashMap::default();
        let mut out = Vec::new();
        let all = Arc::clone(&self.sites);
        for &slot in slots {
            let site = &all[self.indices[slot as usize] as usize];
            let frame = frame_at(site, depth, self.bottom_up);
            if frame.is_none() && !(depth == 0 && site.stack.is_empty()) {
                continue;
            }
            let address = frame.map_or(0, |frame| Arc::as_ptr(frame) as usize);
            let index = *by_address.entry(address).or_insert_with(|| {
                *by_frame.entry(frame.cloned()).or_insert_with(|| {
                    let index = self.nodes.len();
                    self.nodes.push(Node {
                        path: path(above, frame.map(Arc::as_ref)),
                        frame: frame.cloned(),
                        depth,
                        growth: 0.0,
                        live_bytes: 0,
                        live_blocks: 0,
                        has_children: false,
                        parent,
                        slots: Vec::new(),
                        children: None,
                    });
                    out.push(index);
                    index
                })
            });
            let node = &mut self.nodes[index];
            let weight = self.weights[slot as usize];
            node.growth += weight.growth;
            node.live_bytes = node.live_bytes.saturating_add(weight.live_bytes);
            node.live_blocks = node.live_blocks.saturating_add(weight.live_blocks);
            node.has_children |= frame_at(site, depth + 1, self.bottom_up).is_some();
            node.slots.push(slot);
        }
        self.sort(&mut out);
        out
    }

    fn flatten(&mut self) {
        self.rows.clear();
        let mut waiting: Vec<usize> = self.roots.iter().rev().copied().collect();
        while let Some(index) = waiting.pop() {
            self.rows.push(index);
            if self.is_unfolded(&self.nodes[index]) {
                waiting.extend(self.children(index).into_iter().rev());
            }
        }
        self.whole = self.roots().map(|node| self.weight(node)).sum();
        let selected = self.selected.and_then(|path| {
            let mut rows = self.rows.iter();
            rows.position(|&index| self.nodes[index].path == path)
        });
        self.selected_row = selected.unwrap_or(0);
    }
}

/// The frame at `depth` of the way into the tree. From below the way starts at the user's own
/// frame: what the library does inside is the same for everyone.
fn frame_at(site: &SiteView, depth: usize, bottom_up: bool) -> Option<&Arc<FrameView>> {
    if bottom_up {
        site.stack.get(site.user_frame.unwrap_or(0) + depth)
    } else {
        let from_end = site.stack.len().checked_sub(depth + 1)?;
        site.stack.get(from_end)
    }
}

fn path(above: Path, frame: Option<&FrameView>) -> Path {
    let mut hasher = FxHasher::default();
    above.hash(&mut hasher);
    if let Some(frame) = frame {
        (frame.kind, &frame.file, &frame.function, frame.line).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;

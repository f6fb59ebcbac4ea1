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

use crate::table::Order;

/// Names a node over views: a hash of the frames on the way to it.
pub type Path = u64;

/// How far unfolding goes by itself where there is no choice.
const MAX_CHAIN: usize = 64;
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
    sites: Vec<u32>,
    children: Option<Vec<usize>>,
}

/// The tree, the unfolded paths and the selected one.
#[derive(Default)]
pub struct Tree {
    /// Allocating lines first instead of callers first.
    pub bottom_up: bool,
    nodes: Vec<Node>,
    roots: Vec<usize>,
    rows: Vec<usize>,
    unfolded: FxHashSet<Path>,
    selected: Option<Path>,
    touched: bool,
    sites: Arc<[SiteView]>,
    order: Order,
}

impl Tree {
    /// The nodes that are shown, from top to bottom.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.rows.iter().map(|&index| &self.nodes[index])
    }

    /// Whether `node` is unfolded.
    pub fn is_unfolded(&self, node: &Node) -> bool {
        node.has_children && self.unfolded.contains(&node.path)
    }

    /// The row of the selected node.
    pub fn selected(&self) -> usize {
        let at = |path| self.rows().position(|node| node.path == path);
        self.selected.and_then(at).unwrap_or(0)
    }

    /// Selects a row.
    pub fn select(&mut self, row: usize) {
        let row = row.min(self.rows.len().saturating_sub(1));
        self.selected = self.rows.get(row).map(|&index| self.nodes[index].path);
    }

    /// Makes the tree of `sites`, of which `kept` tells the indices to use.
    pub fn refresh(
        &mut self,
        sites: &Arc<[SiteView]>,
        kept: impl Iterator<Item = u32>,
        order: Order,
    ) {
        self.sites = Arc::clone(sites);
        self.order = order;
        self.nodes.clear();
        let all: Vec<u32> = kept.collect();
        self.roots = self.split(&all, None);
        if !self.touched {
            self.unfolded.clear();
            self.unfold_main_path();
        }
        self.flatten();
    }

    /// Forgets what was unfolded: the tree stands on its head, or another device is shown.
    pub fn reset(&mut self) {
        self.unfolded.clear();
        self.selected = None;
        self.touched = false;
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
                self.selected = Some(self.nodes[child].path);
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
            self.selected = Some(self.nodes[parent].path);
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
            let total: f64 = level.iter().map(|&index| self.weight(index)).sum();
            if total <= 0.0 || self.weight(first) < 0.5 * total {
                return;
            }
            self.unfolded.insert(self.nodes[first].path);
            level = self.children(first);
        }
    }

    fn weight(&self, index: usize) -> f64 {
        let node = &self.nodes[index];
        match self.order {
            Order::Growth => node.growth.max(0.0),
            _ => node.live_bytes as f64,
        }
    }

    fn children(&mut self, index: usize) -> Vec<usize> {
        if let Some(children) = &self.nodes[index].children {
            return children.clone();
        }
        let sites = std::mem::take(&mut self.nodes[index].sites);
        let children = self.split(&sites, Some(index));
        self.nodes[index].sites = sites;
        self.nodes[index].children = Some(children.clone());
        children
    }

    /// Makes nodes of the frames that follow `parent` in the stacks of `sites`.
    fn split(&mut self, sites: &[u32], parent: Option<usize>) -> Vec<usize> {
        let depth = parent.map_or(0, |index| self.nodes[index].depth + 1);
        let above = parent.map_or(0, |index| self.nodes[index].path);
        // Most stacks share their frames, so most are told by address; the rest by content.
        let mut by_address: FxHashMap<usize, usize> = FxHashMap::default();
        let mut by_frame: FxHashMap<Option<Arc<FrameView>>, usize> = FxHashMap::default();
        let mut out = Vec::new();
        let all = Arc::clone(&self.sites);
        for &site_index in sites {
            let site = &all[site_index as usize];
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
                        sites: Vec::new(),
                        children: None,
                    });
                    out.push(index);
                    index
                })
            });
            let node = &mut self.nodes[index];
            if site.growth_bytes_per_step.is_finite() {
                node.growth += site.growth_bytes_per_step;
            }
            node.live_bytes += site.live_bytes;
            node.live_blocks += site.live_blocks;
            node.has_children |= frame_at(site, depth + 1, self.bottom_up).is_some();
            node.sites.push(site_index);
        }
        let order = self.order;
        let nodes = &self.nodes;
        out.sort_by_key(|&index| {
            let node = &nodes[index];
            let first = match order {
                Order::Live => node.live_bytes as i64,
                Order::Survivors => node.live_blocks as i64,
                _ => (node.growth * 16.0) as i64,
            };
            (Reverse(first), Reverse(node.live_bytes), index)
        });
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
mod tests {
    use vramscope_collector::fixture;

    use super::*;

    fn tree(bottom_up: bool) -> Tree {
        let view = fixture::leak();
        let sites = Arc::clone(&view.processes[0].devices[0].sites);
        let mut tree = Tree {
            bottom_up,
            ..Tree::default()
        };
        tree.refresh(&sites, 0..sites.len() as u32, Order::Growth);
        tree
    }

    fn live(nodes: impl Iterator<Item = Node>) -> Bytes {
        nodes.map(|node| node.live_bytes).sum()
    }

    #[test]
    fn roots_hold_everything_either_way() {
        let all = fixture::leak().processes[0].devices[0].live_bytes;
        for bottom_up in [false, true] {
            let tree = tree(bottom_up);
            let roots = tree.rows().filter(|node| node.depth == 0).cloned();
            assert_eq!(live(roots), all);
        }
    }

    #[test]
    fn children_never_hold_more_than_their_parent() {
        let mut tree = tree(false);
        tree.select(0);
        tree.unfold_all();
        let rows: Vec<Node> = tree.rows().cloned().collect();
        assert!(rows.len() > 5);
        for (index, node) in rows.iter().enumerate() {
            let below = rows[index + 1..]
                .iter()
                .take_while(|other| other.depth > node.depth)
                .filter(|other| other.depth == node.depth + 1)
                .cloned();
            assert!(live(below) <= node.live_bytes);
        }
    }

    #[test]
    fn folding_goes_back_to_the_roots() {
        let mut tree = tree(false);
        let roots = tree.rows().filter(|node| node.depth == 0).count();
        assert!(tree.rows().len() > roots, "the main path is unfolded");
        while let Some(row) = unfolded_row(&tree) {
            tree.select(row);
            tree.fold();
        }
        assert_eq!(tree.rows().len(), roots);
    }

    fn unfolded_row(tree: &Tree) -> Option<usize> {
        tree.rows().position(|node| tree.is_unfolded(node))
    }

    #[test]
    fn selection_and_folds_outlive_a_view() {
        let mut tree = tree(false);
        tree.select(2);
        tree.unfold();
        let before: Vec<Path> = tree.rows().map(|node| node.path).collect();
        let selected = tree.selected();
        let view = fixture::leak();
        let sites = Arc::clone(&view.processes[0].devices[0].sites);
        tree.refresh(&sites, 0..sites.len() as u32, Order::Growth);
        let after: Vec<Path> = tree.rows().map(|node| node.path).collect();
        assert_eq!(before, after);
        assert_eq!(tree.selected(), selected);
    }
}

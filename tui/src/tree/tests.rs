use vramscope_collector::{fixture, view::View};

use super::*;
use crate::table::Query;

fn show(table: &mut Table, tree: &mut Tree, view: &View) {
    let sites = &view.processes[0].devices[0].sites;
    table.refresh(sites, &Query::default(), None);
    tree.refresh(table, Order::Growth);
}

fn tree(bottom_up: bool) -> Tree {
    let mut tree = Tree {
        bottom_up,
        ..Tree::default()
    };
    show(&mut Table::default(), &mut tree, &fixture::leak());
    tree
}

fn rows(tree: &Tree) -> impl Iterator<Item = &Node> {
    (0..tree.len()).filter_map(|row| tree.row(row))
}

fn live(nodes: impl Iterator<Item = Node>) -> Bytes {
    nodes.map(|node| node.live_bytes).sum()
}

#[test]
fn roots_hold_everything_either_way() {
    let all = fixture::leak().processes[0].devices[0].live_bytes;
    for bottom_up in [false, true] {
        let tree = tree(bottom_up);
        let roots = rows(&tree).filter(|node| node.depth == 0).cloned();
        assert_eq!(live(roots), all);
    }
}

#[test]
fn children_never_hold_more_than_their_parent() {
    let mut tree = tree(false);
    tree.select(0);
    tree.unfold_all();
    let rows: Vec<Node> = rows(&tree).cloned().collect();
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
    let roots = rows(&tree).filter(|node| node.depth == 0).count();
    assert!(tree.len() > roots, "the main path is unfolded");
    while let Some(row) = unfolded_row(&tree) {
        tree.select(row);
        tree.fold();
    }
    assert_eq!(tree.len(), roots);
}

fn unfolded_row(tree: &Tree) -> Option<usize> {
    rows(tree).position(|node| tree.is_unfolded(node))
}

#[test]
fn selection_and_folds_outlive_a_view() {
    let (mut table, mut tree) = (Table::default(), Tree::default());
    show(&mut table, &mut tree, &fixture::leak());
    tree.select(2);
    tree.unfold();
    let before: Vec<Path> = rows(&tree).map(|node| node.path).collect();
    let selected = tree.selected();
    // The fixture makes other frames with the same content.
    show(&mut table, &mut tree, &fixture::leak());
    let after: Vec<Path> = rows(&tree).map(|node| node.path).collect();
    assert_eq!(before, after);
    assert_eq!(tree.selected(), selected);
}

#[test]
fn summing_again_is_as_good_as_building_again() {
    let (mut table, mut tree) = (Table::default(), Tree::default());
    let mut view = fixture::leak();
    show(&mut table, &mut tree, &view);
    let edition = table.edition();
    let device = &mut view.processes[0].devices[0];
    let mut sites = device.sites.to_vec();
    for (index, site) in sites.iter_mut().enumerate() {
        site.live_bytes += 1_000_000 * index as u64;
        site.growth_bytes_per_step = 7.0 * index as f64;
    }
    sites.reverse();
    device.sites = sites.into();
    show(&mut table, &mut tree, &view);
    assert_eq!(table.edition(), edition, "the stacks are the same");
    let again: Vec<(Path, Bytes)> = rows(&tree).map(|n| (n.path, n.live_bytes)).collect();
    tree.edition = None;
    tree.touched = true;
    show(&mut table, &mut tree, &view);
    let anew: Vec<(Path, Bytes)> = rows(&tree).map(|n| (n.path, n.live_bytes)).collect();
    assert_eq!(again, anew);
}

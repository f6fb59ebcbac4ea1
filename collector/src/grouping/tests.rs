//! Sums are kept, orders hold, generations are never claimed beyond what is certain.

use std::collections::BTreeSet;

use proptest::prelude::*;
use vramscope_events::Time;

use super::*;
use crate::{
    fixture,
    view::{FrameView, Log2Histogram, SiteId},
};

fn span(first: u64, last: u64, generations: u64) -> GenerationSpan {
    GenerationSpan {
        first,
        last,
        blocks: generations,
        bytes: generations * 512,
        generations,
    }
}

fn generations(spans: Vec<GenerationSpan>) -> u64 {
    (merge_spans(spans).iter())
        .map(|span| span.generations)
        .sum()
}

#[test]
fn full_spans_give_the_exact_union() {
    assert_eq!(generations(vec![span(0, 9, 10), span(5, 14, 10)]), 15);
    assert_eq!(generations(vec![span(3, 3, 1), span(3, 3, 1)]), 1);
    assert_eq!(generations(vec![span(0, 9, 10), span(20, 29, 10)]), 20);
}

#[test]
fn a_partial_span_adds_only_what_cannot_hide() {
    assert_eq!(generations(vec![span(0, 9, 10), span(0, 19, 4)]), 10);
    assert_eq!(generations(vec![span(0, 9, 10), span(5, 19, 8)]), 13);
    assert_eq!(generations(vec![span(0, 99, 2), span(0, 99, 3)]), 3);
    // Two partial ones that cannot share a step, bridged by a third.
    assert_eq!(
        generations(vec![span(0, 49, 5), span(50, 99, 6), span(40, 60, 2)]),
        11
    );
}

#[test]
fn the_leak_comes_first_and_has_its_stacks_together() {
    let view = fixture::leak();
    let device = &view.processes[0].devices[0];
    let lines = group(&device.sites, Grouping::Line);
    let frame = lines[0].own_frame().expect("a frame");
    assert!(frame.file.ends_with("train.py"), "{}", frame.file);
    assert_eq!((frame.line, lines[0].stacks), (27, 4));
    assert!(lines.len() < device.sites.len());
    for site in device.sites.iter() {
        let holders = lines
            .iter()
            .filter(|line| holds(line, site, Grouping::Line));
        assert_eq!(holders.count(), 1);
    }
}

fn frame(file: u8, function: u8, line: u32) -> Arc<FrameView> {
    Arc::new(FrameView {
        kind: FrameKind::Python,
        file: format!("{file}.py").into(),
        function: format!("f{function}").into(),
        line,
        user: true,
        source: None,
    })
}

prop_compose! {
    fn any_site()(
        (file, function, line) in (0u8..3, 0u8..3, 0u32..4),
        known in any::<bool>(),
        steps in prop::collection::btree_set(0u64..60, 0..12),
        growth in prop_oneof![Just(f64::NAN), -1e6..1e6, Just(0.0)],
        bytes in 0u64..1 << 40,
        trend in prop::collection::vec(0u64..1000, 0..5),
        sizes in prop::collection::vec(any::<u64>(), 0..5),
    ) -> (SiteView, BTreeSet<u64>) {
        let mut histogram = Log2Histogram::default();
        sizes.iter().for_each(|&size| histogram.add(size));
        // Birth steps cut into spans of at most four survivors: some full, some partial.
        let spans: Vec<GenerationSpan> = steps
            .iter()
            .copied()
            .collect::<Vec<u64>>()
            .chunks(4)
            .map(|chunk| span(chunk[0], chunk[chunk.len() - 1], chunk.len() as u64))
            .collect();
        let site = SiteView {
            id: SiteId(0),
            stack: if known { Arc::new([frame(file, function, line)]) } else { Arc::new([]) },
            user_frame: known.then_some(0),
            stacks: 1,
            live_bytes: bytes,
            live_blocks: steps.len() as u64,
            total_bytes: bytes * 2,
            total_blocks: 9,
            generations: steps.len() as u64,
            spans: spans.into(),
            growth_bytes_per_step: growth,
            growth_share: 0.0,
            first_seen: Time(bytes),
            last_seen: Time(bytes + 1),
            oldest_survivor: (!steps.is_empty()).then_some(Time(bytes)),
            sizes: histogram.clone(),
            lifetimes: histogram,
            trend: trend.into(),
            retained: None,
        };
        (site, steps)
    }
}

fn histogram_sum(sites: &[SiteView]) -> u64 {
    (sites.iter())
        .flat_map(|site| site.sizes.counts.iter().chain(site.lifetimes.counts.iter()))
        .sum()
}

fn now(sites: &[SiteView]) -> u64 {
    sites.iter().filter_map(|site| site.trend.last()).sum()
}

proptest! {
    #[test]
    fn sums_are_kept(
        made in prop::collection::vec(any_site(), 0..40),
        grouping in prop::sample::select(vec![
            Grouping::Stack, Grouping::Line, Grouping::Function, Grouping::Module,
        ]),
    ) {
        let mut sites: Vec<SiteView> = made.iter().map(|(site, _)| site.clone()).collect();
        for (index, site) in sites.iter_mut().enumerate() {
            site.id = SiteId(index as u32);
        }
        let groups = group(&sites, grouping);

        let sum = |sites: &[SiteView], get: fn(&SiteView) -> u64| -> u64 {
            sites.iter().map(get).sum()
        };
        for get in [
            (|site: &SiteView| site.live_bytes) as fn(&SiteView) -> u64,
            |site| site.live_blocks,
            |site| site.total_bytes,
            |site| site.total_blocks,
            |site| u64::from(site.stacks),
            |site| site.spans.iter().map(|span| span.bytes).sum(),
            |site| site.spans.iter().map(|span| span.blocks).sum(),
        ] {
            prop_assert_eq!(sum(&groups, get), sum(&sites, get));
        }
        prop_assert_eq!(histogram_sum(&groups), histogram_sum(&sites));
        prop_assert_eq!(now(&groups), now(&sites));
        prop_assert!(groups.is_sorted_by(|a, b| order(a, b) == Ordering::Less));

        for line in &groups {
            let members: Vec<usize> = (0..sites.len())
                .filter(|&index| holds(line, &sites[index], grouping))
                .collect();
            prop_assert!(members.iter().any(|&index| sites[index].id == line.id));
            let truth: BTreeSet<u64> =
                members.iter().flat_map(|&index| made[index].1.iter().copied()).collect();
            let most = members.iter().map(|&index| made[index].1.len()).max().unwrap_or(0);
            prop_assert!(line.generations <= truth.len() as u64);
            prop_assert!(line.generations >= most as u64);
            prop_assert!(line.spans.len() <= MAX_SPANS);
            prop_assert!(line.spans.is_sorted_by(|a, b| a.last < b.first));
        }
    }
}

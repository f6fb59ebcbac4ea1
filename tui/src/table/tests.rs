use std::collections::HashMap;

use vramscope_collector::fixture;

use super::*;

fn sites(view: &vramscope_collector::view::View) -> Arc<[SiteView]> {
    Arc::clone(&view.processes[0].devices[0].sites)
}

fn query(grouping: Grouping, order: Order) -> Query {
    Query {
        grouping,
        order,
        ..Query::default()
    }
}

#[test]
fn sums_agree_with_the_collectors_groups() {
    for sites in [sites(&fixture::leak()), sites(&fixture::many(3000))] {
        for grouping in [
            Grouping::Line,
            Grouping::Function,
            Grouping::Module,
            Grouping::Stack,
        ] {
            let mut table = Table::default();
            table.refresh(&sites, &query(grouping, Order::Growth), None);
            let expected: HashMap<_, _> = grouping::group(&sites, grouping)
                .into_iter()
                .map(|site| (site.id, site))
                .collect();
            assert_eq!(table.len(), expected.len(), "{grouping:?}");
            for row in table.rows() {
                let group = &expected[&table.head(row).id];
                assert_eq!(row.live_bytes, group.live_bytes);
                assert_eq!(row.live_blocks, group.live_blocks);
                assert_eq!(row.total_bytes, group.total_bytes);
                assert_eq!(row.stacks, group.stacks);
                assert_eq!(row.oldest, group.oldest_survivor);
                assert!((row.growth - group.growth_bytes_per_step).abs() < 1e-6);
                let detail = table.detail(row);
                assert_eq!(detail.generations, group.generations);
                assert_eq!(detail.trend, group.trend);
                assert_eq!(
                    table.site(row).map(|site| site.live_bytes),
                    Some(group.live_bytes)
                );
            }
        }
    }
}

#[test]
fn every_order_is_one() {
    let view = fixture::many(500);
    let sites = sites(&view);
    let mut table = Table::default();
    for order in Order::ALL {
        table.refresh(&sites, &query(Grouping::Line, order), None);
        let falls =
            |key: &dyn Fn(&Row) -> u64| table.rows().is_sorted_by_key(|row| Reverse(key(row)));
        match order {
            Order::Growth => assert!(table.rows().is_sorted_by(|a, b| a.growth + 0.1 >= b.growth)),
            Order::Live => assert!(falls(&|row| row.live_bytes)),
            Order::Survivors => assert!(falls(&|row| row.live_blocks)),
            Order::Generations => assert!(falls(&|row| row.generations)),
            Order::Total => assert!(falls(&|row| row.total_bytes)),
            Order::Age => assert!(falls(&|row| view.now.0 - row.oldest.unwrap_or(view.now).0)),
            Order::SinceMark => {}
            Order::Name => assert!(table.rows().is_sorted_by_key(|row| {
                let frame = table.head(row).own_frame().expect("has frames");
                (frame.file.clone(), frame.line, frame.function.clone())
            })),
        }
    }
    let mut reversed = query(Grouping::Line, Order::Live);
    reversed.reversed = true;
    table.refresh(&sites, &reversed, None);
    assert!(table.rows().is_sorted_by_key(|row| row.live_bytes));
}

#[test]
fn filters_before_it_groups() {
    let sites = sites(&fixture::leak());
    let mut table = Table::default();
    let mut asked = query(Grouping::Line, Order::Growth);
    table.refresh(&sites, &asked, None);
    let all: Bytes = table.rows().map(|row| row.live_bytes).sum();
    let mut part = |text: &str| {
        asked.filter = Filter::parse(text).expect("valid");
        table.refresh(&sites, &asked, None);
        table.rows().map(|row| row.live_bytes).sum::<Bytes>()
    };
    let with = part("probe_loss");
    let without = part("!probe_loss");
    assert!(with > 0 && without > 0);
    assert_eq!(with + without, all);
    assert_eq!(part(""), all);
    assert_eq!(part("no such thing"), 0);
}

#[test]
fn a_mark_counts_from_where_it_was_set() {
    let before = fixture::leak();
    let sites_before = sites(&before);
    let mark = Mark::new(before.now, 1482, sites_before.iter());
    let mut after = sites_before.to_vec();
    after[0].live_bytes += 1000;
    after[0].live_blocks += 2;
    after[1].live_bytes -= 512;
    after[1].live_blocks -= 1;
    let after: Arc<[SiteView]> = after.into();
    let mut table = Table::default();
    table.refresh(
        &after,
        &query(Grouping::Stack, Order::SinceMark),
        Some(&mark),
    );
    let first = table.row(0).expect("rows");
    let last = table.rows().last().expect("rows");
    assert_eq!(first.since_mark, (1000, 2));
    assert_eq!(last.since_mark, (-512, -1));
}

#[test]
fn groups_keep_their_numbers_over_views() {
    let mut table = Table::default();
    let asked = query(Grouping::Line, Order::Growth);
    table.refresh(&sites(&fixture::leak()), &asked, None);
    let before: HashMap<u32, Option<String>> = numbers(&table);
    table.refresh(&sites(&fixture::healthy()), &asked, None);
    for (number, place) in numbers(&table) {
        if let Some(known) = before.get(&number) {
            assert_eq!(*known, place);
        }
    }
}

fn numbers(table: &Table) -> HashMap<u32, Option<String>> {
    let place = |row: &Row| {
        let frame = table.head(row).own_frame()?;
        Some(format!("{}:{}", frame.file, frame.line))
    };
    table.rows().map(|row| (row.group, place(row))).collect()
}

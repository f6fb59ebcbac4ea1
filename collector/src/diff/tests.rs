use super::*;
use crate::fixture;

fn moments() -> (View, View) {
    let before = fixture::leak();
    let mut after = before.clone();
    after.now.0 += 60_000_000_000;
    after.processes[0].steps.count += 100;
    let device = &mut after.processes[0].devices[0];
    let mut sites = device.sites.to_vec();
    let mut seen = 0;
    for site in &mut sites {
        if site.live_bytes > 0 {
            match seen {
                0 => site.live_bytes += 6_553_600,
                1 => {
                    site.live_bytes = 0;
                    site.live_blocks = 0;
                }
                2 => site.live_bytes -= 512,
                _ => {}
            }
            seen += 1;
        }
    }
    device.sites = sites.into();
    (before, after)
}

#[test]
fn two_moments_of_a_session_are_compared_by_the_steps_between() {
    let (before, after) = moments();
    let options = Options {
        grouping: Grouping::Stack,
        ..Options::default()
    };
    let diff = compare(&before, &after, options);
    assert!(diff.one_session);
    let device = &diff.devices[0];
    assert_eq!(device.steps_between, Some(100));
    let changes: Vec<Change> = device.sites.iter().map(|site| site.change).collect();
    assert_eq!(changes.len(), 3, "{:?}", device.sites);
    assert!(changes.contains(&Change::Went) && changes.contains(&Change::Shrank));
    let grown = device
        .sites
        .iter()
        .find(|site| site.change == Change::Grew)
        .unwrap();
    assert_eq!(grown.delta_bytes, 6_553_600);
    assert!((grown.delta_bytes_per_step - 65_536.0).abs() < 1e-9);
    let words = text(&diff, ["run.vrs@7m", "run.vrs"], 100);
    assert!(
        words.contains("grew") && words.contains("+65.5 KB/step"),
        "{words}"
    );
    assert!(
        words.lines().all(|line| escape_width(line) <= 100),
        "{words}"
    );
}

fn escape_width(line: &str) -> usize {
    crate::escape::width(line)
}

#[test]
fn two_sessions_are_compared_by_their_growth() {
    let (before, mut after) = (fixture::healthy(), fixture::leak());
    after.started_unix += 1;
    let diff = compare(&before, &after, Options::default());
    assert!(!diff.one_session);
    let device = &diff.devices[0];
    assert_eq!(device.steps_between, None);
    let first = &device.sites[0];
    assert!(first.delta_bytes_per_step > 0.0, "{first:?}");
    let swapped = compare(&after, &before, Options::default());
    assert_eq!(swapped.devices[0].sites.len(), device.sites.len());
    let top = Options {
        top: Some(1),
        ..Options::default()
    };
    let one = compare(&before, &after, top);
    assert_eq!(one.devices[0].sites.len(), 1);
    assert_eq!(one.devices[0].left_out, device.sites.len() - 1);
}

#[test]
fn a_view_does_not_differ_from_itself() {
    for view in [fixture::leak(), fixture::hostile(), fixture::four_ranks()] {
        for grouping in [
            Grouping::Stack,
            Grouping::Line,
            Grouping::Function,
            Grouping::Module,
        ] {
            let options = Options {
                grouping,
                ..Options::default()
            };
            let diff = compare(&view, &view, options);
            assert!(diff.devices.iter().all(|device| device.sites.is_empty()));
            assert!(diff.only_in_one.is_empty());
        }
    }
}

#[test]
fn hostile_names_stay_harmless() {
    let hostile = fixture::hostile();
    let mut none = hostile.clone();
    for process in &mut none.processes {
        for device in &mut process.devices {
            device.sites = std::sync::Arc::from([]);
        }
    }
    let diff = compare(&none, &hostile, Options::default());
    let words = text(&diff, ["a\x1b[31m", "b\n"], 120);
    assert!(words.lines().count() > 3);
    assert!(words.chars().all(|char| char == '\n' || !char.is_control()));
}

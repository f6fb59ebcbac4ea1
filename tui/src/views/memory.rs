//! Who has the device's memory.

use std::cmp::Reverse;

use vramscope_collector::{
    escape, grouping,
    report::{notes, shares, units},
    view::{BucketKind, DeviceView, Grouping},
};
use vramscope_events::Bytes;

use crate::{app::App, page::Page, theme::Role, views::strip};

/// Buckets and what is known about the device's books.
pub fn page(app: &App, width: usize) -> Page {
    let mut page = Page::new(app.theme, width);
    let Some((process, device)) = app.process().zip(app.device()) else {
        page.gap();
        page.text(
            " ",
            "Waiting for the first allocation on a GPU: then this view shows who has its memory.",
            Role::Strong,
        );
        return page;
    };
    page.line([
        (format!(" GPU {} ", device.device), Role::Title),
        (
            format!("as process {} numbers it", process.info.pid),
            Role::Quiet,
        ),
    ]);
    page.gap();
    let shares = named(device);
    let used = shares
        .iter()
        .fold(0, |sum: Bytes, (_, bytes, _)| sum.saturating_add(*bytes))
        .saturating_sub(device.excess);
    let whole = device
        .capacity
        .unwrap_or(used.saturating_add(device.free.unwrap_or(0)))
        .max(1);
    let all: Vec<(&str, Bytes, Role)> = shares
        .iter()
        .map(|(name, bytes, role)| (name.as_str(), *bytes, *role))
        .collect();
    page.drawn(|pen| {
        pen.put(" ", Role::Text);
        let columns = pen.room().saturating_sub(1);
        strip::bar(app, pen, &all, whole, columns);
    });
    page.gap();
    for (name, bytes, role) in &shares {
        share(app, &mut page, name, *bytes, whole, *role);
    }
    if let Some(used) = device.used {
        page.line([
            (
                format!("   {:<1$}", "in all, as NVML counts", name_columns(width)),
                Role::Text,
            ),
            (format!("{:>10}", units::bytes(used)), Role::Strong),
        ]);
    }
    match (device.capacity, device.free) {
        (Some(capacity), free) => {
            others(app, &mut page, device, used, whole);
            if let Some(free) = free {
                share(app, &mut page, "free", free, whole, Role::Quiet);
            }
            page.line([
                (
                    format!("   {:<1$}", "capacity", name_columns(width)),
                    Role::Text,
                ),
                (format!("{:>10}", units::bytes(capacity)), Role::Strong),
            ]);
        }
        (None, _) => {
            page.gap();
            page.text(
                " ",
                "Waiting for the driver's figures: capacity, free, and what the process has \
                 beyond PyTorch are not known yet.",
                Role::Quiet,
            );
        }
    }
    books(app, &mut page, device);
    drivers(app, &mut page, device);
    page.heading(" Not known");
    for note in notes::of_device(process, device) {
        page.text(" · ", &note, Role::Text);
    }
    for note in notes::of_view(&app.view) {
        page.text(" · ", &note, Role::Text);
    }
    page
}

/// The named shares.
fn named(device: &DeviceView) -> Vec<(String, Bytes, Role)> {
    let named = device.buckets.iter();
    named
        .map(|bucket| {
            let role = match bucket.kind {
                BucketKind::Live | BucketKind::LiveBefore => Role::Stays,
                BucketKind::Reusable | BucketKind::Cached => Role::Cached,
                BucketKind::Fragmented | BucketKind::GraphPools => Role::Flows,
                BucketKind::Library | BucketKind::Pools | BucketKind::Rest => Role::Outside,
            };
            (escape::line(&bucket.name, 60), bucket.bytes, role)
        })
        .collect()
}

/// The other processes on the device, and what nobody is named for.
fn others(app: &App, page: &mut Page, device: &DeviceView, used: Bytes, whole: Bytes) {
    let mut named: Bytes = 0;
    for row in shares::others(device) {
        let bytes = row.bytes.unwrap_or(0);
        named = named.saturating_add(bytes);
        share(app, page, &row.name, bytes, whole, Role::Quiet);
    }
    let (Some(capacity), Some(free)) = (device.capacity, device.free) else {
        return;
    };
    let unnamed = capacity.saturating_sub(used.saturating_add(free).saturating_add(named));
    if unnamed > capacity / 1000 {
        let name = match named {
            0 => "other processes",
            _ => "others, which ones is not told",
        };
        share(app, page, name, unnamed, whole, Role::Quiet);
    }
}

fn share(app: &App, page: &mut Page, name: &str, bytes: Bytes, whole: Bytes, role: Role) {
    let part = bytes as f64 / whole as f64;
    let columns = name_columns(page.width);
    page.drawn(|pen| {
        pen.put(" ", Role::Text)
            .put(app.theme.fill(role), role)
            .put(" ", role);
        pen.left(name, columns, Role::Text);
        pen.right(&units::bytes(bytes), 10, Role::Strong);
        pen.right(&units::percent(part), 7, Role::Quiet).skip(2);
        let columns = pen.room().min(40);
        pen.bar(part, columns, role);
    });
}

fn name_columns(width: usize) -> usize {
    match width {
        100.. => 45,
        70.. => 36,
        _ => 18,
    }
}

fn books(app: &App, page: &mut Page, device: &DeviceView) {
    page.heading(" Books");
    page.pair(" allocated", &units::bytes(device.allocated), Role::Text);
    page.pair(" peak", &units::bytes(device.peak_allocated), Role::Text);
    page.pair(" reserved", &units::bytes(device.reserved), Role::Text);
    page.pair(
        " live blocks",
        &format!(
            "{} in {} blocks, allocated since the attach",
            units::bytes(device.live_bytes),
            units::count(device.live_blocks)
        ),
        Role::Text,
    );
    page.pair(
        " baseline",
        &format!(
            "{} from before the attach ({} then): no stack is known for them",
            units::bytes(device.baseline),
            units::bytes(device.baseline_at_attach)
        ),
        Role::Text,
    );
    if let Some(process) = app.process().filter(|process| process.host_bytes > 0) {
        page.pair(
            " host",
            &format!(
                "{} page-locked, taken through the driver since the attach",
                units::bytes(process.host_bytes)
            ),
            Role::Text,
        );
    }
    let check = &device.check;
    let (words, role) = match check.corrected {
        0 => (
            format!(
                "agrees with PyTorch's own totals at all of {} events",
                units::count(check.agreed)
            ),
            Role::Good,
        ),
        corrected => (
            format!(
                "put right {} times by {} in all, agreed {} times",
                units::count(corrected),
                units::bytes(check.corrected_bytes),
                units::count(check.agreed)
            ),
            Role::Warn,
        ),
    };
    page.pair(" ledger", &words, role);
    if check.double_allocs > 0 || check.unknown_frees > 0 {
        page.pair(
            " odd events",
            &format!(
                "{} blocks freed unseen, {} frees of unknown blocks",
                units::count(check.double_allocs),
                units::count(check.unknown_frees)
            ),
            Role::Text,
        );
    }
    if let (Some(mark), Some(process)) = (&app.mark, app.process()) {
        let steps = process.steps.count.saturating_sub(mark.step);
        let ago = units::age(app.view.now.seconds_since(mark.time));
        let since = format!(
            "at step {}, {} steps or {ago} ago",
            units::count(mark.step),
            units::count(steps)
        );
        page.pair(" mark", &since, Role::Text);
    }
}

fn drivers(app: &App, page: &mut Page, device: &DeviceView) {
    page.heading(" Taken from the driver since the attach");
    let mut sites = grouping::group(&device.driver_sites, Grouping::Line);
    sites.retain(|site| site.live_bytes > 0);
    sites.sort_by_key(|site| Reverse(site.live_bytes));
    if sites.is_empty() {
        page.text(
            " ",
            "Nothing, or the driver's probes are absent (6 tells).",
            Role::Quiet,
        );
        return;
    }
    let Some(process) = app.process() else { return };
    for site in sites.iter().take(12) {
        let words = vramscope_collector::report::headline::site_words(site, process, 200);
        page.line([
            (
                format!(" {:>10}  ", units::bytes(site.live_bytes)),
                Role::Text,
            ),
            (words, Role::Quiet),
        ]);
    }
    if sites.len() > 12 {
        let more = sites.len() - 12;
        let words = format!("{more} more: t shows them all in the table of sites");
        page.text(" ", &words, Role::Quiet);
    }
}

//! Who has the device's memory.

use vramscope_collector::{
    escape,
    report::{notes, units},
    view::DeviceView,
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
    let shares = shares(device);
    let used = shares
        .iter()
        .fold(0, |sum: Bytes, (_, bytes, _)| sum.saturating_add(*bytes));
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
    match (device.capacity, device.free) {
        (Some(capacity), free) => {
            let others = capacity.saturating_sub(used.saturating_add(free.unwrap_or(0)));
            if free.is_some() && others > capacity / 1000 {
                share(
                    app,
                    &mut page,
                    "other processes",
                    others,
                    whole,
                    Role::Quiet,
                );
            }
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

/// The named shares, or, until they are known, what the framework says.
fn shares(device: &DeviceView) -> Vec<(String, Bytes, Role)> {
    let roles = [Role::Stays, Role::Cached, Role::Flows, Role::Outside];
    if !device.buckets.is_empty() {
        let named = device.buckets.iter().enumerate();
        return named
            .map(|(index, bucket)| {
                let role = roles[index.min(roles.len() - 1)];
                (escape::line(&bucket.name, 40), bucket.bytes, role)
            })
            .collect();
    }
    let cached = device.reserved.saturating_sub(device.allocated);
    let mut out = vec![
        ("live tensors".to_owned(), device.allocated, Role::Stays),
        ("cached".to_owned(), cached, Role::Cached),
    ];
    let outside = device.outside;
    out.extend(outside.map(|bytes| ("outside PyTorch".to_owned(), bytes, Role::Outside)));
    out
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
    if width >= 70 { 30 } else { 18 }
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
    if device.driver_sites.is_empty() {
        page.text(
            " ",
            "Nothing, or the driver's probes are absent (6 tells).",
            Role::Quiet,
        );
        return;
    }
    let Some(process) = app.process() else { return };
    for site in device.driver_sites.iter().take(12) {
        let words = vramscope_collector::report::headline::site_words(site, process, 200);
        page.line([
            (
                format!(" {:>10}  ", units::bytes(site.live_bytes)),
                Role::Text,
            ),
            (words, Role::Quiet),
        ]);
    }
    if device.driver_sites.len() > 12 {
        let more = device.driver_sites.len() - 12;
        let words = format!("{more} more: t shows them all in the table of sites");
        page.text(" ", &words, Role::Quiet);
    }
}

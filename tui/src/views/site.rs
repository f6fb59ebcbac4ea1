//! One site, whole: its stack, how it grows, who survives, what to do.

use ratatui::{buffer::Buffer, layout::Rect};
use vramscope_collector::{
    escape,
    report::{headline, holders, paths, units},
    view::{FrameView, GenerationSpan, LOG2_BUCKETS, Log2Histogram, ProcessView, SiteView},
};
use vramscope_events::FrameKind;

use crate::{
    app::{App, OpenSite},
    ask, chart, command,
    feed::Asking,
    page::Page,
    theme::{Role, Theme},
};

/// Lines of the small charts.
const CHART: u16 = 4;
/// Rows of a histogram.
const BARS: usize = 10;

/// The stack at the left, the numbers at the right; one below the other where it is narrow.
pub fn page(app: &App, open: &OpenSite, width: usize) -> Page {
    let Some(process) = app.process() else {
        return Page::new(app.theme, width);
    };
    let site = &open.site;
    let two = width >= 110;
    let column = if two { width / 2 - 1 } else { width };
    let mut numbers = Page::new(app.theme, column);
    title(app, &mut numbers, open, process);
    facts(app, &mut numbers, open);
    held(app, &mut numbers, open);
    // The verdict above has said what to do; where it happens comes first.
    stack(&mut numbers, site, process);
    advice(app, &mut numbers, open);
    let mut charts = Page::new(app.theme, column);
    growth(app, &mut charts, site);
    generations(app, &mut charts, &site.spans);
    histograms(&mut charts, site);
    if two {
        return numbers.beside(charts, 2);
    }
    numbers.append(charts);
    numbers
}

fn title(app: &App, page: &mut Page, open: &OpenSite, process: &ProcessView) {
    let site = &open.site;
    let culprit = app.culprits.contains(&open.group);
    let mut pieces = vec![(" ".to_owned(), Role::Text)];
    if culprit {
        pieces.push(("▲ ".into(), Role::Alarm));
    }
    match site.own_frame() {
        None => pieces.push(("(a thread without known frames)".into(), Role::Strong)),
        Some(frame) => {
            let place = paths::place(frame, &process.info, page.width * 2 / 3);
            pieces.push((place, Role::Strong));
            let function = escape::line(&frame.function, page.width);
            pieces.push((format!("  {function}"), Role::Text));
        }
    }
    page.line(pieces);
    if let Some(source) = site.own_frame().and_then(|frame| frame.source.as_deref()) {
        let source = escape::line(source, page.width.saturating_sub(4));
        page.line([("   ".into(), Role::Text), (source, Role::Code)]);
    }
    if !open.live {
        page.text(
            " ",
            "Nothing of it is in the table any more: these are its last numbers.",
            Role::Warn,
        );
    }
}

fn facts(app: &App, page: &mut Page, open: &OpenSite) {
    let site = &open.site;
    page.gap();
    let since = |time| units::age(app.view.now.seconds_since(time));
    let still = site.growth_bytes_per_step.abs() < 0.5;
    let growth = match still {
        true => "none".to_owned(),
        false => format!(
            "{}, {} of the device's growth",
            units::growth(site.growth_bytes_per_step),
            units::percent(site.growth_share)
        ),
    };
    page.pair(
        " growth",
        &growth,
        if still { Role::Text } else { Role::Strong },
    );
    let live = format!(
        "{} in {} blocks",
        units::bytes(site.live_bytes),
        units::count(site.live_blocks)
    );
    page.pair(" live", &live, Role::Strong);
    page.pair(" born in", &generation_words(site), Role::Text);
    if let Some(oldest) = site.oldest_survivor {
        page.pair(" oldest", &format!("{} ago", since(oldest)), Role::Text);
    }
    let all = format!(
        "{} in {} blocks since the attach",
        units::bytes(site.total_bytes),
        units::count(site.total_blocks)
    );
    page.pair(" allocated", &all, Role::Text);
    let seen = format!(
        "first {} ago, last {} ago",
        since(site.first_seen),
        since(site.last_seen)
    );
    page.pair(" seen", &seen, Role::Text);
    if let Some(row) = app
        .table
        .of_group(open.group)
        .filter(|_| app.mark.is_some())
    {
        let (bytes, blocks) = row.since_mark;
        let words = format!("{} in {blocks:+} blocks", units::signed_bytes(bytes as f64));
        page.pair(" since mark", &words, Role::Text);
    }
    if site.stacks > 1 {
        let by = command::grouping_name(app.query.grouping);
        let words = format!(
            "{} stacks, put together by {by}",
            units::count(site.stacks.into())
        );
        page.pair(" made of", &words, Role::Text);
    }
}

/// Who holds the survivors, once the process was asked.
fn held(app: &App, page: &mut Page, open: &OpenSite) {
    let state = ask::state(app);
    let retained = open.site.retained.as_ref();
    if state.is_none() && retained.is_none() {
        return;
    }
    page.heading(" Held by");
    match state {
        Some(Asking::Waiting) => page.text(" ", "asking the process…", Role::Warn),
        Some(Asking::Failed(why)) => {
            page.text(
                " ",
                &format!("no answer: {}", escape::text(why)),
                Role::Warn,
            );
        }
        Some(Asking::Answered) | None => {}
    }
    let Some(retained) = retained else { return };
    let ago = app.view.now.seconds_since(retained.asked_at);
    let opening = format!("{}:", holders::opening(retained, ago));
    page.text(" ", &opening, Role::Text);
    for line in holders::lines(retained) {
        page.text("   ", &line, Role::Strong);
    }
    for remark in holders::remarks(retained) {
        page.text("   ", &remark, Role::Quiet);
    }
}

fn generation_words(site: &SiteView) -> String {
    let generations = match site.generations {
        0 => return "nothing survives".into(),
        1 => "1 step".to_owned(),
        n => format!("{} different steps", units::count(n)),
    };
    match (site.spans.first(), site.spans.last()) {
        (Some(first), Some(last)) if first.first < last.last => format!(
            "{generations}, {} to {}",
            units::count(first.first),
            units::count(last.last)
        ),
        (Some(first), _) => format!("{generations}, step {}", units::count(first.first)),
        _ => generations,
    }
}

/// What the verdict says, if it names this site; else what the numbers say of it.
fn advice(app: &App, page: &mut Page, open: &OpenSite) {
    page.gap();
    let verdict = app.device().and_then(|device| device.verdict.as_ref());
    if let Some(verdict) = verdict.filter(|_| app.culprits.contains(&open.group)) {
        if let Some(kind) = verdict.kind {
            page.text(
                " ",
                &format!("Likely {}.", headline::kind_words(kind)),
                Role::Strong,
            );
        }
        page.text(" → ", &escape::text(&verdict.advice), Role::Text);
        for line in &verdict.evidence {
            page.text(" · ", &escape::text(line), Role::Quiet);
        }
        return;
    }
    let site = &open.site;
    let words = match (site.generations, site.growth_bytes_per_step > 0.5) {
        (0, _) => "Everything it allocated was freed.",
        (1, false) => {
            "All survivors are of one step and do not grow: weights, optimizer state or the batch \
             in flight. The verdict does not name it."
        }
        (_, false) => {
            "Survivors of several steps, but no growth: a bounded cache or a short queue."
        }
        (_, true) => "It grows, but the verdict does not name it (yet).",
    };
    page.text(" ", words, Role::Text);
}

fn stack(page: &mut Page, site: &SiteView, process: &ProcessView) {
    page.heading(match site.stacks {
        0 | 1 => " Stack, callers first",
        _ => " Stack that grows most, callers first",
    });
    if site.stack.is_empty() {
        page.text(
            " ",
            "No frame is known: the thread runs no Python.",
            Role::Quiet,
        );
    }
    for (index, frame) in site.stack.iter().enumerate().rev() {
        let own = site.user_frame == Some(index);
        frame_lines(page, frame, own, process);
    }
}

fn frame_lines(page: &mut Page, frame: &FrameView, own: bool, process: &ProcessView) {
    if frame.kind == FrameKind::Backward {
        page.line([(
            "   [backward] made by autograd for the call above".into(),
            Role::Quiet,
        )]);
        return;
    }
    let role = match (own, frame.user, frame.kind) {
        (true, ..) => Role::Strong,
        (false, true, _) => Role::Code,
        (false, false, FrameKind::Native) => Role::Quiet,
        (false, false, _) => Role::Text,
    };
    let place = paths::place(frame, &process.info, page.width * 3 / 5);
    let function = escape::line(&frame.function, page.width);
    page.line([
        (if own { " ❯ " } else { "   " }.to_owned(), Role::Alarm),
        (format!("{place}  "), role),
        (function, if own { Role::Text } else { Role::Quiet }),
    ]);
    if let Some(source) = frame.source.as_deref().filter(|_| frame.user) {
        let source = escape::line(source, page.width.saturating_sub(8));
        page.line([("       ".into(), Role::Text), (source, role)]);
    }
}

fn growth(app: &App, page: &mut Page, site: &SiteView) {
    page.heading(" Live bytes over the session");
    bars(app.theme, page, &site.trend);
}

fn generations(app: &App, page: &mut Page, spans: &[GenerationSpan]) {
    page.heading(" Survivors by step of birth, bytes a step");
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        page.text(" ", "Nothing survives.", Role::Quiet);
        return;
    };
    let steps = last.last.saturating_sub(first.first).saturating_add(1);
    let columns = page
        .width
        .saturating_sub(12)
        .clamp(1, 64)
        .min(steps as usize);
    let values: Vec<u64> = (0..columns)
        .map(|column| {
            let part = |column: usize| column as f64 * steps as f64 / columns as f64;
            let (from, to) = (part(column), part(column + 1));
            let bytes: f64 = spans
                .iter()
                .map(|span| bytes_between(span, first.first, from, to))
                .sum();
            (bytes / (to - from)) as u64
        })
        .collect();
    bars(app.theme, page, &values);
    let left = format!("step {}", units::count(first.first));
    let right = units::count(last.last);
    let room = columns.max(left.len() + right.len() + 2);
    let gap = room - left.len() - right.len();
    page.line([(
        format!("{:10} {left}{}{right}", "", " ".repeat(gap)),
        Role::Quiet,
    )]);
}

/// What was born between two moments, in steps from `origin`: a span's bytes are spread evenly over
/// its steps.
fn bytes_between(span: &GenerationSpan, origin: u64, from: f64, to: f64) -> f64 {
    let first = span.first.saturating_sub(origin) as f64;
    let last = span.last.saturating_sub(origin) as f64 + 1.0;
    let shared = (to.min(last) - from.max(first)).max(0.0);
    span.bytes as f64 * shared / (last - first)
}

/// Values as columns with the scale at the left.
fn bars(theme: Theme, page: &mut Page, values: &[u64]) {
    let high = values.iter().copied().max().unwrap_or(0);
    if high == 0 {
        page.text(" ", "Nothing yet.", Role::Quiet);
        return;
    }
    let room = page.width.saturating_sub(12).max(1);
    let columns = values.len().min(room);
    let shown = crate::paint::resample(values, columns);
    let area = Rect::new(0, 0, page.width as u16, CHART);
    let mut buffer = Buffer::empty(area);
    let inner = Rect {
        x: 11,
        width: area.width.saturating_sub(11),
        ..area
    };
    let columns: Vec<_> = shown
        .iter()
        .map(|&value| {
            Some(chart::Column {
                floor: value,
                allocated: value,
                reserved: value,
                step: 0,
            })
        })
        .collect();
    chart::stacked(&mut buffer, theme, inner, &columns, high);
    for (row, value) in [(0, high), (CHART - 1, 0)] {
        crate::paint::Pen::new(&mut buffer, theme, area, row).right(
            &units::bytes(value),
            10,
            Role::Quiet,
        );
    }
    page.copied(&buffer);
}

fn histograms(page: &mut Page, site: &SiteView) {
    page.heading(" Sizes of all its allocations");
    histogram(page, &site.sizes, units::bytes);
    page.heading(" Lifetimes of the freed ones");
    if site.lifetimes.counts.iter().all(|&count| count == 0) {
        let words = match site.total_blocks {
            0 => "None was allocated yet.",
            _ => "None was ever freed.",
        };
        page.text(" ", words, Role::Strong);
        return;
    }
    histogram(page, &site.lifetimes, |nanoseconds| {
        short_time(nanoseconds as f64 * 1e-9)
    });
}

fn short_time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s => units::duration(s),
    }
}

/// Powers of two as bars; many of them are put together.
fn histogram(page: &mut Page, histogram: &Log2Histogram, words: impl Fn(u64) -> String) {
    let counts = &histogram.counts;
    let Some(first) = counts.iter().position(|&count| count > 0) else {
        page.text(" ", "Nothing yet.", Role::Quiet);
        return;
    };
    let last = counts.iter().rposition(|&count| count > 0).unwrap_or(first);
    let together = (last - first + 1).div_ceil(BARS);
    let rows: Vec<(usize, u64)> = (first..=last)
        .step_by(together)
        .map(|from| {
            let to = (from + together).min(LOG2_BUCKETS);
            (
                from,
                counts[from..to]
                    .iter()
                    .fold(0u64, |sum, &n| sum.saturating_add(n)),
            )
        })
        .collect();
    let most = rows
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(1)
        .max(1);
    for (from, count) in rows {
        let low = if from == 0 { 0 } else { 1u64 << from };
        page.drawn(|pen| {
            pen.put(" from ", Role::Quiet)
                .right(&words(low), 10, Role::Text)
                .skip(1);
            let columns = pen.room().saturating_sub(10).min(30);
            pen.bar(count as f64 / most as f64, columns, Role::Stays);
            pen.put(&format!(" {}", units::short_count(count)), Role::Text);
        });
    }
}

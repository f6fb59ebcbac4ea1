//! The report in Markdown, for pasting into an issue.

use super::{
    Options,
    headline::{self, Headline},
    holders, notes, paths, shares,
    stack::Row,
    table, text, units,
};
use crate::{
    escape,
    grouping::{self, Groups},
    ranks::{self, Findings},
    view::{DeviceView, ProcessView, SiteView, View},
};

/// The whole report. Everything foreign stands in code spans or fences that it cannot leave.
pub fn report(view: &View, options: Options) -> String {
    let all = headline::by_gravity(view);
    let mut out = String::new();
    match all.first() {
        None => heading(&mut out, &headline::nothing_seen(view), None),
        Some((process, device)) => {
            let whose = (all.len() > 1).then(|| text::whose(process, device));
            heading(&mut out, &headline::of_device(process, device), whose);
        }
    }
    together(&mut out, &ranks::findings(view));
    if all.len() > 1 {
        overview(&mut out, view);
    }
    for (index, (process, device)) in all.iter().enumerate() {
        if index == 0 || headline::needs_attention(device) {
            self::device(&mut out, view, process, device, options);
        }
    }
    let mut missing: Vec<String> = notes::of_view(view);
    if let Some((process, device)) = all.first() {
        missing.extend(notes::of_device(process, device));
    }
    out.push_str("\n**Session**\n\n");
    bullets(&mut out, &missing);
    out
}

fn heading(out: &mut String, headline: &Headline, whose: Option<String>) {
    let whose = whose.map(|whose| format!(" ({whose})")).unwrap_or_default();
    line(
        out,
        &format!("### {}{whose}: {}", headline.word, plain(&headline.facts)),
    );
    line(out, "");
    if let Some(culprit) = &headline.culprit {
        let share = headline.share.as_deref().unwrap_or_default();
        line(out, &format!("{}: {}", code(culprit), plain(share)));
        line(out, "");
    }
    if !headline.advice.is_empty() {
        line(out, &format!("> {}", plain(&headline.advice)));
    }
}

fn together(out: &mut String, findings: &Findings) {
    if let Some(summary) = &findings.summary {
        line(out, "");
        line(out, &format!("**{}**", plain(summary)));
    }
    let named = findings.skewed.iter().chain(&findings.workers);
    let texts: Vec<String> = named.map(|finding| finding.text.clone()).collect();
    if !texts.is_empty() {
        line(out, "");
        bullets(out, &texts);
    }
    if let Some(finding) = findings.workers.first() {
        line(out, "");
        line(out, &format!("> {}", plain(&finding.advice)));
    }
}

fn overview(out: &mut String, view: &View) {
    line(out, "");
    line(
        out,
        "| rank | pid | device | allocated | reserved | growth | verdict |",
    );
    line(out, "|---:|---:|---:|---:|---:|---:|---|");
    for process in &view.processes {
        for device in &process.devices {
            let verdict = device.verdict.as_ref();
            let rank = process
                .info
                .rank
                .map_or("-".into(), |rank| rank.to_string());
            let growth = verdict.map_or("-".into(), |v| units::growth(v.growth_bytes_per_step));
            let word = verdict.map_or("no verdict yet", |v| headline::class_word(v.class));
            let role = ranks::role_words(process).map(|role| format!(", {role}"));
            let role = role.unwrap_or_default();
            line(
                out,
                &format!(
                    "| {rank} | {} | {} | {} | {} | {growth} | {word}{role} |",
                    process.info.pid,
                    device.device,
                    units::bytes(device.allocated),
                    units::bytes(device.reserved),
                ),
            );
        }
    }
}

fn device(
    out: &mut String,
    view: &View,
    process: &ProcessView,
    device: &DeviceView,
    options: Options,
) {
    let info = &process.info;
    let version = |version: &Option<String>| match version {
        Some(version) => plain(&escape::line(version, 20)),
        None => "unknown".into(),
    };
    line(out, "");
    line(
        out,
        &format!(
            "{}, pid {}, Python {}, PyTorch {}; steps: {}; seen for {} by {}",
            code(&escape::line(&info.command, 120)),
            info.pid,
            version(&info.python),
            version(&info.torch),
            headline::steps_words(process),
            units::duration(view.now.seconds_since(view.started)),
            text::backend_word(view.backend),
        ),
    );
    line(out, "");
    let known = |bytes: Option<u64>| bytes.map_or("unknown".into(), units::bytes);
    line(
        out,
        "| device | allocated | peak | before the attach | reserved | free | capacity |",
    );
    line(out, "|---:|---:|---:|---:|---:|---:|---:|");
    line(
        out,
        &format!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            device.device,
            units::bytes(device.allocated),
            units::bytes(device.peak_allocated),
            units::bytes(device.baseline),
            units::bytes(device.reserved),
            known(device.free),
            known(device.capacity),
        ),
    );
    memory_table(out, device);
    if let Some(verdict) = &device.verdict {
        let mut why = vec![escape::line(&verdict.summary, headline::SENTENCE)];
        why.extend(
            verdict
                .evidence
                .iter()
                .map(|fact| escape::line(fact, headline::SENTENCE)),
        );
        line(out, "");
        line(out, "**Why**");
        line(out, "");
        bullets(out, &why);
    }
    sites(out, view, process, device, options);
    stack(out, process, device);
    holders(out, view, process, device, options);
}

/// What keeps alive what was asked about.
fn holders(
    out: &mut String,
    view: &View,
    process: &ProcessView,
    device: &DeviceView,
    options: Options,
) {
    let groups = grouping::group(&device.sites, options.grouping);
    for site in holders::answered(&groups) {
        let Some(retained) = &site.retained else {
            continue;
        };
        let asked = view.now.seconds_since(retained.asked_at);
        line(out, "");
        line(
            out,
            &format!(
                "{}: {}",
                code(&headline::site_words(site, process, 160)),
                plain(&holders::opening(retained, asked)),
            ),
        );
        line(out, "");
        bullets(out, &holders::lines(retained));
        bullets(out, &holders::remarks(retained));
    }
}

fn memory_table(out: &mut String, device: &DeviceView) {
    let rows = [shares::rows(device), shares::others(device)];
    let heads = ["| share | | bytes |", "| other processes | | bytes |"];
    for (rows, head) in rows.iter().zip(heads) {
        if rows.is_empty() {
            continue;
        }
        line(out, "");
        line(out, head);
        line(out, "|---|---:|---:|");
        for row in rows {
            let part = row.part.map_or(String::new(), units::percent);
            line(
                out,
                &format!(
                    "| {} | {part} | {} |",
                    cell(&row.name),
                    shares::bytes(row.bytes)
                ),
            );
        }
    }
}

fn sites(
    out: &mut String,
    view: &View,
    process: &ProcessView,
    device: &DeviceView,
    options: Options,
) {
    let groups = Groups::new(&device.sites, options.grouping);
    let holding = table::holding(&groups);
    let shown = options.top.unwrap_or(usize::MAX).min(holding.len());
    let word = table::grouping_word(options.grouping);
    line(out, "");
    line(
        out,
        &format!("**Survivors by {word}**, fastest growing first"),
    );
    line(out, "");
    line(
        out,
        &format!("| growth a step | live | blocks | generations | age | {word} | |"),
    );
    line(out, "|---:|---:|---:|---:|---:|---|---|");
    for site in holding[..shown].iter().map(|&index| groups.site(index)) {
        let site = &site;
        let age = headline::age_seconds(site, view.now).map_or("-".into(), units::age);
        line(
            out,
            &format!(
                "| {} | {} | {} | {} | {age} | {} | {} |",
                units::signed_bytes(site.growth_bytes_per_step),
                units::bytes(site.live_bytes),
                units::count(site.live_blocks),
                units::count(site.generations),
                place(site, process),
                source(site),
            ),
        );
    }
    if shown < holding.len() {
        let rest = holding[shown..].iter();
        let rest = rest.map(|&index| groups.live_bytes(index)).sum();
        let number = units::count((holding.len() - shown) as u64);
        line(out, "");
        line(out, &format!("{number} more hold {}.", units::bytes(rest)));
    }
}

fn place(site: &SiteView, process: &ProcessView) -> String {
    match site.own_frame() {
        Some(frame) => cell(&paths::place(frame, &process.info, 60)),
        None => "(no frames)".into(),
    }
}

fn source(site: &SiteView) -> String {
    match headline::source_or_function(site) {
        source if source.is_empty() => String::new(),
        source => cell(&escape::line(&source, 80)),
    }
}

/// The stack of the first culprit, folded away.
fn stack(out: &mut String, process: &ProcessView, device: &DeviceView) {
    let lines = headline::culprit_lines(device);
    let Some(first) = lines.first().filter(|line| !line.site.stack.is_empty()) else {
        return;
    };
    let mut body = Vec::new();
    for row in super::stack::rows(first.site) {
        let (frame, own) = match row {
            Row::Frame { frame, own } => (frame, own),
            Row::Gap(frames) => {
                body.push(format!("  ... {frames} more calls"));
                continue;
            }
        };
        let mark = if own { "> " } else { "  " };
        let (place, function) = super::stack::cells(frame, process, 80);
        body.push(format!("{mark}{place}  {function}").trim_end().to_owned());
        if let Some(source) = frame.source.as_ref().filter(|_| frame.user) {
            body.push(format!("      {}", escape::line(source, 120)));
        }
    }
    let fence = "`".repeat(longest_run(&body.join("\n")).max(2) + 1);
    line(out, "");
    line(
        out,
        "<details><summary>Calls that lead there, outermost first</summary>",
    );
    line(out, "");
    line(out, &format!("{fence}text"));
    for row in body {
        line(out, &row);
    }
    line(out, &fence);
    line(out, "");
    line(out, "</details>");
}

fn bullets(out: &mut String, texts: &[String]) {
    for text in texts {
        line(out, &format!("- {}", plain(text)));
    }
}

fn line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// Text outside of code: nothing in it is markup, a mention or a link.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in escape::text(text).chars() {
        // `@` and `#` would call people and issues; ASCII punctuation may always be escaped.
        if matches!(
            char,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '@' | '&' | '~' | '!'
        ) {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

/// A code span that `text` cannot leave.
fn code(text: &str) -> String {
    let text = escape::text(text);
    if text.trim().is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_run(&text) + 1);
    // A space on both sides is taken off by the reader; it parts the text's own ticks from ours.
    match text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        true => format!("{ticks} {text} {ticks}"),
        false => format!("{ticks}{text}{ticks}"),
    }
}

/// The same within a table, where a bar would end the cell even in code.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

fn longest_run(text: &str) -> usize {
    text.split(|char| char != '`')
        .map(str::len)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_in_its_span() {
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`x"), "`` `x ``");
        assert_eq!(code("a\nb"), "`a\\nb`");
        assert_eq!(cell("a|b"), "`a\\|b`");
        assert_eq!(plain("@all #1 <b>*x*"), "\\@all \\#1 \\<b\\>\\*x\\*");
    }
}

//! The lines that hold memory, and what holds theirs.

use super::Writer;
use crate::{
    grouping::{self, Groups},
    report::{
        Options, driver, headline, holders,
        layout::{Tone, wrap},
        stack, table, units,
    },
    view::{DeviceView, ProcessView, SiteView, View},
};

impl Writer {
    /// The lines with the most growth, and what is in the driver's hands.
    pub fn sites(
        &mut self,
        view: &View,
        process: &ProcessView,
        device: &DeviceView,
        options: Options,
    ) {
        let groups = Groups::new(&device.sites, options.grouping);
        let holding = table::holding(&groups);
        let idle = groups.len() - holding.len();
        let shown = options.top.unwrap_or(usize::MAX).min(holding.len());
        let sites: Vec<SiteView> = (holding[..shown].iter())
            .map(|&index| groups.site(index))
            .collect();
        self.blank();
        let word = table::grouping_word(options.grouping);
        if holding.is_empty() {
            self.line("No allocation made since the attach is still there.");
        } else {
            let title = format!(
                "Survivors by {word}, fastest growing first (GROWTH a step; GENS: different steps \
                 of birth)"
            );
            for line in wrap(&title, self.layout.width, 2) {
                self.line(&line);
            }
            let blamed = headline::culprit_lines(device);
            let lines = table::lines(
                &sites,
                process,
                options.grouping,
                view.now,
                self.layout.width,
            );
            for (index, line) in lines.iter().enumerate() {
                let tone = match index {
                    0 => Tone::Faint,
                    _ if blamed.iter().any(|line| {
                        grouping::holds(&sites[index - 1], line.site, options.grouping)
                    }) =>
                    {
                        Tone::Strong
                    }
                    _ => Tone::Plain,
                };
                self.line(&self.layout.color.paint(tone, line));
            }
        }
        let rest = holding[shown..].iter();
        let rest: u64 = rest.map(|&index| groups.live_bytes(index)).sum();
        let mut more = Vec::new();
        if shown < holding.len() {
            let number = units::count((holding.len() - shown) as u64);
            more.push(format!("{number} more hold {}", units::bytes(rest)));
        }
        if idle > 0 {
            let number = units::count(idle as u64);
            more.push(format!("{number} more hold nothing now"));
        }
        if !more.is_empty() {
            self.line(
                &self
                    .layout
                    .color
                    .paint(Tone::Faint, &format!("({})", more.join("; "))),
            );
        }
        // Without a tensor layer the sites above are the driver's own.
        if device.tensor_layer && device.driver_live_bytes > 0 {
            let parts = driver::parts(device);
            let total = units::bytes(device.driver_live_bytes);
            let text = format!("{total} taken since the attach, holding the blocks above: {parts}");
            self.blank();
            self.labelled("driver", &text);
        }
    }

    /// The stack of the line that explains most, outermost call first, as Python prints it.
    pub fn culprit(&mut self, process: &ProcessView, device: &DeviceView) {
        let lines = headline::culprit_lines(device);
        let Some(line) = lines.first() else {
            return;
        };
        let site = line.site;
        if site.stack.is_empty() {
            return;
        }
        let width = self.layout.width;
        let words = headline::site_words(site, process, width - 24);
        self.blank();
        let which = match line.stacks {
            0 | 1 => String::new(),
            stacks => format!(" (fastest growing of {stacks} stacks)"),
        };
        for line in wrap(&format!("Calls that lead to {words}{which}"), width, 2) {
            self.line(&line);
        }
        for line in stack::lines(site, process, width, self.layout.color) {
            self.line(&line);
        }
    }

    /// What keeps alive what was asked about.
    pub fn holders(
        &mut self,
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
            let words = headline::site_words(site, process, self.layout.width - 4);
            let asked = view.now.seconds_since(retained.asked_at);
            self.blank();
            let opening = format!("{words}: {}:", holders::opening(retained, asked));
            for line in wrap(&opening, self.layout.width, 2) {
                self.line(&line);
            }
            self.bullets(&holders::lines(retained));
            for remark in holders::remarks(retained) {
                for line in wrap(&remark, self.layout.width - 2, 2) {
                    self.line(&format!("  {line}"));
                }
            }
        }
    }
}

//! `diff`: two recordings, or two moments of one.

use std::process::ExitCode;

use vramscope_collector::{
    diff::{Options, compare, text},
    view::Grouping,
};
use vramscope_events::DeviceId;

use crate::{
    attach::text_layout,
    cli::DiffArgs,
    exit::DAMAGED_INPUT,
    output, recording,
    subject::{At, Place},
};

/// Sites of a text.
const TOP: usize = 20;

/// `vramscope diff BEFORE AFTER`.
pub fn diff(options: &DiffArgs) -> anyhow::Result<ExitCode> {
    let mut before = recording::at(&options.before, None)?;
    let mut after = recording::at(&options.after, None)?;
    let compared = compare(
        &before.view(),
        &after.view(),
        Options {
            grouping: Grouping::from(options.group),
            device: options.device.map(DeviceId),
            top: options.top.or((!options.json).then_some(TOP)),
        },
    );
    let written = if options.json {
        serde_json::to_string_pretty(&compared)? + "\n"
    } else {
        let names = [name(&options.before), name(&options.after)];
        text(&compared, [&names[0], &names[1]], text_layout().width)
    };
    output::stdout(written.as_bytes())?;
    Ok(match before.is_corrupt() || after.is_corrupt() {
        true => ExitCode::from(DAMAGED_INPUT),
        false => ExitCode::SUCCESS,
    })
}

fn name(place: &Place) -> String {
    let path = place.path.display();
    match place.at {
        At::End => path.to_string(),
        At::Time(time) => format!("{path}@{}s", time.as_secs_f64()),
        At::Step(step) => format!("{path}@step:{step}"),
    }
}

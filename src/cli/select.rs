//! Which allocations of a recording.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::parse_duration;

/// Which allocations.
#[derive(Clone, Debug, Args)]
pub struct SelectArgs {
    /// Alive at this time after the beginning, such as 90, 90s, 10m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, group = "what")]
    pub at: Option<Duration>,
    /// Allocated from A on and before B, and alive at the end; times, or steps as step:100
    #[arg(long, value_name = "A..B", value_parser = parse_window, group = "what")]
    pub window: Option<Window>,
    /// Alive when most was alive
    #[arg(long, group = "what")]
    pub peak: bool,
    /// All that was ever allocated
    #[arg(long, group = "what")]
    pub allocated: bool,
    /// What counts
    #[arg(long, value_enum, default_value_t = Weight::Bytes, alias = "weight")]
    pub by: Weight,
    /// The same as --by blocks
    #[arg(long, conflicts_with = "by")]
    pub blocks: bool,
    /// The layer [default: the framework's blocks where it reports them, else the driver's]
    #[arg(long, value_enum)]
    pub layer: Option<LayerName>,
    /// The device, where several are used
    #[arg(long, value_name = "N")]
    pub device: Option<u16>,
    /// The process, where the recording has several
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
}

/// A span of a session; an open end is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from: Option<Moment>,
    pub to: Option<Moment>,
}

/// One end of a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// After the beginning.
    Time(Duration),
    /// The beginning of a step.
    Step(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LayerName {
    /// The framework's blocks
    Tensor,
    /// What the process takes from the driver
    Driver,
    /// Page-locked host memory
    Host,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Weight {
    /// Bytes that survive
    Bytes,
    /// Blocks that survive
    Blocks,
    /// Growth a step
    Growth,
}

fn parse_window(text: &str) -> Result<Window, String> {
    let (from, to) = text
        .split_once("..")
        .ok_or("use A..B, such as 10m..20m or step:100..step:200; either end can be left out")?;
    let end = |text: &str| match text.trim() {
        "" => Ok(None),
        text => match text.strip_prefix("step:") {
            Some(step) => step
                .parse()
                .map(|step| Some(Moment::Step(step)))
                .map_err(|error| format!("`{step}`: {error}")),
            None => parse_duration(text).map(|time| Some(Moment::Time(time))),
        },
    };
    Ok(Window {
        from: end(from)?,
        to: end(to)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows() {
        let seconds = |n| Some(Moment::Time(Duration::from_secs(n)));
        for (text, from, to) in [
            ("10..20", seconds(10), seconds(20)),
            ("1m..", seconds(60), None),
            ("..90s", None, seconds(90)),
            (
                "step:3..step:9",
                Some(Moment::Step(3)),
                Some(Moment::Step(9)),
            ),
            ("..", None, None),
        ] {
            assert_eq!(parse_window(text), Ok(Window { from, to }), "{text}");
        }
        for wrong in ["", "10", "a..b", "step:..", "step:-1..", "1-2"] {
            assert!(parse_window(wrong).is_err(), "{wrong}");
        }
    }
}

//! Values of the command line: text in, or what is wrong with it.

use std::{str::FromStr, time::Duration};

use vramscope_collector::StepLine;

use super::{LineOf, StepOn};

pub fn parse_step_on(text: &str) -> Result<StepOn, String> {
    if let Some(name) = text.strip_prefix("nvtx:") {
        return Ok(StepOn::Native(vramscope_tracer::StepOn::Nvtx(name.into())));
    }
    if let Some((file, line)) = text.rsplit_once(':')
        && let Ok(line) = line.parse::<u32>()
        && !file.is_empty()
    {
        return Ok(StepOn::Line(StepLine::new(file, line)));
    }
    if text.is_empty() || text.contains(char::is_whitespace) || text.contains('/') {
        return Err("use FILE:LINE, nvtx:NAME, or the linker name of a function".into());
    }
    Ok(StepOn::Native(vramscope_tracer::StepOn::Symbol(
        text.into(),
    )))
}

pub fn parse_line(text: &str) -> Result<LineOf, String> {
    match text.rsplit_once(':') {
        Some((file, line)) if !file.is_empty() => Ok(LineOf {
            file: file.into(),
            line: line.parse().map_err(|error| format!("`{line}`: {error}"))?,
        }),
        _ => Err("use FILE:LINE, such as train.py:27".into()),
    }
}

pub fn parse_address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|error| format!("{error}; use 0x7f0012340000"))
}

pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; use s, m or h")),
    };
    let number = f64::from_str(number).map_err(|error| format!("`{number}`: {error}"))?;
    Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())
}

pub fn parse_size(text: &str) -> Result<u64, String> {
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let bytes = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 1.0,
        "k" | "K" => 1024.0,
        "M" => 1024.0 * 1024.0,
        "G" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("`{unit}` is no unit of size; use K, M or G")),
    };
    let number = f64::from_str(number).map_err(|error| format!("`{number}`: {error}"))?;
    if number.is_finite() && number > 0.0 {
        Ok((number * bytes) as u64)
    } else {
        Err("a size above zero is needed".into())
    }
}

pub fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent > 0.0 => Ok(percent),
        _ => Err("a number above zero is needed, such as 25".into()),
    }
}

/// The kernel takes ring sizes that are a power of two and a multiple of the page size.
pub fn parse_ring(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?.next_power_of_two();
    if (4096..=1 << 30).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("from 4K to 1G is possible".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse_duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "x", "-1", "3d", "1e999", "nan"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentages() {
        assert_eq!(parse_percent("25"), Ok(25.0));
        assert_eq!(parse_percent("12.5%"), Ok(12.5));
        for wrong in ["", "%", "0", "-1", "nan", "inf"] {
            assert!(parse_percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn places_of_steps() {
        use vramscope_tracer::StepOn as Native;
        let line = StepOn::Line(StepLine::new("a/train.py", 42));
        assert_eq!(parse_step_on("a/train.py:42"), Ok(line));
        let range = StepOn::Native(Native::Nvtx("a:1".into()));
        assert_eq!(parse_step_on("nvtx:a:1"), Ok(range));
        let symbol = StepOn::Native(Native::Symbol("ncclAllReduce".into()));
        assert_eq!(parse_step_on("ncclAllReduce"), Ok(symbol));
        for wrong in ["", "train.py: 42 ", "a/b"] {
            assert!(parse_step_on(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("80G"), Ok(80 << 30));
        assert_eq!(parse_size("80GiB"), Ok(80 << 30));
        assert_eq!(parse_size("512"), Ok(512));
        assert_eq!(parse_ring("60M"), Ok(64 << 20));
        for wrong in ["", "G", "-1G", "1T", "0", "inf"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert!(parse_ring("4G").is_err());
    }
}

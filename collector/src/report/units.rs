//! Numbers for people, in one place.
//!
//! Bytes are in decimal units (1 KB = 1,000 B, 1 GB = 10^9 B), so that a figure can be compared
//! with another by eye; exact counts are in the JSON. Times have at most two units.

use crate::view::Interval;

const UNITS: [&str; 7] = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];

/// `512 B`, `164.4 KB`, `18.2 GB`.
pub fn bytes(bytes: u64) -> String {
    magnitude(bytes as f64, None)
}

/// With its sign: `+164.4 KB`, `-3.0 MB`, `0 B`; `?` if it is not a number.
pub fn signed_bytes(bytes: f64) -> String {
    if !bytes.is_finite() {
        return "?".into();
    }
    let sign = match bytes.abs() {
        small if small < 0.5 => "",
        _ if bytes < 0.0 => "-",
        _ => "+",
    };
    format!("{sign}{}", magnitude(bytes.abs(), None))
}

/// Growth: `+164.4 KB/step`.
pub fn growth(bytes_per_step: f64) -> String {
    format!("{}/step", signed_bytes(bytes_per_step))
}

/// How far the ends of an interval are from its `middle`, in the unit in which the middle is
/// shown: `±0.3`. `None` where an end is not finite.
pub fn plus_minus(middle: f64, interval: Interval) -> Option<String> {
    let far = (interval.high - middle).max(middle - interval.low);
    if !far.is_finite() || !middle.is_finite() || far < 0.0 {
        return None;
    }
    let (_, unit) = scale(middle.abs());
    let shown = magnitude(far, Some(unit));
    let number = shown.split(' ').next().unwrap_or(&shown);
    let below = far > 0.0 && matches!(number, "0" | "0.0");
    Some(match (below, unit) {
        (false, _) => format!("±{number}"),
        (true, 0) => "±1".into(),
        (true, _) => "±0.1".into(),
    })
}

/// Bytes as a number that fits the unit.
fn magnitude(bytes: f64, unit: Option<usize>) -> String {
    let unit = unit.unwrap_or_else(|| scale(bytes).1);
    let value = bytes / 1000f64.powi(unit as i32);
    match unit {
        0 => format!("{value:.0} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

/// The largest unit in which the rounded value is at least 1.
fn scale(bytes: f64) -> (f64, usize) {
    let mut value = bytes;
    let mut unit = 0;
    // What would be shown as 1000.0 goes up.
    while unit + 1 < UNITS.len() && value >= if unit == 0 { 999.5 } else { 999.95 } {
        value /= 1000.0;
        unit += 1;
    }
    (value, unit)
}

/// `1,482`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// At most seven columns: `9999`, `1.2 M`.
pub fn short_count(number: u64) -> String {
    match number {
        0..100_000 => number.to_string(),
        100_000..1_000_000 => format!("{} k", number / 1000),
        1_000_000..1_000_000_000 => format!("{:.1} M", number as f64 / 1e6),
        _ => format!("{:.1} G", number as f64 / 1e9),
    }
}

/// A share from 0 to 1: `93 %`, never rounded to none or all.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if !p.is_finite() => "? %".into(),
        p if p > 0.0 && p < 0.5 => "<1 %".into(),
        p if p > 99.5 && p < 100.0 => ">99 %".into(),
        p => format!("{p:.0} %"),
    }
}

/// Seconds in two units: `850 ms`, `3.2 s`, `45 s`, `7 min 58 s`, `9 h 20 min`, `3 d 4 h`.
pub fn duration(seconds: f64) -> String {
    const YEAR: f64 = 365.25 * 86_400.0;
    if !seconds.is_finite() || seconds < 0.0 {
        return "?".into();
    }
    if seconds < 0.9995 {
        return format!("{:.0} ms", seconds * 1000.0);
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    if seconds > 10.0 * YEAR {
        return "more than 10 years".into();
    }
    let whole = seconds.round() as u64;
    let two = |large: u64, name: &str, small: u64, small_name: &str| match small {
        0 => format!("{large} {name}"),
        _ => format!("{large} {name} {small} {small_name}"),
    };
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => two(whole / 60, "min", whole % 60, "s"),
        3600..86_400 => {
            let minutes = (seconds / 60.0).round() as u64;
            match minutes / 60 {
                24 => "1 d".into(),
                hours => two(hours, "h", minutes % 60, "min"),
            }
        }
        _ => {
            let hours = (seconds / 3600.0).round() as u64;
            two(hours / 24, "d", hours % 24, "h")
        }
    }
}

/// Seconds in one unit, for tables: `45 s`, `7.9 min`, `6.7 h`, `3.2 d`.
pub fn age(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() || s < 0.0 => "?".into(),
        s if s < 59.5 => format!("{s:.0} s"),
        s if s < 59.95 * 60.0 => format!("{:.1} min", s / 60.0),
        s if s < 23.95 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
}

/// How fast steps pass: `3.1/s`, or `12 s a step` where they are slow; `None` while unknown.
pub fn rate(steps_per_second: f64) -> Option<String> {
    if !steps_per_second.is_finite() || steps_per_second <= 0.0 {
        None
    } else if steps_per_second < 0.5 {
        Some(format!("{} a step", duration(1.0 / steps_per_second)))
    } else {
        Some(format!("{steps_per_second:.1}/s"))
    }
}

/// A moment as `2025-11-30 10:53:20 UTC`, from seconds since the Unix epoch.
pub fn date(unix_seconds: u64) -> String {
    let moment = i64::try_from(unix_seconds)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    match moment {
        Some(moment) => moment.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        None => "?".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_as_people_say_them() {
        for (number, shown) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 KB"),
            (164_352, "164.4 KB"),
            (999_949, "999.9 KB"),
            (999_950, "1.0 MB"),
            (85_899_345_920, "85.9 GB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(number), shown);
        }
        assert_eq!(growth(164_352.0), "+164.4 KB/step");
        assert_eq!(growth(-0.2), "0 B/step");
        assert_eq!(signed_bytes(-3e6), "-3.0 MB");
        assert_eq!(signed_bytes(f64::NAN), "?");
    }

    #[test]
    fn intervals_share_the_unit_of_their_middle() {
        let interval = |low, high| Interval { low, high };
        let around = |low, high| plus_minus(164_352.0, interval(low, high));
        assert_eq!(around(164_052.0, 164_652.0).as_deref(), Some("±0.3"));
        assert_eq!(around(164_352.0, 164_352.0).as_deref(), Some("±0.0"));
        assert_eq!(around(164_350.0, 164_353.0).as_deref(), Some("±0.1"));
        assert_eq!(around(0.0, 164_353.0).as_deref(), Some("±164.4"));
        assert_eq!(around(0.0, f64::INFINITY), None);
        assert_eq!(
            plus_minus(512.0, interval(500.0, 520.0)).as_deref(),
            Some("±12")
        );
    }

    #[test]
    fn times_have_at_most_two_units() {
        for (seconds, shown) in [
            (0.0, "0 ms"),
            (0.85, "850 ms"),
            (3.21, "3.2 s"),
            (9.96, "10 s"),
            (59.6, "1 min"),
            (478.0, "7 min 58 s"),
            (3599.6, "1 h"),
            (33_600.0, "9 h 20 min"),
            (86_390.0, "1 d"),
            (273_600.0, "3 d 4 h"),
            (1e12, "more than 10 years"),
            (f64::INFINITY, "?"),
        ] {
            assert_eq!(duration(seconds), shown, "{seconds}");
        }
        assert_eq!(age(478.0), "8.0 min");
        assert_eq!(age(59.4), "59 s");
        assert_eq!(rate(3.1).as_deref(), Some("3.1/s"));
        assert_eq!(rate(1.0 / 12.0).as_deref(), Some("12 s a step"));
        assert_eq!(rate(0.0), None);
    }

    #[test]
    fn shares_are_never_rounded_to_none_or_all() {
        for (share, shown) in [
            (0.0, "0 %"),
            (0.001, "<1 %"),
            (0.9252, "93 %"),
            (0.999, ">99 %"),
            (1.0, "100 %"),
            (f64::NAN, "? %"),
        ] {
            assert_eq!(percent(share), shown);
        }
    }

    #[test]
    fn dates_are_in_utc() {
        assert_eq!(date(1_764_500_000), "2025-11-30 10:53:20 UTC");
        assert_eq!(date(u64::MAX), "?");
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1482), "1,482");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(short_count(1_234_567), "1.2 M");
    }
}

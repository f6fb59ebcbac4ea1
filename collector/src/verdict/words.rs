//! Numbers in the sentences of a verdict, in decimal units.

/// `164.4 KB`.
pub(super) fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 7] = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
    let (mut value, mut unit) = (bytes.abs(), 0);
    while unit + 1 < UNITS.len() && value >= if unit == 0 { 999.5 } else { 999.95 } {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{value:.0} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

/// `1,482`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `93 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// `3 steps`, `1 step`.
pub(super) fn steps(number: u64) -> String {
    match number {
        1 => "1 step".to_owned(),
        _ => format!("{} steps", count(number)),
    }
}

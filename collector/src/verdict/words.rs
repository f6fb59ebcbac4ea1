//! Numbers in the sentences of a verdict, as the reports write them.

use crate::report::units;

pub(super) use units::{count, percent};

/// `164.4 KB`, without a sign.
pub(super) fn bytes(bytes: f64) -> String {
    units::bytes(bytes.abs().round() as u64)
}

/// `3 steps`, `1 step`.
pub(super) fn steps(number: u64) -> String {
    match number {
        1 => "1 step".to_owned(),
        _ => format!("{} steps", count(number)),
    }
}

//! Who took the driver's memory, in a line.

use super::units;
use crate::{escape, view::DeviceView};

/// Driver memory by the line of the user's code that was running when it was taken, largest first.
pub(super) fn parts(device: &DeviceView) -> String {
    let mut parts: Vec<(String, u64)> = Vec::new();
    for site in device.driver_sites.iter() {
        let place = match site.own_frame() {
            Some(frame) => {
                let file = frame.file.rsplit('/').next().unwrap_or_default();
                match frame.line {
                    0 => escape::line(file, 40),
                    line => format!("{}:{line}", escape::line(file, 40)),
                }
            }
            None => "no Python frame".into(),
        };
        match parts.iter_mut().find(|(name, _)| *name == place) {
            Some((_, bytes)) => *bytes += site.live_bytes,
            None => parts.push((place, site.live_bytes)),
        }
    }
    parts.retain(|(_, bytes)| *bytes > 0);
    parts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let shown = parts.iter().take(4);
    let mut out: Vec<String> = shown
        .map(|(name, bytes)| format!("{name} {}", units::bytes(*bytes)))
        .collect();
    if parts.len() > 4 {
        let rest = parts[4..].iter().map(|(_, bytes)| bytes).sum();
        out.push(format!("others {}", units::bytes(rest)));
    }
    out.join(", ")
}

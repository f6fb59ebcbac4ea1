//! Who has the device's memory, in words.

use super::units;
use crate::{
    escape,
    view::{BucketKind, DeviceUser, DeviceView, ProcessView},
};

/// Other processes that are named; more are summed up.
const NAMED: usize = 8;

/// A row of the table of shares.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Whose or what it is. Safe to show.
    pub name: String,
    /// How much, where known.
    pub bytes: Option<u64>,
    /// The part of what the process uses.
    pub part: Option<f64>,
}

/// The shares of the process, and their sum.
pub fn rows(device: &DeviceView) -> Vec<Row> {
    let used = device.used.filter(|used| *used > 0);
    let part = |bytes: u64| used.map(|used| bytes as f64 / used as f64);
    let mut rows: Vec<Row> = (device.buckets.iter())
        .map(|bucket| Row {
            name: escape::line(&bucket.name, 60),
            bytes: Some(bucket.bytes),
            part: part(bucket.bytes),
        })
        .collect();
    if let Some(used) = used {
        rows.push(Row {
            name: "in all, as the driver counts".into(),
            bytes: Some(used),
            part: Some(1.0),
        });
    }
    rows
}

/// The other processes on the device, largest first, the last ones together.
pub fn others(device: &DeviceView) -> Vec<Row> {
    let row = |user: &DeviceUser| Row {
        name: match user.command.is_empty() {
            true => format!("pid {}", user.pid),
            false => format!("pid {}, {}", user.pid, escape::line(&user.command, 120)),
        },
        bytes: user.bytes,
        part: None,
    };
    let shown = device.others.len().min(NAMED);
    let (shown, rest) = device.others.split_at(shown);
    let mut rows: Vec<Row> = shown.iter().map(row).collect();
    if !rest.is_empty() {
        let bytes = rest.iter().filter_map(|user| user.bytes);
        rows.push(Row {
            name: format!("{} more", rest.len()),
            bytes: Some(bytes.fold(0, u64::saturating_add)),
            part: None,
        });
    }
    rows
}

/// A size, or that it is not known.
pub fn bytes(bytes: Option<u64>) -> String {
    bytes.map_or("unknown".into(), units::bytes)
}

/// What the shares do not tell, or need said, one sentence each.
pub fn notes(process: &ProcessView, device: &DeviceView) -> Vec<String> {
    let mut out = Vec::new();
    let sum = |kind| -> u64 {
        let of_kind = device.buckets.iter().filter(|bucket| bucket.kind == kind);
        of_kind.map(|bucket| bucket.bytes).sum()
    };
    let fragmented = sum(BucketKind::Fragmented);
    if fragmented > 0 {
        out.push(format!(
            "{} of the cache lie in gaps too small for the largest block that was asked for lately \
             ({}): they serve smaller ones.",
            units::bytes(fragmented),
            units::bytes(device.largest_request)
        ));
    }
    let cached = sum(BucketKind::Cached);
    if cached > 0 {
        out.push(format!(
            "Of {} of the cache it is not known whether they can be used again: they are in segments \
             from before the attach.",
            units::bytes(cached)
        ));
    }
    if device.excess > 0 {
        out.push(format!(
            "{} more were seen to be taken than the driver counts for this process: managed memory \
             that lies on the host, or memory that was given back unseen.",
            units::bytes(device.excess)
        ));
    }
    if device.used.is_none() && device.capacity.is_some() {
        out.push(
            "The driver does not tell what this process uses: contexts, and what was taken unseen, \
             are not among the shares."
                .into(),
        );
    }
    if process.host_bytes > 0 {
        out.push(format!(
            "{} of page-locked host memory were taken since the attach: not the device's.",
            units::bytes(process.host_bytes)
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use vramscope_events::Pid;

    use super::*;
    use crate::{fixture, view::Bucket};

    #[test]
    fn the_shares_add_up_to_what_the_driver_counts() {
        let view = fixture::leak();
        let device = &view.processes[0].devices[0];
        let rows = rows(device);
        let (sum, shares) = rows.split_last().unwrap();
        let bytes = |row: &Row| row.bytes.unwrap();
        assert_eq!(shares.iter().map(bytes).sum::<u64>(), bytes(sum));
        assert_eq!(bytes(sum), device.used.unwrap());
        let parts: f64 = shares.iter().map(|row| row.part.unwrap()).sum();
        assert!((parts - 1.0).abs() < 1e-9);
    }

    #[test]
    fn other_processes_are_named_or_summed_up() {
        let mut view = fixture::leak();
        let device = &mut view.processes[0].devices[0];
        let user = |pid: u32, command: &str, bytes| DeviceUser {
            pid: Pid(pid),
            command: command.into(),
            bytes,
        };
        device.others = [
            user(7, "python\x1b[2J evil.py", Some(5 << 30)),
            user(8, "", None),
        ]
        .into();
        let rows = others(device);
        assert_eq!(rows[0].name, "pid 7, python\\x1b[2J evil.py");
        assert_eq!((&*rows[1].name, rows[1].bytes), ("pid 8", None));
        device.others = (0..20).map(|pid| user(pid, "x", Some(1))).collect();
        let rows = others(device);
        assert_eq!(rows.len(), NAMED + 1);
        assert_eq!(rows[NAMED].name, "12 more");
        assert_eq!(rows[NAMED].bytes, Some(12));
    }

    #[test]
    fn what_the_shares_do_not_tell_is_said() {
        let mut view = fixture::leak();
        let process = &mut view.processes[0];
        process.host_bytes = 0;
        let device = &mut process.devices[0];
        device.buckets = vec![Bucket {
            kind: BucketKind::Cached,
            name: "cached".into(),
            bytes: 5,
        }];
        device.used = None;
        device.excess = 3;
        let notes = notes(&view.processes[0], &view.processes[0].devices[0]);
        let said = |words: &str| notes.iter().any(|note| note.contains(words));
        assert!(said("from before the attach") && said("does not tell") && said("3 B more"));
        assert_eq!(notes.len(), 3);
    }
}

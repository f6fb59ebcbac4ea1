//! JSON for speedscope.app, by its published schema: profiles of the type `sampled`, one by bytes
//! and one by blocks for each device and layer.

use serde::Serialize;

use crate::selection::{Kind, Part, Selection, Weight};

#[derive(Serialize)]
struct File {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: String,
    exporter: String,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared,
    profiles: Vec<Profile>,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    #[serde(skip_serializing_if = "is_zero")]
    line: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A whole selection.
///
/// # Errors
/// The writer's.
pub fn write(selection: &Selection, out: impl std::io::Write) -> serde_json::Result<()> {
    let mut profiles = Vec::new();
    for part in &selection.parts {
        profiles.push(profile(selection, part, Weight::Bytes));
        if selection.kind != Kind::Growth {
            profiles.push(profile(selection, part, Weight::Blocks));
        }
    }
    let largest = selection.largest().map(|part| part.key);
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        name: std::iter::once(selection.title.clone())
            .chain(selection.notes.iter().cloned())
            .collect::<Vec<_>>()
            .join("; "),
        exporter: concat!("vramscope@", env!("CARGO_PKG_VERSION")).into(),
        active: (selection
            .parts
            .iter()
            .position(|part| Some(part.key) == largest))
        .map_or(0, |part| {
            if selection.kind == Kind::Growth {
                part
            } else {
                2 * part
            }
        }),
        shared: Shared {
            frames: (selection.table.frames.iter())
                .map(|frame| Frame {
                    name: frame.function.clone(),
                    file: frame.file.clone(),
                    line: frame.line,
                })
                .collect(),
        },
        profiles,
    };
    serde_json::to_writer(out, &file)
}

fn profile(selection: &Selection, part: &Part, weight: Weight) -> Profile {
    let rows = part.by_stack();
    let rows = || rows.iter().filter(|row| row.weight(weight) > 0);
    Profile {
        kind: "sampled",
        name: format!(
            "{} of {} in {}",
            match weight {
                Weight::Bytes => "bytes",
                Weight::Blocks => "blocks",
            },
            selection.title.to_lowercase(),
            part.name()
        ),
        unit: match weight {
            Weight::Bytes => "bytes",
            Weight::Blocks => "none",
        },
        start_value: 0,
        end_value: rows().map(|row| row.weight(weight)).sum(),
        samples: rows()
            .map(|row| {
                let frames = selection.table.stack(row.stack).frames.iter().rev();
                frames.map(|frame| frame.0).collect()
            })
            .collect(),
        weights: rows().map(|row| row.weight(weight)).collect(),
    }
}

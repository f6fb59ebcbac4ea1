//! A second reader, in Python, written from docs/recording-format.md alone, reads the same.

mod common;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use vramscope_events::{Event, Layer, Record};
use vramscope_recording::{Checkpoint, Recording, Writer};

/// A Python that can decompress zstd.
fn python() -> Option<PathBuf> {
    let candidates = ["python3", "/usr/bin/python3"].map(PathBuf::from);
    candidates.into_iter().find(|python| {
        let tried = Command::new(python)
            .args(["-c", "import zstandard"])
            .output();
        tried.is_ok_and(|tried| tried.status.success())
    })
}

fn read_by_python(python: &Path, file: &Path, options: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reader/read.py");
    let output = Command::new(python)
        .arg(script)
        .arg(file)
        .args(options)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The same sums by the Rust reader.
fn live(records: &[Record]) -> Value {
    let number = |layer: Layer| layer as u32;
    let mut live = BTreeMap::new();
    for record in records {
        let process = record.process.0;
        match &record.event {
            Event::Alloc(alloc) => {
                let key = (process, number(alloc.layer), alloc.address.0);
                live.insert(key, (alloc.device.0, alloc.size));
            }
            Event::Free(free) => {
                live.remove(&(process, number(free.layer), free.address.0));
            }
            _ => {}
        }
    }
    let mut sums: BTreeMap<(u32, u32, u16), (u64, u64)> = BTreeMap::new();
    for ((process, layer, _), (device, size)) in live {
        let sum = sums.entry((process, layer, device)).or_default();
        sum.0 += 1;
        sum.1 += size;
    }
    let rows = sums
        .into_iter()
        .map(|((process, layer, device), (blocks, bytes))| {
            json!([process, layer, device, blocks, bytes])
        });
    rows.collect()
}

#[test]
fn a_reader_written_from_the_document_agrees() {
    let Some(python) = python() else {
        println!("SKIP: a_reader_written_from_the_document_agrees: no Python with zstandard");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.vrs");
    // Many different chunks, and a checkpoint that is right: what is live then.
    let mut writer = Writer::default();
    let mut bytes = writer.session(&common::info());
    let mut records = Vec::new();
    for i in 0..30 {
        let chunk = common::varied(i);
        bytes.extend(writer.records(&chunk));
        records.extend(chunk);
        if i == 20 {
            let checkpoint = Checkpoint {
                time: records.last().unwrap().time,
                definitions: common::definitions(&records),
                blocks: common::live_blocks(&records),
                state_version: 9,
                state: vec![1, 2, 3],
            };
            bytes.extend(writer.checkpoint(&checkpoint));
        }
    }
    std::fs::write(&path, &bytes).unwrap();
    let whole = read_by_python(&python, &path, &[]);
    let expected = live(&records);
    assert_eq!(whole["live"], expected);
    assert!(expected.as_array().unwrap().len() >= 3, "{expected}");
    // And from the checkpoint on.
    let late = read_by_python(&python, &path, &["--from-checkpoint"]);
    assert_eq!(late["live"], expected);
    let allocations = records
        .iter()
        .filter(|record| matches!(record.event, Event::Alloc(_)));
    assert_eq!(whole["counts"]["0"], allocations.count());
    // A recording of a real session, too, if one is named.
    if let Some(file) = std::env::var_os("VRAMSCOPE_RECORDING") {
        let file = PathBuf::from(file);
        let recording = Recording::open(&file).unwrap();
        let records: Vec<Record> = recording
            .batches()
            .flat_map(|batch| batch.unwrap().records)
            .collect();
        let by_python = read_by_python(&python, &file, &[]);
        assert_eq!(by_python["live"], live(&records));
    }
}

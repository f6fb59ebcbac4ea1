//! A cut or changed file gives the right prefix with a note, or a refusal that says where: never a
//! panic, never a record that was not written.

mod common;

use common::{Small, small};
use vramscope_events::Record;
use vramscope_recording::{DamageKind, Piece, Recording};

/// What a reader made of some bytes.
struct Outcome {
    /// Records by the run they belong to: a restart begins a new one.
    runs: Vec<Vec<Record>>,
    noted: bool,
}

/// `None`: refused.
fn read(bytes: Vec<u8>) -> Option<Outcome> {
    let recording = match Recording::from_bytes(bytes) {
        Ok(recording) => recording,
        Err(error) => {
            assert!(error.to_string().contains("byte") || error.to_string().contains("begins"));
            return None;
        }
    };
    let mut runs = vec![Vec::new()];
    let mut pieces = recording.pieces();
    for piece in pieces.by_ref() {
        match piece.expect("memory does not fail") {
            Piece::Records(records) => runs.last_mut().expect("one").extend(records),
            Piece::Checkpoint { restart: true, .. } => runs.push(Vec::new()),
            _ => {}
        }
    }
    Some(Outcome {
        runs,
        noted: !pieces.damage().is_empty(),
    })
}

/// The first run must be a prefix of what was written, a later one a part of what follows the
/// checkpoint.
fn assert_right(small: &Small, outcome: &Outcome, what: &str) {
    let all = small.records.concat();
    assert!(all.starts_with(&outcome.runs[0]), "{what}: no prefix");
    let after = small.records[2..].concat();
    for run in &outcome.runs[1..] {
        assert!(after.starts_with(run), "{what}: no part");
    }
    let whole = outcome.runs.len() == 1 && outcome.runs[0].len() == all.len();
    assert!(
        whole || outcome.noted,
        "{what}: something is missing without a word"
    );
}

#[test]
fn cut_at_every_byte() {
    let small = small();
    for length in 0..small.bytes.len() {
        if let Some(outcome) = read(small.bytes[..length].to_vec()) {
            // Without the last 16 bytes nothing is missing: they only help to find the end.
            let whole = length == small.bytes.len() - 16;
            assert!(outcome.noted || whole, "cut at {length} without a word");
            assert_right(&small, &outcome, &format!("cut at {length}"));
        }
    }
}

#[test]
fn every_byte_changed() {
    let small = small();
    let mut noted = 0;
    for at in 0..small.bytes.len() {
        for mask in [1, 0x80, 0xff] {
            let mut bytes = small.bytes.clone();
            bytes[at] ^= mask;
            let what = format!("byte {at} changed by {mask:#x}");
            if let Some(outcome) = read(bytes) {
                assert_right(&small, &outcome, &what);
                noted += usize::from(outcome.noted);
            }
        }
    }
    assert!(noted > small.bytes.len(), "most changes are seen: {noted}");
}

#[test]
fn events_go_on_at_the_checkpoint_after_damage() {
    let small = small();
    // The second chunk of events: somewhere between the session and the checkpoint.
    let recording = Recording::from_bytes(small.bytes.clone()).unwrap();
    let checkpoint = recording.checkpoints()[0].offset as usize;
    let mut bytes = small.bytes.clone();
    bytes[checkpoint - 5] ^= 1;
    let outcome = read(bytes).expect("not refused");
    assert_eq!(outcome.runs[0], small.records[0]);
    assert_eq!(outcome.runs[1], small.records[2..].concat());
}

#[test]
fn a_chunk_taken_out_is_missed() {
    let small = small();
    let recording = Recording::from_bytes(small.bytes.clone()).unwrap();
    let checkpoint = recording.checkpoints()[0].offset as usize;
    // The chunk before the checkpoint begins at the last mark before it.
    let marks: Vec<usize> = (0..checkpoint)
        .filter(|at| small.bytes[*at..].starts_with(b"vrsC"))
        .collect();
    let mut bytes = small.bytes.clone();
    bytes.drain(marks[marks.len() - 1]..checkpoint);
    let recording = Recording::from_bytes(bytes.clone()).unwrap();
    let mut pieces = recording.pieces();
    let restarted = pieces
        .by_ref()
        .any(|piece| matches!(piece, Ok(Piece::Checkpoint { restart: true, .. })));
    assert!(restarted);
    assert!(matches!(
        pieces.damage()[0].kind,
        DamageKind::Missing { chunks: 1 }
    ));
}

#[test]
fn foreign_files_are_named() {
    for (bytes, word) in [
        (b"".to_vec(), "nothing"),
        (b"#!/bin/sh\nexit 0\n".to_vec(), "#!/bin/s"),
        (vec![0; 4096], "\\x00"),
    ] {
        let error = Recording::from_bytes(bytes).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

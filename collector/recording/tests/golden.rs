//! A file of this version is read by every later one.
//!
//!     UPDATE_GOLDEN=1 cargo test -p vramscope-recording --test golden
//!
//! writes it anew: only with a new major version of the format.

mod common;

use std::path::Path;

use vramscope_recording::{FORMAT, Recording};

#[test]
fn the_golden_file_is_read_as_ever() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/golden/version-{}.vrs", FORMAT.major));
    let small = common::small();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &small.bytes).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    let (records, pieces) = common::read(bytes.clone());
    // Not `assert_eq`: hundreds of records say nothing to a person.
    let expected = small.records.concat();
    let differs = records.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!((records.len(), differs), (expected.len(), None));
    assert_eq!(pieces, common::read(small.bytes).1);
    let recording = Recording::from_bytes(bytes).unwrap();
    assert_eq!(recording.damage(), []);
    assert_eq!(recording.info(), &common::info());
}

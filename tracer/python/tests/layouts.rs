//! The tables compared with CPython's own headers, and with what a running
//! interpreter tells of itself.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use common::{Interpreter, Target, interpreters, note};
use vramscope_python::{Offsets, OffsetsSource, Process, find};

#[test]
fn tables_equal_the_headers() {
    for python in interpreters("layouts") {
        let Some(from_headers) = layout_of_headers(&python) else {
            note(&format!(
                "SKIP: layouts: {}: no headers in {}, or no C compiler",
                python.version,
                python.include.display()
            ));
            continue;
        };
        let table = Offsets::for_version(python.version).unwrap();
        let mut target = Target::start(
            Command::new(&python.program).args(["-c", "print('started', flush=True); input()"]),
        );
        target.line();
        let process = Process::open(target.pid()).unwrap();
        let found = find(&process).unwrap();
        match &found.offsets_source {
            OffsetsSource::Table => {
                assert!(python.version.minor < 13);
                assert_eq!(found.offsets, table);
            }
            OffsetsSource::Process { differences } => note(&format!(
                "layouts: {}: own offsets, {} other than the table's: {differences:?}",
                python.version,
                differences.len()
            )),
        }
        // A micro version without a row of its own may differ from its table,
        // but not from its own word.
        let mut effective = as_text(&found.offsets);
        if found.offsets.runtime_tss_key.is_none() {
            // Not known for 3.14, and not needed: the slot is searched for.
            effective.insert(
                "runtime_tss_key".to_owned(),
                from_headers["runtime_tss_key"].clone(),
            );
        }
        assert_eq!(effective, from_headers, "{}", python.version);
        note(&format!(
            "layouts: {}: {} fields equal those of {}",
            python.version,
            from_headers.len(),
            python.include.display()
        ));
    }
}

/// What `offsets/layout.c` prints when it is compiled for an interpreter.
fn layout_of_headers(python: &Interpreter) -> Option<BTreeMap<String, String>> {
    if !python.include.join("internal").is_dir() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("layout");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("offsets/layout.c");
    let compiler = Command::new("cc")
        .arg("-w")
        .arg("-I")
        .arg(&python.include)
        .arg("-I")
        .arg(python.include.join("internal"))
        // Debian's keep a part of themselves beside them, by architecture.
        .arg("-I")
        .arg(python.include.join(".."))
        .arg("-o")
        .arg(&program)
        .arg(source)
        .status()
        .ok()?;
    assert!(compiler.success(), "{}: {compiler}", python.version);
    let output = Command::new(program).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let fields = lines.lines().map(|line| {
        let (name, value) = line.trim().trim_end_matches(',').split_once(": ").unwrap();
        let value = value
            .strip_prefix("Some(")
            .map_or(value, |v| v.trim_end_matches(')'));
        let value = value.rsplit("::").next().unwrap();
        (name.to_owned(), value.to_owned())
    });
    Some(fields.collect())
}

fn as_text(offsets: &Offsets) -> BTreeMap<String, String> {
    let mut fields: BTreeMap<String, String> = offsets
        .fields()
        .into_iter()
        .map(|(name, value)| {
            let value = value.map_or("None".to_owned(), |value| value.to_string());
            (name.to_owned(), value)
        })
        .collect();
    fields.insert(
        "instruction_kind".to_owned(),
        format!("{:?}", offsets.instruction_kind),
    );
    fields.insert(
        "line_format".to_owned(),
        format!("{:?}", offsets.line_format),
    );
    fields
}

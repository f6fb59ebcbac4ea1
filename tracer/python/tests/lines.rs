//! The line of every instruction in many files of the standard library,
//! compared with what each interpreter says.

mod common;

use common::{Target, interpreters, note};
use serde::Deserialize;
use vramscope_python::{Address, CodeObject, LineTable, Process, find, read_code};

/// A code object as its interpreter tells it.
#[derive(Debug, Deserialize)]
struct Truth {
    address: u64,
    file: String,
    name: String,
    first_line: i32,
    table: Vec<u8>,
    /// (code units, line) in order.
    runs: Vec<(u32, Option<u32>)>,
}

#[test]
fn lines_equal_those_of_tracebacks() {
    for python in interpreters("lines") {
        let mut target = Target::script(&python, "lines.py");
        let mut truths: Vec<Truth> = Vec::new();
        while let Some(truth) = serde_json::from_str(&target.line()).unwrap() {
            truths.push(truth);
        }
        let process = Process::open(target.pid()).unwrap();
        let found = find(&process).unwrap();
        let mut instructions = 0;
        let mut without_line = 0;
        for truth in &truths {
            let code = read_code(&process, &found, Address(truth.address)).unwrap();
            let table = LineTable::new(
                found.offsets.line_format,
                truth.first_line,
                truth.table.clone(),
            );
            let expected = CodeObject {
                file: truth.file.clone(),
                qualname: truth.name.clone(),
                first_line: truth.first_line,
                line_table: table,
            };
            assert_eq!(code, expected, "{}", found.version);
            let lines = truth
                .runs
                .iter()
                .flat_map(|(units, line)| std::iter::repeat_n(*line, *units as usize));
            for (unit, line) in lines.enumerate() {
                let offset = unit as i32 * 2;
                assert_eq!(
                    code.line(offset),
                    line,
                    "{}: at {offset} of {code:?}",
                    found.version
                );
                instructions += 1;
                without_line += usize::from(line.is_none());
            }
            assert_eq!(code.line(-2), u32::try_from(truth.first_line).ok());
        }
        assert!(truths.len() > 2000 && instructions > 100_000);
        note(&format!(
            "{}: {} code objects, {instructions} code units ({without_line} without a line) equal",
            found.version,
            truths.len(),
        ));
        target.finish();
    }
}

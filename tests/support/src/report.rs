//! Looking things up in a JSON report, and in what programs print.

use std::collections::HashMap;

use serde_json::Value;

/// A whole number of a report.
pub fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {value}"))
}

/// Words of a line, each second one a value: `rank 2 pid 17`.
pub fn pairs(line: &str) -> HashMap<String, u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words
        .chunks_exact(2)
        .map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap()))
        .collect()
}

/// The processes of a report that have a device, by their numbers.
pub fn with_devices(report: &Value) -> HashMap<u64, &Value> {
    let processes = report["processes"].as_array().expect("several processes");
    let with = processes
        .iter()
        .filter(|one| !one["devices"].as_array().unwrap().is_empty());
    with.map(|one| (number(one, "pid"), one)).collect()
}

/// The device of a process on which PyTorch has blocks.
pub fn tensors(process: &Value) -> &Value {
    let devices = process["devices"].as_array().unwrap();
    devices
        .iter()
        .find(|device| device["tensor_layer"] == true)
        .unwrap_or_else(|| panic!("no tensors in {process}"))
}

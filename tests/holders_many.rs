//! Very many objects and survivors: an answer within the budget, or one that says how far it came,
//! and never much memory in the process.

use std::fs;

use vramscope_holders::{Asker, Kind, Request};
use vramscope_test_support::{Program, Setup, TORCHES, Tool, missing, root, skip};

/// More than the process may grow by for a question.
const MOST_KB: u64 = 200 << 10;

#[test]
fn very_many_objects_are_searched_in_slices() {
    let name = "very_many_objects";
    if let Some(reason) = missing(&Tool::new(env!("CARGO_BIN_EXE_vramscope"))) {
        return skip(name, &reason);
    }
    let all = std::env::var_os("VRAMSCOPE_HOLDERS_ALL").is_some();
    let (objects, tensors) = if all {
        ("10000000", "100000")
    } else {
        ("400000", "4000")
    };
    let mut program = Program::start(
        &Setup::new(TORCHES[0]),
        &root().join("tests/programs/holders/many.py"),
        &[objects, tensors],
    );
    let file = program.expect("blocks ");
    program.expect("ready");
    let addresses: Vec<u64> = (fs::read_to_string(&file).unwrap().lines())
        .map(|line| u64::from_str_radix(line.trim_start_matches("0x"), 16).unwrap())
        .collect();
    fs::remove_file(&file).unwrap();
    for budget_ms in [2_000, 60_000] {
        let mut asker = Asker::attach(program.pid()).unwrap();
        let answer = asker.ask(&Request {
            sizes: vec![512; addresses.len()],
            addresses: addresses.clone(),
            budget_ms,
            slice_ms: 10,
            memory: 160 << 20,
        });
        assert!(asker.leave(), "the library stays");
        let answer = answer.unwrap();
        println!(
            "{objects} objects, {tensors} tensors, budget {budget_ms} ms: {:?}, partial {:?}",
            answer.cost, answer.partial
        );
        let mut told: Vec<u32> = (answer.holders.iter())
            .flat_map(|holder| holder.members.iter().copied())
            .collect();
        told.sort_unstable();
        // Every block is told of once, if only that it was not found.
        assert!(told.iter().copied().eq(0..addresses.len() as u32));
        if answer.partial.is_some() {
            assert_eq!(budget_ms, 2_000, "enough time: {answer:?}");
            continue;
        }
        let found: Vec<(Kind, &str, usize)> = (answer.holders.iter())
            .map(|holder| (holder.kind, &*holder.path, holder.members.len()))
            .collect();
        let half = addresses.len() / 2;
        let in_list = (Kind::Tensor, "__main__.listed[*]", half);
        assert!(found.contains(&in_list), "{found:?}");
        let in_dict = (Kind::Tensor, "__main__.keyed[*]", half);
        assert!(found.contains(&in_dict), "{found:?}");
        assert_eq!(found.len(), 2, "{found:?}");
        let length = answer.holders[0].container_length.unwrap();
        let each: u64 = objects.parse().unwrap();
        assert_eq!(length, each / 2 + half as u64);
    }
    program.say("go");
    let memory = program.expect("memory ");
    let (before, peak) = memory.split_once(' ').unwrap();
    let grown: u64 = peak.parse::<u64>().unwrap() - before.parse::<u64>().unwrap();
    println!("memory grew by {grown} kB at most");
    assert!(grown < MOST_KB, "{memory}");
    program.expect("end");
    program.finish();
}

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

/// A process that is asked again and again while twelve threads train is as one that nobody asked.
#[test]
fn being_asked_changes_nothing() {
    if let Some(reason) = missing(&Tool::new(env!("CARGO_BIN_EXE_vramscope"))) {
        return skip("being_asked_changes_nothing", &reason);
    }
    let repeat = std::env::var("VRAMSCOPE_REPEAT").ok();
    let times: usize = repeat.and_then(|times| times.parse().ok()).unwrap_or(10);
    let script = root().join("tests/programs/holders/busy_training.py");
    let setup = Setup::new(TORCHES[0]);
    let mut alone = Program::start(&setup, &script, &["20"]);
    alone.expect("ready");
    let expected = end(&mut alone);
    let mut program = Program::start(&setup, &script, &["20"]);
    let block = program.expect("block 0x");
    program.expect("ready");
    let pid = program.pid();
    let before = open_files(pid);
    let mut longest = Vec::new();
    for time in 0..times {
        // Every third question is about nobody's block: all objects are looked at.
        let address = match time % 3 {
            2 => 0x1000,
            _ => u64::from_str_radix(&block, 16).unwrap(),
        };
        let mut asker = Asker::attach(pid).unwrap();
        let answer = asker.ask(&Request {
            addresses: vec![address],
            sizes: vec![4096],
            budget_ms: 20_000,
            slice_ms: 10,
            memory: 160 << 20,
        });
        assert!(asker.leave(), "question {time}: the library stays");
        let answer = answer.unwrap();
        assert_eq!(answer.partial, None);
        let first = &answer.holders[0];
        match address {
            0x1000 => assert_ne!(first.kind, Kind::Tensor, "{first:?}"),
            _ => assert_eq!(first.path, "__main__.kept[*]", "{first:?}"),
        }
        longest.push(answer.cost.longest_us);
    }
    longest.sort_unstable();
    println!(
        "{times} questions; longest time with the GIL in one: median {} us, worst {} us",
        longest[times / 2],
        longest[times - 1]
    );
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    assert!(!maps.contains("memfd:vramscope-agent"), "{maps}");
    assert_eq!(open_files(pid), before, "descriptors are left open");
    assert_eq!(end(&mut program), expected);
}

/// The digest of all curves, what is left of the memory, and counts of references.
fn end(program: &mut Program) -> [String; 2] {
    program.say("end");
    let said = [program.expect("digest "), program.expect("left ")];
    assert!(program.finish().success());
    said
}

fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}
